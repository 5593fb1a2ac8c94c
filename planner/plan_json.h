/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* plan.json <-> struct ts_plan (schemas/plan.schema.json). */
#ifndef TS_PLANNER_PLAN_JSON_H
#define TS_PLANNER_PLAN_JSON_H

#include <jansson.h>

#include "planner/graph.h"
#include "planner/plan.h"

/*
 * Reads and checks a plan on its own: indices against its own counts,
 * points inside their gaps. The caller finishes it. 0 or negative errno with
 * @error filled (but for -ENOMEM).
 */
int ts_plan_parse(const char *text, size_t length, struct ts_plan *ret_plan,
        struct ts_input_error *error);
int ts_plan_load(const char *path, struct ts_plan *ret_plan,
        struct ts_input_error *error);

/*
 * The same in two steps, for who looks at the rest of the file too: its tree,
 * which is the caller's, whatever it is of; and the plan in one.
 */
int ts_plan_read_tree(
        const char *path, json_t **ret_root, struct ts_input_error *error);
int ts_plan_from_json(const json_t *root, struct ts_plan *ret_plan,
        struct ts_input_error *error);

/*
 * Checks that @plan fits @graph (made with min_gap_bytes 0), replays and all,
 * and turns it into a choice that ts_choice_init() has made room for. 0,
 * -EINVAL with @error filled, or -ENOMEM.
 */
int ts_plan_to_choice(const struct ts_plan *plan, const struct ts_graph *graph,
        struct ts_choice *choice, struct ts_input_error *error);

/* New tree without tool_version, which the caller adds; NULL: no memory. */
json_t *ts_plan_to_json(
        const struct ts_plan *plan, const struct ts_profile *profile);

/* "keep", "swap", "replay", NULL-terminated. */
extern const char *const ts_action_names[];

#endif
