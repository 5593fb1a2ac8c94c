/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Ops that change what they find and make nothing new: in-place additions and
 * activations. What they change can be made again only with all of it, from the
 * op that made the block's first content on: nothing of it may be older than
 * the step. Pure.
 */
#ifndef TS_IN_PLACE_H
#define TS_IN_PLACE_H

#include "planner/profile.h"

/*
 * By op: all it writes is over what it reads of the same block, which an op of
 * the step made. Such an op may come out the same when it is launched again on
 * a copy of what it found. 0 or -ENOMEM.
 */
int ts_in_place_find(const struct ts_profile *profile, bool *ret_by_op);

#endif
