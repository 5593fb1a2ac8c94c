/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Reads device models (models/NAME.json, schemas/device-model.schema.json).
 * Called once when the driver starts, under the lock.
 */
#include "tests/simgpu/driver/sg.h"
#include "tests/simgpu/driver/start.h"

#include <dirent.h>
#include <errno.h>
#include <jansson.h>
#include <limits.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum field_type {
	FIELD_INT,
	FIELD_U64,
	FIELD_DOUBLE,
	FIELD_SHARE, /* a double above 0, at most 1 */
	FIELD_BOOL,
};
struct field {
	const char *name;
	enum field_type type;
	size_t offset;
};
#define FIELD(name, type, member)                                              \
	{                                                                      \
		name, type, offsetof(struct sg_model, member)                  \
	}
static const struct field fields[] = {
        FIELD("compute_major", FIELD_INT, sm_major),
        FIELD("compute_minor", FIELD_INT, sm_minor),
        FIELD("sm_count", FIELD_INT, sm_count),
        FIELD("clock_khz", FIELD_INT, clock_khz),
        FIELD("memory_clock_khz", FIELD_INT, memory_clock_khz),
        FIELD("bus_width_bits", FIELD_INT, bus_width_bits),
        FIELD("l2_bytes", FIELD_INT, l2_bytes),
        FIELD("shared_per_sm_bytes", FIELD_INT, shared_per_sm_bytes),
        FIELD("shared_per_block_optin_bytes", FIELD_INT,
                shared_per_block_optin_bytes),
        FIELD("registers_per_sm", FIELD_INT, regs_per_sm),
        FIELD("threads_per_sm", FIELD_INT, threads_per_sm),
        FIELD("blocks_per_sm", FIELD_INT, blocks_per_sm),
        FIELD("memory_bytes", FIELD_U64, memory_bytes),
        FIELD("context_bytes", FIELD_U64, context_bytes),
        FIELD("gemm_efficiency", FIELD_SHARE, gemm_efficiency),
        FIELD("flash_forward_efficiency", FIELD_SHARE,
                flash_forward_efficiency),
        FIELD("flash_backward_efficiency", FIELD_SHARE,
                flash_backward_efficiency),
        FIELD("memory_bytes_per_s", FIELD_DOUBLE, memory_bytes_per_s),
        FIELD("memory_efficiency", FIELD_SHARE, memory_efficiency),
        FIELD("h2d_bytes_per_s", FIELD_DOUBLE, h2d_bytes_per_s),
        FIELD("d2h_bytes_per_s", FIELD_DOUBLE, d2h_bytes_per_s),
        FIELD("h2d_both_bytes_per_s", FIELD_DOUBLE, h2d_both_bytes_per_s),
        FIELD("d2h_both_bytes_per_s", FIELD_DOUBLE, d2h_both_bytes_per_s),
        FIELD("copy_latency_ns", FIELD_U64, copy_latency_ns),
        FIELD("kernel_latency_ns", FIELD_U64, kernel_latency_ns),
        FIELD("launch_host_ns", FIELD_U64, launch_host_ns),
        FIELD("copy_host_ns", FIELD_U64, copy_host_ns),
        FIELD("event_host_ns", FIELD_U64, event_host_ns),
        FIELD("api_host_ns", FIELD_U64, api_host_ns),
        FIELD("vmm_create_ns", FIELD_U64, vmm_create_ns),
        FIELD("vmm_map_ns", FIELD_U64, vmm_map_ns),
        FIELD("vmm_access_ns", FIELD_U64, vmm_access_ns),
        FIELD("vmm_unmap_ns", FIELD_U64, vmm_unmap_ns),
        FIELD("vmm_release_ns", FIELD_U64, vmm_release_ns),
        FIELD("vmm_reserve_ns", FIELD_U64, vmm_reserve_ns),
        FIELD("malloc_ns", FIELD_U64, malloc_ns),
        FIELD("free_ns", FIELD_U64, free_ns),
        FIELD("host_alloc_ns_per_gib", FIELD_U64, host_alloc_ns_per_gib),
        FIELD("unmap_sync", FIELD_BOOL, unmap_sync),
        FIELD("peer_access", FIELD_BOOL, peer_access),
};
static const char *const dtype_names[SG_DTYPE_COUNT] = {
        [SG_F32] = "f32",
        [SG_TF32] = "tf32",
        [SG_F16] = "f16",
        [SG_BF16] = "bf16",
        [SG_F64] = "f64",
        [SG_I8] = "i8",
        [SG_FP8] = "fp8",
};

