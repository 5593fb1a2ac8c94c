/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What came of a run in the words of its exit line: steps, what they took by a
 * plan and what was made again. Called as the process ends.
 */
#ifndef TS_OUTCOME_H
#define TS_OUTCOME_H

#include <stddef.h>
#include <stdint.h>

/* Holds all that either writes. */
#define TS_OUTCOME_BYTES 160

/* @step_ops: of how many ops a step is, as who counted @steps says; 0 where
 * most differ. "" without steps. */
void ts_outcome_steps(uint64_t steps, uint64_t step_ops, uint64_t alike,
        char *ret_text, size_t size);

/* Of values that are given up: "" where that was not tried. */
void ts_outcome_replay(char *ret_text, size_t size);

#endif
