/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Plain device allocations: whole pages for large ones, shares of a page (a
 * slab) for small ones; module variables likewise, in slabs of their own.
 * Exports the cuMemAlloc family. Called under sg_lock.
 */
#include "tests/simgpu/driver/memory.h"

#include <errno.h>
#include <stdlib.h>

#define SMALL_BYTES   (SG_PAGE_BYTES / 2) /* up to this: a share of a slab */
#define SLAB_GRANULES (SG_PAGE_BYTES / SG_ALLOC_ALIGN)

/* One page that small allocations share. */
struct slab {
	struct slab *next;
	struct sg_device *dev;
	enum sg_area_kind kind;
	struct sg_mapping *mapping;
	unsigned used;                   /* granules */
	uint8_t granules[SLAB_GRANULES]; /* 1: used */
};
static struct slab *slabs; /* in order of creation */

struct alloc {
	struct sg_area area;
	struct sg_mapping *mapping; /* own pages, or */
	struct slab *slab;          /* shared ones */
};

/* ----------------------------------------------------- pages and slabs */

static int map_pages(
        struct sg_device *dev, uint64_t bytes, struct sg_mapping **ret_mapping)
{
	struct sg_mapping *mapping;
	struct sg_chunk *chunk;
	uint64_t va;
	int r = sg_chunk_create(dev, bytes, &chunk);

	if (r < 0)
		return r;
	va = sg_va_take(bytes, SG_PAGE_BYTES, 0);
	if (!va) {
		sg_chunk_put(chunk);
		return -ENOMEM;
	}
	mapping = sg_mapping_create(chunk, va, bytes);
	mapping->read = (uint64_t)1 << dev->ordinal;
	mapping->write = mapping->read;
	*ret_mapping = mapping;
	return 0;
}

static void unmap_pages(struct sg_mapping *mapping)
{
	uint64_t va = mapping->va, bytes = mapping->bytes;

	sg_mapping_destroy(mapping);
	sg_va_give(va, bytes);
}

/* First run of n free granules, or SLAB_GRANULES. */
static unsigned slab_find(const struct slab *slab, unsigned n)
{
	unsigned run = 0;

	if (SLAB_GRANULES - slab->used < n)
		return SLAB_GRANULES;
	for (unsigned i = 0; i < SLAB_GRANULES; i++) {
		run = slab->granules[i] ? 0 : run + 1;
		if (run == n)
			return i + 1 - n;
	}
	return SLAB_GRANULES;
}

static void slab_mark(struct slab *slab, unsigned first, unsigned n, bool use)
{
	for (unsigned i = first; i < first + n; i++)
		slab->granules[i] = use;
	slab->used += use ? n : -n;
}

/* A share of a slab, perhaps a new one; its address to *ret_va. */
static int slab_take(struct sg_device *dev, enum sg_area_kind kind,
        uint64_t bytes, struct slab **ret_slab, uint64_t *ret_va)
{
	unsigned n = sg_round_up(bytes, SG_ALLOC_ALIGN) / SG_ALLOC_ALIGN;
	unsigned first = SLAB_GRANULES;
	struct slab **link = &slabs, *slab;
	int r;

	for (; *link; link = &(*link)->next) {
		if ((*link)->dev != dev || (*link)->kind != kind)
			continue;
		first = slab_find(*link, n);
		if (first < SLAB_GRANULES)
			break;
	}
	slab = *link;
	if (!slab) {
		struct sg_mapping *mapping;

		r = map_pages(dev, SG_PAGE_BYTES, &mapping);
		if (r < 0)
			return r;
		slab = sg_xcalloc(1, sizeof(*slab));
		slab->dev = dev;
		slab->kind = kind;
		slab->mapping = mapping;
		first = 0;
		*link = slab;
	}
	slab_mark(slab, first, n, true);
	*ret_slab = slab;
	*ret_va = slab->mapping->va + first * SG_ALLOC_ALIGN;
	return 0;
}

static void slab_give(struct slab *slab, uint64_t va, uint64_t bytes)
{
	unsigned n = sg_round_up(bytes, SG_ALLOC_ALIGN) / SG_ALLOC_ALIGN;
	struct slab **link = &slabs;

	slab_mark(slab, (va - slab->mapping->va) / SG_ALLOC_ALIGN, n, false);
	if (slab->used)
		return;
	while (*link != slab)
		link = &(*link)->next;
	*link = slab->next;
	unmap_pages(slab->mapping);
	free(slab);
}

/* ------------------------------------------------------------- allocations */

