/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * One item of device work on its way: what a wrapper tells of a launch, copy or
 * set, and what the agent finds out about it. Lives on the stack of the thread
 * that issues it, from ts_op_init to ts_op_finish.
 */
#ifndef TS_OP_H
#define TS_OP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/blocks.h"
#include "agent/funcs.h"
#include "agent/track.h"
#include "runtime/pager.h"

enum ts_op_kind {
	TS_OP_LAUNCH,
	TS_OP_COPY,
	TS_OP_SET,
	TS_OP_GRAPH, /* a graph launch: what is inside was seen at capture */
	TS_OP_KIND_COUNT,
};

#define TS_OP_INLINE_USES 24

/* A block an op touches, as the tape keeps it. */
struct ts_use {
	uint64_t serial;         /* of the block */
	uint64_t address, bytes; /* of the block */
	enum ts_access access;
	int device;
	uint32_t offset; /* in the parameter, of the first word that led here */
	uint16_t param;  /* index, or TS_NO_PARAM */
	bool reported;
	bool fresh;         /* no op touched the block before */
	bool from_backward; /* an op of a backward was the first to touch it */
	bool doubtful; /* only words led here that are no operands (layout.h) */
	bool unused;   /* and these are certain to be none */
};

struct ts_op {
	/* Told by the wrapper. */
	enum ts_op_kind kind;
	const char *name; /* of a copy or set; constant text */
	CUfunction function;
	uint32_t grid[3], block[3], cluster[3], shared_bytes;
	void **params, **extra;       /* of a launch */
	const CUlaunchConfig *config; /* of one that has attributes, or NULL */
	bool cooperative;             /* told by the function called */
	bool unknown_params;          /* they were set by other calls */
	ts_stream_key stream;
	ts_stream_key key; /* that with its context, while devices are held */
	uint64_t bytes;    /* copied or set */
	uint64_t host;     /* where a copy puts it, if into host memory; or 0 */

	/* Found by the agent. */
	const struct ts_func *func;
	uint32_t layout_used; /* of structs among the parameters; layout.h */
	uint64_t signature;   /* 0: not worked out yet */
	uint64_t family;      /* likewise, without geometry and sizes */
	uint64_t stamp;       /* differs from op to op */
	uint64_t in_bytes, out_bytes; /* moved to make it run */
	uint64_t devices;             /* bit n: its pager holds ranges */
	bool active;         /* the agent takes part; the wrapper's to set */
	bool capturing;      /* goes into a graph, not to the device */
	bool incomplete;     /* not all uses could be noted */
	bool declared;       /* which operands are written (declared.h) */
	bool collective;     /* other processes take part in it */
	bool beside;         /* at no fixed place among others (beside.h) */
	bool backward;       /* issued by a backward (turn.h) */
	bool doubted;        /* on a step by the plan, with doubtful uses */
	uint64_t plan;       /* whose step goes by it (planned.h); 0: none */
	uint32_t plan_at;    /* op of that step */
	bool recorded;       /* its uses and words are wanted (recorder.h) */
	int32_t timer;       /* timing.h */
	struct ts_spot spot; /* track.h */

	/* uses[i] and ranges[i] belong together; -1 device: not the pager's. */
	struct ts_use *uses;
	struct ts_range *ranges;
	size_t count, capacity;
	struct ts_use inline_uses[TS_OP_INLINE_USES];
	struct ts_range inline_ranges[TS_OP_INLINE_USES];
};

void ts_op_init(struct ts_op *op, enum ts_op_kind kind, const char *name);
/* Frees what ts_op_finish() has to. */
void ts_op_free_uses(struct ts_op *op);

static inline void ts_op_finish(struct ts_op *op)
{
	if (op->uses != op->inline_uses)
		ts_op_free_uses(op);
}

/*
 * Notes that the op touches [address, address + bytes) of the live block there,
 * or all of the block where @bytes is 0. Each block is noted once, with the
 * union of what is touched. No block there: nothing is noted.
 */
void ts_op_touch(struct ts_op *op, struct ts_blocks *blocks, uint64_t address,
        uint64_t bytes, enum ts_access access);

/*
 * Notes every block that an aligned 8-byte word of the launch's parameters
 * points into; without a layout all live blocks, since any may be meant.
 */
void ts_op_touch_params(struct ts_op *op, struct ts_blocks *blocks);

/*
 * Leaves out of the ranges what only unused words led to. True where words led
 * to a block that are taken for no operands but may be some.
 */
bool ts_op_skip_unused(struct ts_op *op);

/*
 * Calls @found for every block that one of the words in @bytes of host memory
 * points into, with the block's range, outside any lock. The first word begins
 * at @words, which need not be aligned.
 */
void ts_scan_words(struct ts_blocks *blocks, const void *words, size_t bytes,
        void (*found)(const struct ts_range *block, void *data), void *data);

/*
 * Fills signature and family, unless they are there. The signature is of kind,
 * function and layout of its parameters, grid, block, cluster, shared bytes,
 * bytes copied or set: the same for the same op of each step and run, and
 * without any address. The family leaves geometry and sizes out. Neither is
 * ever 0.
 */
void ts_op_sign(struct ts_op *op);

#endif
