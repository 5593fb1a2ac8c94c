/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * How far a command has come, on stderr: on a terminal one line that is written
 * over and taken away at the end, else a line now and then. Single-threaded.
 */
#ifndef TS_PROGRESS_H
#define TS_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>

struct ts_progress {
	const char *what;
	uint32_t total;
	uint64_t begun_ns, told_ns;
	bool terminal;
	bool told; /* of a line */
};

/* @what, as "sweep", is in @total parts. */
void ts_progress_begin(
        struct ts_progress *progress, const char *what, uint32_t total);

/* @done of them are done, and one more is begun. */
void ts_progress_tell(struct ts_progress *progress, uint32_t done);

/* Whether another line is due at @now_ns, and if so, that it is told. */
bool ts_progress_due(struct ts_progress *progress, uint64_t now_ns);

/* Before anything else is written. */
void ts_progress_end(const struct ts_progress *progress);

#endif
