/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Tables of addresses on the device that a library is about to follow. Reading
 * one back costs a wait: only calls that hand over a table come here.
 */
#include <stdlib.h>

#include "agent/agent_internal.h"

static bool captures(ts_stream_key stream)
{
	CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;

	if (!atomic_load(&ts_agent.capturing) || stream == TS_STREAM_LEGACY)
		return false;
	ts_agent.ops->stream_is_capturing((CUstream)(uintptr_t)stream, &status);
	return status != CU_STREAM_CAPTURE_STATUS_NONE;
}

static bool read_back(
        void *words, CUdeviceptr table, size_t bytes, ts_stream_key stream)
{
	CUstream on = (CUstream)(uintptr_t)stream;

	return ts_agent.ops->copy_out(words, table, bytes, on) ==
	               CUDA_SUCCESS &&
	       ts_agent.ops->stream_synchronize(on) == CUDA_SUCCESS;
}

/* The same with the table's own block resident, where it is the pager's. */
static bool read_resident(
        void *words, CUdeviceptr table, size_t bytes, ts_stream_key stream)
{
	struct ts_range range = {.address = table,
	        .bytes = bytes,
	        .access = TS_ACCESS_READ,
	        .device = -1};
	struct ts_pager *pager;
	struct ts_shortage shortage;
	struct ts_block *block;
	uint64_t in = 0, out = 0;
	bool read;

	ts_mutex_lock(&ts_agent.blocks.lock);
	block = ts_blocks_find_locked(&ts_agent.blocks, table);
	if (block && block->managed)
		range.device = block->device;
	if (block && bytes > block->address + block->bytes - table)
		range.bytes = 0;
	ts_mutex_unlock(&ts_agent.blocks.lock);
	if (!range.bytes)
		return false;
	pager = ts_agent_pager(range.device);
	if (!pager)
		return read_back(words, table, bytes, stream);
	if (ts_pager_begin(pager, &range, 1, ts_agent_begin_flags(), stream,
	            &in, &out, &shortage))
		return false;
	read = read_back(words, table, bytes, stream);
	ts_pager_end(pager, &range, 1, TS_STREAM_HOST, false);
	return read;
}

bool ts_agent_scan_device(CUdeviceptr table, size_t bytes, ts_stream_key stream)
{
	CUresult result = CUDA_SUCCESS;
	void *words;
	bool read;

	if (!table || !bytes || !ts_agent_places())
		return true;
	if (captures(stream))
		return false;
	words = malloc(bytes);
	if (!words)
		return false;
	read = read_resident(words, table, bytes, stream);
	if (read)
		ts_scan_words(&ts_agent.blocks, words, bytes,
		        ts_agent_pin_found, &result);
	free(words);
	return read && result == CUDA_SUCCESS;
}
