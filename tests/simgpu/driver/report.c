/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * SIMGPU_REPORT: what the devices did, as JSON
 * (schemas/simgpu-report.schema.json). Written when the process that called
 * cuInit ends. It holds nothing that differs between two identical runs.
 */
#include "tests/simgpu/driver/engine.h"
#include "tests/simgpu/driver/kernels.h"
#include "tests/simgpu/driver/mutate.h"
#include "tests/simgpu/driver/races.h"
#include "tests/simgpu/driver/sg.h"
#include "tests/simgpu/driver/start.h"

#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static json_t *busy_json(const struct sg_device *dev)
{
	return json_pack("{s:I, s:I, s:I}", "compute",
	        (json_int_t)dev->busy_ns[SG_ENGINE_COMPUTE], "d2h",
	        (json_int_t)dev->busy_ns[SG_ENGINE_D2H], "h2d",
	        (json_int_t)dev->busy_ns[SG_ENGINE_H2D]);
}

static json_t *errors_json(const struct sg_device *dev)
{
	json_t *texts = json_array();
	const char *text;

	for (unsigned i = 0; (text = sg_memory_error_text(dev, i)); i++)
		json_array_append_new(texts, json_string(text));
	return texts;
}

static json_t *races_json(const struct sg_device *dev)
{
	json_t *texts = json_array();
	const char *text;

	for (unsigned i = 0; (text = sg_race_text(dev, i)); i++)
		json_array_append_new(texts, json_string(text));
	return texts;
}

static int more_launches(const void *a, const void *b)
{
	const struct sg_unknown *x = *(const struct sg_unknown *const *)a;
	const struct sg_unknown *y = *(const struct sg_unknown *const *)b;

	if (x->launches != y->launches)
		return x->launches < y->launches ? 1 : -1;
	return strcmp(x->mangled, y->mangled);
}

/* Kernels without a row, the most launched first. */
static json_t *unknown_json(const struct sg_device *dev)
{
	const struct sg_unknown **list = NULL;
	json_t *kernels = json_array();
	size_t n = 0;

	for (const struct sg_unknown *u = sg_unknown_first(); u; u = u->next)
		if (u->device == dev->ordinal) {
			list = sg_xrealloc(list, (n + 1) * sizeof(*list));
			list[n++] = u;
		}
	if (n)
		qsort(list, n, sizeof(*list), more_launches);
	for (size_t i = 0; i < n; i++)
		json_array_append_new(kernels,
		        json_pack("{s:s, s:I}", "name", list[i]->name,
		                "launches", (json_int_t)list[i]->launches));
	free(list);
	return kernels;
}

/* When both the host and the devices had finished. */
static uint64_t end_ns(void)
{
	uint64_t host = sg_host_now(), devices = sg_engine_now();

	return host > devices ? host : devices;
}

static json_t *device_json(const struct sg_device *dev)
{
	const struct sg_counters *count = &dev->count;
	const struct {
		const char *key;
		uint64_t value;
	} numbers[] = {
	        {"virtual_ns", end_ns()},
	        {"physical_peak_bytes", dev->physical_peak_bytes},
	        {"context_bytes", dev->model.context_bytes},
	        {"memory_bytes", dev->model.memory_bytes},
	        {"allocated_peak_bytes", dev->allocated_peak_bytes},
	        {"launches", count->launches},
	        {"copies", count->copies},
	        {"locked_copies", count->locked_copies},
	        {"memsets", count->memsets},
	        {"bytes_h2d", count->bytes_h2d},
	        {"bytes_d2h", count->bytes_d2h},
	        {"bytes_d2d", count->bytes_d2d},
	        {"vmm_calls", count->vmm_calls},
	        {"api_calls", count->api_calls},
	        {"memory_errors", count->memory_errors},
	        {"unknown_kernels", count->unknown_kernels},
	        {"unknown_launches", count->unknown_launches},
	        {"event_waits", count->event_waits},
	        {"races", count->races},
	        {"possible_races", count->possible_races},
	};
	json_t *root = json_object();

	json_object_set_new(root, "device", json_string(dev->model.name));
	json_object_set_new(root, "ordinal", json_integer(dev->ordinal));
	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
		json_object_set_new(root, numbers[i].key,
		        json_integer((json_int_t)numbers[i].value));
	json_object_set_new(root, "busy_ns", busy_json(dev));
	json_object_set_new(root, "memory_error_texts", errors_json(dev));
	json_object_set_new(root, "race_texts", races_json(dev));
	json_object_set_new(root, "unknown_kernel_list", unknown_json(dev));
	return root;
}

/* Calls of each exported function. One function may stand in the list more
 * than once. Sorted by name when written. */
static json_t *calls_json(void)
{
	json_t *calls = json_object();

	for (const struct sg_api *api = sg_api_first(); api;
	        api = sg_api_next(api)) {
		json_int_t before =
		        json_integer_value(json_object_get(calls, api->name));

		json_object_set_new(calls, api->name,
		        json_integer(before + (json_int_t)api->calls));
	}
	return calls;
}

static const char *bounds_name(void)
{
	static const char *const names[] = {
	        [SIMGPU_BOUNDS_ALLOCATIONS] = "allocations",
	        [SIMGPU_BOUNDS_PYTORCH] = "pytorch",
	        [SIMGPU_BOUNDS_MISSING] = "missing",
	};

	return names[sg_block_bounds()];
}

static json_t *report_json(void)
{
	json_t *root = json_pack("{s:s, s:s, s:s}", "schema", "simgpu-report",
	        "schema_version", "1.0", "tool_version", SG_VERSION);
	json_t *devices = json_array();

	for (unsigned i = 0; i < sg_device_count; i++)
		json_array_append_new(devices, device_json(&sg_devices[i]));
	json_object_update(root, json_array_get(devices, 0));
	json_object_del(root, "ordinal");
	json_object_set_new(root, "devices", devices);
	json_object_set_new(root, "block_bounds", json_string(bounds_name()));
	json_object_set_new(root, "api_call_counts", calls_json());
	if (sg_mutating())
		json_object_set_new(root, "mutations", sg_mutations_json());
	return root;
}

/* The file's name with every %p replaced by the process id. */
static char *expand(const char *pattern)
{
	size_t length = strlen(pattern), used = 0;
	char *name = sg_xcalloc(length + 1, 12);

	for (const char *p = pattern; *p; p++) {
		if (p[0] == '%' && p[1] == 'p') {
			used += (size_t)sprintf(
			        name + used, "%ld", (long)getpid());
			p++;
		} else {
			name[used++] = *p;
		}
	}
	return name;
}

void sg_report_write(void)
{
	char *name, *temporary;
	size_t bytes;
	json_t *root;

	if (!sg_settings.report || !sg_owns_process())
		return;
	sg_races_judge_touches();
	while (sg_engine_step())
		;
	root = report_json();
	name = expand(sg_settings.report);
	bytes = strlen(name) + 32;
	temporary = sg_xcalloc(1, bytes);
	snprintf(temporary, bytes, "%s.%ld.tmp", name, (long)getpid());
	if (json_dump_file(root, temporary,
	            JSON_INDENT(2) | JSON_SORT_KEYS | JSON_ENSURE_ASCII) ||
	        rename(temporary, name)) {
		sg_say("SIMGPU_REPORT: cannot write %s: %s", name,
		        strerror(errno));
		unlink(temporary);
	}
	json_decref(root);
	free(temporary);
	free(name);
}
