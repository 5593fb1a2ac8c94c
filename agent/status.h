/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What the agent says at the end: one line on standard error, and the files of
 * TAPESWAP_STATUS and TAPESWAP_PLAN. Runs once, with no driver call, possibly
 * while other threads still launch. And what stands in the first file before
 * that, for a program may be killed.
 */
#ifndef TS_STATUS_H
#define TS_STATUS_H

#include <jansson.h>
#include <stdbool.h>

#include "runtime/pager.h"

void ts_status_write_all(void);

/*
 * After an op, on any thread, with no lock held: has the status rewritten, by a
 * helper thread where TAPESWAP_HELPER allows one, when a step is over, or many
 * ops, but no more than once a second.
 */
void ts_status_refresh(void);

/* The figures of @device, from its pager or the last it had; false: none. */
bool ts_status_device(int device, struct ts_pager_stats *ret_stats);

/* Those figures as both files have them; NULL without memory. */
json_t *ts_status_moved(const struct ts_pager_stats *stats);

#endif
