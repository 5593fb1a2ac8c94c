/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "planner/slots.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define SLOTS 2048

int ts_slots_init(struct ts_slots *s)
{
	memset(s, 0, sizeof(*s));
	s->n = SLOTS;
	s->free_ns = calloc(SLOTS, sizeof(*s->free_ns));
	s->sum_ns = calloc(SLOTS + 1, sizeof(*s->sum_ns));
	s->after = calloc(SLOTS + 1, sizeof(*s->after));
	s->before = calloc(SLOTS + 1, sizeof(*s->before));
	if (!s->free_ns || !s->sum_ns || !s->after || !s->before) {
		ts_slots_finish(s);
		return -ENOMEM;
	}
	ts_slots_clear(s, 1);
	return 0;
}

void ts_slots_finish(struct ts_slots *s)
{
	free(s->free_ns);
	free(s->sum_ns);
	free(s->after);
	free(s->before);
	memset(s, 0, sizeof(*s));
}

void ts_slots_clear(struct ts_slots *s, double step_ns)
{
	s->width_ns = (step_ns > 1 ? step_ns : 1) / SLOTS;
	for (uint32_t i = 0; i < s->n; i++) {
		s->free_ns[i] = s->width_ns;
		s->sum_ns[i + 1] = s->width_ns * ((i + 1) & -(i + 1));
	}
	for (uint32_t i = 0; i <= s->n; i++)
		s->after[i] = s->before[i] = i;
}

static double prefix(const struct ts_slots *s, uint32_t end)
{
	double sum = 0;

	for (; end; end &= end - 1)
		sum += s->sum_ns[end];
	return sum;
}

/* Whole slots of [from, to): first and end, end up to twice the number. */
static void whole(const struct ts_slots *s, double from_ns, double to_ns,
        uint32_t *ret_first, uint32_t *ret_end)
{
	double first = ceil(from_ns / s->width_ns - 1e-6);
	double end = floor(to_ns / s->width_ns + 1e-6);

	while (first >= s->n) {
		first -= s->n;
		end -= s->n;
	}
	if (end > first + s->n)
		end = first + s->n;
	*ret_first = (uint32_t)first;
	*ret_end = end > first ? (uint32_t)end : (uint32_t)first;
}

double ts_slots_free(const struct ts_slots *s, double from_ns, double to_ns)
{
	uint32_t first, end;

	whole(s, from_ns, to_ns, &first, &end);
	if (end <= s->n)
		return prefix(s, end) - prefix(s, first);
	return prefix(s, s->n) - prefix(s, first) + prefix(s, end - s->n);
}

/* First slot from @at on that has time; n: none. */
static uint32_t find_after(struct ts_slots *s, uint32_t at)
{
	while (s->after[at] != at) {
		s->after[at] = s->after[s->after[at]];
		at = s->after[at];
	}
	return at;
}

/* One more than the last slot before @end that has time; 0: none. */
static uint32_t find_before(struct ts_slots *s, uint32_t end)
{
	while (s->before[end] != end) {
		s->before[end] = s->before[s->before[end]];
		end = s->before[end];
	}
	return end;
}

static double take(struct ts_slots *s, uint32_t slot, double need)
{
	double taken = need < s->free_ns[slot] ? need : s->free_ns[slot];

	s->free_ns[slot] -= taken;
	for (uint32_t i = slot + 1; i <= s->n; i += i & -i)
		s->sum_ns[i] -= taken;
	if (s->free_ns[slot] <= 1e-3 * s->width_ns) {
		s->after[slot] = slot + 1;
		s->before[slot + 1] = slot;
	}
	return taken;
}

double ts_slots_take_early(struct ts_slots *s, double from_ns, double to_ns,
        double need_ns, double *ret_ns)
{
	uint32_t first, end;

	whole(s, from_ns, to_ns, &first, &end);
	for (uint32_t lap = 0; lap < 2 && need_ns > 0; lap++) {
		uint32_t at = lap ? 0 : first;
		uint32_t stop = lap          ? (end > s->n ? end - s->n : 0)
		                : end > s->n ? s->n
		                             : end;

		while (need_ns > 1e-6 && (at = find_after(s, at)) < stop) {
			need_ns -= take(s, at, need_ns);
			*ret_ns = (at + 1 + lap * s->n) * s->width_ns;
			at++;
		}
	}
	return need_ns > 1e-6 ? need_ns : 0;
}

double ts_slots_take_late(struct ts_slots *s, double from_ns, double to_ns,
        double need_ns, double *ret_ns)
{
	uint32_t first, end;

	whole(s, from_ns, to_ns, &first, &end);
	for (uint32_t lap = 2; lap-- > 0 && need_ns > 0;) {
		uint32_t at = lap          ? (end > s->n ? end - s->n : 0)
		              : end > s->n ? s->n
		                           : end;
		uint32_t stop = lap ? 0 : first;

		while (need_ns > 1e-6 && (at = find_before(s, at)) > stop) {
			at--;
			need_ns -= take(s, at, need_ns);
			*ret_ns = (at + lap * s->n) * s->width_ns;
		}
	}
	return need_ns > 1e-6 ? need_ns : 0;
}
