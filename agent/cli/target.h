/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Whether the loader would honour LD_PRELOAD and LD_LIBRARY_PATH in a program
 * that is about to be executed. Single-threaded, no state.
 */
#ifndef TS_CLI_TARGET_H
#define TS_CLI_TARGET_H

enum ts_target {
	/* The dynamic loader will do as told, or the file is a script. */
	TS_TARGET_GOOD,
	TS_TARGET_NOT_FOUND,
	TS_TARGET_NOT_EXECUTABLE,
	TS_TARGET_STATIC,
	/* The loader ignores the environment of privileged programs. */
	TS_TARGET_SETUID,
	TS_TARGET_FOREIGN,
};

/*
 * Finds @command as execvp() would and reads what the file is; a script's
 * interpreter is looked at in its place. With another result than
 * TS_TARGET_NOT_FOUND, *@ret_path is the file the result speaks of, to be
 * freed by the caller; NULL when memory is short.
 */
enum ts_target ts_target_check(const char *command, char **ret_path);

#endif
