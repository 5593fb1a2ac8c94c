/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * One line at a time on standard error, prefixed with "tapeswap[PID]: ", or
 * "tapeswap[rN PID]: " where the launcher set LOCAL_RANK or RANK. Any thread;
 * no lock: a line is one write(2). Nothing here allocates.
 */
#ifndef TS_LOG_H
#define TS_LOG_H

#include <stdbool.h>

enum ts_log_level {
	TS_LOG_ERROR,
	TS_LOG_WARN,
	TS_LOG_INFO,
	TS_LOG_DEBUG,
};

/*
 * As the process starts: where standard error is closed, nothing is written
 * later to what the program may have opened in its place.
 */
void ts_log_begin(void);

/* Lines above @level are dropped. The default is TS_LOG_INFO. */
void ts_log_set_level(enum ts_log_level level);

/* True where a line of @level would be written. */
bool ts_log_enabled(enum ts_log_level level);

/* Writes one line; the newline is added, overlong lines are cut. */
void ts_log(enum ts_log_level level, const char *format, ...)
        __attribute__((format(printf, 2, 3)));

#ifdef NDEBUG
#define ts_assert(condition) ((void)sizeof(condition))
#else
/* For our own bugs only, never for what the program or the driver does. */
void ts_assert_failed(const char *what, const char *file, int line)
        __attribute__((noreturn));
#define ts_assert(condition)                                                   \
	((condition) ? (void)0                                                 \
	             : ts_assert_failed(#condition, __FILE__, __LINE__))
#endif

#endif
