/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Allocations, and what the program is told about memory. */
#include <stdio.h>

#include "agent/agent_internal.h"
#include "agent/base/log.h"
#include "agent/base/units.h"
#include "agent/profiler.h"
#include "agent/proof.h"
#include "agent/recorder.h"
#include "agent/remake.h"
#include "runtime/enforce.h"

/* The driver takes memory in pieces of this size. */
#define CODE_BYTES (2ull << 20)

bool ts_agent_alloc(
        size_t bytes, CUdeviceptr *ret_address, CUresult *ret_result)
{
	struct ts_shortage shortage;
	struct ts_pager *pager;
	CUcontext context = NULL;
	uint64_t address;
	char what[64];
	int device, rc;

	if (!ts_agent_places() || !bytes || !ret_address)
		return false;
	pager = ts_agent_current_pager(&device);
	if (!pager)
		return false;
	rc = ts_pager_alloc(
	        pager, bytes, ts_agent_begin_flags(), &address, &shortage);
	/* The program comes before the proofs. */
	while (rc && ts_proof_give_back())
		rc = ts_pager_alloc(pager, bytes, ts_agent_begin_flags(),
		        &address, &shortage);
	if (rc) {
		snprintf(what, sizeof(what), "an allocation of %s",
		        ts_size(bytes).text);
		*ret_result = ts_agent_shortage_result(&shortage);
		if (*ret_result == CUDA_ERROR_OUT_OF_MEMORY)
			ts_agent_say_shortage(what, &shortage);
		return true;
	}
	ts_agent.ops->ctx_get_current(&context);
	if (ts_blocks_add_allocation(
	            &ts_agent.blocks, address, bytes, device, context, true)) {
		ts_pager_dead(pager, address, bytes);
		ts_pager_free(pager, address, bytes, ts_agent_begin_flags());
		*ret_result = CUDA_ERROR_OUT_OF_MEMORY;
		return true;
	}
	*ret_address = address;
	*ret_result = CUDA_SUCCESS;
	return true;
}

void ts_agent_allocated(CUdeviceptr address, size_t bytes)
{
	CUcontext context = NULL;
	CUdevice device = -1;

	ts_agent.ops->ctx_get_device(&device);
	ts_agent.ops->ctx_get_current(&context);
	/* Without memory for it the tape lacks a block: no harm done. */
	ts_blocks_add_allocation(
	        &ts_agent.blocks, address, bytes, device, context, false);
}

void ts_agent_tell_dead(const struct ts_stretch *stretch, void *data)
{
	struct ts_pager *pager = ts_agent_pager(stretch->device);

	(void)data;
	if (pager)
		ts_pager_dead(pager, stretch->address, stretch->bytes);
}

bool ts_agent_free(CUdeviceptr address, CUresult *ret_result)
{
	struct ts_allocation allocation;
	struct ts_pager *pager;

	/* What it has mapped a program unmaps: the driver refuses this. */
	if (ts_agent_find(address, &allocation) && allocation.mapped)
		return false;
	/* What is made from it, or lies in it, cannot be made again then. */
	if (!ts_remake_all()) {
		*ret_result = CUDA_ERROR_OUT_OF_MEMORY;
		return true;
	}
	/* Taken out first: the driver may give the address away again. */
	if (!ts_blocks_remove_allocation(&ts_agent.blocks, address, &allocation,
	            ts_agent_tell_dead, NULL) ||
	        !allocation.whole.managed)
		return false;
	pager = ts_agent_pager(allocation.whole.device);
	*ret_result =
	        pager ? ts_pager_free(pager, address, allocation.whole.bytes,
	                        ts_agent_begin_flags())
	              : CUDA_ERROR_INVALID_VALUE;
	return true;
}

CUresult ts_agent_before_unmanaged(size_t bytes, const char *what)
{
	struct ts_shortage shortage;
	struct ts_pager *pager;
	int device;

	if (!bytes)
		return CUDA_SUCCESS;
	pager = ts_agent_current_pager(&device);
	if (!pager || !ts_pager_make_room(
	                      pager, bytes, ts_agent_begin_flags(), &shortage))
		return CUDA_SUCCESS;
	/* What ails the driver it says itself, when it is asked. */
	if (ts_agent_shortage_result(&shortage) != CUDA_ERROR_OUT_OF_MEMORY)
		return CUDA_SUCCESS;
	ts_agent_say_shortage(what, &shortage);
	return CUDA_ERROR_OUT_OF_MEMORY;
}

