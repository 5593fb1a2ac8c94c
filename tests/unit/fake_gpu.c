/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "tests/unit/fake_gpu.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define HANDLES_MAX 4096
#define FLIGHTS_MAX 4096

struct flight {
	CUcontext context;
	uintptr_t stream;
	uint64_t address, bytes;
};

struct fake_gpu fake_gpu;

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

static int memory = -1;
static bool handle_used[HANDLES_MAX];
static struct flight flights[FLIGHTS_MAX];
static size_t flight_count;

#define HOSTS_MAX  64
#define HOST_BYTES (1ull << 30)

static struct host {
	char *memory;
	size_t bytes;
} hosts[HOSTS_MAX];
static size_t host_count, host_used;
static char *host_arena;

void fake_gpu_reset(uint64_t total_bytes, uint64_t context_bytes)
{
	if (memory >= 0)
		close(memory);
	memory = memfd_create("fake-gpu", MFD_CLOEXEC);
	if (memory < 0 || ftruncate(memory, HANDLES_MAX * FAKE_GRANULE))
		abort();
	memset(handle_used, 0, sizeof(handle_used));
	flight_count = 0;
	if (host_arena)
		munmap(host_arena, HOST_BYTES);
	host_arena = NULL;
	host_count = 0;
	host_used = 0;
	fake_gpu = (struct fake_gpu){.total_bytes = total_bytes,
	        .context_bytes = context_bytes,
	        .used_bytes = context_bytes,
	        .peak_bytes = context_bytes,
	        .context = FAKE_CONTEXT,
	        .fail_with = CUDA_ERROR_UNKNOWN};
}

typedef int guard;

static guard take(void)
{
	return pthread_mutex_lock(&mutex);
}

static void let_go(guard *held)
{
	(void)held;
	pthread_mutex_unlock(&mutex);
}

/* Holds the mutex to the end of the function it stands in. */
#define GUARD guard held __attribute__((unused, cleanup(let_go))) = take()

static bool fails(void)
{
	return ++fake_gpu.calls == fake_gpu.fail_at;
}

void fake_gpu_launch(uintptr_t stream, uint64_t address, uint64_t bytes)
{
	GUARD;
	if (flight_count == FLIGHTS_MAX)
		abort();
	if (stream & TS_STREAM_KIND)
		stream &= TS_STREAM_KIND;
	flights[flight_count++] =
	        (struct flight){fake_gpu.context, stream, address, bytes};
}

static void check_landed(uint64_t address, uint64_t bytes)
{
	for (size_t i = 0; i < flight_count; i++)
		if (address < flights[i].address + flights[i].bytes &&
		        flights[i].address < address + bytes)
			fake_gpu.violations++;
}

static CUresult mem_get_info(size_t *free_bytes, size_t *total_bytes)
{
	GUARD;
	if (fails())
		return fake_gpu.fail_with;
	*total_bytes = fake_gpu.total_bytes;
	*free_bytes = fake_gpu.total_bytes - fake_gpu.used_bytes;
	return CUDA_SUCCESS;
}

static CUresult get_granularity(size_t *granularity,
        const CUmemAllocationProp *prop, CUmemAllocationGranularity_flags flags)
{
	*granularity = FAKE_GRANULE;
	return CUDA_SUCCESS;
}

