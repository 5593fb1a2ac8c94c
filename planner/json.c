/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "planner/json.h"

#include <ctype.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_FILE_BYTES (1L << 30)

/* Appends the path of @at to @path; the root is "$". */
static void write_path(const struct ts_json_at *at, char *path, size_t size)
{
	size_t length;

	if (!at->parent) {
		snprintf(path, size, "$");
		return;
	}
	write_path(at->parent, path, size);
	length = strlen(path);
	if (at->key)
		snprintf(path + length, size - length, ".%s", at->key);
	else
		snprintf(path + length, size - length, "[%zu]", at->index);
}

int ts_json_bad(
        const struct ts_json_at *at, const char *key, const char *fmt, ...)
{
	struct ts_input_error *error = at->error;
	va_list ap;
	size_t length;

	write_path(at, error->path, sizeof(error->path));
	length = strlen(error->path);
	if (key)
		snprintf(error->path + length, sizeof(error->path) - length,
		        ".%s", key);
	va_start(ap, fmt);
	vsnprintf(error->message, sizeof(error->message), fmt, ap);
	va_end(ap);
	return -EINVAL;
}

int ts_json_u64(const struct ts_json_at *at, const char *key, uint64_t max,
        bool optional, uint64_t *ret_value)
{
	const json_t *node = json_object_get(at->node, key);

	if (!node)
		return optional ? 0 : ts_json_bad(at, key, "missing");
	if (!json_is_integer(node) || json_integer_value(node) < 0)
		return ts_json_bad(at, key, "want an integer >= 0");
	if ((uint64_t)json_integer_value(node) > max)
		return ts_json_bad(
		        at, key, "above %llu", (unsigned long long)max);
	*ret_value = (uint64_t)json_integer_value(node);
	return 0;
}

int ts_json_u32(const struct ts_json_at *at, const char *key, bool optional,
        uint32_t *ret_value)
{
	uint64_t value = *ret_value;
	int err = ts_json_u64(at, key, TS_NONE - 1, optional, &value);

	if (!err)
		*ret_value = (uint32_t)value;
	return err;
}

int ts_json_bool(const struct ts_json_at *at, const char *key, bool *ret_value)
{
	const json_t *node = json_object_get(at->node, key);

	if (!node)
		return 0;
	if (!json_is_boolean(node))
		return ts_json_bad(at, key, "want true or false");
	*ret_value = json_is_true(node);
	return 0;
}

int ts_json_number(const struct ts_json_at *at, const char *key, bool optional,
        double *ret_value)
{
	const json_t *node = json_object_get(at->node, key);

	if (!node)
		return optional ? 0 : ts_json_bad(at, key, "missing");
	if (!json_is_number(node))
		return ts_json_bad(at, key, "want a number");
	*ret_value = json_number_value(node);
	return 0;
}

int ts_json_enum(const struct ts_json_at *at, const char *key,
        const char *const *names, unsigned *ret_value)
{
	const char *text = "";
	int err = ts_json_text(at, key, false, &text);

	if (err)
		return err;
	for (unsigned i = 0; names[i]; i++) {
		if (strcmp(names[i], text))
			continue;
		*ret_value = i;
		return 0;
	}
	return ts_json_bad(at, key, "unknown name '%.60s'", text);
}

int ts_json_text(const struct ts_json_at *at, const char *key, bool optional,
        const char **ret_text)
{
	const json_t *node = json_object_get(at->node, key);

	if (!node)
		return optional ? 0 : ts_json_bad(at, key, "missing");
	if (!json_is_string(node) ||
	        json_string_length(node) >= TS_MAX_NAME_SIZE)
		return ts_json_bad(at, key, "want a string below %d bytes",
		        TS_MAX_NAME_SIZE);
	*ret_text = json_string_value(node);
	return 0;
}

int ts_json_address(
        const struct ts_json_at *at, const char *key, uint64_t *ret_address)
{
	const char *text = NULL;
	int err = ts_json_text(at, key, true, &text);
	char *end;
	uint64_t address;

	if (err || !text)
		return err;
	if (strncmp(text, "0x", 2) || !isxdigit((unsigned char)text[2]) ||
	        strlen(text) > 18)
		return ts_json_bad(at, key, "want 0x and hexadecimal digits");
	address = strtoull(text, &end, 16);
	if (*end)
		return ts_json_bad(at, key, "want 0x and hexadecimal digits");
	if (address > TS_MAX_ADDRESS)
		return ts_json_bad(at, key, "no device address");
	*ret_address = address;
	return 0;
}

