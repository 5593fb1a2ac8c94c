/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What the host would read of a tagged value: its elements' type and, for
 * integers, a sensible range. Under sg_lock, once for every written access of a
 * launch with tagged content.
 */
#ifndef SG_CONTENT_VALUES_H
#define SG_CONTENT_VALUES_H

#include "tests/simgpu/driver/sg.h"

/*
 * Completes *piece, a whole value with its tag set, for what op writes through
 * access i; parts has what op reads through each of its accesses. The piece may
 * become real bytes, whose reference is then the caller's. False: what is there
 * stays.
 */
bool sg_values_piece(const struct sg_launch *launch, const struct sg_op *op,
        unsigned i, const struct sg_parts *parts, struct sg_piece *piece);

#endif
