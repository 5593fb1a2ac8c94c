/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Where in the step of a plan the program stands: matches ops one by one,
 * by signature and stream. Off the step it looks for the next place where a
 * whole step has just passed. Pure; guarded by its owner's lock.
 */
#ifndef TS_PLANNED_FOLLOW_H
#define TS_PLANNED_FOLLOW_H

#include <stdbool.h>
#include <stdint.h>

struct ts_follow_op {
	uint64_t signature;
	uint64_t stream;
};

struct ts_follow {
	struct ts_follow_op *ops; /* of the step */
	/* How much of the step's start the ops up to each one end with. */
	uint32_t *overlap;
	uint32_t n_ops;
	uint32_t matched; /* ops of the step that the last ops are */
};

/* Copies @ops, at least one. 0 or -ENOMEM. */
int ts_follow_init(struct ts_follow *follow, const struct ts_follow_op *ops,
        uint32_t n_ops);
void ts_follow_finish(struct ts_follow *follow);

/* The next op. True where it ends a whole step. */
bool ts_follow_push(struct ts_follow *follow, const struct ts_follow_op *op);

/* Forgets what came before: as if the process began here. */
void ts_follow_reset(struct ts_follow *follow);

/* True where @op is the @index-th of the step. */
static inline bool ts_follow_is(const struct ts_follow *follow, uint32_t index,
        const struct ts_follow_op *op)
{
	return follow->ops[index].signature == op->signature &&
	       follow->ops[index].stream == op->stream;
}

#endif
