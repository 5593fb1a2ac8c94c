/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What the tests of steps by a page plan share: a step on the pager of
 * pager_fixture.h, and its plan. One thread sets up and tears down.
 */
#ifndef TS_TEST_ENFORCE_FIXTURE_H
#define TS_TEST_ENFORCE_FIXTURE_H

#include "runtime/enforce_internal.h"
#include "tests/unit/pager_fixture.h"

/*
 * A step as training has it: LAYERS ops write a block each, as many read them
 * in reverse. A parameter of one block is read first and written last; between
 * the passes an op writes and reads a block that lives for it alone.
 */
#define LAYERS 12
#define PASSES (2 * LAYERS)
#define OPS    (PASSES + 3)
#define LOSS   (LAYERS + 1)
#define BLOCK  (4 * PAGE)
#define TICKS  (OPS * 10)
/* Layers that stay; of the others each is away while it is not used. */
#define KEPT 3

struct enforce_model {
	uint64_t segment; /* parameter, temporary, layers */
	struct ts_page_plan plan;
	int step; /* what the step writes */
	bool alive[LAYERS];
};

extern struct enforce_model model;

uint64_t parameter(void);
uint64_t temporary(void);
uint64_t layer(int i);
uint32_t written_at(int i);
uint32_t read_at(int i);
struct ts_plan_hold hold(
        uint64_t address, uint32_t take_op, uint32_t release_op);
void plan_for(const struct ts_plan_hold *holds, uint32_t n);
void start(uint64_t limit_pages);
void end(void);
void adopt(void);
int content(int i);
void op(int index);
void step_by_plan(void);
void step_by_pager(void);

#endif
