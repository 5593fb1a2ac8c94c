/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* profile.json <-> struct ts_profile (schemas/profile.schema.json). */
#ifndef TS_PLANNER_PROFILE_JSON_H
#define TS_PLANNER_PROFILE_JSON_H

#include <jansson.h>

#include "planner/profile.h"

/*
 * All read, check (ts_profile_check() included) and give a profile that the
 * caller finishes. 0, -ENOMEM, or another negative errno with @error filled.
 */
int ts_profile_from_json(const json_t *root, struct ts_profile *ret_profile,
        struct ts_input_error *error);
int ts_profile_parse(const char *text, size_t length,
        struct ts_profile *ret_profile, struct ts_input_error *error);
int ts_profile_load(const char *path, struct ts_profile *ret_profile,
        struct ts_input_error *error);

/* New tree without tool_version, which the caller adds; NULL: no memory. */
json_t *ts_profile_to_json(const struct ts_profile *profile);

/* Names of enum ts_op_class and enum ts_value_kind, NULL-terminated. */
extern const char *const ts_op_class_names[];
extern const char *const ts_value_kind_names[];

#endif
