/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "tests/unit/fake_gpu.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define HANDLES_MAX 4096
#define FLIGHTS_MAX 4096

/* Each stream's work is numbered; a clock says how far another one knows it. */
#define STREAMS_MAX 32
#define EVENTS_MAX  4096

struct clock {
	uint64_t ticks[STREAMS_MAX];
};

struct stream {
	CUcontext context;
	uintptr_t handle;
	uint64_t issued;
	struct clock knows;
};

/*
 * Work under way: it ends when the host waits for it. What two kernels of the
 * program do at one address is the program's to order.
 */
struct flight {
	size_t stream; /* in streams */
	uint64_t tick;
	uint64_t address, bytes;
	uint64_t memory; /* where that is in the device, or the host */
	bool writes;
	bool program;
};

struct mapping {
	uint64_t address, bytes, memory;
};

#define MAPPINGS_MAX 4096
#define HOST_MEMORY  (1ull << 60) /* beside that of the device */

struct fake_gpu fake_gpu;

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

static int memory = -1;
static struct handle {
	bool used;
	uint64_t bytes;
	off_t at; /* in the file */
} handles[HANDLES_MAX];
static off_t file_end;

static struct stream streams[STREAMS_MAX];
static size_t stream_count;
static struct clock host_knows;

static struct event {
	bool used;
	CUcontext context;
	struct clock knows;
} events[EVENTS_MAX];
static uintptr_t next_stream;

static struct flight flights[FLIGHTS_MAX];
static struct mapping mappings[MAPPINGS_MAX];
static size_t mapping_count;
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
	/* Sparse, and no part of it is used twice. */
	if (memory < 0 || ftruncate(memory, 1ll << 42))
		abort();
	memset(handles, 0, sizeof(handles));
	file_end = 0;
	memset(streams, 0, sizeof(streams));
	stream_count = 0;
	memset(events, 0, sizeof(events));
	memset(&host_knows, 0, sizeof(host_knows));
	next_stream = 0x1000;
	mapping_count = 0;
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

/* A thread pushes its own contexts above the one that all begin with. */
static __thread CUcontext pushed[8];
static __thread size_t pushed_count;

CUcontext fake_gpu_context(void)
{
	return pushed_count ? pushed[pushed_count - 1] : fake_gpu.context;
}

/* Handles are of one context; the streams each has are told apart by it. */
static struct stream *stream_of(uintptr_t handle)
{
	CUcontext context = handle & TS_STREAM_KIND ? fake_gpu_context() : NULL;

	if (handle & TS_STREAM_KIND)
		handle &= TS_STREAM_KIND;
	for (size_t i = 0; i < stream_count; i++)
		if (streams[i].handle == handle &&
		        (!context || streams[i].context == context))
			return &streams[i];
	if (stream_count == STREAMS_MAX)
		abort();
	streams[stream_count] = (struct stream){
	        .context = fake_gpu_context(), .handle = handle};
	return &streams[stream_count++];
}

static void learn(struct clock *clock, const struct clock *from)
{
	for (size_t i = 0; i < STREAMS_MAX; i++)
		if (from->ticks[i] > clock->ticks[i])
			clock->ticks[i] = from->ticks[i];
}

static bool meet(const struct flight *a, const struct flight *b)
{
	return (a->writes || b->writes) && a->memory < b->memory + b->bytes &&
	       b->memory < a->memory + a->bytes &&
	       !(a->program && b->program &&
	               a->address - a->memory == b->address - b->memory);
}

/* Whether there is something that @knows does not come after. */
static void check(const struct clock *knows, const struct flight *flight)
{
	for (size_t i = 0; i < flight_count; i++)
		if (meet(&flights[i], flight) &&
		        knows->ticks[flights[i].stream] < flights[i].tick)
			fake_gpu.violations++;
}

static void fly(struct stream *stream, struct flight flight)
{
	flight.stream = (size_t)(stream - streams);
	flight.tick = stream->issued;
	check(&stream->knows, &flight);
	if (flight_count == FLIGHTS_MAX)
		abort();
	flights[flight_count++] = flight;
}

