/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "agent/cli/models.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define ENDING ".json"

bool ts_cli_model_exists(const char *folder, const char *name)
{
	char *path;
	bool exists;

	if (strchr(name, '/'))
		return !access(name, R_OK);
	if (asprintf(&path, "%s/%s" ENDING, folder, name) < 0)
		return false;
	exists = !access(path, R_OK);
	free(path);
	return exists;
}

static int is_model(const struct dirent *entry)
{
	size_t length = strlen(entry->d_name), end = strlen(ENDING);

	return length > end && !strcmp(entry->d_name + length - end, ENDING);
}

char *ts_cli_model_names(const char *folder)
{
	struct dirent **entries;
	int n = scandir(folder, &entries, is_model, alphasort);
	char *names = NULL;
	size_t bytes;
	FILE *out;

	if (n <= 0)
		return strdup("none");
	out = open_memstream(&names, &bytes);
	for (int i = 0; i < n; i++) {
		const char *name = entries[i]->d_name;

		if (out)
			fprintf(out, "%s%.*s", i ? ", " : "",
			        (int)(strlen(name) - strlen(ENDING)), name);
		free(entries[i]);
	}
	free(entries);
	if (out)
		fclose(out);
	return names;
}