int sg_alloc(struct sg_device *dev, struct sg_ctx *ctx, uint64_t bytes,
        enum sg_area_kind kind, struct sg_area **ret_area)
{
	struct alloc *alloc;
	uint64_t va;
	int r;

	if (bytes > dev->model.memory_bytes)
		return -ENOMEM;
	alloc = sg_xcalloc(1, sizeof(*alloc));
	if (bytes <= SMALL_BYTES) {
		r = slab_take(dev, kind, bytes, &alloc->slab, &va);
	} else {
		r = map_pages(dev, sg_round_up(bytes, SG_PAGE_BYTES),
		        &alloc->mapping);
		va = r < 0 ? 0 : alloc->mapping->va;
	}
	if (r < 0) {
		free(alloc);
		return r;
	}
	alloc->area.range.start = va;
	alloc->area.range.bytes = bytes;
	alloc->area.kind = kind;
	alloc->area.dev = dev;
	alloc->area.ctx = ctx;
	sg_area_add(&alloc->area);
	if (kind == SG_AREA_ALLOC)
		sg_allocated_add(dev, bytes);
	*ret_area = &alloc->area;
	return 0;
}

void sg_alloc_end(struct sg_area *area)
{
	struct alloc *alloc = sg_range_entry(area, struct alloc, area);

	sg_area_remove(area);
	if (area->kind == SG_AREA_ALLOC)
		sg_allocated_sub(area->dev, area->range.bytes);
	if (alloc->slab)
		slab_give(alloc->slab, area->range.start, area->range.bytes);
	else
		unmap_pages(alloc->mapping);
	free(alloc);
}

int sg_static_alloc(struct sg_device *dev, uint64_t bytes, uint64_t *ret_va)
{
	struct sg_area *area;
	int r = sg_alloc(dev, NULL, bytes, SG_AREA_STATIC, &area);

	if (r < 0)
		return r;
	*ret_va = area->range.start;
	return 0;
}

void sg_static_free(struct sg_device *dev, uint64_t va)
{
	struct sg_area *area = sg_area_at(va);

	if (area && area->kind == SG_AREA_STATIC && area->dev == dev &&
	        area->range.start == va)
		sg_alloc_end(area);
}

void sg_memory_ctx_gone(struct sg_ctx *ctx)
{
	struct sg_area *area, *next;
	struct sg_host *host, *next_host;

	sg_ipc_ctx_gone(ctx);
	for (area = sg_area_next(0); area; area = next) {
		next = sg_area_next(area->range.start + 1);
		if (area->ctx == ctx && area->kind == SG_AREA_ALLOC)
			sg_alloc_end(area);
	}
	for (host = sg_host_next(0); host; host = next_host) {
		next_host = sg_host_next(host->range.start + 1);
		if (host->ctx == ctx)
			sg_host_destroy(host);
	}
}

/* ----------------------------------------------------------------- exports */

static CUresult alloc_call(uint64_t bytes, CUdeviceptr *ret_va)
{
	struct sg_ctx *ctx = sg_ctx_current();
	struct sg_area *area;
	CUresult error = sg_capture_unsafe();

	if (error != CUDA_SUCCESS)
		return error;
	if (!ret_va || bytes == 0)
		return CUDA_ERROR_INVALID_VALUE;
	sg_host_advance(ctx->dev->model.malloc_ns);
	if (sg_alloc(ctx->dev, ctx, bytes, SG_AREA_ALLOC, &area) < 0)
		return CUDA_ERROR_OUT_OF_MEMORY;
	*ret_va = area->range.start;
	return CUDA_SUCCESS;
}

SG_EXPORT CUresult cuMemAlloc_v2(CUdeviceptr *dptr, size_t bytesize)
{
	SG_API(cuMemAlloc_v2, SG_COST_API, SG_NEED_INIT | SG_NEED_CTX);
	return alloc_call(bytesize, dptr);
}

SG_EXPORT CUresult cuMemAllocPitch_v2(CUdeviceptr *dptr, size_t *pPitch,
        size_t WidthInBytes, size_t Height, unsigned int ElementSizeBytes)
{
	uint64_t pitch;
	CUresult error;

	SG_API(cuMemAllocPitch_v2, SG_COST_API, SG_NEED_INIT | SG_NEED_CTX);
	if (!dptr || !pPitch || WidthInBytes == 0 || Height == 0)
		return CUDA_ERROR_INVALID_VALUE;
	if (ElementSizeBytes != 4 && ElementSizeBytes != 8 &&
	        ElementSizeBytes != 16)
		return CUDA_ERROR_INVALID_VALUE;
	pitch = sg_round_up(WidthInBytes, SG_ALLOC_ALIGN);
	if (pitch < WidthInBytes || Height > UINT64_MAX / pitch)
		return CUDA_ERROR_INVALID_VALUE;
	error = alloc_call(pitch * Height, dptr);
	if (error == CUDA_SUCCESS)
		*pPitch = pitch;
	return error;
}

