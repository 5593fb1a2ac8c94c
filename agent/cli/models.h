/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The simulated GPU's device models, as `tapeswap run --sim` names them: JSON
 * files of one folder, by the name without the ending, or any file by a path
 * with a slash in it. No state; any thread.
 */
#ifndef TS_CLI_MODELS_H
#define TS_CLI_MODELS_H

#include <stdbool.h>

/* Whether @folder has a model @name, or @name is the path of a file that can be
 * read. */
bool ts_cli_model_exists(const char *folder, const char *name);

/* The names of @folder's models, sorted, separated by commas; "none" where
 * there are none. The caller frees it; NULL: out of memory. */
char *ts_cli_model_names(const char *folder);

#endif
