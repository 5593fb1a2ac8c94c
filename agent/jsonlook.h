/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What kind of JSON file lies at a path, told without a tree of it: that of a
 * profile takes ten times its size. No state; any thread.
 */
#ifndef TS_JSONLOOK_H
#define TS_JSONLOOK_H

#include <stdbool.h>

/* No run has written a file as large as this. */
#define TS_JSONLOOK_BYTES_MAX (256ll << 20)

/* More is told of no schema, and of no version. */
#define TS_JSONLOOK_SCHEMA_BYTES 32

struct ts_jsonlook {
	char schema[TS_JSONLOOK_SCHEMA_BYTES];  /* "": it has none */
	char version[TS_JSONLOOK_SCHEMA_BYTES]; /* likewise */
	bool of_run; /* a plan with its tape or its figures */
};

/*
 * Looks at the keys of the object in the file at @path; where it @wants_all,
 * at those after "schema" too, to its end. 0 or a negative errno: -EINVAL for
 * what is no object, -ENODATA where it does not end as one does, -EFBIG for
 * one that is too large to be looked at.
 */
int ts_jsonlook(const char *path, bool wants_all, struct ts_jsonlook *ret_look);

#endif
