/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * `tapeswap inspect PROFILE --verdicts`: every kernel of a step with whether it
 * can be launched again for what it makes, and why not. Single-threaded.
 */
#ifndef TS_CLI_VERDICTS_H
#define TS_CLI_VERDICTS_H

#include <jansson.h>
#include <stdbool.h>

/*
 * Prints what the tree of a profile says, those that are refused last. Exit
 * status of the command: 2 where the profile has no verdicts.
 */
int ts_cli_print_verdicts(
        const char *path, const json_t *profile, bool as_json);

#endif
