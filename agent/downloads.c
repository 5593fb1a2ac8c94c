/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "agent/downloads.h"

#include "agent/agent_internal.h"

static void lose_locked(
        struct ts_downloads *downloads, const struct ts_download *download)
{
	uint64_t *lost = &downloads->lost[download->device];

	if (download->number > *lost)
		*lost = download->number;
}

static void put_locked(
        struct ts_downloads *downloads, const struct ts_download *download)
{
	struct ts_download *slot =
	        &downloads->list[downloads->next++ % TS_DOWNLOADS_MAX];

	if (slot->bytes)
		lose_locked(downloads, slot);
	*slot = *download;
}

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
		put_locked(downloads, &download);
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

/* The last of those that gave way on @device. */
static bool take_lost(int device, struct ts_download *ret)
{
	ts_mutex_lock(&ts_agent.lock);
	*ret = (struct ts_download){
	        .device = device, .number = ts_agent.downloads.lost[device]};
	ts_agent.downloads.lost[device] = 0;
	ts_mutex_unlock(&ts_agent.lock);
	return ret->number;
}

/* Where it cannot be waited for it is still under way. */
static bool wait_for(const struct ts_download *download)
{
	struct ts_pager *pager = ts_agent_pager(download->device);

	if (!pager)
		return true;
	/* A capture would not survive the wait. */
	if (!atomic_load(&ts_agent.capturing) &&
	        ts_pager_wait_op(pager, download->number) == CUDA_SUCCESS)
		return true;
	ts_mutex_lock(&ts_agent.lock);
	lose_locked(&ts_agent.downloads, download);
	ts_mutex_unlock(&ts_agent.lock);
	return false;
}

bool ts_downloads_wait(const void *source, size_t bytes)
{
	struct ts_download download;

	while (take((uint64_t)(uintptr_t)source, bytes, &download))
		if (!wait_for(&download))
			return false;
	for (int device = 0; device < TS_AGENT_DEVICES; device++)
		if (take_lost(device, &download) && !wait_for(&download))
			return false;
	return true;
}