/* The allocation that cuMemFree may end, or NULL. */
static struct sg_area *freeable(uint64_t va)
{
	struct sg_area *area = sg_area_at(va);

	if (!area || area->range.start != va)
		return NULL;
	if (area->kind != SG_AREA_ALLOC && area->kind != SG_AREA_POOL)
		return NULL;
	return area;
}

static CUresult free_call(uint64_t va)
{
	struct sg_device *dev = sg_ctx_current()->dev;
	struct sg_area *area = freeable(va);
	CUresult error = sg_capture_unsafe();

	if (error != CUDA_SUCCESS)
		return error;
	if (area)
		dev = area->dev;
	sg_host_advance(dev->model.free_ns);
	sg_managed_ending(dev, va);
	sg_implicit_sync(dev);
	if (sg_managed_free(va))
		return CUDA_SUCCESS;
	area = freeable(va);
	if (!area) {
		if (va)
			sg_memory_error(dev,
			        "cuMemFree of 0x%llx, where no allocation "
			        "begins",
			        (unsigned long long)va);
		return CUDA_ERROR_INVALID_VALUE;
	}
	if (area->kind == SG_AREA_POOL)
		sg_pool_free_now(area);
	else
		sg_alloc_end(area);
	return CUDA_SUCCESS;
}

SG_EXPORT CUresult cuMemFree_v2(CUdeviceptr dptr)
{
	SG_API(cuMemFree_v2, SG_COST_API, SG_NEED_INIT | SG_NEED_CTX);
	return free_call(dptr);
}

SG_EXPORT CUresult cuMemGetInfo_v2(size_t *free_bytes, size_t *total_bytes)
{
	struct sg_device *dev;

	SG_API(cuMemGetInfo_v2, SG_COST_API, SG_NEED_INIT | SG_NEED_CTX);
	if (!free_bytes || !total_bytes)
		return CUDA_ERROR_INVALID_VALUE;
	dev = sg_ctx_current()->dev;
	sg_pools_reclaim(dev, false);
	*free_bytes = dev->model.memory_bytes - dev->physical_bytes;
	*total_bytes = dev->model.memory_bytes;
	return CUDA_SUCCESS;
}

/*
 * The first ABI has 32-bit addresses and sizes: no address of the window fits,
 * so what would return one cannot.
 */
SG_EXPORT CUresult cuMemAlloc(CUdeviceptr_v1 *dptr, unsigned int bytesize)
{
	SG_API(cuMemAlloc, SG_COST_API, SG_NEED_INIT | SG_NEED_CTX);
	return sg_not_supported("cuMemAlloc with 32-bit addresses");
}

SG_EXPORT CUresult cuMemAllocPitch(CUdeviceptr_v1 *dptr, unsigned int *pPitch,
        unsigned int WidthInBytes, unsigned int Height,
        unsigned int ElementSizeBytes)
{
	SG_API(cuMemAllocPitch, SG_COST_API, SG_NEED_INIT | SG_NEED_CTX);
	return sg_not_supported("cuMemAllocPitch with 32-bit addresses");
}

SG_EXPORT CUresult cuMemFree(CUdeviceptr_v1 dptr)
{
	SG_API(cuMemFree, SG_COST_API, SG_NEED_INIT | SG_NEED_CTX);
	return free_call(dptr);
}

/* What does not fit into 32 bits is told as the most that does. */
SG_EXPORT CUresult cuMemGetInfo(
        unsigned int *free_bytes, unsigned int *total_bytes)
{
	struct sg_device *dev;
	uint64_t left;

	SG_API(cuMemGetInfo, SG_COST_API, SG_NEED_INIT | SG_NEED_CTX);
	if (!free_bytes || !total_bytes)
		return CUDA_ERROR_INVALID_VALUE;
	dev = sg_ctx_current()->dev;
	sg_pools_reclaim(dev, false);
	left = dev->model.memory_bytes - dev->physical_bytes;
	*free_bytes = left > UINT32_MAX ? UINT32_MAX : left;
	*total_bytes = dev->model.memory_bytes > UINT32_MAX
	                       ? UINT32_MAX
	                       : dev->model.memory_bytes;
	return CUDA_SUCCESS;
}
