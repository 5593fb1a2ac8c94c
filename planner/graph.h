/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Liveness of one profile: storages and their versions, the gaps between
 * uses, and how much memory a step takes that keeps everything. Made once,
 * read only afterwards; the profile must outlive it.
 */
#ifndef TS_PLANNER_GRAPH_H
#define TS_PLANNER_GRAPH_H

#include "planner/profile.h"

#define TS_NEVER UINT64_MAX

/* A storage: a chain of versions that overwrite one another in place. */
struct ts_object {
	uint64_t size_bytes;
	/* Op that makes it, or TS_NONE: there from the start. */
	uint32_t first_op;
	/* Last op that touches it; TS_NONE: never touched. */
	uint32_t last_op;
	bool persistent;
	bool pinned;
	bool dirtied; /* some use in the step makes the host's copy old */
};

/*
 * Between two uses of a storage with at least one op in between. Of a
 * persistent storage the last gap wraps into the next step: to_op is then
 * n_ops plus the first use.
 */
struct ts_gap {
	uint32_t object;
	uint32_t version; /* value that is there during the gap */
	uint32_t from_op;
	uint32_t to_op;
	/* Op that wrote the version, TS_NONE: it came from the last step. */
	uint32_t born_op;
	/* An earlier gap of the same version, or TS_NONE: its copy serves. */
	uint32_t earlier;
	/* No copy from before the gap serves. */
	bool dirty;
	uint64_t size_bytes;
	/* Time of the ops strictly inside. */
	uint64_t idle_ns;
	/* Time of the static closure, or TS_NEVER. */
	uint64_t replay_ns;
};

struct ts_graph {
	const struct ts_profile *profile;
	const uint8_t *dirties; /* of the options */
	uint32_t n_ops;
	uint32_t n_objects;
	struct ts_object *objects;
	uint32_t *object_of;  /* by value */
	uint32_t *writer;     /* by value: op, TS_NONE for leaves */
	uint32_t *overwriter; /* by value: op that overwrites it, TS_NONE */

	/* Gaps ascending by from_op; by_to lists them by ascending to_op. */
	uint32_t n_gaps;
	struct ts_gap *gaps;
	uint32_t *from_first; /* n_ops + 1 offsets into gaps */
	uint32_t *by_to;
	uint32_t *to_first; /* 2 * n_ops + 1 offsets into by_to */
	/* All gaps of an object in time order. */
	uint32_t *object_gaps;
	uint32_t *object_first; /* n_objects + 1 offsets */

	uint64_t *start_ns;    /* n_ops + 1, keep-everything order */
	uint64_t *alloc_bytes; /* by op */
	uint64_t *free_bytes;  /* by op, after it ran */
	uint64_t base_bytes;   /* there before the first op */
	uint64_t *mem_bytes;   /* m(i) with everything kept */
	uint64_t peak_bytes;
	uint32_t peak_op;
	uint64_t *need_bytes; /* by op, with every open gap off the device */
	/* No limit below this fits: the largest working set of one op. */
	uint64_t floor_bytes;
	uint32_t floor_op;
};

struct ts_graph_options {
	/* Gaps of smaller storages are left out. */
	uint64_t min_gap_bytes;
	/* No gap has a closure: values are kept or swapped. */
	bool no_replays;
	/*
	 * By index into the profile's uses: a read after which the host's copy
	 * of the version is taken for old, since whoever moves it cannot know.
	 * NULL: none. Must outlive the graph.
	 */
	const uint8_t *dirties;
};

/* 0 or -ENOMEM. The profile must have passed ts_profile_check(). */
int ts_graph_init(struct ts_graph *graph, const struct ts_profile *profile,
        const struct ts_graph_options *options);
void ts_graph_finish(struct ts_graph *graph);

/* Parameters, optimizer state: more than activations may have to leave. */
bool ts_graph_wraps(const struct ts_graph *graph);

/* Is the content of @value on hand at @op if everything is kept? */
static inline bool ts_graph_alive(
        const struct ts_graph *graph, uint32_t value, uint32_t op)
{
	const struct ts_object *object =
	        &graph->objects[graph->object_of[value]];
	uint32_t writer = graph->writer[value];

	if (writer != TS_NONE && writer >= op)
		return false;
	/* TS_NONE is no earlier than any op. */
	if (graph->overwriter[value] < op)
		return false;
	return object->persistent ||
	       (object->last_op != TS_NONE && op <= object->last_op);
}

/* The gap of the value's storage that @op lies in, (from, to], or TS_NONE. */
uint32_t ts_graph_gap_at(
        const struct ts_graph *graph, uint32_t value, uint32_t op);

/* What it takes to run to make @value again: op (TS_NONE: rebuild). */
struct ts_producer {
	uint32_t op;
	uint64_t duration_ns;
	const uint32_t *reads;
	uint32_t n_reads;
};

/* False where nothing can make it: leaves, signatures not proved. */
bool ts_graph_producer(const struct ts_graph *graph, uint32_t value,
        struct ts_producer *ret_producer);

/* Longest closure in ops. Uncapped chains unroll the residual stream. */
#define TS_CLOSURE_MAX 48

/*
 * The static closure of @value at @op: producers of it and of all dead
 * values on the way, in no particular order. Returns the number of values
 * whose producers have to run (in ret_values, at most TS_CLOSURE_MAX), 0
 * where there is no closure.
 */
uint32_t ts_graph_closure(const struct ts_graph *graph, uint32_t value,
        uint32_t op, uint32_t ret_values[TS_CLOSURE_MAX]);

/* Time of a closure; an op with several outputs counts once. */
uint64_t ts_graph_closure_ns(
        const struct ts_graph *graph, const uint32_t *values, uint32_t n);

#endif