/* NULL where there is none yet: this makes no pager. */
static struct ts_pager *pager_here(void)
{
	CUdevice device = -1;

	if (ts_agent.ops->ctx_get_device(&device) != CUDA_SUCCESS)
		return NULL;
	return ts_agent_pager(device);
}

void ts_agent_before_code(void)
{
	struct ts_pager *pager = pager_here();
	struct ts_shortage ignored;

	if (pager && !atomic_load(&ts_agent.capturing) &&
	        !ts_enforce_is_on(pager))
		ts_pager_make_room(
		        pager, CODE_BYTES, ts_agent_begin_flags(), &ignored);
}

static void after_unmanaged(struct ts_pager *pager)
{
	struct ts_shortage ignored;

	if (!pager)
		return;
	ts_pager_room_changed(pager);
	ts_pager_make_room(pager, 0, ts_agent_begin_flags(), &ignored);
}

void ts_agent_after_unmanaged(void)
{
	if (!atomic_load(&ts_agent.capturing)) {
		after_unmanaged(pager_here());
		return;
	}
	atomic_store(&ts_agent.put_off, true);
	/* The last may have ended just now. */
	ts_agent_after_captures();
}

void ts_agent_after_captures(void)
{
	if (!atomic_load(&ts_agent.put_off) ||
	        atomic_load(&ts_agent.capturing) ||
	        !atomic_exchange(&ts_agent.put_off, false))
		return;
	/* It may have been on any. */
	for (int device = 0; device < TS_AGENT_DEVICES; device++)
		after_unmanaged(ts_agent_pager(device));
}

/* Bytes the pool has from the driver and gave to nobody. */
static uint64_t unused_in(CUmemoryPool pool)
{
	cuuint64_t reserved, used;
	CUdevice device;

	if (!pool && (ts_agent.ops->ctx_get_device(&device) != CUDA_SUCCESS ||
	                     ts_agent.ops->device_mem_pool(&pool, device) !=
	                             CUDA_SUCCESS))
		return 0;
	if (ts_agent.ops->mem_pool_attribute(pool,
	            CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT,
	            &reserved) != CUDA_SUCCESS ||
	        ts_agent.ops->mem_pool_attribute(pool,
	                CU_MEMPOOL_ATTR_USED_MEM_CURRENT,
	                &used) != CUDA_SUCCESS)
		return 0;
	return reserved > used ? reserved - used : 0;
}

CUresult ts_agent_before_pool(CUmemoryPool pool, size_t bytes, const char *what)
{
	uint64_t unused = unused_in(pool);

	if (bytes <= unused)
		return CUDA_SUCCESS;
	return ts_agent_before_unmanaged(bytes - unused, what);
}

void ts_agent_room_changed(void)
{
	struct ts_pager *pager;
	CUdevice device = -1;

	if (ts_agent.ops->ctx_get_device(&device) != CUDA_SUCCESS)
		return;
	pager = ts_agent_pager(device);
	if (pager)
		ts_pager_room_changed(pager);
}

bool ts_agent_find(CUdeviceptr address, struct ts_allocation *ret_allocation)
{
	return ts_blocks_find_allocation(
	               &ts_agent.blocks, address, ret_allocation) &&
	       ret_allocation->whole.managed;
}

bool ts_agent_placed(CUdeviceptr address)
{
	for (int device = 0; device < TS_AGENT_DEVICES; device++) {
		struct ts_pager *pager = ts_agent_pager(device);

		if (pager && ts_pager_owns(pager, address))
			return true;
	}
	return false;
}

bool ts_agent_mem_info(size_t *ret_free, size_t *ret_total)
{
	uint64_t free_bytes, total_bytes;
	struct ts_pager *pager;
	int device;

	pager = ts_agent_current_pager(&device);
	if (!pager || ts_pager_mem_info(pager, &free_bytes, &total_bytes))
		return false;
	*ret_free = free_bytes;
	*ret_total = total_bytes;
	return true;
}

bool ts_agent_device_mem_info(int device, size_t *ret_free, size_t *ret_total)
{
	struct ts_pager *pager = ts_agent_pager(device);
	uint64_t free_bytes, total_bytes;
	CUcontext popped;
	int rc;

	if (!pager ||
	        ts_agent.ops->ctx_push(ts_pager_context(pager)) != CUDA_SUCCESS)
		return false;
	rc = ts_pager_mem_info(pager, &free_bytes, &total_bytes);
	ts_agent.ops->ctx_pop(&popped);
	if (rc)
		return false;
	*ret_free = free_bytes;
	*ret_total = total_bytes;
	return true;
}

