/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Which blocks an op reads and which it writes: what copies and sets tell, and
 * for launches a guess from first touches, parameter types and known ways of
 * passing operands. Pure.
 */
#ifndef TS_ROLES_H
#define TS_ROLES_H

#include "agent/kernel.h"
#include "agent/recording.h"

/*
 * Fills @ret_roles (enum ts_role, one for each use of @op). @old: by block,
 * true where it is older than the step.
 */
void ts_roles_guess(const struct ts_recording *recording,
        const struct ts_rec_op *op, const struct ts_kernel *kernel,
        const bool *old, uint8_t *ret_roles);

#endif
