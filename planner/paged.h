/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A recorded profile as a run's pages see it. Only whole pages move: of each
 * storage those that are its own, and apart from them the pages that several
 * storages have a part of while they live, each a value that is used whenever
 * one of them is. PyTorch puts what is small into segments of one page, which
 * do not move: they count as resident. A storage has its memory until it is
 * freed, and a kernel that reads leaves a page that a copy on the host is not
 * known to equal. What the run's own view (agent/planned_view.h) knows besides,
 * as words that may be addresses, no profile tells. Pure; whoever makes one
 * owns it.
 */
#ifndef TS_PLANNER_PAGED_H
#define TS_PLANNER_PAGED_H

#include <stdbool.h>
#include <stdint.h>

#include "planner/profile.h"

struct ts_paged {
	/*
	 * Values, ops and uses are its own, all else is the profile's that it
	 * was made of, which has to outlive it.
	 */
	struct ts_profile profile;
	/* By use, as ts_graph_options wants it. */
	uint8_t *dirties;
};

/* Whether it is known where values lay: others have no pages. */
bool ts_paged_known(const struct ts_profile *profile);

/* 0 or -ENOMEM; after success the caller finishes it. */
int ts_paged_make(const struct ts_profile *profile, struct ts_paged *ret_paged);
void ts_paged_finish(struct ts_paged *paged);

#endif
