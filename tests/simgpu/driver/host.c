/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Page-locked host memory: allocated (anonymous memory that costs nothing until
 * touched) and registered. Owns the tree of host ranges the driver knows,
 * managed ones included. Under sg_lock.
 */
#include "tests/simgpu/driver/content.h"
#include "tests/simgpu/driver/mutate.h"
#include "tests/simgpu/driver/races.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define HOST_PAGE_BYTES ((uint64_t)4096)
/* From this size on zeroing gives pages back instead of writing them. */
#define DROP_MIN_BYTES ((uint64_t)256 << 10)

static struct sg_ranges ranges;
static uint64_t next_id;

static struct sg_host *of_range(struct sg_range *range)
{
	return range ? sg_range_entry(range, struct sg_host, range) : NULL;
}

struct sg_host *sg_host_at(uint64_t address)
{
	return of_range(sg_ranges_at(&ranges, address));
}

struct sg_host *sg_host_next(uint64_t address)
{
	return of_range(sg_ranges_ceil(&ranges, address));
}

static void insert(struct sg_host *host)
{
	sg_host_lock();
	sg_ranges_insert(&ranges, &host->range);
	sg_host_unlock();
}

CUresult sg_host_create(
        struct sg_ctx *ctx, uint64_t bytes, struct sg_host **ret_host)
{
	uint64_t map_bytes = sg_round_up(bytes, HOST_PAGE_BYTES);
	struct sg_host *host;
	void *p;

	if (map_bytes < bytes)
		return CUDA_ERROR_OUT_OF_MEMORY;
	p = mmap(NULL, map_bytes, PROT_READ | PROT_WRITE,
	        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (p == MAP_FAILED)
		return CUDA_ERROR_OUT_OF_MEMORY;
	host = sg_xcalloc(1, sizeof(*host));
	host->range.start = (uint64_t)(uintptr_t)p;
	host->range.bytes = bytes;
	host->map_bytes = map_bytes;
	host->ctx = ctx;
	host->id = ++next_id;
	insert(host);
	*ret_host = host;
	return CUDA_SUCCESS;
}

void sg_host_destroy(struct sg_host *host)
{
	sg_host_lock();
	sg_ranges_remove(&ranges, &host->range);
	sg_host_forget(host);
	sg_races_forget(&host->races);
	sg_taint_forget(&host->taint);
	sg_host_unlock();
	if (!host->registered)
		munmap((void *)(uintptr_t)host->range.start, host->map_bytes);
	free(host);
}

bool sg_host_is_pinned(const void *p, size_t bytes)
{
	uint64_t va = (uint64_t)(uintptr_t)p, end = va + bytes;

	while (va < end) {
		const struct sg_host *host = sg_host_at(va);

		if (!host)
			return false;
		va = host->range.start + host->range.bytes;
	}
	return true;
}

void sg_host_zero(void *p, uint64_t bytes)
{
	uint64_t va = (uint64_t)(uintptr_t)p, end = va + bytes;
	const struct sg_host *host = sg_host_at(va);
	uint64_t first = sg_round_up(va, HOST_PAGE_BYTES);
	uint64_t last = end & ~(HOST_PAGE_BYTES - 1);

	if (bytes < DROP_MIN_BYTES || !host || host->registered ||
	        end - host->range.start > host->range.bytes) {
		memset(p, 0, bytes);
		return;
	}
	if (madvise((void *)(uintptr_t)first, last - first, MADV_DONTNEED) !=
	        0) {
		memset(p, 0, bytes);
		return;
	}
	memset(p, 0, first - va);
	memset((void *)(uintptr_t)last, 0, end - last);
}

/* ----------------------------------------------------------------- exports */

static CUresult host_alloc(void **pp, uint64_t bytes, unsigned flags)
{
	struct sg_ctx *ctx = sg_ctx_current();
	struct sg_host *host;
	CUresult error = sg_capture_unsafe();

	if (error != CUDA_SUCCESS)
		return error;
	if (!pp || bytes == 0)
		return CUDA_ERROR_INVALID_VALUE;
	if (flags & ~(unsigned)(CU_MEMHOSTALLOC_PORTABLE |
	                        CU_MEMHOSTALLOC_DEVICEMAP |
	                        CU_MEMHOSTALLOC_WRITECOMBINED))
		return CUDA_ERROR_INVALID_VALUE;
	error = sg_host_create(ctx, bytes, &host);
	if (error != CUDA_SUCCESS)
		return error;
	host->flags = flags;
	sg_host_advance(
	        (uint64_t)((double)bytes / ((uint64_t)1 << 30) *
	                   (double)ctx->dev->model.host_alloc_ns_per_gib));
	*pp = (void *)(uintptr_t)host->range.start;
	return CUDA_SUCCESS;
}

SG_EXPORT CUresult cuMemHostAlloc(
        void **pp, size_t bytesize, unsigned int Flags)
{
	SG_API(cuMemHostAlloc, SG_COST_API, SG_NEED_INIT | SG_NEED_CTX);
	return host_alloc(pp, bytesize, Flags);
}

SG_EXPORT CUresult cuMemAllocHost_v2(void **pp, size_t bytesize)
{
	SG_API(cuMemAllocHost_v2, SG_COST_API, SG_NEED_INIT | SG_NEED_CTX);
	return host_alloc(pp, bytesize, 0);
}

SG_EXPORT CUresult cuMemAllocHost(void **pp, unsigned int bytesize)
{
	SG_API(cuMemAllocHost, SG_COST_API, SG_NEED_INIT | SG_NEED_CTX);
	return host_alloc(pp, bytesize, 0);
}

/* Waits for the work of every device that may reach the range: not for the
 * program, which should have waited itself. */
static void quiesce(const struct sg_host *host, const char *what)
{
	uint64_t start = host->range.start, bytes = host->range.bytes;

	if (sg_races_on())
		sg_races_ending(host->ctx->dev, NULL, start, bytes, what);
	for (unsigned i = 0; i < sg_device_count; i++) {
		if (sg_devices[i].contexts &&
		        sg_range_busy(&sg_devices[i], start, bytes))
			sg_device_drain(&sg_devices[i]);
	}
}

/* The range that begins at p and is, or is not, registered memory. */
static struct sg_host *begins_at(const void *p, bool registered)
{
	uint64_t va = (uint64_t)(uintptr_t)p;
	struct sg_host *host = sg_host_at(va);

