/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "agent/agent.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/agent_internal.h"
#include "agent/base/log.h"
#include "agent/base/units.h"
#include "agent/hostmem.h"
#include "agent/jsonfile.h"
#include "agent/planned.h"
#include "agent/planned_file.h"
#include "agent/profiler.h"
#include "agent/proof.h"
#include "agent/status.h"
#include "agent/virtual.h"
#include "runtime/driver_calls.h"
#include "runtime/vmm_calls.h"

#define UNIT_BYTES (2ull << 20)
/* A copy of so much takes far longer than the calls that map it. */
#define PAGE_BYTES (32ull << 20)

struct ts_agent ts_agent;

/*
 * At the end nobody may be there any more to read that it was in vain. False:
 * what is read is nothing that can be, and CUDA is to be refused for it.
 */
static bool check_files(const struct ts_config *config)
{
	if (*config->status)
		ts_json_check_setting("TAPESWAP_STATUS", config->status);
	if (*config->profile)
		ts_json_check_setting("TAPESWAP_PROFILE", config->profile);
	if (!*config->plan)
		return true;
	if (config->mode == TS_MODE_PLAN && ts_agent_places())
		return !ts_planned_file_begin() || !config->strict;
	ts_json_check_setting("TAPESWAP_PLAN", config->plan);
	return true;
}

static void warn(const char *message)
{
	ts_log(TS_LOG_WARN, "%s", message);
}

/* What was set, for who wonders whether it arrived. */
static void say_settings(void)
{
	const struct ts_setting *table;
	size_t count;

	if (!ts_log_enabled(TS_LOG_DEBUG))
		return;
	ts_log(TS_LOG_DEBUG, "version %s", TS_VERSION);
	table = ts_config_table(&count);
	for (size_t i = 0; i < count; i++) {
		const char *text = getenv(table[i].name);

		if (text && *text)
			ts_log(TS_LOG_DEBUG, "%s=\"%.200s\"", table[i].name,
			        text);
	}
}

enum ts_agent_start_result ts_agent_start(const struct ts_gpu_ops *ops)
{
	struct ts_config *config = &ts_agent.config;
	char message[TS_CONFIG_MESSAGE_BYTES];

	if (ts_config_parse(config, environ, message, warn)) {
		ts_log(TS_LOG_ERROR, "%s: %s",
		        config->strict ? "CUDA refused" : "off", message);
		return config->strict ? TS_AGENT_REFUSED : TS_AGENT_OFF;
	}
	ts_log_set_level(config->log_level);
	say_settings();
	if (config->mode == TS_MODE_OFF)
		return TS_AGENT_OFF;
	if (!check_files(config))
		return TS_AGENT_REFUSED;
	ops = ts_vmm_counted(ops);
	ts_agent.ops = ops;
	ts_agent.pager_ops = ts_driver_counted(ops);
	ts_agent.host_limit_bytes = config->host_limit.unit == TS_LIMIT_BYTES
	                                    ? config->host_limit.value
	                                    : ts_hostmem_default_limit();
	ts_mutex_init(&ts_agent.lock, TS_RANK_AGENT);
	ts_mutex_init(&ts_agent.reading, TS_RANK_STATUS);
	ts_captures_init(&ts_agent.captures);
	ts_graphs_init(&ts_agent.graphs);
	ts_virtual_init();
	ts_tables_init(&ts_agent.tables);
	ts_blocks_init(&ts_agent.blocks);
	ts_code_init(&ts_agent.code);
	ts_funcs_init(&ts_agent.funcs, ops);
	ts_agent.funcs.code = &ts_agent.code;
	if (ts_tape_init(&ts_agent.tape)) {
		ts_log(TS_LOG_ERROR, "off: no host memory for the tape");
		return TS_AGENT_OFF;
	}
	ts_proof_init();
	ts_planned_init();
	ts_profiler_init();
	ts_agent.follows = ts_profiler_is_on() && !ts_agent_places() &&
	                   !*config->plan && config->replay != TS_REPLAY_ALWAYS;
	atomic_store(&ts_agent.started, true);
	return TS_AGENT_ACTIVE;
}

