/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What the files of the memory half share: areas (what the program asked for),
 * mappings (what stands under addresses) and chunks (physical memory). All of
 * it is guarded by sg_lock; every function here expects it held.
 *
 * An area is an allocation or a reservation and lies in a tree by address. A
 * mapping puts a chunk, or its beginning, under a range of whole pages and is
 * found through a table of pages in constant time. A chunk is physical memory
 * and may stand under several mappings; content belongs to it, by offset.
 */
#ifndef SG_MEMORY_H
#define SG_MEMORY_H

#include "tests/simgpu/driver/rangetree.h"
#include "tests/simgpu/driver/sg.h"
#include "tests/simgpu/driver/tags.h"

#define SG_ALLOC_ALIGN ((uint64_t)512) /* of every allocation's address */

static inline uint64_t sg_round_up(uint64_t n, uint64_t align)
{
	return (n + align - 1) / align * align;
}

/* --------------------------------------------------------- physical memory */

struct sg_chunk {
	uint64_t id; /* process-wide, from 1, never used again */
	struct sg_device *dev;
	uint64_t bytes;       /* a multiple of SG_PAGE_BYTES */
	unsigned handle_refs; /* cuMemCreate, cuMemRetainAllocationHandle */
	unsigned maps;
	bool vmm; /* made by cuMemCreate: a driver allocation by itself */
	CUmemAllocationProp prop;
	CUmemGenericAllocationHandle handle; /* 0 unless vmm */
	void *content;                       /* content.c */
	uint64_t exact_end; /* of its bytes in content_exact.c's file */
	bool imported;      /* another process's; takes no memory here */
	int exact_file;     /* + 1, of an imported one: where its bytes are */
	void *races;        /* races.c */
	void *taint;        /* taint.c */
};
/* Takes physical memory; no mapping and no handle yet. -ENOMEM. */
int sg_chunk_create(
        struct sg_device *dev, uint64_t bytes, struct sg_chunk **ret_chunk);
/* One of another process's, with its bytes at place in file, which is closed
 * with it; -1: without bytes. */
struct sg_chunk *sg_chunk_import(
        struct sg_device *dev, uint64_t bytes, int file, uint64_t place);
/* Gives chunk up if neither handle nor mapping holds it any more. */
void sg_chunk_put(struct sg_chunk *chunk);
/* Handle table of the VMM calls. NULL for one that is not live; a released one
 * is recorded as a memory error on behalf of what. */
void sg_chunk_add_handle(struct sg_chunk *chunk);
struct sg_chunk *sg_chunk_find(
        CUmemGenericAllocationHandle handle, const char *what);
void sg_chunk_drop_handle(struct sg_chunk *chunk);
/* Counts driver allocations, in bytes as the program asked for; of pools what
 * they hold, used or not. */
void sg_allocated_add(struct sg_device *dev, uint64_t bytes);
void sg_allocated_sub(struct sg_device *dev, uint64_t bytes);

/* ----------------------------------------------------------- address space */

enum sg_area_kind {
	SG_AREA_ALLOC,       /* cuMemAlloc and its like */
	SG_AREA_POOL,        /* stream-ordered allocation */
	SG_AREA_STATIC,      /* a module's variables */
	SG_AREA_RESERVATION, /* cuMemAddressReserve */
	SG_AREA_IMPORT,      /* another process's, opened here */
};
struct sg_area {
	struct sg_range range; /* address and bytes as asked for */
	enum sg_area_kind kind;
	struct sg_device *dev; /* NULL for a reservation */
	struct sg_ctx *ctx;    /* NULL for a reservation */
	uint64_t id;
	bool framework;   /* a framework's blocks have been reported in it */
	bool sync_memops; /* CU_POINTER_ATTRIBUTE_SYNC_MEMOPS */
	unsigned maps;    /* mappings in a reservation */
};
/* Enters an area whose range, kind, dev and ctx are set. */
void sg_area_add(struct sg_area *area);
void sg_area_remove(struct sg_area *area);
struct sg_area *sg_area_at(uint64_t va);
/* The first area that starts at or after va, or NULL. */
struct sg_area *sg_area_next(uint64_t va);

/* One chunk under a range of pages. */
struct sg_mapping {
	uint64_t va, bytes;
	struct sg_chunk *chunk;
	uint64_t read, write; /* devices with access, by bit of the ordinal */
	struct sg_area *reservation;    /* of a VMM mapping, else NULL */
	struct sg_mapping *prev, *next; /* all there are */
};
/* Puts chunk under whole, unmapped pages. Not accessible yet. */
struct sg_mapping *sg_mapping_create(
        struct sg_chunk *chunk, uint64_t va, uint64_t bytes);
