/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "agent/cli/progress.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/base/clock.h"

/* Before each line: what is soon over flickers on no terminal. */
#define TERMINAL_REST_NS 500000000ull
#define FILE_REST_NS     30000000000ull

#define ERASE_LINE "\r\033[K"

void ts_progress_begin(
        struct ts_progress *progress, const char *what, uint32_t total)
{
	const char *term = getenv("TERM");

	progress->what = what;
	progress->total = total;
	progress->begun_ns = progress->told_ns = ts_now_ns();
	progress->told = false;
	progress->terminal =
	        isatty(STDERR_FILENO) && term && strcmp(term, "dumb");
}

bool ts_progress_due(struct ts_progress *progress, uint64_t now_ns)
{
	uint64_t rest_ns = progress->terminal ? TERMINAL_REST_NS : FILE_REST_NS;

	if (now_ns - progress->told_ns < rest_ns)
		return false;
	progress->told_ns = now_ns;
	progress->told = true;
	return true;
}

void ts_progress_tell(struct ts_progress *progress, uint32_t done)
{
	uint64_t now = ts_now_ns();

	if (!ts_progress_due(progress, now))
		return;
	fprintf(stderr, "%stapeswap: %s: %u of %u done after %u s%s",
	        progress->terminal ? ERASE_LINE : "", progress->what, done,
	        progress->total,
	        (unsigned int)((now - progress->begun_ns) / 1000000000),
	        progress->terminal ? "" : "\n");
}

void ts_progress_end(const struct ts_progress *progress)
{
	if (progress->terminal && progress->told)
		fputs(ERASE_LINE, stderr);
}
