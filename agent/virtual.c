/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "agent/virtual.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "agent/agent_internal.h"
#include "agent/base/list.h"
#include "agent/base/log.h"
#include "agent/base/units.h"
#include "agent/remake.h"
#include "runtime/adopt.h"

struct reservation {
	struct ts_map_node node; /* by base */
	uint64_t base, bytes;
	/* Of the pager that has adopted it; 0: none. Another pager may come to
	 * lie where one was. */
	uint64_t owner;
};

struct handle {
	struct ts_map_node node;    /* by number: its own address */
	struct ts_map_node mapping; /* by address, where it is mapped */
	CUmemAllocationProp prop;
	uint64_t bytes;
	uint64_t address; /* 0: not mapped */
	int device;
	bool released; /* by the program; goes when it is unmapped */
};

static struct {
	struct ts_mutex lock;
	/* Guarded by lock. */
	struct ts_map reservations, handles, mappings;
	/* Created and not mapped yet: what comes to be used at once. */
	uint64_t pending_bytes[TS_AGENT_DEVICES];
} memory;

void ts_virtual_init(void)
{
	ts_mutex_init(&memory.lock, TS_RANK_VIRTUAL);
	ts_map_init(&memory.reservations);
	ts_map_init(&memory.handles);
	ts_map_init(&memory.mappings);
}

static struct reservation *reservation_of(struct ts_map_node *node)
{
	return node ? ts_container_of(node, struct reservation, node) : NULL;
}

static struct handle *handle_of(struct ts_map_node *node)
{
	return node ? ts_container_of(node, struct handle, node) : NULL;
}

static struct handle *mapped_of(struct ts_map_node *node)
{
	return node ? ts_container_of(node, struct handle, mapping) : NULL;
}

static struct handle *find_handle(CUmemGenericAllocationHandle number)
{
	return handle_of(ts_map_find(&memory.handles, number));
}

void ts_virtual_reserved(CUdeviceptr base, size_t bytes)
{
	struct reservation *made;
	int rc;

	if (!ts_agent_places())
		return;
	made = calloc(1, sizeof(*made));
	/* Nothing that is mapped there can be placed then. */
	if (!made)
		return;
	made->base = base;
	made->bytes = bytes;
	ts_mutex_lock(&memory.lock);
	rc = ts_map_insert(&memory.reservations, &made->node, base);
	ts_mutex_unlock(&memory.lock);
	if (rc)
		free(made);
}

/* The pager that has the range; NULL where there is none any more. */
static struct ts_pager *owner_of(const struct reservation *reservation)
{
	for (int device = 0; device < TS_AGENT_DEVICES; device++) {
		struct ts_pager *pager = ts_agent_pager(device);

		if (pager && ts_pager_id(pager) == reservation->owner)
			return pager;
	}
	return NULL;
}

CUresult ts_virtual_before_free(CUdeviceptr base)
{
	struct reservation *gone;
	struct ts_pager *owner;
	struct handle *mapped;
	CUresult rc = CUDA_SUCCESS;

	ts_mutex_lock(&memory.lock);
	gone = reservation_of(ts_map_find(&memory.reservations, base));
	mapped = mapped_of(ts_map_ceiling(&memory.mappings, base));
	if (gone && mapped && mapped->address - base < gone->bytes)
		rc = CUDA_ERROR_INVALID_VALUE;
	else if (gone)
		ts_map_remove(&memory.reservations, base);
	ts_mutex_unlock(&memory.lock);
	if (!gone || rc != CUDA_SUCCESS)
		return rc;
	/* What was freed there may be needed to make something again. */
	if (!ts_remake_all())
		ts_log(TS_LOG_DEBUG,
		        "remake: not all could be before a range was freed");
	/* A pager that is gone has left it. */
	owner = owner_of(gone);
	if (owner)
		rc = ts_pager_abandon(owner, base);
	free(gone);
	return rc;
}

/* Plain memory of a device that has, or can have, a pager. */
static struct ts_pager *pager_for(const CUmemAllocationProp *prop)
{
	int device = prop->location.id, current;
	struct ts_pager *pager;

	if (prop->type != CU_MEM_ALLOCATION_TYPE_PINNED ||
	        prop->location.type != CU_MEM_LOCATION_TYPE_DEVICE ||
	        device < 0 || device >= TS_AGENT_DEVICES)
		return NULL;
	pager = ts_agent_pager(device);
	if (pager)
		return pager;
	pager = ts_agent_current_pager(&current);
	return current == device ? pager : NULL;
}

