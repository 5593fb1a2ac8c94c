/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "agent/jsonfile.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/base/log.h"
#include "agent/base/nosignal.h"
#include "agent/base/output.h"
#include "agent/hash.h"
#include "agent/jsonlook.h"

json_t *ts_json_head(const char *schema)
{
	return json_pack("{s:s, s:s, s:s, s:i}", "schema", schema,
	        "schema_version", "1.0", "tool_version", TS_VERSION, "pid",
	        (int)getpid());
}

static int put(const json_t *value, FILE *file, size_t flags)
{
	struct ts_nosignal held;
	int rc = 0;

	if (!file)
		return -errno;
	ts_nosignal_hold(&held);
	/* Neither tells why: a write in their middle, mostly. */
	errno = 0;
	if (json_dumpf(value, file, flags) || fputc('\n', file) == EOF)
		rc = errno ? -errno : -EIO;
	if (fclose(file) && !rc)
		rc = -errno;
	ts_nosignal_let_go(&held);
	return rc;
}

static int replace(const json_t *value, const char *file, size_t flags)
{
	char *beside;
	int rc;

	if (asprintf(&beside, "%s.%d.tmp", file, (int)getpid()) < 0)
		return -ENOMEM;
	rc = put(value, fopen(beside, "we"), flags);
	if (!rc && rename(beside, file))
		rc = -errno;
	if (rc)
		unlink(beside);
	free(beside);
	return rc;
}

int ts_json_write(const json_t *value, const char *path, size_t flags)
{
	char *file;
	int rc;

	if (!value)
		return -ENOMEM;
	rc = ts_output_place(path, &file);
	if (rc)
		return rc;
	/* A pipe that nobody reads is an error, not something to wait for. */
	rc = file ? replace(value, file, flags)
	          : put(value, ts_output_open(path, false), flags);
	free(file);
	return rc;
}

/* -------------------------------------------------------------- what stays */

bool ts_json_is_of_run(const json_t *json)
{
	return json_object_get(json, "tape") ||
	       json_object_get(json, "measured");
}

/* Whether a run may have put @file where @setting says. */
static bool is_ours(const char *file, const char *setting)
{
	bool plan = !strcmp(setting, "TAPESWAP_PLAN");
	struct ts_jsonlook look;

	if (ts_jsonlook(file, plan, &look))
		return false;
	if (!strcmp(setting, "TAPESWAP_STATUS"))
		return !strcmp(look.schema, "status");
	if (!strcmp(setting, "TAPESWAP_PROFILE"))
		return !strcmp(look.schema, "tapeswap-profile");
	return !strcmp(look.schema, "tape") ||
	       (!strcmp(look.schema, "tapeswap-plan") && look.of_run);
}

static int look_at_file(const char *setting, const char *file)
{
	struct stat there;

	if (stat(file, &there))
		return errno == ENOENT ? 0 : -errno;
	if (S_ISDIR(there.st_mode))
		return -EISDIR;
	if (!there.st_size)
		return 0;
	return is_ours(file, setting) ? 0 : -EEXIST;
}

/* 0: there is no file at @path that was not put there by a run. */
static int look(const char *setting, const char *path)
{
	char *file = NULL;
	int rc = ts_output_place(path, &file);

	if (file)
		rc = look_at_file(setting, file);
	free(file);
	return rc;
}

/* Paths that are known to be free, or this run's by now. */
#define KNOWN_MAX 32

/* Puts @key into @set; whether it was there, as all are in a full one. */
static bool was_noted(atomic_uint_least64_t *set, size_t count, uint64_t key)
{
	for (size_t i = 0; i < count; i++) {
		uint_least64_t slot = 0;

		if (atomic_compare_exchange_strong(&set[i], &slot, key))
			return false;
		if (slot == key)
			return true;
	}
	return true;
}

static uint64_t key_of(const char *setting, const char *path)
{
	uint64_t key = ts_hash(TS_HASH_START, setting, strlen(setting));

	return ts_hash(key, path, strlen(path));
}

static int look_once(const char *setting, const char *path)
{
	static atomic_uint_least64_t known[KNOWN_MAX];
	uint64_t key = key_of(setting, path);
	int rc;

	for (size_t i = 0; i < KNOWN_MAX; i++)
		if (atomic_load(&known[i]) == key)
			return 0;
	rc = look(setting, path);
	if (!rc)
		was_noted(known, KNOWN_MAX, key);
	return rc;
}

/* ------------------------------------------------------------ what is said */

/* More failures than these tell nobody anything. */
#define TOLD_MAX 8

static void say(const char *setting, const char *path, int rc)
{
	static atomic_uint_least64_t told[TOLD_MAX];
	uint64_t cause = ts_hash_word(key_of(setting, path), (uint64_t)-rc);

	if (was_noted(told, TOLD_MAX, cause))
		return;
	if (rc == -EEXIST)
		ts_log(TS_LOG_ERROR,
		        "%s=\"%s\" is not a file that a run of tapeswap wrote: "
		        "it stays, and none is written",
		        setting, path);
	else
		ts_log(TS_LOG_ERROR, "%s=\"%s\" cannot be written: %s", setting,
		        path, strerror(-rc));
}

int ts_json_check_place(const char *setting, const char *path)
{
	int rc = ts_output_check(path);

	if (rc)
		say(setting, path, rc);
	return rc;
}

int ts_json_check_setting(const char *setting, const char *path)
{
	int rc = look_once(setting, path);

	if (!rc)
		return ts_json_check_place(setting, path);
	say(setting, path, rc);
	return rc;
}

int ts_json_write_setting(
        json_t *value, const char *setting, const char *path, size_t flags)
{
	int rc = look_once(setting, path);

	if (!rc)
		rc = ts_json_write(value, path, flags);
	if (rc)
		say(setting, path, rc);
	json_decref(value);
	return rc;
}
