/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "agent/step.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "agent/hash.h"

#define FIRST_CAPACITY 4096u
#define GRAM_SLOTS     (1u << 16)

struct ts_step_gram {
	uint64_t hash;
	uint64_t end; /* one past its last op; 0: unused */
};

int ts_step_init(struct ts_step *step)
{
	memset(step, 0, sizeof(*step));
	step->signatures = malloc(FIRST_CAPACITY * sizeof(uint64_t));
	step->grams = calloc(GRAM_SLOTS, sizeof(*step->grams));
	step->capacity = FIRST_CAPACITY;
	if (step->signatures && step->grams)
		return 0;
	ts_step_finish(step);
	return -ENOMEM;
}

void ts_step_finish(struct ts_step *step)
{
	free(step->signatures);
	free(step->grams);
	step->signatures = NULL;
	step->grams = NULL;
}

static uint64_t signature_at(const struct ts_step *step, uint64_t op)
{
	/* A power of two, which the compiler cannot know. */
	return step->signatures[op & (step->capacity - 1)];
}

/* A ring that does not wrap yet grows; at its greatest size it wraps. */
static void make_place(struct ts_step *step)
{
	uint64_t *signatures;

	if (step->count != step->capacity || step->capacity >= TS_STEP_HISTORY)
		return;
	signatures = realloc(
	        step->signatures, 2 * step->capacity * sizeof(uint64_t));
	/* Without memory it wraps early, and long steps are not found. */
	if (!signatures)
		return;
	step->signatures = signatures;
	step->capacity *= 2;
}

static uint64_t run_length(const struct ts_step_candidate *candidate)
{
	return candidate->last - candidate->start;
}

static void offer(struct ts_step *step, const struct ts_step_candidate *run)
{
	if (run_length(run) < run->period)
		return;
	/* A run of the same period that follows is younger news. */
	if (run_length(run) >= run_length(&step->best) ||
	        run->period == step->best.period)
		step->best = *run;
}

/* Extends the runs that go on and ends the others. */
static void follow(struct ts_step *step, uint64_t signature)
{
	size_t kept = 0;

	for (size_t i = 0; i < step->running_count; i++) {
		struct ts_step_candidate *run = &step->running[i];

		if (signature_at(step, step->count - run->period) ==
		        signature) {
			run->last = step->count + 1;
			offer(step, run);
			step->running[kept++] = *run;
		}
	}
	step->running_count = kept;
}

static bool follows_period(const struct ts_step *step, uint64_t period)
{
	for (size_t i = 0; i < step->running_count; i++)
		if (step->running[i].period == period)
			return true;
	return false;
}

/* The shortest run gives way: it has proved least. */
static struct ts_step_candidate *free_place(struct ts_step *step)
{
	struct ts_step_candidate *least = &step->running[0];

	if (step->running_count < TS_STEP_CANDIDATES)
		return &step->running[step->running_count++];
	for (size_t i = 1; i < step->running_count; i++)
		if (run_length(&step->running[i]) < run_length(least))
			least = &step->running[i];
	return least;
}

/* How far back from op @end the sequence equals itself @period earlier. */
static uint64_t run_start(
        const struct ts_step *step, uint64_t end, uint64_t period)
{
	uint64_t oldest =
	        step->count > step->capacity ? step->count - step->capacity : 0;
	uint64_t start = end;

	while (start > oldest + period && end - start < 2 * period &&
	        signature_at(step, start - 1) ==
	                signature_at(step, start - 1 - period))
		start--;
	return start;
}

/* A sequence of ops seen before suggests the distance as a period. */
static void suggest(struct ts_step *step)
{
	uint64_t hash = TS_HASH_START, end = step->count, period;
	struct ts_step_gram *gram;

	if (end < TS_STEP_GRAM)
		return;
	for (uint64_t op = end - TS_STEP_GRAM; op < end; op++)
		hash = ts_hash_word(hash, signature_at(step, op));
	gram = &step->grams[hash % GRAM_SLOTS];
	period = end - gram->end;
	if (gram->end && gram->hash == hash && period <= step->capacity / 2 &&
	        !follows_period(step, period)) {
		struct ts_step_candidate run = {.period = period,
		        .start = run_start(step, end, period),
		        .last = end};

		if (end - run.start >= TS_STEP_GRAM)
			*free_place(step) = run;
	}
	gram->hash = hash;
	gram->end = end;
}

void ts_step_push(struct ts_step *step, uint64_t signature)
{
	make_place(step);
	follow(step, signature);
	step->signatures[step->count & (step->capacity - 1)] = signature;
	step->count++;
	suggest(step);
}

uint64_t ts_step_last(
        const struct ts_step *step, uint64_t *ret_first, uint64_t *ret_length)
{
	const struct ts_step_candidate *best = &step->best;
	uint64_t begin, whole;

	if (!best->period)
		return 0;
	begin = best->start - best->period;
	/* Layers of the only step so far are not what most ops belong to. */
	if (2 * (best->last - begin) < step->count)
		return 0;
	whole = (best->last - begin) / best->period;
	*ret_length = best->period;
	*ret_first = begin + (whole - 1) * best->period;
	return whole;
}

uint64_t ts_step_oldest_needed(const struct ts_step *step)
{
	uint64_t first, length;

	/* One step more: the last may be cut off by other work. */
	if (!ts_step_last(step, &first, &length))
		return 0;
	return first > length ? first - length : 0;
}

uint64_t ts_step_going_on(const struct ts_step *step)
{
	uint64_t first, length;

	return step->best.last == step->count &&
	                       ts_step_last(step, &first, &length)
	               ? length
	               : 0;
}
