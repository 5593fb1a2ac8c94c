/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "agent/jsonfile.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

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
