/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A recorded profile as a run's pages see it. PyTorch puts what is small into
 * segments of one page, which may stay: they count as resident then. A storage
 * has its memory until it is freed, and a kernel that reads leaves a page that
 * a copy on the host is not known to equal. What the run's own view
 * (agent/planned_view.h) knows besides, as words that may be addresses, no
 * profile tells. Pure; whoever makes one owns it.
 */
#ifndef TS_PLANNER_PAGED_H
#define TS_PLANNER_PAGED_H

#include <stdbool.h>

#include "planner/page_view.h"

/* Whether it is known where values lay: others have no pages. */
bool ts_paged_known(const struct ts_profile *profile);

/*
 * @small_move: so does what small values share. @leaving_limit_bytes: what no
 * op uses any more leaves at once, under that limit; 0: it stays until it is
 * freed. 0 or -ENOMEM; after success the caller finishes @ret_view, and keeps
 * @profile until then.
 */
int ts_paged_make(const struct ts_profile *profile, bool small_move,
        uint64_t leaving_limit_bytes, struct ts_page_view *ret_view);

#endif
