/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The file of TAPESWAP_PLAN: a plan that an earlier process left there is
 * offered once, and says why where it is of no use; plans of this one are
 * written. Functions run under no lock of this file; the plan's owner sees to
 * it that one thread at a time reads the offer.
 */
#ifndef TS_PLANNED_FILE_H
#define TS_PLANNED_FILE_H

#include <jansson.h>

#include "agent/observed.h"
#include "agent/planned_make.h"
#include "planner/plan.h"
#include "runtime/enforce.h"

/*
 * Before any other: a short look at the file. What is in it is named where that
 * is no plan, or cannot be read, and then neither taken nor written over; and
 * so is what keeps plans from being written. -EINVAL for what is no plan.
 */
int ts_planned_file_begin(void);

/*
 * The first time: the plan in the file, if it is one for steps like @observed
 * under the same limit, and the bytes it had for pages that move. The caller
 * finishes @ret_plan where this is true.
 */
bool ts_planned_file_offer(const struct ts_observed *observed,
        const struct ts_enforce_survey *survey, struct ts_plan *ret_plan,
        uint64_t *ret_moving_bytes);

/* Once that was called: whether what is in the file is of an earlier run. */
bool ts_planned_file_is_of_run(void);

/* Whether @made is the plan that was offered; or why it is not. */
void ts_planned_file_say(const struct ts_planned_plan *made);

/*
 * How long the @count ops of a step with the hash @hash take on a device of
 * that name, by the file that a run left, and a step with the pager alone; or
 * NULL. The file is read once, before this run writes its own. Any thread.
 */
const uint64_t *ts_planned_file_times(
        uint64_t hash, size_t count, const char *device, uint64_t *ret_step_ns);

/*
 * A plan for the steps of @observed as it is written, which is the caller's.
 * Its view has to be there still.
 */
json_t *ts_planned_file_json(
        const struct ts_planned_plan *made, const struct ts_observed *observed);

/*
 * Where plans of this process go: the file, or one beside it where something
 * is in it that no run left there. "" for nowhere.
 */
const char *ts_planned_file_path(void);

/* Writes @json, which it takes over; NULL is nothing to write. */
void ts_planned_file_write(json_t *json);

#endif
