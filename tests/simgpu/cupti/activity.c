/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Activity records of kernels, copies and sets, and of external ids of such
 * operations: the driver hands every finished operation to a sink here; a flush
 * turns what was collected into records in the profiler's buffers. Other kinds
 * can be enabled and yield nothing.
 *
 * Time stamps are virtual nanoseconds. If the profiler brings its own clock,
 * the virtual time since collecting began is added to what that clock showed
 * then, in its units; long simulated work may so end in the profiler's future.
 * The host mostly takes longer than its device: a flush moves all records as
 * far towards the present as none of them was seen to end before, or profilers
 * would take them for older than what they were asked to look at.
 *
 * activity_lock guards the state. The sink runs under the simulator's lock and
 * takes activity_lock inside it; nothing here calls the driver or the profiler
 * with activity_lock held.
 */
#include "activity.h"

#include <cupti.h>

#include <dlfcn.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "tests/simgpu/driver/sg.h"
#include "tests/simgpu/driver/simgpu_private.h"

/* Room of one record in a buffer: newer profilers read longer records than
 * this library's headers know, and find zeros there. */
enum { RECORD_BYTES = 512 };
enum { RECORDS_MAX = 1 << 20 };

union record {
	CUpti_Activity any;
	CUpti_ActivityKernel10 kernel;
	CUpti_ActivityMemcpy6 memcpy;
	CUpti_ActivityMemset4 memset;
	CUpti_ActivityExternalCorrelation external;
};
_Static_assert(sizeof(union record) <= RECORD_BYTES, "records fit");

/* A buffer of the profiler's. */
struct buffer {
	uint8_t *data;
	size_t bytes, max_records, used, records;
};

/* A finished operation, and when the host came to know. */
struct done_op {
	struct simgpu_activity op;
	uint64_t host_ns;
};

/* What the two clocks showed when collecting began. */
struct clock {
	CUpti_TimestampCallbackFunc callback;
	uint64_t callback_start, host_start_ns, virtual_start_ns;
	uint64_t late_ns; /* what the records of a flush are moved by */
};

static pthread_mutex_t activity_lock = PTHREAD_MUTEX_INITIALIZER;
/* Guarded by activity_lock. */
static bool enabled[CUPTI_ACTIVITY_KIND_COUNT];
/* Correlation id of the first operation issued after that. */
static uint64_t enabled_from[CUPTI_ACTIVITY_KIND_COUNT];
static bool collecting;
static struct done_op *done;
static size_t done_count, done_room, dropped;
static CUpti_BuffersCallbackRequestFunc buffer_request;
static CUpti_BuffersCallbackCompleteFunc buffer_complete;
static struct clock clock_base;
/* Asked for when collecting begins: profilers take a flush for needless while
 * none of their buffers is out. */
static struct buffer first_buffer;

/* The driver's private entry points; written once. */
static pthread_once_t driver_once = PTHREAD_ONCE_INIT;
static void (*driver_set_sink)(simgpu_activity_sink sink, void *user);
static void (*driver_flush)(void);
static uint64_t (*driver_next_correlation)(void);
static int (*driver_get_info)(int device, struct simgpu_device_info *ret_info);

static void bind_driver(void)
{
	void *lib = dlopen("libcuda.so.1", RTLD_NOW);

	if (!lib)
		return;
	*(void **)&driver_set_sink = dlsym(lib, "simgpu_set_activity_sink");
	*(void **)&driver_flush = dlsym(lib, "simgpu_flush");
	*(void **)&driver_next_correlation =
	        dlsym(lib, "simgpu_next_correlation");
	*(void **)&driver_get_info = dlsym(lib, "simgpu_device_get_info");
}

static bool have_driver(void)
{
	pthread_once(&driver_once, bind_driver);
	return driver_set_sink && driver_flush && driver_next_correlation &&
	       driver_get_info;
}

static uint64_t virtual_now_ns(void)
{
	struct simgpu_device_info info;

	return driver_get_info(0, &info) ? 0 : info.virtual_ns;
}

static uint64_t next_correlation(void)
{
	return have_driver() ? driver_next_correlation() : 0;
}

static uint64_t host_now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* --------------------------------------------------------------- collecting */

