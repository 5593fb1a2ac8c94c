/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "agent/planned_offline.h"

#include <errno.h>
#include <stdlib.h>

#include "planner/paged.h"
#include "planner/pages.h"

static int by_base(const void *a, const void *b)
{
	const struct ts_plan_segment *x = a, *y = b;

	return x->base < y->base ? -1 : x->base > y->base;
}

/* Everywhere where a range lies, ascending and apart. */
static int find_segments(
        const struct ts_page_view *view, struct ts_enforce_survey *survey)
{
	struct ts_plan_segment *list =
	        malloc((view->n_ranges + 1ull) * sizeof(*list));
	uint32_t n = 0;

	survey->segments = list;
	if (!list)
		return -ENOMEM;
	for (uint32_t i = 0; i < view->n_ranges; i++) {
		const struct ts_page_range *range = &view->ranges[i];

		if (!range->bytes)
			continue;
		if (!range->address)
			return -E2BIG;
		list[n++] = (struct ts_plan_segment){.base = range->address,
		        .pages = (uint32_t)(range->bytes / TS_PAGE_BYTES)};
	}
	qsort(list, n, sizeof(*list), by_base);
	for (uint32_t i = 0; i < n; i++) {
		uint32_t k = survey->n_segments;
		uint64_t end = list[i].base + list[i].pages * TS_PAGE_BYTES;
		uint64_t pages;

		if (!k || list[i].base >
		                  list[k - 1].base +
		                          list[k - 1].pages * TS_PAGE_BYTES) {
			list[survey->n_segments++] = list[i];
			continue;
		}
		pages = (end - list[k - 1].base) / TS_PAGE_BYTES;
		if (pages > UINT32_MAX)
			return -E2BIG;
		if (pages > list[k - 1].pages)
			list[k - 1].pages = (uint32_t)pages;
	}
	return 0;
}

/* The planner knew of pages that move; people know the whole device. */
static void tell_all(struct ts_planned_plan *made, uint64_t other_bytes)
{
	struct ts_plan *plan = &made->plan;

	made->view.profile.resident_bytes = other_bytes;
	plan->predicted_peak_bytes += other_bytes;
	plan->unlimited_peak_bytes += other_bytes;
	plan->smallest_feasible_limit_bytes += other_bytes;
}

/* As a run does: what small values share moves where it has to. */
static int make(const struct ts_profile *profile, uint64_t limit_bytes,
        bool small_move, struct ts_planned_plan *ret_plan,
        uint64_t *ret_least_bytes)
{
	struct ts_enforce_survey survey = {
	        .page_bytes = TS_PAGE_BYTES, .limit_bytes = limit_bytes};
	struct ts_page_view view;
	int rc = ts_paged_make(profile, small_move, 0, &view);
	uint64_t other_bytes, left_bytes = 0;

	if (rc)
		return rc;
	other_bytes = view.profile.resident_bytes;
	survey.other_bytes = other_bytes;
	if (limit_bytes > profile->resident_bytes)
		left_bytes = limit_bytes - profile->resident_bytes;
	if (!small_move &&
	        ts_planned_small_moves(
	                other_bytes - profile->resident_bytes, left_bytes)) {
		ts_page_view_finish(&view);
		return make(
		        profile, limit_bytes, true, ret_plan, ret_least_bytes);
	}
	rc = find_segments(&view, &survey);
	ts_page_view_finish(&view);
	if (!rc)
		rc = ts_planned_make(
		        &(struct ts_planned_step){.profile = profile,
		                .survey = &survey,
		                .small_move = small_move},
		        ret_plan, ret_least_bytes);
	free(survey.segments);
	if (rc == -ENOSPC && !small_move)
		return make(
		        profile, limit_bytes, true, ret_plan, ret_least_bytes);
	if (!rc)
		tell_all(ret_plan, other_bytes);
	return rc;
}

int ts_planned_offline(const struct ts_profile *profile, uint64_t limit_bytes,
        struct ts_planned_plan *ret_plan, uint64_t *ret_least_bytes)
{
	*ret_least_bytes = 0;
	if (!ts_paged_known(profile))
		return -ENOTSUP;
	return make(profile, limit_bytes, false, ret_plan, ret_least_bytes);
}
