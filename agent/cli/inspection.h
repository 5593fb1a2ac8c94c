/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What `tapeswap inspect` tells of a profile, as rows of figures. Owns copies
 * of all it holds but the profile and its graph. Single-threaded.
 */
#ifndef TS_CLI_INSPECTION_H
#define TS_CLI_INSPECTION_H

#include <jansson.h>

#include "planner/graph.h"

struct ts_row {
	char name[96];
	uint64_t count; /* ops, or blocks */
	uint64_t bytes; /* 0 where a row is of ops */
	uint64_t ns;    /* busy, or idle on average */
};

struct ts_rows {
	struct ts_row *rows;
	size_t count, room;
};

struct ts_inspection {
	const struct ts_profile *profile;
	const struct ts_graph *graph;
	/* What the agent measured; without it the graph's figures stand. */
	const json_t *run, *memory;
	uint64_t peak_bytes, step_ns, busy_ns;
	uint32_t peak_op;
	uint64_t kinds[TS_KINDS]; /* bytes at the peak */
	struct ts_rows families, kernels, regions, idle;
};

/* @root: the file's tree. 0 or -ENOMEM. */
int ts_inspection_init(struct ts_inspection *inspection, const json_t *root,
        const struct ts_graph *graph);
void ts_inspection_finish(struct ts_inspection *inspection);

/* Bytes on the device while op @op runs. */
uint64_t ts_inspection_live_bytes(
        const struct ts_inspection *inspection, uint32_t op);

#endif