int ts_json_member(const struct ts_json_at *at, const char *key,
        struct ts_json_at *ret_child)
{
	*ret_child = (struct ts_json_at){
	        json_object_get(at->node, key), at, key, 0, at->error};
	if (!ret_child->node)
		return ts_json_bad(at, key, "missing");
	return ts_json_want_object(ret_child);
}

int ts_json_array(const struct ts_json_at *at, const char *key, bool optional,
        struct ts_json_at *ret_child)
{
	*ret_child = (struct ts_json_at){
	        json_object_get(at->node, key), at, key, 0, at->error};
	if (!ret_child->node)
		return optional ? 0 : ts_json_bad(at, key, "missing");
	if (!json_is_array(ret_child->node))
		return ts_json_bad(at, key, "want an array");
	return 0;
}

struct ts_json_at ts_json_item(const struct ts_json_at *at, size_t index)
{
	return (struct ts_json_at){
	        json_array_get(at->node, index), at, NULL, index, at->error};
}

int ts_json_want_object(const struct ts_json_at *at)
{
	if (!json_is_object(at->node))
		return ts_json_bad(at, NULL, "want an object");
	return 0;
}

int ts_json_tree(const char *text, size_t length, json_t **ret_root,
        struct ts_input_error *error)
{
	json_error_t parse;
	json_t *root = json_loadb(text, length, JSON_REJECT_DUPLICATES, &parse);

	memset(error, 0, sizeof(*error));
	*ret_root = root;
	if (root)
		return 0;
	snprintf(error->path, sizeof(error->path), "$");
	snprintf(error->message, sizeof(error->message),
	        "line %d, column %d: %s", parse.line, parse.column, parse.text);
	return -EINVAL;
}

int ts_json_check(
        const json_t *root, const char *schema, struct ts_input_error *error)
{
	struct ts_json_at at = {.node = root, .error = error};
	const char *name = "", *version = "";
	int err;

	memset(error, 0, sizeof(*error));
	err = ts_json_want_object(&at);
	if (!err)
		err = ts_json_text(&at, "schema", false, &name);
	if (!err && strcmp(name, schema))
		err = ts_json_bad(
		        &at, "schema", "want '%s', not '%.60s'", schema, name);
	if (!err)
		err = ts_json_text(&at, "schema_version", false, &version);
	if (!err && strncmp(version, "1.", 2))
		err = ts_json_bad(&at, "schema_version",
		        "want version 1, not '%.60s'", version);
	return err;
}

int ts_json_load(const char *text, size_t length, const char *schema,
        json_t **ret_root, struct ts_input_error *error)
{
	int err = ts_json_tree(text, length, ret_root, error);

	if (err)
		return err;
	err = ts_json_check(*ret_root, schema, error);
	if (err)
		json_decref(*ret_root);
	return err;
}

static int fail_file(
        struct ts_input_error *error, FILE *file, char *text, int err)
{
	snprintf(error->path, sizeof(error->path), "$");
	snprintf(error->message, sizeof(error->message), "cannot read: %s",
	        strerror(-err));
	free(text);
	if (file)
		fclose(file);
	return err;
}

int ts_json_read_file(const char *path, char **ret_text, size_t *ret_length,
        struct ts_input_error *error)
{
	FILE *file = fopen(path, "rb");
	size_t length = 0, room = 0;
	char *text = NULL;

	memset(error, 0, sizeof(*error));
	if (!file)
		return fail_file(error, NULL, NULL, -errno);
	for (;;) {
		size_t got;

		if (length == room) {
			char *more;

			room = room ? 2 * room : 65536;
			if (room > MAX_FILE_BYTES)
				return fail_file(error, file, text, -EFBIG);
			more = realloc(text, room);
			if (!more)
				return fail_file(error, file, text, -ENOMEM);
			text = more;
		}
		errno = 0;
		got = fread(text + length, 1, room - length, file);
		length += got;
		if (!got)
			break;
	}
	if (ferror(file))
		return fail_file(error, file, text, errno ? -errno : -EIO);
	fclose(file);
	*ret_text = text;
	*ret_length = length;
	return 0;
}