/* The part of @flight, which is told by its address, that is mapped there. */
static bool locate(struct flight *flight, const struct mapping *mapping)
{
	uint64_t from = flight->address, to = from + flight->bytes;

	if (from < mapping->address)
		from = mapping->address;
	if (to > mapping->address + mapping->bytes)
		to = mapping->address + mapping->bytes;
	if (from >= to)
		return false;
	flight->address = from;
	flight->bytes = to - from;
	flight->memory = mapping->memory + (from - mapping->address);
	return true;
}

static void fly_device(struct stream *stream, const struct flight *whole)
{
	uint64_t found = 0;

	for (size_t i = 0; i < mapping_count; i++) {
		struct flight part = *whole;

		if (!locate(&part, &mappings[i]))
			continue;
		found += part.bytes;
		fly(stream, part);
	}
	/* All of it must be mapped. */
	if (found != whole->bytes)
		fake_gpu.violations++;
}

static void fly_host(
        struct stream *stream, const void *host, uint64_t bytes, bool writes)
{
	fly(stream, (struct flight){
	                    .memory = HOST_MEMORY + (uint64_t)(uintptr_t)host,
	                    .bytes = bytes,
	                    .writes = writes});
}

static void next_op(struct stream *stream)
{
	stream->issued++;
	stream->knows.ticks[stream - streams] = stream->issued;
	learn(&stream->knows, &host_knows);
}

/* What the host has waited for is over. */
static void land(const struct clock *known)
{
	size_t kept = 0;

	learn(&host_knows, known);
	for (size_t i = 0; i < flight_count; i++)
		if (host_knows.ticks[flights[i].stream] < flights[i].tick)
			flights[kept++] = flights[i];
	flight_count = kept;
}

void fake_gpu_launch(uintptr_t stream, uint64_t address, uint64_t bytes)
{
	GUARD;
	struct stream *on = stream_of(stream);

	next_op(on);
	fly_device(on, &(struct flight){.address = address,
	                       .bytes = bytes,
	                       .writes = true,
	                       .program = true});
}

/* Nothing that went through this address may be under way. */
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
		if (handles[i].used)
			continue;
		handles[i] = (struct handle){true, bytes, file_end};
		file_end += (off_t)bytes;
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
	if (!handles[handle - 1].used)
		fake_gpu.violations++;
	handles[handle - 1].used = false;
	fake_gpu.handles--;
	fake_gpu.used_bytes -= handles[handle - 1].bytes;
	return CUDA_SUCCESS;
}

