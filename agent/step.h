/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Finds the training step in the sequence of op signatures: the period with
 * the longest unbroken run of ops that equal the op one period before. A layer
 * is a period too, but breaks where its group of layers ends, so its run stays
 * shorter than the step's. The tape's lock guards it.
 */
#ifndef TS_STEP_H
#define TS_STEP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TS_STEP_HISTORY    (1u << 20) /* signatures kept: 8 MiB at most */
#define TS_STEP_CANDIDATES 16
#define TS_STEP_GRAM       8 /* ops that must recur to suggest a period */

struct ts_step_candidate {
	uint64_t period;
	uint64_t start; /* first op of the run: it equals op start - period */
	uint64_t last;  /* one past its last op; count while it goes on */
};

struct ts_step {
	uint64_t *signatures; /* ring, by op number */
	size_t capacity;
	uint64_t count; /* ops so far */
	struct ts_step_candidate running[TS_STEP_CANDIDATES];
	size_t running_count;
	struct ts_step_candidate best; /* longest run; period 0: none */
	struct ts_step_gram *grams;    /* where a sequence occurred last */
};

int ts_step_init(struct ts_step *step);
void ts_step_finish(struct ts_step *step);

/* The next op. */
void ts_step_push(struct ts_step *step, uint64_t signature);

/*
 * The last whole step: its first op and its length. Returns how many whole
 * steps the run holds (the first may be longer than the others and is then
 * not among them), 0 where no step recurred twice.
 */
uint64_t ts_step_last(
        const struct ts_step *step, uint64_t *ret_first, uint64_t *ret_length);

/* The length of the step where it repeats itself just now, else 0. */
uint64_t ts_step_going_on(const struct ts_step *step);

/* Ops before this one can no longer be part of the last step. */
uint64_t ts_step_oldest_needed(const struct ts_step *step);

#endif
