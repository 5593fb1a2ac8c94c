/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The pool of physical memory of one device: chunks of one or more units,
 * created when the limit allows, kept when a page gives its own up. A chunk
 * stays mapped where it was when another page takes it, so that it needs no
 * call to come back there: it has one tenant, and any number of addresses.
 *
 * Guarded by the pager's lock; creating and releasing calls the driver and is
 * done by the holder of the gate, without that lock.
 */
#ifndef TS_CHUNKS_H
#define TS_CHUNKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/base/list.h"
#include "runtime/fence.h"
#include "runtime/ops.h"

struct ts_page;

struct ts_chunk {
	struct ts_list list;    /* among the idle ones while it has no tenant */
	struct ts_list mappers; /* pages at whose address it is mapped */
	CUmemGenericAllocationHandle handle;
	uint64_t bytes;
	struct ts_page *tenant; /* whose content is in it, or NULL */
	struct ts_fence fence;  /* of what former tenants did, while idle */
};

struct ts_chunks {
	const struct ts_gpu_ops *ops;
	CUmemAllocationProp prop;
	uint64_t unit_bytes;
	uint64_t created_bytes, idle_bytes;
	size_t created; /* chunks that exist */
	struct ts_list idle;
};

/* Units of at least @least_bytes, a multiple of what the device asks for. */
int ts_chunks_init(struct ts_chunks *chunks, const struct ts_gpu_ops *ops,
        int device, uint64_t least_bytes);

/*
 * A new chunk from the driver; counted, and nobody's. Gate held, lock not but
 * for the counting, which the caller does with ts_chunks_add().
 */
CUresult ts_chunks_create(
        struct ts_chunks *chunks, uint64_t bytes, struct ts_chunk **ret_chunk);
void ts_chunks_add(struct ts_chunks *chunks, struct ts_chunk *chunk);

/*
 * Takes an idle chunk, mapped nowhere, off the books; then to the driver. One
 * that the driver keeps is still there, to be added again.
 */
void ts_chunks_remove(struct ts_chunks *chunks, struct ts_chunk *chunk);
CUresult ts_chunks_release(struct ts_chunks *chunks, struct ts_chunk *chunk);

/* The chunk becomes idle. */
void ts_chunks_put(struct ts_chunks *chunks, struct ts_chunk *chunk);

/* @page becomes the tenant of an idle chunk. */
void ts_chunks_take(
        struct ts_chunks *chunks, struct ts_chunk *chunk, struct ts_page *page);

#endif