static int read_field(
        const struct field *field, const json_t *value, struct sg_model *model)
{
	void *target = (char *)model + field->offset;
	json_int_t whole = json_integer_value(value);
	double number = json_number_value(value);

	switch (field->type) {
	case FIELD_INT:
		if (!json_is_integer(value) || whole < 0 || whole > INT_MAX)
			return -EINVAL;
		*(int *)target = (int)whole;
		return 0;
	case FIELD_U64:
		if (!json_is_integer(value) || whole < 0)
			return -EINVAL;
		*(uint64_t *)target = (uint64_t)whole;
		return 0;
	case FIELD_DOUBLE:
	case FIELD_SHARE:
		if (!json_is_number(value) || !(number > 0) ||
		        (field->type == FIELD_SHARE && number > 1))
			return -EINVAL;
		*(double *)target = number;
		return 0;
	case FIELD_BOOL:
		if (!json_is_boolean(value))
			return -EINVAL;
		*(bool *)target = json_is_true(value);
		return 0;
	}
	return -EINVAL;
}

static int read_text(
        const json_t *root, const char *key, char *target, size_t bytes)
{
	const char *text = json_string_value(json_object_get(root, key));

	if (!text || !*text || strlen(text) >= bytes)
		return -EINVAL;
	strcpy(target, text);
	return 0;
}

/* Returns the key at fault, or NULL. */
static const char *read_root(const json_t *root, struct sg_model *model)
{
	const json_t *flops = json_object_get(root, "flops");

	if (read_text(root, "name", model->name, sizeof(model->name)))
		return "name";
	if (read_text(root, "device_name", model->device_name,
	            sizeof(model->device_name)))
		return "device_name";
	for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); i++) {
		if (read_field(&fields[i],
		            json_object_get(root, fields[i].name), model))
			return fields[i].name;
	}
	for (int t = 0; t < SG_DTYPE_COUNT; t++) {
		const struct field field = {dtype_names[t], FIELD_DOUBLE,
		        offsetof(struct sg_model, flops) + t * sizeof(double)};

		if (read_field(
		            &field, json_object_get(flops, field.name), model))
			return field.name;
	}
	if (!model->sm_count || !model->memory_bytes ||
	        model->context_bytes >= model->memory_bytes)
		return "memory_bytes";
	return NULL;
}

static int is_model(const struct dirent *entry)
{
	const char *dot = strrchr(entry->d_name, '.');

	return dot && !strcmp(dot, ".json");
}

/* Names of the models there are, separated by commas. */
static void list_models(char *ret, size_t bytes)
{
	struct dirent **entries;
	size_t used = 0;
	int n = scandir(SG_MODEL_DIR, &entries, is_model, alphasort);

	*ret = '\0';
	for (int i = 0; i < n; i++) {
		int length = (int)strlen(entries[i]->d_name) - 5;
		int wrote = snprintf(ret + used, bytes - used, "%s%.*s",
		        i ? ", " : "", length, entries[i]->d_name);

		if (wrote > 0 && used + (size_t)wrote < bytes)
			used += (size_t)wrote;
		free(entries[i]);
	}
	if (n >= 0)
		free(entries);
}

int sg_model_read(const char *name, struct sg_model *ret_model)
{
	struct sg_model model = {0};
	char path[PATH_MAX];
	json_error_t error;
	const char *fault;
	json_t *root;

	if (strchr(name, '/'))
		snprintf(path, sizeof(path), "%s", name);
	else
		snprintf(path, sizeof(path), SG_MODEL_DIR "/%s.json", name);
	if (access(path, R_OK) != 0) {
		char names[1024];

		list_models(names, sizeof(names));
		sg_say("SIMGPU_DEVICE=\"%s\": cannot read %s: %s; models: %s",
		        name, path, strerror(errno), names);
		return -ENOENT;
	}
	root = json_load_file(path, JSON_REJECT_DUPLICATES, &error);
	if (!root) {
		sg_say("SIMGPU_DEVICE=\"%s\": %s: line %d: %s", name, path,
		        error.line, error.text);
		return -EINVAL;
	}
	fault = read_root(root, &model);
	json_decref(root);
	if (fault) {
		sg_say("SIMGPU_DEVICE=\"%s\": %s: bad or missing \"%s\"", name,
		        path, fault);
		return -EINVAL;
	}
	*ret_model = model;
	return 0;
}
