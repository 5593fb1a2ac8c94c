/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The charts of `tapeswap report`, as SVG in the page. Single-threaded. */
#ifndef TS_CLI_REPORT_CHART_H
#define TS_CLI_REPORT_CHART_H

#include <jansson.h>
#include <stdint.h>
#include <stdio.h>

/* Of what ts_cli_make_trace() made. */
void ts_report_memory(FILE *out, const json_t *trace);
void ts_report_timeline(FILE *out, const json_t *trace);

struct ts_report_point {
	uint64_t limit_bytes, step_ns, bound_ns;
	int fits;
};

/* Step times by limit, descending limits. @ideal_ns: without a limit. */
void ts_report_sweep(FILE *out, const struct ts_report_point *points,
        uint32_t count, uint64_t ideal_ns);

#endif