bool ts_virtual_create(CUmemGenericAllocationHandle *handle, size_t bytes,
        const CUmemAllocationProp *prop, CUresult *ret_result)
{
	struct ts_shortage shortage;
	struct ts_pager *pager;
	struct handle *made;
	uint64_t at_once;
	char what[64];
	int rc;

	if (!handle || !prop || !bytes || !ts_agent_places())
		return false;
	pager = pager_for(prop);
	if (!pager)
		return false;
	ts_mutex_lock(&memory.lock);
	at_once = memory.pending_bytes[prop->location.id] + bytes;
	ts_mutex_unlock(&memory.lock);
	*ret_result = CUDA_ERROR_OUT_OF_MEMORY;
	if (!ts_pager_could_map(pager, at_once, &shortage)) {
		snprintf(what, sizeof(what), "an expandable segment of %s",
		        ts_size(at_once).text);
		ts_agent_say_shortage(what, &shortage);
		return true;
	}
	made = calloc(1, sizeof(*made));
	if (!made)
		return true;
	made->prop = *prop;
	made->bytes = bytes;
	made->device = prop->location.id;
	ts_mutex_lock(&memory.lock);
	rc = ts_map_insert(
	        &memory.handles, &made->node, (uint64_t)(uintptr_t)made);
	if (!rc)
		memory.pending_bytes[made->device] += bytes;
	ts_mutex_unlock(&memory.lock);
	if (rc) {
		free(made);
		return true;
	}
	*handle = (uint64_t)(uintptr_t)made;
	*ret_result = CUDA_SUCCESS;
	return true;
}

/* The reservation that has all of a range, taken over by @pager. */
static struct reservation *adopted(
        struct ts_pager *pager, uint64_t address, uint64_t bytes)
{
	struct reservation *found =
	        reservation_of(ts_map_floor(&memory.reservations, address));

	if (!found || address - found->base > found->bytes ||
	        bytes > found->bytes - (address - found->base))
		return NULL;
	if (found->owner == ts_pager_id(pager))
		return found;
	/* Ranges of two devices at once nobody makes. */
	if (owner_of(found) ||
	        !ts_pager_adopt(pager, found->base, found->bytes))
		return NULL;
	found->owner = ts_pager_id(pager);
	return found;
}

static CUresult map_locked(
        struct handle *handle, uint64_t address, size_t bytes, size_t offset)
{
	struct ts_pager *pager = ts_agent_pager(handle->device);
	struct handle *next, *before;

	if (offset || bytes != handle->bytes || handle->released)
		return CUDA_ERROR_INVALID_VALUE;
	/* One content at two addresses cannot be moved. */
	if (handle->address || !pager || !adopted(pager, address, bytes))
		return CUDA_ERROR_NOT_SUPPORTED;
	next = mapped_of(ts_map_ceiling(&memory.mappings, address));
	before = mapped_of(ts_map_floor(&memory.mappings, address));
	if ((next && next->address - address < bytes) ||
	        (before && address - before->address < before->bytes))
		return CUDA_ERROR_INVALID_VALUE;
	if (ts_blocks_add_mapped(
	            &ts_agent.blocks, address, bytes, handle->device))
		return CUDA_ERROR_OUT_OF_MEMORY;
	ts_map_insert(&memory.mappings, &handle->mapping, address);
	handle->address = address;
	memory.pending_bytes[handle->device] -= bytes;
	return CUDA_SUCCESS;
}

bool ts_virtual_map(CUdeviceptr address, size_t bytes, size_t offset,
        CUmemGenericAllocationHandle number, CUresult *ret_result)
{
	struct handle *handle;

	ts_mutex_lock(&memory.lock);
	handle = find_handle(number);
	if (handle)
		*ret_result = map_locked(handle, address, bytes, offset);
	ts_mutex_unlock(&memory.lock);
	return handle != NULL;
}

/* With the lock; the handle has nothing left to do once it is released too. */
static void drop_handle(struct handle *handle)
{
	ts_map_remove(&memory.handles, (uint64_t)(uintptr_t)handle);
	if (!handle->address)
		memory.pending_bytes[handle->device] -= handle->bytes;
	free(handle);
}