static CUpti_ActivityKind kind_of(const struct simgpu_activity *op)
{
	switch (op->kind) {
	case SG_OP_KERNEL:
		return CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL;
	case SG_OP_COPY_H2D:
	case SG_OP_COPY_D2H:
	case SG_OP_COPY_D2D:
	case SG_OP_COPY_H2H:
		return CUPTI_ACTIVITY_KIND_MEMCPY;
	case SG_OP_MEMSET:
		return CUPTI_ACTIVITY_KIND_MEMSET;
	default:
		return CUPTI_ACTIVITY_KIND_INVALID;
	}
}

static bool wanted_locked(CUpti_ActivityKind kind)
{
	if (kind == CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL)
		return enabled[kind] || enabled[CUPTI_ACTIVITY_KIND_KERNEL];
	return kind != CUPTI_ACTIVITY_KIND_INVALID && enabled[kind];
}

static void sink(const struct simgpu_activity *op, void *user)
{
	CUpti_ActivityKind kind = kind_of(op);

	pthread_mutex_lock(&activity_lock);
	if (!wanted_locked(kind) || op->correlation < enabled_from[kind])
		goto out;
	if (done_count == done_room) {
		size_t room = done_room ? done_room * 2 : 1024;
		void *more = room > RECORDS_MAX
		                     ? NULL
		                     : realloc(done, room * sizeof(*done));

		if (!more) {
			dropped++;
			goto out;
		}
		done = more;
		done_room = room;
	}
	done[done_count] = (struct done_op){*op, host_now_ns()};
	if (!enabled[CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION])
		memset(done[done_count].op.external, 0,
		        sizeof(done[done_count].op.external));
	done_count++;
out:
	pthread_mutex_unlock(&activity_lock);
}

/* Installs or removes the sink after a change of what is wanted. */
static void update_sink(void)
{
	CUpti_BuffersCallbackRequestFunc request;
	struct buffer buffer = {0};
	struct clock base = {0};
	bool want, change;

	pthread_mutex_lock(&activity_lock);
	want = wanted_locked(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL) ||
	       wanted_locked(CUPTI_ACTIVITY_KIND_MEMCPY) ||
	       wanted_locked(CUPTI_ACTIVITY_KIND_MEMSET);
	change = want != collecting;
	collecting = want;
	base.callback = clock_base.callback;
	request = first_buffer.data ? NULL : buffer_request;
	pthread_mutex_unlock(&activity_lock);
	if (!change || !have_driver())
		return;
	if (want) {
		base.virtual_start_ns = virtual_now_ns();
		base.host_start_ns = host_now_ns();
		if (base.callback)
			base.callback_start = base.callback();
		if (request)
			request(&buffer.data, &buffer.bytes,
			        &buffer.max_records);
		pthread_mutex_lock(&activity_lock);
		clock_base = base;
		if (buffer.data)
			first_buffer = buffer;
		pthread_mutex_unlock(&activity_lock);
	}
	driver_set_sink(want ? sink : NULL, NULL);
}

/* Kernels have one kind of record, whichever kind asks for them. */
static CUpti_ActivityKind recorded_as(CUpti_ActivityKind kind)
{
	return kind == CUPTI_ACTIVITY_KIND_KERNEL
	               ? CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL
	               : kind;
}

static CUptiResult set_enabled(CUpti_ActivityKind kind, bool on)
{
	uint64_t next;

	if ((int)kind <= CUPTI_ACTIVITY_KIND_INVALID)
		return CUPTI_ERROR_INVALID_KIND;
	/* Kinds newer than this library's headers: nothing to report. */
	if (kind >= CUPTI_ACTIVITY_KIND_COUNT)
		return CUPTI_SUCCESS;
	next = next_correlation();
	/* What was issued before it is disabled is recorded. */
	if (!on && have_driver())
		driver_flush();
	pthread_mutex_lock(&activity_lock);
	if (on && !enabled[kind])
		enabled_from[recorded_as(kind)] = next;
	enabled[kind] = on;
	pthread_mutex_unlock(&activity_lock);
	update_sink();
	return CUPTI_SUCCESS;
}

CUptiResult CUPTIAPI cuptiActivityEnable(CUpti_ActivityKind kind)
{
	return set_enabled(kind, true);
}

CUptiResult CUPTIAPI cuptiActivityDisable(CUpti_ActivityKind kind)
{
	return set_enabled(kind, false);
}

