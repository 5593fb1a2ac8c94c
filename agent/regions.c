/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "agent/regions.h"

#include <errno.h>
#include <stdbool.h>

/* Shorter repetitions are three projections in a row, not layers. */
#define MIN_PERIOD 4u
/* Longer ones are not looked for: the search is quadratic. */
#define MAX_PERIOD 4096u
/* A run that covers as much as another to 5 % and repeats oftener wins. */
#define NEARLY(bytes) ((bytes) - (bytes) / 20)

struct stretch {
	uint32_t first, length; /* ops that fit a period */
	uint32_t period;
};

static uint32_t covered(const struct stretch *stretch)
{
	return stretch->length / stretch->period * stretch->period;
}

/* The longest stretch in [first, end) that repeats every @period ops. */
static struct stretch longest(const uint64_t *signatures, uint32_t first,
        uint32_t end, uint32_t period)
{
	struct stretch best = {.period = period};
	uint32_t run = 0;

	for (uint32_t i = first; i + period < end; i++) {
		if (signatures[i] != signatures[i + period]) {
			run = 0;
			continue;
		}
		run++;
		if (run >= period && run + period > best.length) {
			best.first = i + 1 - run;
			best.length = run + period;
		}
	}
	return best;
}

static uint32_t greatest_period(uint32_t first, uint32_t end)
{
	uint32_t half = (end - first) / 2;

	return half < MAX_PERIOD ? half : MAX_PERIOD;
}

static bool find_best(const uint64_t *signatures, uint32_t first, uint32_t end,
        struct stretch *ret)
{
	uint32_t most = 0, last = greatest_period(first, end);

	for (uint32_t period = MIN_PERIOD; period <= last; period++) {
		struct stretch found = longest(signatures, first, end, period);

		if (covered(&found) > most)
			most = covered(&found);
	}
	for (uint32_t period = MIN_PERIOD; most && period <= last; period++) {
		*ret = longest(signatures, first, end, period);
		if (covered(ret) >= NEARLY(most))
			return true;
	}
	return false;
}

/* The stretch may be a little longer than its whole repetitions. */
static struct ts_run place(
        const struct stretch *stretch, const uint64_t *cut_bytes)
{
	struct ts_run run = {.first = stretch->first,
	        .period = stretch->period,
	        .count = stretch->length / stretch->period};
	uint32_t spare = stretch->length % stretch->period;
	uint64_t least = UINT64_MAX;

	for (uint32_t shift = 0; shift <= spare; shift++) {
		uint64_t bytes = 0;

		for (uint32_t i = 0; i <= run.count; i++)
			bytes += cut_bytes[stretch->first + shift +
			                   i * run.period];
		if (bytes >= least)
			continue;
		least = bytes;
		run.first = stretch->first + shift;
	}
	return run;
}

size_t ts_regions_find(const uint64_t *signatures, const uint64_t *cut_bytes,
        uint32_t first, uint32_t end, struct ts_run *ret_runs, size_t room)
{
	struct stretch best;
	struct ts_run run;
	size_t count = 0;

	if (!room || end - first < 2 * MIN_PERIOD ||
	        !find_best(signatures, first, end, &best))
		return 0;
	run = place(&best, cut_bytes);
	count = ts_regions_find(
	        signatures, cut_bytes, first, run.first, ret_runs, room - 1);
	ret_runs[count++] = run;
	return count + ts_regions_find(signatures, cut_bytes,
	                       run.first + run.count * run.period, end,
	                       ret_runs + count, room - count);
}

int ts_regions_find_counted(const uint64_t *signatures, uint32_t first,
        uint32_t end, uint32_t count, struct ts_run *ret_run)
{
	uint32_t most = 0, last = greatest_period(first, end);

	for (uint32_t period = MIN_PERIOD; period <= last; period++) {
		struct stretch found = longest(signatures, first, end, period);

		if (found.length / period != count || covered(&found) <= most)
			continue;
		most = covered(&found);
		*ret_run = (struct ts_run){found.first, period, count};
	}
	return most ? 0 : -ENOENT;
}
