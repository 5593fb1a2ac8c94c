/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "agent/cupti_timing.h"

#include <cupti.h>
#include <dlfcn.h>
#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "agent/base/list.h"
#include "agent/base/lock.h"
#include "agent/base/map.h"

#define BUFFER_BYTES (1u << 20)
/* Records are read at addresses that are multiples of this. */
#define BUFFER_ALIGNMENT 8
#define OUR_KIND         CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM2

static const CUpti_ActivityKind kinds[] = {
        /* Ids are recorded with the driver call they were pushed for. */
        CUPTI_ACTIVITY_KIND_DRIVER,
        CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION,
        CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL,
        CUPTI_ACTIVITY_KIND_MEMCPY,
        CUPTI_ACTIVITY_KIND_MEMSET,
};

#define KIND_COUNT (sizeof(kinds) / sizeof(kinds[0]))

/*
 * What records say of one correlation id. They come in any order, and one call
 * may have several of each: an entry stays until the flush after the next.
 */
struct entry {
	struct ts_map_node node;       /* by correlation id */
	uint64_t id, start_ns, end_ns; /* id or end 0: not told yet */
	bool old;                      /* was there at the flush before */
};

static struct {
	/* Constant once started. */
	__typeof__(&cuptiSubscribe) subscribe;
	__typeof__(&cuptiUnsubscribe) unsubscribe;
	__typeof__(&cuptiActivityRegisterCallbacks) register_callbacks;
	__typeof__(&cuptiActivityEnable) enable;
	__typeof__(&cuptiActivityDisable) disable;
	__typeof__(&cuptiActivityFlushAll) flush_all;
	__typeof__(&cuptiActivityGetNextRecord) next_record;
	__typeof__(&cuptiActivityPushExternalCorrelationId) push;
	__typeof__(&cuptiActivityPopExternalCorrelationId) pop;
	CUpti_SubscriberHandle subscriber;
	ts_cupti_told *told;

	atomic_bool on, refused;
	struct ts_mutex lock;
	struct ts_map entries; /* guarded by lock */
} cupti;

static bool load(void)
{
	static const char *const names[] = {
	        "libcupti.so.13", "libcupti.so.12", "libcupti.so"};
	const struct {
		const char *name;
		void *function;
	} wanted[] = {
	        {"cuptiSubscribe", &cupti.subscribe},
	        {"cuptiUnsubscribe", &cupti.unsubscribe},
	        {"cuptiActivityRegisterCallbacks", &cupti.register_callbacks},
	        {"cuptiActivityEnable", &cupti.enable},
	        {"cuptiActivityDisable", &cupti.disable},
	        {"cuptiActivityFlushAll", &cupti.flush_all},
	        {"cuptiActivityGetNextRecord", &cupti.next_record},
	        {"cuptiActivityPushExternalCorrelationId", &cupti.push},
	        {"cuptiActivityPopExternalCorrelationId", &cupti.pop},
	};
	void *library = NULL;

	for (size_t i = 0; !library && i < sizeof(names) / sizeof(*names); i++)
		library = dlopen(names[i], RTLD_NOW);
	if (!library)
		return false;
	for (size_t i = 0; i < sizeof(wanted) / sizeof(wanted[0]); i++) {
		void *found = dlsym(library, wanted[i].name);

		if (!found)
			return false;
		*(void **)wanted[i].function = found;
	}
	return true;
}

static void CUPTIAPI on_request(
        uint8_t **ret_buffer, size_t *ret_bytes, size_t *ret_records)
{
	*ret_buffer = aligned_alloc(BUFFER_ALIGNMENT, BUFFER_BYTES);
	*ret_bytes = *ret_buffer ? BUFFER_BYTES : 0;
	*ret_records = 0;
}

/* Lock held. NULL without memory: the op stays untold. */
static struct entry *entry_of(uint32_t correlation)
{
	struct ts_map_node *node = ts_map_find(&cupti.entries, correlation);
	struct entry *entry;

	if (node)
		return ts_container_of(node, struct entry, node);
	entry = calloc(1, sizeof(*entry));
	if (entry)
		ts_map_insert(&cupti.entries, &entry->node, correlation);
	return entry;
}

static void ran(uint32_t correlation, uint64_t start_ns, uint64_t end_ns)
{
	struct entry *entry;
	uint64_t id = 0;

	ts_mutex_lock(&cupti.lock);
	entry = entry_of(correlation);
	if (entry && entry->end_ns) {
		if (start_ns < entry->start_ns)
			entry->start_ns = start_ns;
		if (end_ns > entry->end_ns)
			entry->end_ns = end_ns;
	} else if (entry) {
		entry->start_ns = start_ns;
		entry->end_ns = end_ns;
	}
	if (entry)
		id = entry->id;
	ts_mutex_unlock(&cupti.lock);
	if (id)
		cupti.told(id, start_ns, end_ns);
}