void activity_reset(void)
{
	pthread_mutex_lock(&activity_lock);
	memset(enabled, 0, sizeof(enabled));
	memset(enabled_from, 0, sizeof(enabled_from));
	buffer_request = NULL;
	buffer_complete = NULL;
	clock_base = (struct clock){0};
	first_buffer = (struct buffer){0};
	pthread_mutex_unlock(&activity_lock);
	update_sink();
	pthread_mutex_lock(&activity_lock);
	free(done);
	done = NULL;
	done_count = done_room = dropped = 0;
	pthread_mutex_unlock(&activity_lock);
}

/* Filters of records of API calls, of which there are none. */
CUptiResult CUPTIAPI cuptiActivityEnableDriverApi(
        CUpti_CallbackId cbid, uint8_t enable)
{
	return CUPTI_SUCCESS;
}

CUptiResult CUPTIAPI cuptiActivityEnableRuntimeApi(
        CUpti_CallbackId cbid, uint8_t enable)
{
	return CUPTI_SUCCESS;
}

CUptiResult CUPTIAPI cuptiActivityEnableCudaEventDeviceTimestamps(
        uint8_t enable)
{
	return CUPTI_SUCCESS;
}

CUptiResult CUPTIAPI cuptiActivitySetAttribute(
        CUpti_ActivityAttribute attr, size_t *bytes, void *value)
{
	return bytes && value ? CUPTI_SUCCESS : CUPTI_ERROR_INVALID_PARAMETER;
}

CUptiResult CUPTIAPI cuptiActivityRegisterTimestampCallback(
        CUpti_TimestampCallbackFunc timestamp)
{
	struct clock base = {.callback = timestamp};
	bool late;

	if (!timestamp)
		return CUPTI_ERROR_INVALID_PARAMETER;
	pthread_mutex_lock(&activity_lock);
	late = collecting;
	pthread_mutex_unlock(&activity_lock);
	/* Else this is done when collecting begins. */
	if (late && have_driver()) {
		base.virtual_start_ns = virtual_now_ns();
		base.host_start_ns = host_now_ns();
		base.callback_start = timestamp();
	}
	pthread_mutex_lock(&activity_lock);
	clock_base = base;
	pthread_mutex_unlock(&activity_lock);
	return CUPTI_SUCCESS;
}

CUptiResult CUPTIAPI cuptiGetTimestamp(uint64_t *timestamp)
{
	CUpti_TimestampCallbackFunc callback;

	if (!timestamp)
		return CUPTI_ERROR_INVALID_PARAMETER;
	pthread_mutex_lock(&activity_lock);
	callback = clock_base.callback;
	pthread_mutex_unlock(&activity_lock);
	if (callback)
		*timestamp = callback();
	else
		*timestamp = have_driver() ? virtual_now_ns() : 0;
	return CUPTI_SUCCESS;
}

CUptiResult CUPTIAPI cuptiActivityRegisterCallbacks(
        CUpti_BuffersCallbackRequestFunc request,
        CUpti_BuffersCallbackCompleteFunc complete)
{
	if (!request || !complete)
		return CUPTI_ERROR_INVALID_PARAMETER;
	pthread_mutex_lock(&activity_lock);
	buffer_request = request;
	buffer_complete = complete;
	pthread_mutex_unlock(&activity_lock);
	return CUPTI_SUCCESS;
}

/* ----------------------------------------------------------------- records */

static uint64_t stamp(const struct clock *base, double rate, uint64_t ns)
{
	uint64_t since_ns =
	        ns > base->virtual_start_ns ? ns - base->virtual_start_ns : 0;

	if (!base->callback)
		return ns;
	return base->callback_start +
	       (uint64_t)((double)(since_ns + base->late_ns) * rate);
}

static uint8_t copy_kind(uint32_t op_kind)
{
	switch (op_kind) {
	case SG_OP_COPY_H2D:
		return CUPTI_ACTIVITY_MEMCPY_KIND_HTOD;
	case SG_OP_COPY_D2H:
		return CUPTI_ACTIVITY_MEMCPY_KIND_DTOH;
	case SG_OP_COPY_D2D:
		return CUPTI_ACTIVITY_MEMCPY_KIND_DTOD;
	default:
		return CUPTI_ACTIVITY_MEMCPY_KIND_HTOH;
	}
}

