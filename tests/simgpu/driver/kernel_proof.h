/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Kernels that look at memory and tell numbers of it: ts_checksum and
 * ts_compare, as the text of their PTX has it (agent/checksum.ptx). The only
 * kernels whose results the simulated GPU computes in both kinds of content.
 * Under sg_lock.
 */
#ifndef SG_KERNEL_PROOF_H
#define SG_KERNEL_PROOF_H

#include "tests/simgpu/driver/kernels.h"

/* Finds the operands. False: parameters are not as expected. */
bool sg_rule_proof(struct sg_sketch *sketch);

/*
 * Tagged content: completes *piece, of what op writes, with parts as in
 * content_values.h. Checksums are of tags: equal content has equal ones, what
 * is undefined counts for nothing; ts_compare counts in bytes written and,
 * wrong, in words that begin a stretch of one content.
 */
void sg_proof_piece(const struct sg_launch *launch, const struct sg_op *op,
        const struct sg_parts *parts, struct sg_piece *piece);

/* Exact content: carries the launch out. False: another kernel. */
bool sg_proof_run(const struct sg_launch *launch);

#endif
