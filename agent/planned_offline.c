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

int ts_planned_offline(const struct ts_profile *profile, uint64_t limit_bytes,
        struct ts_planned_plan *ret_plan, uint64_t *ret_least_bytes)
{
	struct ts_enforce_survey survey = {
	        .page_bytes = TS_PAGE_BYTES, .limit_bytes = limit_bytes};
	struct ts_page_view view;
	int rc;

	*ret_least_bytes = 0;
	if (!ts_paged_known(profile))
		return -ENOTSUP;
	rc = ts_paged_make(profile, 0, &view);
	if (rc)
		return rc;
	survey.other_bytes = view.profile.resident_bytes;
	rc = find_segments(&view, &survey);
	ts_page_view_finish(&view);
	if (!rc)
		rc = ts_planned_make(
		        &(struct ts_planned_step){
		                .profile = profile, .survey = &survey},
		        ret_plan, ret_least_bytes);
	free(survey.segments);
	return rc;
}
