/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "agent/planned_phase.h"

#include <string.h>

/* So many marks are kept that tell no more apart than those before. */
#define SPARE_MARKS 3

static unsigned int all_of(const struct ts_phases *phases)
{
	return (1u << phases->steps) - 1;
}

/* Joined steps: those of which @mark is the same are apart in none so far. */
static bool splits(const struct ts_phases *phases,
        const struct ts_phase_mark *mark, unsigned int x, unsigned int y)
{
	if (mark->place[x] == mark->place[y])
		return false;
	for (unsigned int i = 0; i < phases->n_marks; i++)
		if (phases->marks[i].place[x] != phases->marks[i].place[y])
			return false;
	return true;
}

static void add_mark(struct ts_phases *phases, const struct ts_phase_mark *mark)
{
	bool differs = false, more = false;

	for (unsigned int x = 0; x < phases->steps; x++)
		for (unsigned int y = 0; y < x; y++) {
			differs |= mark->place[x] != mark->place[y];
			more |= splits(phases, mark, x, y);
		}
	if (more || (differs && phases->n_marks < SPARE_MARKS))
		phases->marks[phases->n_marks++] = *mark;
}

void ts_phases_init(struct ts_phases *phases, const struct ts_recording *joined,
        unsigned int steps)
{
	size_t n = joined->op_count / steps;

	memset(phases, 0, sizeof(*phases));
	phases->steps = steps;
	phases->possible = all_of(phases);
	for (size_t i = 0; i < n && phases->n_marks < TS_PHASE_MARKS; i++) {
		struct ts_phase_mark mark = {.op = (uint32_t)i};

		for (unsigned int k = 0; k < steps; k++)
			mark.place[k] =
			        ts_cycle_place(joined, &joined->ops[k * n + i]);
		add_mark(phases, &mark);
	}
}

void ts_phases_forget(struct ts_phases *phases)
{
	phases->possible = all_of(phases);
}

static const struct ts_phase_mark *mark_at(
        const struct ts_phases *phases, uint32_t index)
{
	for (unsigned int i = 0; i < phases->n_marks; i++)
		if (phases->marks[i].op == index)
			return &phases->marks[i];
	return NULL;
}

bool ts_phases_see(
        struct ts_phases *phases, uint32_t index, const struct ts_op *op)
{
	const struct ts_phase_mark *mark;
	uint64_t place;

	if (!phases->n_marks)
		return true;
	if (!index)
		ts_phases_forget(phases);
	mark = op ? mark_at(phases, index) : NULL;
	if (!mark)
		return true;
	place = ts_cycle_place_of(op);
	for (unsigned int i = 0; i < phases->steps; i++)
		if (mark->place[i] != place)
			phases->possible &= ~(1u << i);
	if (phases->possible >> phases->now & 1)
		return true;
	for (unsigned int i = 0; !index && i < phases->steps; i++)
		if (phases->possible >> i & 1) {
			phases->now = i;
			break;
		}
	return false;
}

bool ts_phases_settle(struct ts_phases *phases)
{
	unsigned int i = 0;

	if (!phases->possible)
		return false;
	while (!(phases->possible >> (phases->now + i) % phases->steps & 1))
		i++;
	phases->now = (phases->now + i) % phases->steps;
	return true;
}

void ts_phases_pass(struct ts_phases *phases)
{
	unsigned int next = phases->now;

	phases->strange = phases->possible ? 0 : phases->strange + 1;
	/* The one expected, or another that it was. */
	for (unsigned int i = 0; i < phases->steps; i++) {
		next = (phases->now + i) % phases->steps;
		if (phases->possible >> next & 1)
			break;
	}
	if (!phases->possible)
		next = phases->now;
	phases->now = (next + 1) % phases->steps;
}