static void named(uint32_t correlation, uint64_t id)
{
	uint64_t start_ns = 0, end_ns = 0;
	struct entry *entry;

	ts_mutex_lock(&cupti.lock);
	entry = entry_of(correlation);
	if (entry) {
		entry->id = id;
		start_ns = entry->start_ns;
		end_ns = entry->end_ns;
	}
	ts_mutex_unlock(&cupti.lock);
	if (end_ns)
		cupti.told(id, start_ns, end_ns);
}

/* The fields that are read have kept their places since CUDA 11. */
static void read_record(const CUpti_Activity *record)
{
	const CUpti_ActivityExternalCorrelation *external =
	        (const void *)record;
	const CUpti_ActivityKernel10 *kernel = (const void *)record;
	const CUpti_ActivityMemcpy6 *copy = (const void *)record;
	const CUpti_ActivityMemset4 *set = (const void *)record;

	switch (record->kind) {
	case CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION:
		if (external->externalKind == OUR_KIND)
			named(external->correlationId, external->externalId);
		break;
	case CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL:
		ran(kernel->correlationId, kernel->start, kernel->end);
		break;
	case CUPTI_ACTIVITY_KIND_MEMCPY:
		ran(copy->correlationId, copy->start, copy->end);
		break;
	case CUPTI_ACTIVITY_KIND_MEMSET:
		ran(set->correlationId, set->start, set->end);
		break;
	default:
		break;
	}
}

static void CUPTIAPI on_complete(CUcontext context, uint32_t stream,
        uint8_t *buffer, size_t bytes, size_t valid_bytes)
{
	CUpti_Activity *record = NULL;

	(void)context;
	(void)stream;
	(void)bytes;
	while (cupti.next_record(buffer, valid_bytes, &record) == CUPTI_SUCCESS)
		read_record(record);
	free(buffer);
}

static void CUPTIAPI on_callback(void *data, CUpti_CallbackDomain domain,
        CUpti_CallbackId id, const void *arguments)
{
	(void)data;
	(void)domain;
	(void)id;
	(void)arguments;
}

/* Drops what was there at the flush before, or all of it. */
static void forget(bool all)
{
	struct ts_map_node *node;
	uint64_t key = 0;

	ts_mutex_lock(&cupti.lock);
	while ((node = ts_map_ceiling(&cupti.entries, key))) {
		struct entry *entry = ts_container_of(node, struct entry, node);

		key = node->key + 1;
		if (!all && !entry->old) {
			entry->old = true;
			continue;
		}
		ts_map_remove(&cupti.entries, node->key);
		free(entry);
	}
	ts_mutex_unlock(&cupti.lock);
}

int ts_cupti_start(ts_cupti_told *told)
{
	CUptiResult rc;

	/* Profilers that only collect records subscribe to nothing. */
	if (atomic_load(&cupti.refused))
		return -EBUSY;
	if (!load())
		return -ENOENT;
	cupti.told = told;
	ts_mutex_init(&cupti.lock, TS_RANK_CUPTI);
	ts_map_init(&cupti.entries);
	/* No callback is enabled: subscribing says that CUPTI is in use. */
	rc = cupti.subscribe(&cupti.subscriber, on_callback, NULL);
	if (rc != CUPTI_SUCCESS)
		return rc == CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED
		               ? -EBUSY
		               : -EIO;
	if (cupti.register_callbacks(on_request, on_complete) != CUPTI_SUCCESS)
		goto out_unsubscribe;
	for (size_t i = 0; i < KIND_COUNT; i++) {
		if (cupti.enable(kinds[i]) == CUPTI_SUCCESS)
			continue;
		while (i--)
			cupti.disable(kinds[i]);
		goto out_unsubscribe;
	}
	atomic_store(&cupti.on, true);
	return 0;

out_unsubscribe:
	cupti.unsubscribe(cupti.subscriber);
	return -EIO;
}

bool ts_cupti_stop(void)
{
	atomic_store(&cupti.refused, true);
	if (!atomic_exchange(&cupti.on, false))
		return false;
	for (size_t i = 0; i < KIND_COUNT; i++)
		cupti.disable(kinds[i]);
	/* Buffers must come back before somebody else gets the records. */
	cupti.flush_all(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED);
	cupti.unsubscribe(cupti.subscriber);
	forget(true);
	return true;
}

bool ts_cupti_is_on(void)
{
	return atomic_load_explicit(&cupti.on, memory_order_relaxed);
}

void ts_cupti_push(uint64_t id)
{
	cupti.push(OUR_KIND, id);
}

void ts_cupti_pop(void)
{
	uint64_t id;

	cupti.pop(OUR_KIND, &id);
}

void ts_cupti_flush(void)
{
	if (!ts_cupti_is_on())
		return;
	cupti.flush_all(0);
	forget(false);
}
