/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Reading JSON from outside: typed look-ups that say where input is wrong.
 * Used by profile_json.c and plan_json.c only.
 */
#ifndef TS_PLANNER_JSON_H
#define TS_PLANNER_JSON_H

#include <stdbool.h>
#include <stdint.h>

#include <jansson.h>

#include "planner/profile.h"

/* A node and where it stands; paths are only made when something is wrong. */
struct ts_json_at {
	const json_t *node;
	const struct ts_json_at *parent;
	const char *key; /* NULL: an array item */
	size_t index;
	struct ts_input_error *error;
};

/* Fills @at->error with the path of @at (and @key) and the message. -EINVAL. */
int ts_json_bad(const struct ts_json_at *at, const char *key, const char *fmt,
        ...) __attribute__((format(printf, 3, 4)));

/* Missing members keep *ret_value if @optional. All: 0 or -EINVAL. */
int ts_json_u64(const struct ts_json_at *at, const char *key, uint64_t max,
        bool optional, uint64_t *ret_value);
int ts_json_u32(const struct ts_json_at *at, const char *key, bool optional,
        uint32_t *ret_value);
int ts_json_bool(const struct ts_json_at *at, const char *key, bool *ret_value);
int ts_json_number(const struct ts_json_at *at, const char *key, bool optional,
        double *ret_value);
/* Index into @names (NULL-terminated). */
int ts_json_enum(const struct ts_json_at *at, const char *key,
        const char *const *names, unsigned *ret_value);
/* Owned by the JSON tree. */
int ts_json_text(const struct ts_json_at *at, const char *key, bool optional,
        const char **ret_text);
/* Optional: 0x and hexadecimal digits, at most TS_MAX_ADDRESS. */
int ts_json_address(
        const struct ts_json_at *at, const char *key, uint64_t *ret_address);
/* Fills @ret_child for the member @key, an array or an object. */
int ts_json_array(const struct ts_json_at *at, const char *key, bool optional,
        struct ts_json_at *ret_child);
int ts_json_member(const struct ts_json_at *at, const char *key,
        struct ts_json_at *ret_child);
/* The item @index of the array @at as a node of its own. */
struct ts_json_at ts_json_item(const struct ts_json_at *at, size_t index);
int ts_json_want_object(const struct ts_json_at *at);

/* Parses, whatever it is of; checks `schema` and `schema_version`; both. The
 * caller owns the tree after success. */
int ts_json_tree(const char *text, size_t length, json_t **ret_root,
        struct ts_input_error *error);
int ts_json_check(
        const json_t *root, const char *schema, struct ts_input_error *error);
int ts_json_load(const char *text, size_t length, const char *schema,
        json_t **ret_root, struct ts_input_error *error);
/* Reads a whole file, at most 1 GiB; *ret_text is the caller's. */
int ts_json_read_file(const char *path, char **ret_text, size_t *ret_length,
        struct ts_input_error *error);

#endif
