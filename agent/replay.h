/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A launch that was issued, kept so that it can be issued again: function,
 * geometry, the bytes of its parameters, and those of its attributes that
 * change what it does. Addresses in the parameters can be led elsewhere.
 * Plain data; whoever has it owns it.
 */
#ifndef TS_REPLAY_H
#define TS_REPLAY_H

#include "agent/op.h"
#include "runtime/ops.h"

/* Cluster, its preferred size, its scheduling, cooperative, carve-out,
 * synchronisation domain and the map of these. */
#define TS_REPLAY_ATTRIBUTES 8

struct ts_replay_launch {
	CUfunction function;
	const struct ts_func *func;
	uint32_t grid[3], block[3], shared_bytes;
	uint32_t layout_used; /* layout.h */
	CUlaunchAttribute attributes[TS_REPLAY_ATTRIBUTES];
	unsigned int attribute_count;
	/* Parameters one after the other as the function's layout has them. */
	unsigned char *params;
	size_t param_bytes;
};

/*
 * Copies what @op, a launch under way, tells. What lets it run before the
 * kernels in front of it end, and events that it would record again, are left
 * out. 0; -ENOTSUP where it cannot be told again: no layout, parameters set or
 * passed in other ways, an attribute that is not known; or -ENOMEM.
 */
int ts_replay_keep(const struct ts_op *op, struct ts_replay_launch *ret_launch);
void ts_replay_finish(struct ts_replay_launch *launch);

/* Host memory that it takes. */
size_t ts_replay_bytes(const struct ts_replay_launch *launch);

/*
 * Every word that may be an operand and points into [from, from + bytes) points
 * as far into what begins at @to. Returns how many there were.
 */
unsigned int ts_replay_redirect(struct ts_replay_launch *launch, uint64_t from,
        uint64_t bytes, uint64_t to);

/* Issues it in the current context. 0 or a negative errno. */
int ts_replay_issue(const struct ts_replay_launch *launch,
        const struct ts_gpu_ops *ops, ts_stream_key stream);

#endif