size_t ts_agent_total_mem(size_t total_bytes)
{
	return ts_agent_limit_bytes(total_bytes);
}

void ts_agent_say_not_shared(const char *call)
{
	static atomic_bool said;

	if (atomic_exchange(&said, true))
		return;
	ts_log(TS_LOG_ERROR,
	        "%s refused: memory under tapeswap cannot be shared this way. "
	        "Remedy: TAPESWAP_IPC=1 (leaves allocations alone, but "
	        "counted)",
	        call);
}

bool ts_agent_refuses_ipc(CUdeviceptr address)
{
	struct ts_allocation allocation;

	if (!ts_agent_find(address, &allocation))
		return false;
	ts_agent_say_not_shared("cuIpcGetMemHandle");
	return true;
}

/* While steps are only followed. */
static bool nobody_asks(void)
{
	return !ts_recorder_is_recording() && !ts_agent_wants_blocks();
}

void ts_agent_report_block(uint64_t address, int64_t bytes, int device)
{
	struct ts_stretch dead, live;
	struct ts_pager *pager;

	if (nobody_asks()) {
		ts_recorder_count(bytes, device);
		ts_blocks_report_late(&ts_agent.blocks, address, bytes, device);
		return;
	}
	ts_blocks_report(
	        &ts_agent.blocks, address, bytes, device, &dead, &live);
	if (ts_profiler_is_on()) {
		struct ts_block block = {
		        .address = address, .device = device, .reported = true};

		/* What gives way to a block that is born was not reported. */
		if (dead.serial) {
			block.serial = dead.serial;
			block.bytes = dead.bytes;
			block.reported = bytes < 0;
			ts_recorder_died(&block);
		}
		if (live.serial) {
			block.serial = live.serial;
			block.bytes = live.bytes;
			block.reported = true;
			ts_recorder_born(&block);
		}
	}
	/* Alive first: what both share keeps its content. */
	pager = ts_agent_pager(live.device);
	if (pager)
		ts_pager_live(pager, live.address, live.bytes);
	pager = ts_agent_pager(dead.device);
	if (pager)
		ts_pager_dead(pager, dead.address, dead.bytes);
}

void ts_agent_scratch(CUdeviceptr address)
{
	struct ts_block *block;
	uint64_t serial = 0;

	/* It is told with each call that uses it. */
	if (nobody_asks())
		return;
	ts_mutex_lock(&ts_agent.blocks.lock);
	block = ts_blocks_find_locked(&ts_agent.blocks, address);
	if (block) {
		serial = block->serial;
		block->scratch = true;
	}
	ts_mutex_unlock(&ts_agent.blocks.lock);
	if (serial && ts_profiler_is_on())
		ts_recorder_scratch(serial);
}

/* Frees what was placed on @device, keeps its figures, ends its pager. */
static void device_gone(int device)
{
	struct ts_agent_device *place = &ts_agent.devices[device];
	struct ts_allocation allocation;
	struct ts_pager *pager = ts_agent_pager(device);
	uint64_t address;

	while (ts_blocks_any_allocation(&ts_agent.blocks, device, &address))
		ts_blocks_remove_allocation(&ts_agent.blocks, address,
		        &allocation, ts_agent_tell_dead, NULL);
	if (!pager)
		return;
	ts_mutex_lock(&ts_agent.reading);
	ts_pager_stats(pager, &place->past);
	place->has_past = true;
	ts_mutex_lock(&ts_agent.lock);
	atomic_store(&place->pager, NULL);
	ts_mutex_unlock(&ts_agent.lock);
	ts_mutex_unlock(&ts_agent.reading);
	ts_pager_destroy(pager, true);
}

/* True where the pager of @device does not need @context any more. */
static bool leave_context(int device, CUcontext context)
{
	struct ts_pager *pager = ts_agent_pager(device);
	CUcontext other;

	if (!pager || ts_pager_context(pager) != context)
		return true;
	if (!ts_blocks_other_context(&ts_agent.blocks, device, context, &other))
		return false;
	if (ts_pager_rebind(pager, other) == CUDA_SUCCESS)
		return true;
	ts_log(TS_LOG_WARN,
	        "device %d: what lies in host memory goes with its context",
	        device);
	return false;
}

