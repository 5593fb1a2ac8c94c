/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The two kernels of the simulated NCCL, as nccl/simnccl_work.h has them: what
 * they touch and cost, the messages the one makes and what the other makes of
 * them. Under sg_lock.
 */
#ifndef SG_COLLECTIVE_H
#define SG_COLLECTIVE_H

#include "tests/simgpu/driver/kernels.h"

/* Finds the operands. False: parameters are not as expected. */
bool sg_rule_collective(struct sg_sketch *sketch);
/* The time of a launch that touches so many bytes. */
uint64_t sg_collective_ns(const struct sg_launch *launch,
        const struct sg_model *model, uint64_t bytes);

/* Carries a launch out, on tags or on bytes. False: another kernel. */
bool sg_collective_run(const struct sg_launch *launch);

/*
 * What @operation (ncclRedOp_t) makes of @count elements of @type
 * (ncclDataType_t) of @sources ranks, one after the other in order of rank; in
 * the type itself but for half precision, which is added up as float and
 * rounded once. An average is divided last.
 */
void sg_collective_reduce(int operation, int type, const void *const *sources,
        unsigned n_sources, uint64_t count, void *out);

#endif
