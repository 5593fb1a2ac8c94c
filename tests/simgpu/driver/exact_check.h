/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * With exact content: do kernels touch what their ops say, and nothing else?
 * (SIMGPU_CHECK_RANGES=1.) Under sg_lock; sg_exact_check_fault also in a
 * signal handler on the thread that carries the kernel out.
 */
#ifndef SG_EXACT_CHECK_H
#define SG_EXACT_CHECK_H

#include "tests/simgpu/driver/memory.h"

/* Leaves only what op says accessible, until sg_exact_check_end. */
void sg_exact_check_begin(const struct sg_op *op);
/* A fault at address: true if it was made accessible and the kernel may go on,
 * false if nothing is mapped there or nothing is being checked. */
bool sg_exact_check_fault(uint64_t address);
/* Makes all accessible again and records what was touched beside the op's
 * accesses as a memory error. */
void sg_exact_check_end(const struct sg_op *op, const char *kernel);

#endif
