/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * One training step as the planner sees it: ops in issue order, the values
 * they read and write, the repeated regions, and the device. Plain data
 * without locks: whoever created a profile owns it and may read it from any
 * thread while nobody changes it.
 */
#ifndef TS_PLANNER_PROFILE_H
#define TS_PLANNER_PROFILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* "No such index" in every index field. */
#define TS_NONE UINT32_MAX

/* Bounds that ts_profile_check() enforces on input from outside. */
#define TS_MAX_OPS       (1u << 24)
#define TS_MAX_VALUES    (1u << 25)
#define TS_MAX_USES      (1u << 28)
#define TS_MAX_BYTES     (UINT64_C(1) << 50)
#define TS_MAX_DURATION  (UINT64_C(1) << 50)
#define TS_MAX_ADDRESS   (UINT64_C(1) << 57)
#define TS_MAX_NAME_SIZE 4096

enum ts_op_class {
	TS_CLASS_OTHER,
	TS_CLASS_GEMM,
	TS_CLASS_ATTENTION,
	TS_CLASS_CONVOLUTION,
	TS_CLASS_NORM,
	TS_CLASS_ELEMENTWISE,
	TS_CLASS_DROPOUT,
	TS_CLASS_POOL,
	TS_CLASS_LOSS,
	TS_CLASS_OPTIMIZER,
	TS_CLASS_COLLECTIVE,
	TS_CLASS_COPY,
	TS_CLASS_CLASSES,
};

enum ts_value_kind {
	TS_KIND_ACTIVATION,
	TS_KIND_PARAMETER,
	TS_KIND_GRADIENT,
	TS_KIND_OPTIMIZER,
	TS_KIND_INPUT,
	TS_KIND_SCRATCH,
	TS_KIND_OTHER,
	TS_KINDS,
};

struct ts_signature {
	/* Owned. Function name, or any name that stays from step to step. */
	char *name;
	enum ts_op_class op_class;
	/* May be launched again with the same result (proved by the agent). */
	bool replayable;
};

struct ts_profile_op {
	uint64_t duration_ns;
	uint32_t signature;
	/* Slices of ts_profile.uses: value indices. */
	uint32_t first_read;
	uint32_t n_reads;
	uint32_t first_write;
	uint32_t n_writes;
};

/* How a value alone is made again where that costs less than its producer. */
struct ts_rebuild {
	uint64_t duration_ns;
	uint32_t first_read;
	uint32_t n_reads;
};

struct ts_value {
	uint64_t size_bytes;
	/* Coordinate: signature, how-many-th op of it in the step, output. */
	uint32_t signature;
	uint32_t ordinal;
	uint32_t output;
	enum ts_value_kind kind;
	/*
	 * Storage is alive before the step and after it (parameters, optimizer
	 * state): the last version in it is the next step's first. Only a value
	 * that no op writes can be persistent.
	 */
	bool persistent;
	/* Must stay on the device as long as it lives. */
	bool pinned;
	/* Closure replay is out of the question (block input, collective...).
	 */
	bool no_replay;
	/* The older version whose storage this value overwrites, or TS_NONE. */
	uint32_t in_place_of;
	/* Where its storage lay in the recorded step; 0 where unknown. */
	uint64_t address;
	/* Index into ts_profile.rebuilds, or TS_NONE. */
	uint32_t rebuild;
	/* Op before which its storage was freed, TS_NONE: after the step, or it
	 * is not known. */
	uint32_t died;
};

/* Ops [first_op, end_op) of the forward and their backward, one layer. */
struct ts_region {
	uint32_t type;
	uint32_t first_op;
	uint32_t end_op;
	/* Both TS_NONE where unknown. */
	uint32_t backward_first_op;
	uint32_t backward_end_op;
};

/* Memory that no op uses any more, from before the step until it is freed. */
struct ts_idle {
	uint64_t size_bytes;
	uint64_t address;
	uint32_t died; /* before this op; TS_NONE: after the step */
};

/* Speeds of one device's link: each way alone, and with the other way busy. */
struct ts_device {
	char *name; /* Owned. */
	uint64_t memory_bytes;
	uint64_t d2h_bytes_per_s;
	uint64_t h2d_bytes_per_s;
	uint64_t d2h_both_bytes_per_s;
	uint64_t h2d_both_bytes_per_s;
	uint64_t copy_latency_ns;
};

struct ts_profile {
	char *name; /* Owned. */
	struct ts_device device;
	/* Always on the device beside the values: context, slabs, scratch. */
	uint64_t resident_bytes;
	/* Drives the token buckets; 0 where unknown. */
	uint64_t tokens;
	/* Forward FLOPs; 0 where unknown. */
	uint64_t forward_flops;

	struct ts_signature *signatures;
	uint32_t n_signatures;
	struct ts_profile_op *ops;
	uint32_t n_ops;
	struct ts_value *values;
	uint32_t n_values;
	struct ts_rebuild *rebuilds;
	uint32_t n_rebuilds;
	uint32_t *uses;
	uint32_t n_uses;
	struct ts_region *regions;
	uint32_t n_regions;
	/* First ops of the backwards, ascending. */
	uint32_t *turns;
	uint32_t n_turns;
	/* Of recorded steps. */
	struct ts_idle *idle;
	uint32_t n_idle;
};

/* Where input is wrong, as a JSON path, and how. */
struct ts_input_error {
	char path[160];
	char message[200];
};

/* Frees what @profile owns and clears it; the struct is the caller's. */
void ts_profile_finish(struct ts_profile *profile);

/*
 * Checks every rule that the planner relies on: indices in range, one writer
 * a value, no read before the write, in-place chains and rebuilds without
 * cycles, sizes within bounds. 0, or -EINVAL with @error filled.
 */
int ts_profile_check(
        const struct ts_profile *profile, struct ts_input_error *error);

/* Builds a profile op by op; after a failed call only finish is allowed. */
struct ts_profile_builder {
	struct ts_profile profile;
	uint32_t signatures_room;
	uint32_t ops_room;
	uint32_t values_room;
	uint32_t rebuilds_room;
	uint32_t uses_room;
	uint32_t regions_room;
	uint32_t turns_room;
	/* Ops seen so far of each signature. */
	uint32_t *ordinals;
	int err;
};

void ts_builder_init(struct ts_profile_builder *builder);
/* Moves the result out if all calls went well. 0, -ENOMEM or -EINVAL. */
int ts_builder_take(
        struct ts_profile_builder *builder, struct ts_profile *ret_profile);
void ts_builder_finish(struct ts_profile_builder *builder);

/* Index of the signature named @name, made on first use. */
uint32_t ts_builder_signature(struct ts_profile_builder *builder,
        const char *name, enum ts_op_class op_class, bool replayable);
/* A value without writer so far; fields beyond size and kind are defaults. */
uint32_t ts_builder_value(struct ts_profile_builder *builder,
        uint64_t size_bytes, enum ts_value_kind kind);
/* Appends an op; sets the coordinates of what it writes. Its index. */
uint32_t ts_builder_op(struct ts_profile_builder *builder, uint32_t signature,
        uint64_t duration_ns, const uint32_t *reads, uint32_t n_reads,
        const uint32_t *writes, uint32_t n_writes);
void ts_builder_rebuild(struct ts_profile_builder *builder, uint32_t value,
        uint64_t duration_ns, const uint32_t *reads, uint32_t n_reads);
void ts_builder_region(
        struct ts_profile_builder *builder, const struct ts_region *region);
void ts_builder_turn(struct ts_profile_builder *builder, uint32_t op);

#endif
