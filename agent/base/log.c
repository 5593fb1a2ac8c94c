/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "agent/base/log.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "agent/base/nosignal.h"

#define LINE_BYTES 1024

static atomic_int max_level = TS_LOG_INFO;
/* What is open as standard error was opened as something else. */
static bool is_silent;

void ts_log_begin(void)
{
	is_silent = fcntl(STDERR_FILENO, F_GETFD) < 0;
}

void ts_log_set_level(enum ts_log_level level)
{
	atomic_store_explicit(&max_level, (int)level, memory_order_relaxed);
}

bool ts_log_enabled(enum ts_log_level level)
{
	return (int)level <=
	       atomic_load_explicit(&max_level, memory_order_relaxed);
}

static size_t put_prefix(char *line, size_t size)
{
	const char *rank = getenv("LOCAL_RANK");
	int length;

	if (!rank)
		rank = getenv("RANK");
	if (rank && *rank)
		length = snprintf(line, size, "tapeswap[r%.8s %d]: ", rank,
		        (int)getpid());
	else
		length = snprintf(line, size, "tapeswap[%d]: ", (int)getpid());
	return length < 0 ? 0 : (size_t)length;
}

void ts_log(enum ts_log_level level, const char *format, ...)
{
	char line[LINE_BYTES];
	struct ts_nosignal held;
	size_t used, done = 0;
	int length, saved = errno;
	va_list args;

	if (is_silent || !ts_log_enabled(level))
		return;
	used = put_prefix(line, sizeof(line));
	va_start(args, format);
	length = vsnprintf(line + used, sizeof(line) - used, format, args);
	va_end(args);
	if (length > 0)
		used += (size_t)length;
	if (used > sizeof(line) - 1)
		used = sizeof(line) - 1;
	line[used++] = '\n';
	ts_nosignal_hold(&held);
	while (done < used) {
		ssize_t n = write(STDERR_FILENO, line + done, used - done);

		if (n > 0)
			done += (size_t)n;
		else if (n == 0 || errno != EINTR)
			break;
	}
	ts_nosignal_let_go(&held);
	errno = saved;
}

#ifndef NDEBUG
void ts_assert_failed(const char *what, const char *file, int line)
{
	ts_log(TS_LOG_ERROR, "%s:%d: assertion failed: %s", file, line, what);
	abort();
}
#endif
