/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Whether the plan in force still has its chunks. Called under the plans' lock
 * by the thread that issues ops, but for ts_planned_lost().
 */
#include "agent/planned_internal.h"

/* So many ops of a step, and one in so many, may need the pager's help. */
#define FEW    2
#define FEW_OF 256
/* Of the pages no more may have lost their chunks, however many ops there are.
 */
#define DISTURBED_MAX 8

uint64_t ts_planned_few_ops(const struct ts_planned_entry *entry)
{
	return entry->follow.n_ops / FEW_OF + FEW;
}

bool ts_planned_is_disturbed(
        struct ts_pager *pager, const struct ts_planned_entry *entry)
{
	uint64_t lost = ts_enforce_disturbed(pager);

	return lost > DISTURBED_MAX || lost > ts_planned_few_ops(entry);
}

void ts_planned_lost(void)
{
	atomic_store_explicit(&ts_planned.lost, true, memory_order_relaxed);
}

bool ts_planned_has_lost_chunks(struct ts_pager *pager)
{
	return atomic_load_explicit(&ts_planned.lost, memory_order_relaxed) &&
	       atomic_exchange(&ts_planned.lost, false) &&
	       ts_planned.stand == TS_PLANNED_ON &&
	       ts_planned_is_disturbed(pager, ts_planned.now);
}