static CUresult address_reserve(CUdeviceptr *address, size_t bytes,
        size_t alignment, CUdeviceptr hint, unsigned long long flags)
{
	GUARD;
	void *at;

	if (fails())
		return fake_gpu.fail_with;
	at = mmap(NULL, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (at == MAP_FAILED)
		return CUDA_ERROR_OUT_OF_MEMORY;
	fake_gpu.reservations++;
	*address = (CUdeviceptr)(uintptr_t)at;
	return CUDA_SUCCESS;
}

static CUresult address_free(CUdeviceptr address, size_t bytes)
{
	GUARD;
	munmap((void *)(uintptr_t)address, bytes);
	fake_gpu.reservations--;
	return CUDA_SUCCESS;
}

static CUresult create(CUmemGenericAllocationHandle *handle, size_t bytes,
        const CUmemAllocationProp *prop, unsigned long long flags)
{
	GUARD;
	if (fails())
		return fake_gpu.fail_with;
	if (fake_gpu.used_bytes + bytes > fake_gpu.total_bytes)
		return CUDA_ERROR_OUT_OF_MEMORY;
	for (size_t i = 0; i < HANDLES_MAX; i++) {
		if (handle_used[i])
			continue;
		handle_used[i] = true;
		*handle = i + 1;
		fake_gpu.handles++;
		fake_gpu.used_bytes += bytes;
		if (fake_gpu.used_bytes > fake_gpu.peak_bytes)
			fake_gpu.peak_bytes = fake_gpu.used_bytes;
		return CUDA_SUCCESS;
	}
	return CUDA_ERROR_OUT_OF_MEMORY;
}

static CUresult release(CUmemGenericAllocationHandle handle)
{
	GUARD;
	if (!handle_used[handle - 1])
		fake_gpu.violations++;
	handle_used[handle - 1] = false;
	fake_gpu.handles--;
	fake_gpu.used_bytes -= FAKE_GRANULE;
	return CUDA_SUCCESS;
}

static CUresult map(CUdeviceptr address, size_t bytes, size_t offset,
        CUmemGenericAllocationHandle handle, unsigned long long flags)
{
	GUARD;
	if (fails())
		return fake_gpu.fail_with;
	if (!handle_used[handle - 1] || bytes != FAKE_GRANULE || offset)
		fake_gpu.violations++;
	fake_gpu.maps++;
	/* No access yet, as documented. */
	if (mmap((void *)(uintptr_t)address, bytes, PROT_NONE,
	            MAP_SHARED | MAP_FIXED, memory,
	            (off_t)((handle - 1) * FAKE_GRANULE)) == MAP_FAILED)
		return CUDA_ERROR_INVALID_VALUE;
	return CUDA_SUCCESS;
}

static CUresult unmap(CUdeviceptr address, size_t bytes)
{
	GUARD;
	if (fails())
		return fake_gpu.fail_with;
	check_landed(address, bytes);
	fake_gpu.unmaps++;
	if (mmap((void *)(uintptr_t)address, bytes, PROT_NONE,
	            MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1,
	            0) == MAP_FAILED)
		return CUDA_ERROR_INVALID_VALUE;
	return CUDA_SUCCESS;
}

static CUresult set_access(CUdeviceptr address, size_t bytes,
        const CUmemAccessDesc *access, size_t count)
{
	GUARD;
	if (fails())
		return fake_gpu.fail_with;
	fake_gpu.opened = (unsigned int)count;
	mprotect((void *)(uintptr_t)address, bytes, PROT_READ | PROT_WRITE);
	return CUDA_SUCCESS;
}

/* Allocations lie side by side, as those of the driver may. */
static CUresult host_alloc(void **memory_out, size_t bytes, unsigned int flags)
{
	GUARD;
	if (fails())
		return fake_gpu.fail_with;
	if (host_count == HOSTS_MAX || host_used + bytes > HOST_BYTES)
		return CUDA_ERROR_OUT_OF_MEMORY;
	if (!host_arena)
		host_arena = mmap(NULL, HOST_BYTES, PROT_READ | PROT_WRITE,
		        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (host_arena == MAP_FAILED)
		abort();
	hosts[host_count++] = (struct host){host_arena + host_used, bytes};
	*memory_out = host_arena + host_used;
	host_used += bytes;
	fake_gpu.pinned_host_bytes += bytes;
	return CUDA_SUCCESS;
}

static CUresult host_free(void *at)
{
	GUARD;
	for (size_t i = 0; i < host_count; i++)
		if (hosts[i].memory == at) {
			/* Whoever reads it later shall see that it is gone. */
			madvise(at, hosts[i].bytes, MADV_DONTNEED);
			hosts[i].bytes = 0;
			return CUDA_SUCCESS;
		}
	fake_gpu.violations++;
	return CUDA_ERROR_INVALID_VALUE;
}

/* A copy stays within one allocation. */
static void check_host(const void *host, size_t bytes)
{
	const char *at = host;

	for (size_t i = 0; i < host_count; i++)
		if (at >= hosts[i].memory &&
		        at + bytes <= hosts[i].memory + hosts[i].bytes)
			return;
	fake_gpu.violations++;
}

static CUresult copy_out(
        void *host, CUdeviceptr address, size_t bytes, CUstream stream)
{
	GUARD;
	if (fails())
		return fake_gpu.fail_with;
	check_landed(address, bytes);
	check_host(host, bytes);
	fake_gpu.copies++;
	memcpy(host, (void *)(uintptr_t)address, bytes);
	return CUDA_SUCCESS;
}

static CUresult copy_in(
        CUdeviceptr address, const void *host, size_t bytes, CUstream stream)
{
	GUARD;
	if (fails())
		return fake_gpu.fail_with;
	check_host(host, bytes);
	fake_gpu.copies++;
	memcpy((void *)(uintptr_t)address, host, bytes);
	return CUDA_SUCCESS;
}

static CUresult stream_create(CUstream *stream, unsigned int flags)
{
	GUARD;
	if (fails())
		return fake_gpu.fail_with;
	if (flags != CU_STREAM_NON_BLOCKING)
		fake_gpu.violations++;
	*stream = (CUstream)(uintptr_t)0x1000;
	return CUDA_SUCCESS;
}

static CUresult stream_destroy(CUstream stream)
{
	return CUDA_SUCCESS;
}

/* What the current context ran on @stream, or all of it where that is 0. */
static void land(uintptr_t stream)
{
	size_t kept = 0;

	for (size_t i = 0; i < flight_count; i++) {
		bool own = flights[i].context == fake_gpu.context;
		bool named = flights[i].stream == stream &&
		             (own || !(stream & TS_STREAM_KIND));

		if (!named && !(own && !stream))
			flights[kept++] = flights[i];
	}
	flight_count = kept;
}

static CUresult stream_synchronize(CUstream stream)
{
	GUARD;
	if (fails())
		return fake_gpu.fail_with;
	fake_gpu.waits++;
	land((uintptr_t)stream);
	return CUDA_SUCCESS;
}

static CUresult ctx_synchronize(void)
{
	GUARD;
	if (fails())
		return fake_gpu.fail_with;
	fake_gpu.waits++;
	land(0);
	return CUDA_SUCCESS;
}

static CUresult ctx_get_current(CUcontext *context)
{
	*context = fake_gpu.context;
	return CUDA_SUCCESS;
}

static CUcontext pushed[8];
static size_t pushed_count;

static CUresult ctx_push(CUcontext context)
{
	if (pushed_count == 8)
		abort();
	pushed[pushed_count++] = fake_gpu.context;
	fake_gpu.context = context;
	return CUDA_SUCCESS;
}

static CUresult ctx_pop(CUcontext *context)
{
	*context = fake_gpu.context;
	fake_gpu.context = pushed[--pushed_count];
	return CUDA_SUCCESS;
}

static CUresult stream_get_ctx(CUstream stream, CUcontext *context)
{
	*context = FAKE_CONTEXT;
	return CUDA_SUCCESS;
}

static CUresult copy_any(
        CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream)
{
	memcpy((void *)(uintptr_t)to, (void *)(uintptr_t)from, bytes);
	return CUDA_SUCCESS;
}

static CUresult exchange_capture_mode(CUstreamCaptureMode *mode)
{
	static CUstreamCaptureMode current = CU_STREAM_CAPTURE_MODE_GLOBAL;
	CUstreamCaptureMode before = current;

	current = *mode;
	*mode = before;
	return CUDA_SUCCESS;
}

const struct ts_gpu_ops fake_gpu_ops = {
        .mem_get_info = mem_get_info,
        .get_granularity = get_granularity,
        .address_reserve = address_reserve,
        .address_free = address_free,
        .create = create,
        .release = release,
        .map = map,
        .unmap = unmap,
        .set_access = set_access,
        .host_alloc = host_alloc,
        .host_free = host_free,
        .copy_out = copy_out,
        .copy_in = copy_in,
        .stream_create = stream_create,
        .stream_destroy = stream_destroy,
        .stream_synchronize = stream_synchronize,
        .ctx_synchronize = ctx_synchronize,
        .ctx_get_current = ctx_get_current,
        .ctx_push = ctx_push,
        .ctx_pop = ctx_pop,
        .stream_get_ctx = stream_get_ctx,
        .copy_any = copy_any,
        .exchange_capture_mode = exchange_capture_mode,
};
