/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "agent/jsonfile.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/base/log.h"
#include "agent/hash.h"

json_t *ts_json_head(const char *schema)
{
	return json_pack("{s:s, s:s, s:s, s:i}", "schema", schema,
	        "schema_version", "1.0", "tool_version", TS_VERSION, "pid",
	        (int)getpid());
}

int ts_json_write(const json_t *value, const char *path, size_t flags)
{
	char *beside;
	FILE *file;
	int rc = 0;

	if (!value)
		return -ENOMEM;
	if (asprintf(&beside, "%s.%d.tmp", path, (int)getpid()) < 0)
		return -ENOMEM;
	file = fopen(beside, "we");
	if (!file) {
		rc = -errno;
		goto out;
	}
	if (json_dumpf(value, file, flags) || fputc('\n', file) == EOF)
		rc = -EIO;
	if (fclose(file) && !rc)
		rc = -errno;
	if (!rc && rename(beside, path))
		rc = -errno;
	if (rc)
		unlink(beside);
out:
	free(beside);
	return rc;
}

/* More failures than these tell nobody anything. */
#define TOLD_MAX 8

static bool is_told(const char *setting, const char *path, int rc)
{
	static atomic_uint_least64_t told[TOLD_MAX];
	uint64_t cause = ts_hash(TS_HASH_START, setting, strlen(setting));

	cause = ts_hash(cause, path, strlen(path));
	cause = ts_hash_word(cause, (uint64_t)-rc);
	for (size_t i = 0; i < TOLD_MAX; i++) {
		uint_least64_t slot = 0;

		if (atomic_compare_exchange_strong(&told[i], &slot, cause))
			return false;
		if (slot == cause)
			return true;
	}
	return true;
}

int ts_json_write_setting(
        json_t *value, const char *setting, const char *path, size_t flags)
{
	int rc = ts_json_write(value, path, flags);

	if (rc && !is_told(setting, path, rc))
		ts_log(TS_LOG_ERROR, "%s=\"%s\" was not written: %s", setting,
		        path, strerror(-rc));
	json_decref(value);
	return rc;
}
