/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Memory and events shared between processes. A handle names the process that
 * shares and where the bytes are in its file of exact content; whoever opens it
 * maps the same bytes. Memory that was opened is the other process's: it takes
 * none here. Processes have clocks of their own, so that an event of another
 * process takes no virtual time to wait for: what came before it there has had
 * its effects on memory by the time its handle is there. Races between
 * processes are not looked for.
 *
 * Tags are known to one process only: with them nothing is shared. Called
 * under sg_lock.
 */
#include "tests/simgpu/driver/content.h"
#include "tests/simgpu/driver/content_exact.h"
#include "tests/simgpu/driver/event.h"
#include "tests/simgpu/driver/memory.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MEMORY_MAGIC ((uint64_t)0x73676d656d6f7279)
#define EVENT_MAGIC  ((uint64_t)0x7367206576656e74)

/* What a handle's bytes say. */
struct memory_handle {
	uint64_t magic;
	int32_t process, file, device, pad;
	uint64_t place;        /* of the chunk's bytes in the file */
	uint64_t bytes;        /* of the chunk */
	uint64_t skip, length; /* the allocation in it */
};
struct event_handle {
	uint64_t magic, id;
	int32_t process;
};
_Static_assert(sizeof(struct memory_handle) <= sizeof(CUipcMemHandle), "");
_Static_assert(sizeof(struct event_handle) <= sizeof(CUipcEventHandle), "");

/* An opened handle. */
struct import {
	struct sg_area area;
	struct sg_mapping *mapping;
	struct memory_handle from;
	unsigned opened;
	struct import *next;
};
static struct import *imports;

static bool shares(void)
{
	static bool said;

	if (!sg_content_tagged())
		return true;
	if (!said)
		sg_say("memory is not shared between processes with "
		       "SIMGPU_CONTENT=tags");
	said = true;
	return false;
}

SG_EXPORT CUresult cuIpcGetMemHandle(CUipcMemHandle *handle, CUdeviceptr va)
{
	struct memory_handle made = {
	        .magic = MEMORY_MAGIC, .process = getpid()};
	const struct sg_mapping *mapping;
	const struct sg_area *area;

	SG_API(cuIpcGetMemHandle, SG_COST_API, SG_NEED_INIT | SG_NEED_CTX);
	if (!handle)
		return CUDA_ERROR_INVALID_VALUE;
	area = sg_area_at(va);
	if (!area || area->kind != SG_AREA_ALLOC)
		return CUDA_ERROR_INVALID_VALUE;
	if (!shares())
		return CUDA_ERROR_NOT_SUPPORTED;
	mapping = sg_mapping_at(area->range.start);
	made.device = area->dev->ordinal;
	made.file = sg_exact_place(mapping->chunk, &made.place);
	made.bytes = mapping->bytes;
	made.skip = area->range.start - mapping->va;
	made.length = area->range.bytes;
	memset(handle, 0, sizeof(*handle));
	memcpy(handle, &made, sizeof(made));
	return CUDA_SUCCESS;
}

static struct import *opened_before(const struct memory_handle *from)
{
	struct import *import = imports;

	while (import && memcmp(&import->from, from, sizeof(*from)))
		import = import->next;
	return import;
}

/* The other process's file; -1 where it is gone, or not ours to see. */
static int open_file(const struct memory_handle *from)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/fd/%d", (int)from->process,
	        (int)from->file);
	return open(path, O_RDWR | O_CLOEXEC);
}

static CUresult import(struct sg_ctx *ctx, const struct memory_handle *from,
        struct import **ret_import)
{
	struct sg_chunk *chunk;
	struct import *made;
	uint64_t va;
	int file = -1;