/* Bytes of whole mappings from @address on, up to @bytes; 0: none there. */
static uint64_t mapped_bytes(uint64_t address, uint64_t bytes)
{
	uint64_t found = 0;

	while (found < bytes) {
		struct handle *handle = mapped_of(
		        ts_map_find(&memory.mappings, address + found));

		if (!handle)
			break;
		found += handle->bytes;
	}
	return found;
}

static int unmap_locked(uint64_t address, uint64_t bytes)
{
	int device = -1;

	for (uint64_t done = 0; done < bytes;) {
		struct handle *handle = mapped_of(
		        ts_map_remove(&memory.mappings, address + done));

		done += handle->bytes;
		device = handle->device;
		/* Until it is released, or mapped again. */
		memory.pending_bytes[device] += handle->bytes;
		handle->address = 0;
		if (handle->released)
			drop_handle(handle);
	}
	return device;
}

bool ts_virtual_unmap(CUdeviceptr address, size_t bytes, CUresult *ret_result)
{
	struct ts_allocation ignored;
	struct ts_pager *pager;
	uint64_t found, step;
	int device = -1;

	ts_mutex_lock(&memory.lock);
	found = mapped_bytes(address, bytes);
	if (found && found == bytes)
		device = unmap_locked(address, bytes);
	ts_mutex_unlock(&memory.lock);
	if (!found)
		return false;
	*ret_result = CUDA_ERROR_INVALID_VALUE;
	if (found != bytes)
		return true;
	for (step = 0; step < bytes; step += ignored.whole.bytes)
		if (!ts_blocks_remove_allocation(&ts_agent.blocks,
		            address + step, &ignored, ts_agent_tell_dead, NULL))
			break;
	pager = ts_agent_pager(device);
	*ret_result = pager ? ts_pager_unmapped(pager, address, bytes,
	                              ts_agent_begin_flags())
	                    : CUDA_SUCCESS;
	return true;
}

bool ts_virtual_set_access(CUdeviceptr address, size_t bytes,
        const CUmemAccessDesc *access, size_t count, CUresult *ret_result)
{
	struct handle *handle;
	uint64_t found;
	int device = -1;

	ts_mutex_lock(&memory.lock);
	handle = mapped_of(ts_map_find(&memory.mappings, address));
	found = mapped_bytes(address, bytes);
	if (handle)
		device = handle->device;
	ts_mutex_unlock(&memory.lock);
	if (!handle)
		return false;
	*ret_result = CUDA_ERROR_INVALID_VALUE;
	if (found != bytes || !access)
		return true;
	*ret_result = CUDA_SUCCESS;
	for (size_t i = 0; i < count && *ret_result == CUDA_SUCCESS; i++)
		if (access[i].location.type == CU_MEM_LOCATION_TYPE_DEVICE &&
		        access[i].flags != CU_MEM_ACCESS_FLAGS_PROT_NONE)
			*ret_result = ts_agent_set_peer(
			        device, access[i].location.id, true);
	return true;
}

bool ts_virtual_release(
        CUmemGenericAllocationHandle number, CUresult *ret_result)
{
	struct handle *handle;

	ts_mutex_lock(&memory.lock);
	handle = find_handle(number);
	if (handle) {
		*ret_result = handle->released ? CUDA_ERROR_INVALID_VALUE
		                               : CUDA_SUCCESS;
		handle->released = true;
		if (!handle->address)
			drop_handle(handle);
	}
	ts_mutex_unlock(&memory.lock);
	return handle != NULL;
}

bool ts_virtual_properties(CUmemAllocationProp *ret_prop,
        CUmemGenericAllocationHandle number, CUresult *ret_result)
{
	struct handle *handle;

	ts_mutex_lock(&memory.lock);
	handle = find_handle(number);
	*ret_result = CUDA_ERROR_INVALID_VALUE;
	if (handle && ret_prop) {
		*ret_prop = handle->prop;
		*ret_result = CUDA_SUCCESS;
	}
	ts_mutex_unlock(&memory.lock);
	return handle != NULL;
}

bool ts_virtual_refuses_export(CUmemGenericAllocationHandle number)
{
	struct handle *handle;

	ts_mutex_lock(&memory.lock);
	handle = find_handle(number);
	ts_mutex_unlock(&memory.lock);
	if (!handle)
		return false;
	ts_agent_say_not_shared("cuMemExportToShareableHandle");
	return true;
}
