/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "agent/device.h"

#include <errno.h>
#include <string.h>

#include "agent/agent_internal.h"
#include "agent/base/log.h"
#include "agent/planned.h"
#include "runtime/enforce.h"
#include "runtime/wait.h"

/* Times that it is waited for rest before speeds are guessed. */
#define IN_VAIN_MAX 3

/* Driver allocations, in which the framework's blocks lie; @all of them, or
 * those that are not the pager's. */
static uint64_t allocated_bytes(int device, bool all)
{
	struct ts_blocks *blocks = &ts_agent.blocks;
	struct ts_map_node *node;
	uint64_t bytes = 0;

	ts_mutex_lock(&blocks->lock);
	node = ts_map_ceiling(&blocks->allocations, 0);
	while (node) {
		/* The node is the allocation's first member. */
		const struct ts_allocation *allocation = (void *)node;

		if (allocation->whole.device == device &&
		        (all || !allocation->whole.managed))
			bytes += allocation->whole.bytes;
		node = ts_map_ceiling(&blocks->allocations, node->key + 1);
	}
	ts_mutex_unlock(&blocks->lock);
	return bytes;
}

/*
 * Until what was issued on the default stream is done; -EAGAIN where it may be
 * waiting for the program. Only looks: an event there would hold up what comes
 * on other streams, for which a kernel may be waiting.
 */
static int wait_for_ops(void)
{
	struct ts_wait wait = ts_wait_begin(TS_WAIT_NS);
	CUresult rc;

	do {
		rc = ts_agent.ops->stream_query(CU_STREAM_LEGACY);
	} while (rc == CUDA_ERROR_NOT_READY && ts_wait_again(&wait, NULL));
	return rc == CUDA_ERROR_NOT_READY ? -EAGAIN : ts_gpu_errno(rc);
}

/* Within the limit, as every other use of memory. */
static int measure_within(
        struct ts_pager *pager, size_t bytes, struct ts_bandwidth *link)
{
	struct ts_shortage shortage;
	int rc;

	if (pager && ts_pager_make_room(pager, bytes, 0, &shortage))
		return -ENOMEM;
	/* The program's copies, and a plan's, may still be under way. */
	rc = pager ? ts_enforce_wait_idle(pager) : wait_for_ops();
	if (!rc)
		rc = ts_bandwidth_measure(ts_agent.ops, bytes, link);
	if (pager) {
		ts_pager_room_changed(pager);
		ts_planned_lost();
	}
	return rc;
}

/* Small copies tell less than large ones, and more than nothing. */
static int measure_link(int device, struct ts_bandwidth *link)
{
	struct ts_pager *pager = ts_agent_pager(device);
	int rc = -ENOMEM;

	for (size_t bytes = TS_BANDWIDTH_BYTES;
	        rc == -ENOMEM && bytes >= TS_BANDWIDTH_LEAST; bytes /= 4)
		rc = measure_within(pager, bytes, link);
	return rc;
}

/* The device's context is current. */
static void look(int device, struct ts_device_facts *facts)
{
	size_t free_bytes, total_bytes;
	int rc;

	if (ts_agent.ops->device_name(
	            facts->name, sizeof(facts->name), device) != CUDA_SUCCESS)
		strcpy(facts->name, "?");
	if (ts_agent.ops->mem_get_info(&free_bytes, &total_bytes) ==
	        CUDA_SUCCESS) {
		struct ts_pager *pager = ts_agent_pager(device);
		uint64_t used = total_bytes - free_bytes;
		bool all = !pager || ts_enforce_others(pager, &used);
		uint64_t ours = allocated_bytes(device, all);

		/* Of what the pager has placed not all is on the device. */
		facts->bytes = total_bytes;
		facts->outside_bytes = used > ours ? used - ours : 0;
	}
	rc = measure_link(device, &facts->link);
	/* After another step there may be rest. */
	if (rc == -EAGAIN && ++facts->in_vain < IN_VAIN_MAX)
		return;
	facts->in_vain = 0;
	facts->link_measured = !rc;
	if (rc)
		ts_log(TS_LOG_WARN,
		        "profile: the link's speed is not measured (%s), "
		        "guessed",
		        rc == -EAGAIN ? "the device has no rest"
		                      : strerror(-rc));
	facts->known = true;
}

void ts_device_look(int device, struct ts_device_facts *facts)
{
	CUcontext context = NULL;
	CUdevice current = -1;

	if (facts->known || device < 0 || device >= TS_AGENT_DEVICES)
		return;
	ts_agent.ops->ctx_get_device(&current);
	if (current == device) {
		look(device, facts);
		return;
	}
	ts_mutex_lock(&ts_agent.lock);
	context = ts_agent.devices[device].primary;
	ts_mutex_unlock(&ts_agent.lock);
	if (!context || ts_agent.ops->ctx_push(context) != CUDA_SUCCESS)
		return;
	look(device, facts);
	ts_agent.ops->ctx_pop(&context);
}
