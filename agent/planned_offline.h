/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What a run with a limit makes of a step that another one recorded: the same
 * search as the run's own, of what the profile tells of pages
 * (planner/paged.h). Nothing is proved of it, so nothing is made again. Pure.
 */
#ifndef TS_PLANNED_OFFLINE_H
#define TS_PLANNED_OFFLINE_H

#include "agent/planned_make.h"

/*
 * The context's and the libraries' memory counts to @limit_bytes, as in a run.
 * 0, -ENOSPC where no plan fits, with a limit that one fits into or 0 in
 * @ret_least_bytes, -ENOTSUP where it is not known where values
 * lay, or another negative errno. The caller finishes @ret_plan after success,
 * and keeps @profile until then.
 */
int ts_planned_offline(const struct ts_profile *profile, uint64_t limit_bytes,
        struct ts_planned_plan *ret_plan, uint64_t *ret_least_bytes);

#endif
