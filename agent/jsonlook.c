/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "agent/jsonlook.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

struct scan {
	FILE *file;
	char text[TS_JSONLOOK_SCHEMA_BYTES]; /* of the last string, cut */
	int depth;
};

/* After the quote that opens it. False where the file ends within. */
static bool read_string(struct scan *scan)
{
	size_t used = 0;
	int c;

	while ((c = getc_unlocked(scan->file)) != '"') {
		if (c == '\\')
			c = getc_unlocked(scan->file);
		if (c == EOF)
			return false;
		if (used < sizeof(scan->text) - 1)
			scan->text[used++] = (char)c;
	}
	scan->text[used] = '\0';
	return true;
}

/*
 * The next character that is not in a string, or '"' for a whole one; EOF at
 * the end, which is one too soon where the depth is not 0.
 */
static int next(struct scan *scan)
{
	int c = getc_unlocked(scan->file);

	while (c != EOF && isspace(c))
		c = getc_unlocked(scan->file);
	if (c == '"' && !read_string(scan))
		return EOF;
	scan->depth += (c == '{' || c == '[') - (c == '}' || c == ']');
	return c;
}

static void take_text(
        struct scan *scan, char ret_text[TS_JSONLOOK_SCHEMA_BYTES])
{
	int colon = next(scan), quote = next(scan);

	if (colon == ':' && quote == '"')
		memcpy(ret_text, scan->text, TS_JSONLOOK_SCHEMA_BYTES);
}

/* After a key of the object itself. True where no other is wanted. */
static bool take(struct scan *scan, bool wants_all, struct ts_jsonlook *look)
{
	if (!strcmp(scan->text, "tape") || !strcmp(scan->text, "measured")) {
		look->of_run = true;
	} else if (!strcmp(scan->text, "schema")) {
		take_text(scan, look->schema);
	} else if (!strcmp(scan->text, "schema_version")) {
		take_text(scan, look->version);
	}
	return *look->schema && !wants_all;
}

/* A file that was not written to its end has another one. */
static int check_end(FILE *file)
{
	char tail[8];
	size_t length;

	if (fseek(file, -(long)sizeof(tail), SEEK_END))
		rewind(file);
	length = fread(tail, 1, sizeof(tail), file);
	while (length && isspace((unsigned char)tail[length - 1]))
		length--;
	return length && tail[length - 1] == '}' ? 0 : -ENODATA;
}

static int look_at(struct scan *scan, bool wants_all, struct ts_jsonlook *look)
{
	bool begins = true; /* what comes next in the object is a key */
	int c = next(scan);

	if (c != '{')
		return -EINVAL;
	while ((c = next(scan)) != EOF && scan->depth) {
		if (c == '"' && begins && scan->depth == 1 &&
		        take(scan, wants_all, look))
			break;
		begins = c == ',' && scan->depth == 1;
	}
	return c == EOF ? -ENODATA : 0;
}

int ts_jsonlook(const char *path, bool wants_all, struct ts_jsonlook *ret_look)
{
	struct scan scan = {.file = fopen(path, "re")};
	struct stat there;
	int rc;

	*ret_look = (struct ts_jsonlook){0};
	if (!scan.file)
		return -errno;
	rc = fstat(fileno(scan.file), &there) ? -errno : 0;
	if (!rc && there.st_size > TS_JSONLOOK_BYTES_MAX)
		rc = -EFBIG;
	if (!rc)
		rc = look_at(&scan, wants_all, ret_look);
	if (!rc)
		rc = check_end(scan.file);
	fclose(scan.file);
	return rc;
}
