/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "agent/downloads.h"

#include "agent/agent_internal.h"

void ts_downloads_note(const struct ts_op *op)
{
	struct ts_downloads *downloads = &ts_agent.downloads;

	for (size_t i = 0; i < op->count; i++) {
		struct ts_download download = {.address = op->host,
		        .bytes = op->bytes,
		        .device = op->ranges[i].device};
		struct ts_pager *pager = ts_agent_pager(download.device);

		if (!pager)
			continue;
		download.number = ts_pager_last_op(pager);
		ts_mutex_lock(&ts_agent.lock);
		downloads->list[downloads->next++ % TS_DOWNLOADS_MAX] =
		        download;
		ts_mutex_unlock(&ts_agent.lock);
	}
}

/* Takes one that overlaps out of the list. */
static bool take(uint64_t address, size_t bytes, struct ts_download *ret)
{
	bool found = false;

	ts_mutex_lock(&ts_agent.lock);
	for (size_t i = 0; i < TS_DOWNLOADS_MAX && !found; i++) {
		struct ts_download *slot = &ts_agent.downloads.list[i];

		if (!slot->bytes || slot->address >= address + bytes ||
		        slot->address + slot->bytes <= address)
			continue;
		*ret = *slot;
		slot->bytes = 0;
		found = true;
	}
	ts_mutex_unlock(&ts_agent.lock);
	return found;
}

bool ts_downloads_wait(const void *source, size_t bytes)
{
	struct ts_download download;

	while (take((uint64_t)(uintptr_t)source, bytes, &download)) {
		struct ts_pager *pager = ts_agent_pager(download.device);

		/* A capture would not survive the wait. */
		if (atomic_load(&ts_agent.capturing))
			return false;
		if (pager && ts_pager_wait_op(pager, download.number) !=
		                     CUDA_SUCCESS)
			return false;
	}
	return true;
}
