/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "runtime/foresee.h"

#include <stdbool.h>

/* Uses so near each other are one: a block is needed for all of them. */
#define SAME_USE 4

static uint32_t last_use(const struct ts_page *page)
{
	return page->uses[page->use_at];
}

static void remember(struct ts_page *page, uint32_t now)
{
	if (last_use(page) && now - last_use(page) < SAME_USE)
		return;
	page->use_at = (uint8_t)((page->use_at + 1) % TS_PAGE_USES);
	page->uses[page->use_at] = now;
}

/* One step after the first use within the step that ends at @now. */
static uint64_t expected(
        const struct ts_page *page, uint64_t now, uint64_t period)
{
	uint32_t oldest = 0;
	bool used = false;

	for (size_t i = 0; i < TS_PAGE_USES; i++) {
		uint32_t age = (uint32_t)now - page->uses[i];

		/* What is one step back is the use of just now. */
		if (!page->uses[i] || age + SAME_USE >= period)
			continue;
		used = true;
		if (age > oldest)
			oldest = age;
	}
	return used ? now + period - oldest : 0;
}

void ts_foresee_use(struct ts_foresee *foresee, struct ts_page *page)
{
	uint64_t period =
	        atomic_load_explicit(&foresee->period, memory_order_relaxed);
	uint64_t now =
	        atomic_load_explicit(&foresee->now, memory_order_relaxed);

	remember(page, (uint32_t)now);
	/* Worked out where it is asked for: most uses nobody asks about. */
	page->used_at = period ? now : 0;
	if (!page->used_at)
		page->next_use = 0;
}

uint64_t ts_foresee_next(struct ts_page *page, uint64_t now, uint64_t period)
{
	uint64_t next;

	if (page->used_at)
		page->next_use = expected(page, page->used_at, period);
	page->used_at = 0;
	next = page->next_use;
	/* Used before the step was known, or not when it was expected. */
	if (next <= now)
		next = expected(page, now, period);
	return next > now ? next : 0;
}

size_t ts_foresee_class(struct ts_page *page, uint64_t now, uint64_t period)
{
	uint64_t next = ts_foresee_next(page, now, period), away;

	if (!next)
		return TS_FORESEE_CLASSES - 1;
	away = (next - now) * (TS_FORESEE_CLASSES - 1) / period;
	return away < TS_FORESEE_CLASSES - 1 ? away : TS_FORESEE_CLASSES - 2;
}
