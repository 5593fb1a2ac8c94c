/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What the tests of the pager share: one pager on the fake device, and ops
 * that write and read through it. One thread sets up and tears down.
 */
#ifndef TS_TEST_PAGER_FIXTURE_H
#define TS_TEST_PAGER_FIXTURE_H

#include <errno.h>
#include <string.h>

#include "runtime/pager_internal.h"
#include "tests/unit/fake_gpu.h"
#include "tests/unit/suite.h"

#define PAGE     FAKE_GRANULE
#define CONTEXT  (4 * PAGE)
#define STREAM_A ((ts_stream_key)0x10)
#define STREAM_B ((ts_stream_key)0x20)

extern struct ts_pager *pager;
/* The pagers set up from now on have a thread of their own. */
extern bool with_helper;

void setup_with(uint64_t limit_pages, uint64_t host_pages);
void teardown(void);
uint64_t alloc(uint64_t bytes);
struct ts_range range(uint64_t address, uint64_t bytes);
int begin(struct ts_range *ranges, size_t count, ts_stream_key stream);
/* An op that writes @value to every byte of the range. */
int write_op(uint64_t address, uint64_t bytes, int value, ts_stream_key stream);
void expect_bytes(uint64_t address, uint64_t bytes, int value);
/* An op that reads what may never have been written. */
void read_op(uint64_t address, uint64_t bytes);
struct ts_pager_stats stats(void);

#endif
