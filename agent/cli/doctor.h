/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What `tapeswap doctor` looks at. Single-threaded. */
#ifndef TS_CLI_DOCTOR_H
#define TS_CLI_DOCTOR_H

#include <stdbool.h>
#include <stddef.h>

enum ts_verdict {
	TS_SUPPORTED,
	TS_PASSED, /* works as without tapeswap, which does nothing for it */
	TS_REFUSED,
};

struct ts_finding {
	char subject[32];
	enum ts_verdict verdict;
	bool fatal; /* with it tapeswap cannot do its work at all */
	char detail[320];
	char remedy[200]; /* "" where there is none to give */
};

#define TS_FINDINGS_MAX 32

struct ts_findings {
	struct ts_finding list[TS_FINDINGS_MAX];
	size_t count;
};

/* Each adds what it finds. */
void ts_doctor_library(struct ts_findings *findings);
void ts_doctor_settings(struct ts_findings *findings);
void ts_doctor_driver(struct ts_findings *findings);
void ts_doctor_torch(struct ts_findings *findings, const char *python);
void ts_doctor_allocator(struct ts_findings *findings);
void ts_doctor_libraries(struct ts_findings *findings);
void ts_doctor_sharing(struct ts_findings *findings);
void ts_doctor_features(struct ts_findings *findings);
void ts_doctor_host(struct ts_findings *findings);

#endif