void ts_agent_stop(void)
{
	if (!atomic_load(&ts_agent.started) ||
	        atomic_exchange(&ts_agent.stopped, true))
		return;
	for (int device = 0; device < TS_AGENT_DEVICES; device++)
		if (ts_agent_pager(device))
			ts_pager_quiet(ts_agent_pager(device));
	ts_profiler_stop();
	ts_status_write_all();
	/* Nothing is freed: other threads may still be launching. */
}

uint64_t ts_agent_limit_bytes(uint64_t total_bytes)
{
	const struct ts_limit *limit = &ts_agent.config.limit;
	uint64_t bytes = total_bytes;

	if (ts_agent.config.mode < TS_MODE_CAP)
		return total_bytes;
	if (limit->unit == TS_LIMIT_BYTES)
		bytes = limit->value;
	else if (limit->unit == TS_LIMIT_PERCENT)
		bytes = (uint64_t)((long double)total_bytes * limit->value /
		                   10000);
	return bytes < total_bytes ? bytes : total_bytes;
}

/*
 * Before the first allocation nothing can leave: what is in use then is the
 * context, other programs' and more like them.
 */
static void check_limit(uint64_t limit_bytes, uint64_t used_bytes)
{
	static atomic_flag said = ATOMIC_FLAG_INIT;

	if (limit_bytes > used_bytes || atomic_flag_test_and_set(&said))
		return;
	ts_log(TS_LOG_ERROR,
	        "the limit, %s, leaves no room: %s are in use before the "
	        "first allocation, by the context and what else the device "
	        "holds. Remedy: a higher TAPESWAP_LIMIT",
	        ts_size(limit_bytes).text, ts_size(used_bytes).text);
}

static struct ts_pager *make_pager(int device)
{
	struct ts_agent_device *place = &ts_agent.devices[device];
	struct ts_pager_options options = {.device = device,
	        .host_limit_bytes = ts_agent.host_limit_bytes,
	        .unit_bytes = UNIT_BYTES,
	        .page_bytes = PAGE_BYTES,
	        .unmaps = ts_agent.config.unmaps,
	        .helper_thread = ts_agent.config.helper == TS_HELPER_THREAD};
	struct ts_pager *pager, *other;
	size_t free_bytes, total_bytes;
	uint32_t peers;
	int rc = -EIO;

	if (ts_agent.ops->mem_get_info(&free_bytes, &total_bytes) ==
	        CUDA_SUCCESS) {
		options.limit_bytes = ts_agent_limit_bytes(total_bytes);
		check_limit(options.limit_bytes, total_bytes - free_bytes);
		rc = ts_pager_create(ts_agent.pager_ops, &options, &pager);
		ts_log(TS_LOG_DEBUG,
		        "device %d: limit %s of %s, %s in use before the first "
		        "allocation; host %s",
		        device, ts_size(options.limit_bytes).text,
		        ts_size(total_bytes).text,
		        ts_size(total_bytes - free_bytes).text,
		        ts_size(options.host_limit_bytes).text);
	}
	if (rc) {
		ts_log(TS_LOG_WARN, "device %d: memory left alone: %s", device,
		        strerror(-rc));
		return NULL;
	}
	ts_mutex_lock(&ts_agent.lock);
	peers = place->peers;
	other = atomic_load(&place->pager);
	if (!other)
		atomic_store(&place->pager, pager);
	ts_mutex_unlock(&ts_agent.lock);
	if (!other && peers)
		ts_pager_set_peers(pager, peers);
	/* Another thread was first. */
	if (other)
		ts_pager_destroy(pager, true);
	return other ? other : pager;
}

struct ts_pager *ts_agent_current_pager(int *ret_device)
{
	struct ts_pager *pager;
	CUdevice device = -1;

	*ret_device = -1;
	if (ts_agent.ops->ctx_get_device(&device) != CUDA_SUCCESS ||
	        device < 0 || device >= TS_AGENT_DEVICES)
		return NULL;
	*ret_device = device;
	if (ts_agent.config.mode < TS_MODE_CAP)
		return NULL;
	pager = ts_agent_pager(device);
	if (pager)
		return pager;
	return make_pager(device);
}

unsigned int ts_agent_begin_flags(void)
{
	return atomic_load(&ts_agent.capturing) ? TS_BEGIN_BESIDE_CAPTURE : 0;
}