/* Afterwards its streams are known too, and have nothing to do. */
static void wait_for_context(CUcontext context)
{
	struct ts_sync sync;
	CUcontext popped;

	/* A capture would not survive the wait. */
	if (atomic_load(&ts_agent.capturing))
		return;
	ts_agent_sync_begin(&sync);
	if (ts_agent.ops->ctx_push(context) != CUDA_SUCCESS)
		return;
	if (ts_agent.ops->ctx_synchronize() == CUDA_SUCCESS)
		ts_agent_sync_end(0, &sync);
	ts_agent.ops->ctx_pop(&popped);
}

static void context_gone(CUcontext context)
{
	CUdeviceptr address;
	CUresult ignored;

	ts_proof_context_gone(context);
	for (int device = 0; device < TS_AGENT_DEVICES; device++)
		if (!leave_context(device, context))
			device_gone(device);
	while (ts_blocks_any_in_context(&ts_agent.blocks, context, &address))
		ts_agent_free(address, &ignored);
	for (int device = 0; device < TS_AGENT_DEVICES; device++) {
		struct ts_pager *pager = ts_agent_pager(device);

		if (pager)
			ts_pager_context_gone(pager, context);
	}
	ts_captures_of_context_end(context);
	/* Its modules go with it: function handles may come again. */
	ts_funcs_forget_handles(&ts_agent.funcs);
}

void ts_agent_context_gone(CUcontext context)
{
	wait_for_context(context);
	context_gone(context);
}

static int device_of(CUcontext context)
{
	CUdevice device = -1;
	CUcontext popped;

	if (ts_agent.ops->ctx_push(context) != CUDA_SUCCESS)
		return -1;
	if (ts_agent.ops->ctx_get_device(&device) != CUDA_SUCCESS)
		device = -1;
	ts_agent.ops->ctx_pop(&popped);
	return device < TS_AGENT_DEVICES ? device : -1;
}

CUresult ts_agent_set_peer(int owner, int device, bool enable)
{
	struct ts_pager *pager;
	uint32_t peers;
	CUresult rc;

	if (owner < 0 || device < 0 || device >= TS_AGENT_DEVICES ||
	        device == owner)
		return CUDA_SUCCESS;
	ts_mutex_lock(&ts_agent.lock);
	peers = ts_agent.devices[owner].peers & ~(1u << device);
	if (enable)
		peers |= 1u << device;
	ts_agent.devices[owner].peers = peers;
	ts_mutex_unlock(&ts_agent.lock);
	pager = ts_agent_pager(owner);
	rc = pager ? ts_pager_set_peers(pager, peers) : CUDA_SUCCESS;
	if (rc != CUDA_SUCCESS)
		ts_log(TS_LOG_WARN,
		        "device %d cannot reach all memory of device %d: the "
		        "driver answers error %d",
		        device, owner, (int)rc);
	return rc;
}

void ts_agent_peer_access(CUcontext peer, bool enable)
{
	CUdevice device = -1;

	if (ts_agent.ops->ctx_get_device(&device) == CUDA_SUCCESS)
		ts_agent_set_peer(device_of(peer), device, enable);
}

static CUcontext primary_of(CUdevice device)
{
	CUcontext context = NULL;

	if (device < 0 || device >= TS_AGENT_DEVICES)
		return NULL;
	ts_mutex_lock(&ts_agent.lock);
	context = ts_agent.devices[device].primary;
	ts_mutex_unlock(&ts_agent.lock);
	return context;
}

void ts_agent_primary_retained(CUdevice device, CUcontext context)
{
	struct ts_shortage ignored;
	struct ts_pager *pager;

	if (device < 0 || device >= TS_AGENT_DEVICES)
		return;
	ts_mutex_lock(&ts_agent.lock);
	ts_agent.devices[device].primary = context;
	ts_mutex_unlock(&ts_agent.lock);
	/* Beside another context's pager it may just have taken memory. */
	pager = ts_agent_pager(device);
	if (pager && ts_pager_context(pager) != context)
		ts_pager_make_room(pager, 0, ts_agent_begin_flags(), &ignored);
}

void ts_agent_primary_release(CUdevice device)
{
	CUcontext context = primary_of(device);
	struct ts_pager *pager;

	if (!context)
		return;
	wait_for_context(context);
	leave_context(device, context);
	/* If it goes, its streams and events go under what still works. */
	pager = ts_agent_pager(device);
	if (pager)
		ts_pager_rest(pager);
}

void ts_agent_primary_gone(CUdevice device)
{
	CUcontext context = primary_of(device);

	if (context)
		context_gone(context);
}