static CUresult map(CUdeviceptr address, size_t bytes, size_t offset,
        CUmemGenericAllocationHandle handle, unsigned long long flags)
{
	GUARD;
	if (fails())
		return fake_gpu.fail_with;
	if (!handles[handle - 1].used || bytes != handles[handle - 1].bytes ||
	        offset)
		fake_gpu.violations++;
	fake_gpu.maps++;
	if (mapping_count == MAPPINGS_MAX)
		abort();
	mappings[mapping_count++] = (struct mapping){
	        address, bytes, (uint64_t)handles[handle - 1].at};
	/* No access yet, as documented. */
	if (mmap((void *)(uintptr_t)address, bytes, PROT_NONE,
	            MAP_SHARED | MAP_FIXED, memory,
	            handles[handle - 1].at) == MAP_FAILED)
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
	for (size_t i = mapping_count; i--;)
		if (mappings[i].address - address < bytes)
			mappings[i] = mappings[--mapping_count];
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
	if (fake_gpu.refuse_pinning || host_count == HOSTS_MAX ||
	        host_used + bytes > HOST_BYTES)
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

/* A copy stays within one allocation; what is not pinned is of no concern. */
static void check_host(const void *host, size_t bytes)
{
	const char *at = host;

	if (!host_arena || at < host_arena || at >= host_arena + HOST_BYTES)
		return;
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
	check_host(host, bytes);
	next_op(stream_of((uintptr_t)stream));
	fly_device(stream_of((uintptr_t)stream),
	        &(struct flight){.address = address, .bytes = bytes});
	fly_host(stream_of((uintptr_t)stream), host, bytes, true);
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
	next_op(stream_of((uintptr_t)stream));
	fly_device(stream_of((uintptr_t)stream),
	        &(struct flight){
	                .address = address, .bytes = bytes, .writes = true});
	fly_host(stream_of((uintptr_t)stream), host, bytes, false);
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
	*stream = (CUstream)(uintptr_t)next_stream;
	next_stream += 0x100;
	stream_of((uintptr_t)*stream);
	return CUDA_SUCCESS;
}

static CUresult stream_destroy(CUstream stream)
{
	return CUDA_SUCCESS;
}

static CUresult stream_synchronize(CUstream stream)
{
	GUARD;
	if (fails())
		return fake_gpu.fail_with;
	fake_gpu.waits++;
	land(&stream_of((uintptr_t)stream)->knows);
	return CUDA_SUCCESS;
}

static CUresult ctx_synchronize(void)
{
	GUARD;
	if (fails())
		return fake_gpu.fail_with;
	fake_gpu.waits++;
	for (size_t i = 0; i < stream_count; i++)
		if (streams[i].context == fake_gpu_context())
			land(&streams[i].knows);
	return CUDA_SUCCESS;
}

static CUresult stream_wait_event(
        CUstream stream, CUevent event, unsigned int flags)
{
	GUARD;
	if (fails())
		return fake_gpu.fail_with;
	if (!events[(uintptr_t)event].used)
		fake_gpu.violations++;
	learn(&stream_of((uintptr_t)stream)->knows,
	        &events[(uintptr_t)event].knows);
	return CUDA_SUCCESS;
}

static CUresult event_create(CUevent *event, unsigned int flags)
{
	GUARD;
	if (fails())
		return fake_gpu.fail_with;
	for (uintptr_t i = 1; i < EVENTS_MAX; i++) {
		if (events[i].used)
			continue;
		events[i] = (struct event){
		        .used = true, .context = fake_gpu_context()};
		*event = (CUevent)i;
		fake_gpu.events++;
		return CUDA_SUCCESS;
	}
	return CUDA_ERROR_OUT_OF_MEMORY;
}

void fake_gpu_context_gone(CUcontext context)
{
	GUARD;
	for (size_t i = 0; i < EVENTS_MAX; i++)
		if (events[i].used && events[i].context == context) {
			events[i].used = false;
			fake_gpu.events--;
		}
}

static CUresult event_destroy(CUevent event)
{
	GUARD;
	if (!events[(uintptr_t)event].used)
		fake_gpu.violations++;
	events[(uintptr_t)event].used = false;
	fake_gpu.events--;
	return CUDA_SUCCESS;
}

static CUresult event_record(CUevent event, CUstream stream)
{
	GUARD;
	if (fails())
		return fake_gpu.fail_with;
	next_op(stream_of((uintptr_t)stream));
	events[(uintptr_t)event].knows = stream_of((uintptr_t)stream)->knows;
	return CUDA_SUCCESS;
}

/* Nothing ends before it is waited for. */
static CUresult event_query(CUevent event)
{
	GUARD;
	if (fails())
		return fake_gpu.fail_with;
	for (size_t i = 0; i < STREAMS_MAX; i++)
		if (events[(uintptr_t)event].knows.ticks[i] >
		        host_knows.ticks[i])
			return CUDA_ERROR_NOT_READY;
	return CUDA_SUCCESS;
}

static CUresult event_synchronize(CUevent event)
{
	GUARD;
	if (fails())
		return fake_gpu.fail_with;
	fake_gpu.waits++;
	land(&events[(uintptr_t)event].knows);
	return CUDA_SUCCESS;
}

static CUresult ctx_get_current(CUcontext *context)
{
	*context = fake_gpu_context();
	return CUDA_SUCCESS;
}

static CUresult ctx_push(CUcontext context)
{
	if (pushed_count == 8)
		abort();
	pushed[pushed_count++] = context;
	return CUDA_SUCCESS;
}

static CUresult ctx_pop(CUcontext *context)
{
	if (!pushed_count)
		abort();
	*context = pushed[--pushed_count];
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
        .stream_wait_event = stream_wait_event,
        .event_create = event_create,
        .event_destroy = event_destroy,
        .event_record = event_record,
        .event_query = event_query,
        .event_synchronize = event_synchronize,
        .copy_any = copy_any,
        .exchange_capture_mode = exchange_capture_mode,
};
