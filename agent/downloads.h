/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Copies to host memory that may still be under way, so that nobody reads
 * there before they are done. Any thread; the agent's lock guards the list.
 */
#ifndef TS_DOWNLOADS_H
#define TS_DOWNLOADS_H

#include <stddef.h>
#include <stdint.h>

#include "agent/agent.h"
#include "agent/op.h"

#define TS_DOWNLOADS_MAX 64

struct ts_download {
	uint64_t address, bytes; /* of host memory; 0 bytes: none */
	int device;              /* whose pager numbered the op */
	uint64_t number;
};

struct ts_downloads {
	struct ts_download list[TS_DOWNLOADS_MAX];
	unsigned int next; /* the oldest one gives way: */
	/* By device, the last op among those; whatever it wrote, wherever. */
	uint64_t lost[TS_AGENT_DEVICES];
};

/* @op, just issued, writes to op->host. */
void ts_downloads_note(const struct ts_op *op);

/*
 * Waits for what was to be written into host memory at @source. False where
 * that cannot be waited for: then it is not to be read.
 */
bool ts_downloads_wait(const void *source, size_t bytes);

#endif