/* Takes the chunk away again and gives it up if nothing else holds it. */
void sg_mapping_destroy(struct sg_mapping *mapping);
struct sg_mapping *sg_mapping_at(uint64_t va);
/* All there are, linked by next. */
const struct sg_mapping *sg_mappings(void);
/* May dev touch it? Peer access to plain allocations included. */
bool sg_mapping_accessible(const struct sg_mapping *mapping,
        const struct sg_device *dev, bool write);
/* The longest run of pages around va in its area that are all mapped, or all
 * unmapped, as the page at va is. */
void sg_mapped_run(const struct sg_area *area, uint64_t va, uint64_t *ret_va,
        uint64_t *ret_bytes);

/* Takes whole pages of the window, at hint if that is free; 0 if full. */
uint64_t sg_va_take(uint64_t bytes, uint64_t align, uint64_t hint);
void sg_va_give(uint64_t va, uint64_t bytes);
/* The window's extent. */
uint64_t sg_va_window(uint64_t *ret_bytes);

/* First byte that dev may not read, or, with write, not write; 0 if none.
 * Knows page-locked and managed host memory too. */
uint64_t sg_first_forbidden(
        struct sg_device *dev, uint64_t va, uint64_t bytes, bool write);

/* -------------------------------------------------- allocations, by kind */

/* An allocation with memory of its own or a share of a slab, SG_AREA_ALLOC or
 * SG_AREA_STATIC; ctx may be NULL. -ENOMEM. Charges no virtual time. */
int sg_alloc(struct sg_device *dev, struct sg_ctx *ctx, uint64_t bytes,
        enum sg_area_kind kind, struct sg_area **ret_area);
/* Ends it at once, whoever still uses it; not for reservations and pools. */
void sg_alloc_end(struct sg_area *area);
/* Ends a pool's allocation whose users are done. */
void sg_pool_free_now(struct sg_area *area);
struct sg_pool *sg_pool_of(struct sg_area *area);
/* Gives back what pools hold beyond their thresholds and no work uses; with
 * all, everything that no allocation uses. */
void sg_pools_reclaim(struct sg_device *dev, bool all);
/* Peer access: by the model, and as enabled for the current contexts. */
bool sg_peer_capable(const struct sg_device *dev, const struct sg_device *peer);
bool sg_peer_enabled(const struct sg_device *dev, const struct sg_device *peer);
/* The device a location names, or NULL. */
struct sg_device *sg_location_device(const CUmemLocation *location);

/* A context goes with what was opened in it. */
void sg_ipc_ctx_gone(const struct sg_ctx *ctx);

/* ------------------------------------------------------------- host memory */

/* Host memory the driver knows: page-locked or managed. */
struct sg_host {
	struct sg_range range; /* as asked for */
	uint64_t map_bytes;    /* whole pages, of our own memory */
	unsigned flags;
	bool registered, managed;
	struct sg_ctx *ctx;
	uint64_t id;
	bool sync_memops, read_mostly;
	CUmemLocation preferred, prefetched;
	uint64_t accessed_by; /* advised, by bit of the ordinal */
	/* content_host.c */
	struct sg_map content;
	uint64_t *lazy; /* by page: bytes are still to be made; or NULL */
	void *races;    /* races.c */
	void *taint;    /* taint.c */
};
/* Guards the tree of host ranges and their content, besides sg_lock. */
void sg_host_lock(void);
void sg_host_unlock(void);
struct sg_host *sg_host_at(uint64_t address);
/* The first known range that starts at or after address, or NULL. */
struct sg_host *sg_host_next(uint64_t address);
/* Anonymous memory that costs nothing until touched. CUDA_SUCCESS or
 * CUDA_ERROR_OUT_OF_MEMORY. */
CUresult sg_host_create(
        struct sg_ctx *ctx, uint64_t bytes, struct sg_host **ret_host);
void sg_host_destroy(struct sg_host *host);
/* Makes host memory read as zeros without touching whole pages of ours. */
void sg_host_zero(void *p, uint64_t bytes);
/* Frees managed memory by its address. False if p begins none. */
bool sg_managed_free(uint64_t p);
/* Reports work on the managed memory that begins at p, if any does, which the
 * program has not waited for; before cuMemFree itself waits. */
void sg_managed_ending(struct sg_device *dev, uint64_t p);

/* --------------------------------------------------------- copies, memsets */

/* The API side of a copy or memset: resolves the stream, checks, captures or
 * issues. */
CUresult sg_copy_call(
        const CUDA_MEMCPY3D *copy, CUstream stream, bool per_thread, bool sync);
CUresult sg_memset_call(const CUDA_MEMSET_NODE_PARAMS *set, CUstream stream,
        bool per_thread, bool sync);

#endif