	if (!host || host->range.start != va || host->managed ||
	        host->registered != registered)
		return NULL;
	return host;
}

SG_EXPORT CUresult cuMemFreeHost(void *p)
{
	struct sg_host *host;
	CUresult error;

	SG_API(cuMemFreeHost, SG_COST_API, SG_NEED_INIT | SG_NEED_CTX);
	error = sg_capture_unsafe();
	if (error != CUDA_SUCCESS)
		return error;
	host = begins_at(p, false);
	if (!host)
		return CUDA_ERROR_INVALID_VALUE;
	quiesce(host, "cuMemFreeHost");
	if (begins_at(p, false) != host)
		return CUDA_ERROR_INVALID_VALUE;
	sg_host_destroy(host);
	return CUDA_SUCCESS;
}

static CUresult host_register(void *p, uint64_t bytes, unsigned flags)
{
	uint64_t va = (uint64_t)(uintptr_t)p;
	struct sg_ctx *ctx = sg_ctx_current();
	struct sg_host *host;
	CUresult error = sg_capture_unsafe();

	if (error != CUDA_SUCCESS)
		return error;
	if (!p || bytes == 0 || va + bytes < va)
		return CUDA_ERROR_INVALID_VALUE;
	if (flags & CU_MEMHOSTREGISTER_IOMEMORY)
		return sg_not_supported("registration of device I/O memory");
	if (flags & ~(unsigned)(CU_MEMHOSTREGISTER_PORTABLE |
	                        CU_MEMHOSTREGISTER_DEVICEMAP |
	                        CU_MEMHOSTREGISTER_READ_ONLY))
		return CUDA_ERROR_INVALID_VALUE;
	if (sg_is_device_va(va))
		return CUDA_ERROR_INVALID_VALUE;
	if (sg_ranges_overlap(&ranges, va, bytes))
		return CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED;
	host = sg_xcalloc(1, sizeof(*host));
	host->range.start = va;
	host->range.bytes = bytes;
	host->flags = flags;
	host->registered = true;
	host->ctx = ctx;
	host->id = ++next_id;
	insert(host);
	sg_host_advance(
	        (uint64_t)((double)bytes / ((uint64_t)1 << 30) *
	                   (double)ctx->dev->model.host_alloc_ns_per_gib));
	return CUDA_SUCCESS;
}

SG_EXPORT CUresult cuMemHostRegister_v2(
        void *p, size_t bytesize, unsigned int Flags)
{
	SG_API(cuMemHostRegister_v2, SG_COST_API, SG_NEED_INIT | SG_NEED_CTX);
	return host_register(p, bytesize, Flags);
}

SG_EXPORT CUresult cuMemHostRegister(
        void *p, size_t bytesize, unsigned int Flags)
{
	SG_API(cuMemHostRegister, SG_COST_API, SG_NEED_INIT | SG_NEED_CTX);
	return host_register(p, bytesize, Flags);
}

SG_EXPORT CUresult cuMemHostUnregister(void *p)
{
	struct sg_host *host;
	CUresult error;

	SG_API(cuMemHostUnregister, SG_COST_API, SG_NEED_INIT | SG_NEED_CTX);
	error = sg_capture_unsafe();
	if (error != CUDA_SUCCESS)
		return error;
	if (!p)
		return CUDA_ERROR_INVALID_VALUE;
	host = begins_at(p, true);
	if (!host)
		return CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED;
	quiesce(host, "cuMemHostUnregister");
	if (begins_at(p, true) != host)
		return CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED;
	sg_host_destroy(host);
	return CUDA_SUCCESS;
}

/* Unified addressing: the device sees host memory where the host does. */
SG_EXPORT CUresult cuMemHostGetDevicePointer_v2(
        CUdeviceptr *pdptr, void *p, unsigned int Flags)
{
	SG_API(cuMemHostGetDevicePointer_v2, SG_COST_API,
	        SG_NEED_INIT | SG_NEED_CTX);
	if (!pdptr || Flags != 0 || !sg_host_at((uint64_t)(uintptr_t)p))
		return CUDA_ERROR_INVALID_VALUE;
	*pdptr = (uint64_t)(uintptr_t)p;
	return CUDA_SUCCESS;
}

SG_EXPORT CUresult cuMemHostGetDevicePointer(
        CUdeviceptr_v1 *pdptr, void *p, unsigned int Flags)
{
	SG_API(cuMemHostGetDevicePointer, SG_COST_API,
	        SG_NEED_INIT | SG_NEED_CTX);
	return sg_not_supported("cuMemHostGetDevicePointer with 32-bit "
	                        "addresses");
}

SG_EXPORT CUresult cuMemHostGetFlags(unsigned int *pFlags, void *p)
{
	const struct sg_host *host;

	SG_API(cuMemHostGetFlags, SG_COST_API, SG_NEED_INIT | SG_NEED_CTX);
	host = sg_host_at((uint64_t)(uintptr_t)p);
	if (!pFlags || !host || host->managed || host->registered)
		return CUDA_ERROR_INVALID_VALUE;
	*pFlags = host->flags;
	return CUDA_SUCCESS;
}