	if (from->file >= 0) {
		file = open_file(from);
		if (file < 0)
			return CUDA_ERROR_MAP_FAILED;
	}
	va = sg_va_take(from->bytes, SG_PAGE_BYTES, 0);
	if (!va) {
		if (file >= 0)
			close(file);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	chunk = sg_chunk_import(ctx->dev, from->bytes, file, from->place);
	made = sg_xcalloc(1, sizeof(*made));
	made->from = *from;
	made->mapping = sg_mapping_create(chunk, va, from->bytes);
	made->mapping->read = (uint64_t)1 << ctx->dev->ordinal;
	made->mapping->write = made->mapping->read;
	made->area.range.start = va + from->skip;
	made->area.range.bytes = from->length;
	made->area.kind = SG_AREA_IMPORT;
	made->area.dev = ctx->dev;
	made->area.ctx = ctx;
	sg_area_add(&made->area);
	made->next = imports;
	imports = made;
	*ret_import = made;
	return CUDA_SUCCESS;
}

static CUresult open_memory(
        CUdeviceptr *ret_va, CUipcMemHandle handle, unsigned flags)
{
	struct memory_handle from;
	struct import *found;
	CUresult error = CUDA_SUCCESS;

	memcpy(&from, &handle, sizeof(from));
	if (!ret_va || (flags & ~(unsigned)CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS))
		return CUDA_ERROR_INVALID_VALUE;
	if (from.magic != MEMORY_MAGIC)
		return CUDA_ERROR_INVALID_HANDLE;
	/* A process does not open its own. */
	if (from.process == getpid() ||
	        from.device != sg_ctx_current()->dev->ordinal)
		return CUDA_ERROR_INVALID_CONTEXT;
	if (!shares())
		return CUDA_ERROR_NOT_SUPPORTED;
	found = opened_before(&from);
	if (!found)
		error = import(sg_ctx_current(), &from, &found);
	if (error != CUDA_SUCCESS)
		return error;
	found->opened++;
	*ret_va = found->area.range.start;
	return CUDA_SUCCESS;
}

/* The ABI of CUDA 4.1 has the same parameters. */
SG_EXPORT CUresult cuIpcOpenMemHandle(
        CUdeviceptr *va, CUipcMemHandle handle, unsigned flags)
{
	SG_API(cuIpcOpenMemHandle, SG_COST_API, SG_NEED_INIT | SG_NEED_CTX);
	return open_memory(va, handle, flags);
}

SG_EXPORT CUresult cuIpcOpenMemHandle_v2(
        CUdeviceptr *va, CUipcMemHandle handle, unsigned flags)
{
	SG_API(cuIpcOpenMemHandle_v2, SG_COST_API, SG_NEED_INIT | SG_NEED_CTX);
	return open_memory(va, handle, flags);
}

static void close_import(struct import *gone)
{
	struct import **link = &imports;
	uint64_t va = gone->mapping->va, bytes = gone->mapping->bytes;

	while (*link != gone)
		link = &(*link)->next;
	*link = gone->next;
	sg_area_remove(&gone->area);
	sg_mapping_destroy(gone->mapping);
	sg_va_give(va, bytes);
	free(gone);
}

SG_EXPORT CUresult cuIpcCloseMemHandle(CUdeviceptr va)
{
	struct import *found = imports;

	SG_API(cuIpcCloseMemHandle, SG_COST_API, SG_NEED_INIT | SG_NEED_CTX);
	while (found && found->area.range.start != va)
		found = found->next;
	if (!found)
		return CUDA_ERROR_INVALID_VALUE;
	sg_implicit_sync(found->area.dev);
	if (--found->opened == 0)
		close_import(found);
	return CUDA_SUCCESS;
}

void sg_ipc_ctx_gone(const struct sg_ctx *ctx)
{
	struct import *import, *next;

	for (import = imports; import; import = next) {
		next = import->next;
		if (import->area.ctx == ctx)
			close_import(import);
	}
}

SG_EXPORT CUresult cuIpcGetEventHandle(CUipcEventHandle *handle, CUevent of)
{
	const struct sg_event *event = (struct sg_event *)of;
	struct event_handle made = {.magic = EVENT_MAGIC, .process = getpid()};

	SG_API(cuIpcGetEventHandle, SG_COST_API, SG_NEED_INIT | SG_NEED_CTX);
	if (!handle)
		return CUDA_ERROR_INVALID_VALUE;
	if (!sg_handle_ok(event, SG_MAGIC_EVENT) ||
	        !(event->flags & CU_EVENT_INTERPROCESS))
		return CUDA_ERROR_INVALID_HANDLE;
	made.id = event->h.id;
	memset(handle, 0, sizeof(*handle));
	memcpy(handle, &made, sizeof(made));
	return CUDA_SUCCESS;
}

SG_EXPORT CUresult cuIpcOpenEventHandle(CUevent *event, CUipcEventHandle handle)
{
	struct event_handle from;

	SG_API(cuIpcOpenEventHandle, SG_COST_API, SG_NEED_INIT | SG_NEED_CTX);
	if (!event)
		return CUDA_ERROR_INVALID_VALUE;
	memcpy(&from, &handle, sizeof(from));
	if (from.magic != EVENT_MAGIC)
		return CUDA_ERROR_INVALID_HANDLE;
	if (from.process == getpid())
		return CUDA_ERROR_INVALID_CONTEXT;
	/* Never recorded here: done, whoever asks. */
	*event = sg_event_new(CU_EVENT_DISABLE_TIMING | CU_EVENT_INTERPROCESS);
	return CUDA_SUCCESS;
}