static uint8_t memory_kind(bool device, bool managed, bool pageable)
{
	if (managed)
		return CUPTI_ACTIVITY_MEMORY_KIND_MANAGED;
	if (device)
		return CUPTI_ACTIVITY_MEMORY_KIND_DEVICE;
	return pageable ? CUPTI_ACTIVITY_MEMORY_KIND_PAGEABLE
	                : CUPTI_ACTIVITY_MEMORY_KIND_PINNED;
}

static void fill(union record *record, const struct simgpu_activity *op,
        uint64_t start, uint64_t end)
{
	const struct simgpu_details *details = &op->details;
	bool to_device, from_device;

	memset(record, 0, sizeof(*record));
	record->any.kind = kind_of(op);
	switch (record->any.kind) {
	case CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL:
		record->kernel.start = start;
		record->kernel.end = end;
		record->kernel.deviceId = (uint32_t)op->device;
		record->kernel.contextId = (uint32_t)op->context_id;
		record->kernel.streamId = (uint32_t)op->stream_id;
		record->kernel.correlationId = (uint32_t)op->correlation;
		record->kernel.gridX = (int32_t)op->grid[0];
		record->kernel.gridY = (int32_t)op->grid[1];
		record->kernel.gridZ = (int32_t)op->grid[2];
		record->kernel.blockX = (int32_t)op->block[0];
		record->kernel.blockY = (int32_t)op->block[1];
		record->kernel.blockZ = (int32_t)op->block[2];
		record->kernel.registersPerThread = (uint16_t)details->regs;
		record->kernel.staticSharedMemory =
		        (int32_t)details->static_shared_bytes;
		record->kernel.dynamicSharedMemory =
		        (int32_t)details->dynamic_shared_bytes;
		record->kernel.name = op->name ? op->name : "";
		break;
	case CUPTI_ACTIVITY_KIND_MEMCPY:
		to_device = op->kind == SG_OP_COPY_H2D ||
		            op->kind == SG_OP_COPY_D2D;
		from_device = op->kind == SG_OP_COPY_D2H ||
		              op->kind == SG_OP_COPY_D2D;
		record->memcpy.copyKind = copy_kind(op->kind);
		record->memcpy.srcKind = memory_kind(from_device,
		        details->src_managed, details->src_pageable);
		record->memcpy.dstKind = memory_kind(
		        to_device, details->dst_managed, details->dst_pageable);
		if (details->async)
			record->memcpy.flags = CUPTI_ACTIVITY_FLAG_MEMCPY_ASYNC;
		record->memcpy.bytes = op->bytes;
		record->memcpy.start = start;
		record->memcpy.end = end;
		record->memcpy.deviceId = (uint32_t)op->device;
		record->memcpy.contextId = (uint32_t)op->context_id;
		record->memcpy.streamId = (uint32_t)op->stream_id;
		record->memcpy.correlationId = (uint32_t)op->correlation;
		record->memcpy.copyCount = 1;
		break;
	default:
		record->memset.bytes = op->bytes;
		record->memset.start = start;
		record->memset.end = end;
		record->memset.deviceId = (uint32_t)op->device;
		record->memset.contextId = (uint32_t)op->context_id;
		record->memset.streamId = (uint32_t)op->stream_id;
		record->memset.correlationId = (uint32_t)op->correlation;
		record->memset.memoryKind = CUPTI_ACTIVITY_MEMORY_KIND_DEVICE;
		record->memset.value = details->value;
		if (details->async)
			record->memset.flags = CUPTI_ACTIVITY_FLAG_MEMSET_ASYNC;
		break;
	}
}

/* The id an op was given by one kind of tool. */
static void fill_external(union record *record,
        const struct simgpu_activity *op, unsigned int kind)
{
	memset(record, 0, sizeof(*record));
	record->external.kind = CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION;
	record->external.externalKind = (CUpti_ExternalCorrelationKind)kind;
	record->external.externalId = op->external[kind];
	record->external.correlationId = (uint32_t)op->correlation;
}

