/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A recorded step of a run as pages see it (planner/page_view.h): of its blocks
 * those pages that lie in segments which move. Pure.
 */
#ifndef TS_PLANNED_VIEW_H
#define TS_PLANNED_VIEW_H

#include <stdbool.h>

#include "agent/proof_candidates.h"
#include "agent/recording.h"
#include "agent/values.h"
#include "planner/page_view.h"
#include "runtime/enforce.h"

/*
 * Of @step, of which @profile and @values tell. @candidates (NULL: none): what
 * may be made again, from what then has to be there. @lets_go: what no op uses
 * any more leaves at once. 0 or -ENOMEM; after success the caller finishes
 * @ret_view, and keeps @profile until then.
 */
int ts_planned_view_make(const struct ts_recording *step,
        const struct ts_profile *profile, const struct ts_values *values,
        const struct ts_enforce_survey *survey,
        const struct ts_replay_candidates *candidates, bool lets_go,
        struct ts_page_view *ret_view);

#endif
