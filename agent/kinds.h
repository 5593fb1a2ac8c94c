/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What a block holds (parameters, gradients, optimizer state, activations,
 * scratch), from how long it lives and in which part of the step it is used.
 * Pure.
 */
#ifndef TS_KINDS_H
#define TS_KINDS_H

#include "agent/recording.h"
#include "planner/profile.h"

/*
 * Fills @ret_kinds (enum ts_value_kind) for every block, and @ret_old where it
 * is not NULL: true for a block that is older than the step.
 */
int ts_kinds_decide(const struct ts_recording *recording, uint8_t *ret_kinds,
        bool *ret_old);

/* Alive before the step and after it. */
bool ts_kinds_is_persistent(
        const struct ts_recording *recording, const struct ts_rec_block *block);

#endif
