/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Exact content (SIMGPU_CONTENT=exact): memory holds its bytes at the device
 * address itself and kernels are carried out on the host. Under sg_lock.
 */
#ifndef SG_CONTENT_EXACT_H
#define SG_CONTENT_EXACT_H

#include "tests/simgpu/driver/memory.h"

/* SIMGPU_CONTENT=exact. */
bool sg_content_exact(void);
/* A chunk comes under addresses, leaves them, and is given up. Without effect
 * unless content is exact. */
void sg_exact_map(struct sg_mapping *mapping);
void sg_exact_unmap(const struct sg_mapping *mapping);
void sg_exact_chunk_gone(struct sg_chunk *chunk);
/* The file that has a chunk's bytes, and where in it; -1 unless content is
 * exact. The chunk's place is settled with it. */
int sg_exact_place(struct sg_chunk *chunk, uint64_t *ret_place);
/* Carries out a launch that has been enqueued as op. A kernel without
 * implementation or an access to what is not mapped is a sticky error. */
void sg_exact_launch(const struct sg_launch *launch, const struct sg_op *op);

#endif