/* How far the host's clock was ahead of the device's, at the least. */
static uint64_t behind_ns(
        const struct clock *base, const struct done_op *ops, size_t count)
{
	uint64_t least = UINT64_MAX;

	for (size_t i = 0; i < count; i++) {
		uint64_t host_ns = ops[i].host_ns - base->host_start_ns;
		uint64_t device_ns = ops[i].op.end_ns - base->virtual_start_ns;

		if (host_ns < device_ns)
			return 0;
		if (host_ns - device_ns < least)
			least = host_ns - device_ns;
	}
	return count ? least : 0;
}

/* Appends a record; false if the buffer is full. */
static bool append(struct buffer *buffer, const union record *record)
{
	if (buffer->used + RECORD_BYTES > buffer->bytes)
		return false;
	if (buffer->max_records && buffer->records == buffer->max_records)
		return false;
	memset(buffer->data + buffer->used, 0, RECORD_BYTES);
	memcpy(buffer->data + buffer->used, record, sizeof(*record));
	buffer->used += RECORD_BYTES;
	buffer->records++;
	return true;
}

CUptiResult CUPTIAPI cuptiActivityFlushAll(uint32_t flag)
{
	CUpti_BuffersCallbackRequestFunc request;
	CUpti_BuffersCallbackCompleteFunc complete;
	const struct simgpu_activity *op;
	struct done_op *ops;
	struct buffer buffer;
	struct clock base;
	double rate = 1;
	size_t count, i = 0;
	unsigned int part = 0;

	if (have_driver())
		driver_flush();
	pthread_mutex_lock(&activity_lock);
	request = buffer_request;
	complete = buffer_complete;
	base = clock_base;
	buffer = first_buffer;
	first_buffer = (struct buffer){0};
	ops = request ? done : NULL;
	count = request ? done_count : 0;
	if (request) {
		done = NULL;
		done_count = done_room = 0;
	}
	pthread_mutex_unlock(&activity_lock);
	if (!request)
		return CUPTI_ERROR_INVALID_OPERATION;
	if (base.callback && host_now_ns() > base.host_start_ns)
		rate = (double)(base.callback() - base.callback_start) /
		       (double)(host_now_ns() - base.host_start_ns);
	base.late_ns = behind_ns(&base, ops, count);
	while (i < count) {
		union record record;

		op = &ops[i].op;
		if (part == SIMGPU_EXTERNAL_KINDS) {
			part = 0;
			i++;
			continue;
		}
		if (part && !op->external[part]) {
			part++;
			continue;
		}
		if (part)
			fill_external(&record, op, part);
		else
			fill(&record, op, stamp(&base, rate, op->start_ns),
			        stamp(&base, rate, op->end_ns));
		if (buffer.data && append(&buffer, &record)) {
			part++;
			continue;
		}
		if (buffer.data)
			complete(NULL, 0, buffer.data, buffer.bytes,
			        buffer.used);
		buffer = (struct buffer){0};
		request(&buffer.data, &buffer.bytes, &buffer.max_records);
		if (!buffer.data || buffer.bytes < RECORD_BYTES)
			break;
	}
	if (buffer.data)
		complete(NULL, 0, buffer.data, buffer.bytes, buffer.used);
	pthread_mutex_lock(&activity_lock);
	dropped += count - i;
	pthread_mutex_unlock(&activity_lock);
	free(ops);
	return CUPTI_SUCCESS;
}

CUptiResult CUPTIAPI cuptiActivityGetNextRecord(
        uint8_t *buffer, size_t valid_bytes, CUpti_Activity **record)
{
	uint8_t *next;

	if (!buffer || !record)
		return CUPTI_ERROR_INVALID_PARAMETER;
	next = *record ? (uint8_t *)*record + RECORD_BYTES : buffer;
	if (next + RECORD_BYTES > buffer + valid_bytes)
		return CUPTI_ERROR_MAX_LIMIT_REACHED;
	*record = (CUpti_Activity *)next;
	return CUPTI_SUCCESS;
}

CUptiResult CUPTIAPI cuptiActivityGetNumDroppedRecords(
        CUcontext ctx, uint32_t stream, size_t *ret_dropped)
{
	if (!ret_dropped)
		return CUPTI_ERROR_INVALID_PARAMETER;
	pthread_mutex_lock(&activity_lock);
	*ret_dropped = dropped;
	dropped = 0;
	pthread_mutex_unlock(&activity_lock);
	return CUPTI_SUCCESS;
}
