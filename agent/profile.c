/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "agent/profile.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/memline.h"
#include "agent/values.h"
#include "planner/profile.h"
#include "planner/profile_json.h"

/* Where the link was not measured: a slow PCIe 3. Said in the file. */
#define GUESSED_BYTES_PER_S 10000000000ull
#define GUESSED_LATENCY_NS  10000ull

static void set_u64(json_t *object, const char *key, uint64_t value)
{
	json_object_set_new(object, key, json_integer((json_int_t)value));
}

/* Unknown is null, never 0. */
static void set_known(json_t *object, const char *key, uint64_t value)
{
	json_object_set_new(object, key,
	        value == TS_UNKNOWN_NS ? json_null()
	                               : json_integer((json_int_t)value));
}

static void set_address(json_t *object, uint64_t address)
{
	char text[24];

	snprintf(text, sizeof(text), "0x%" PRIx64, address);
	json_object_set_new(object, "address", json_string(text));
}

static json_t *geometry(const uint32_t *dims)
{
	return json_pack("[i, i, i]", (int)dims[0], (int)dims[1], (int)dims[2]);
}

static void tell_signatures(
        json_t *root, const struct ts_recording *step, struct ts_values *values)
{
	json_t *list = json_object_get(root, "signatures");

	for (size_t i = 0; i < values->signature_count; i++) {
		const struct ts_rec_op *op = &step->ops[values->example[i]];
		json_t *item = json_array_get(list, i);
		char hash[24];

		snprintf(hash, sizeof(hash), "%016" PRIx64, values->hashes[i]);
		json_object_set_new(item, "hash", json_string(hash));
		json_object_set_new(
		        item, "function", json_string(values->labels[i]));
		json_object_set_new(item, "grid", geometry(op->grid));
		json_object_set_new(item, "block", geometry(op->block));
	}
}

/* Block lives, by op of the step; null where they reach beyond it. */
static void tell_lives(json_t *root, const struct ts_recording *step,
        const struct ts_values *values)
{
	json_t *list = json_object_get(root, "values");
	uint64_t first = step->first_op, end = first + step->op_count;
	size_t index;
	json_t *item;

	json_array_foreach (list, index, item) {
		uint32_t number = values->block_of[index];
		const struct ts_rec_block *block = &step->blocks[number];

		set_u64(item, "block", number);
		set_address(item, block->address);
		if (block->born >= first)
			set_u64(item, "born", block->born - first);
		if (block->died <= end)
			set_u64(item, "died", block->died - first);
	}
}

static json_t *kinds_at_peak(const struct ts_recording *step,
        const struct ts_values *values, const struct ts_memline *line)
{
	uint64_t bytes[TS_KINDS] = {0};
	json_t *kinds = json_object();

	for (size_t i = 0; i < step->block_count; i++) {
		const struct ts_rec_block *block = &step->blocks[i];

		if (block->reported && block->device == values->device &&
		        ts_memline_at_peak(line, block))
			bytes[values->kind[i]] += block->bytes;
	}
	for (int kind = 0; kind < TS_KINDS; kind++)
		set_u64(kinds, ts_value_kind_names[kind], bytes[kind]);
	return kinds;
}

static void tell_memory(json_t *root, const struct ts_recording *step,
        const struct ts_values *values, const struct ts_memline *line)
{
	json_t *memory = json_object(), *live = json_array();

	for (size_t i = 0; i < step->op_count; i++)
		json_array_append_new(
		        live, json_integer((json_int_t)line->live_bytes[i]));
	set_u64(memory, "peak_bytes", line->peak_bytes);
	set_u64(memory, "peak_op", line->peak_op);
	json_object_set_new(memory, "live_bytes", live);
	json_object_set_new(
	        memory, "kinds_at_peak", kinds_at_peak(step, values, line));
	json_object_set_new(root, "memory", memory);
}

static void tell_run(json_t *root, const struct ts_recording *step,
        const struct ts_profile_context *context)
{
	json_t *run = json_object();
	uint64_t counts[4] = {0}, updating = 0, backward = 0;

	for (size_t i = 0; i < step->op_count; i++) {
		counts[step->ops[i].kind]++;
		updating += step->ops[i].updating;
		backward += step->ops[i].backward;
	}
	set_u64(run, "steps", context->steps);
	set_u64(run, "same_steps", context->same_steps);
	set_u64(run, "timed_steps", context->timed_steps);
	set_u64(run, "shapes", context->shapes);
	set_u64(run, "peak_bytes", context->peak_bytes);
	set_known(run, "step_ns", step->duration_ns);
	set_u64(run, "first_op", step->first_op);
	set_u64(run, "first_launch", step->first_launch);
	set_u64(run, "launches", counts[TS_REC_LAUNCH]);
	set_u64(run, "copies", counts[TS_REC_COPY]);
	set_u64(run, "sets", counts[TS_REC_SET]);
	set_u64(run, "graph_launches", counts[TS_REC_GRAPH]);
	set_u64(run, "backward_ops", backward);
	set_u64(run, "update_ops", updating);
	set_u64(run, "own_copies", context->link.copies);
	json_object_set_new(
	        run, "link_measured", json_boolean(context->link_measured));
	/* Nothing of it was proved yet: roles and replays are guesses. */
	json_object_set_new(run, "proved", json_false());
	json_object_set_new(root, "run", run);
}

static int fill_device(
        struct ts_device *device, const struct ts_profile_context *context)
{
	const struct ts_bandwidth *link = &context->link;

	device->name = strdup(context->device_name);
	device->memory_bytes = context->device_bytes;
	if (context->link_measured) {
		device->d2h_bytes_per_s = link->d2h_bytes_per_s;
		device->h2d_bytes_per_s = link->h2d_bytes_per_s;
		device->d2h_both_bytes_per_s = link->d2h_both_bytes_per_s;
		device->h2d_both_bytes_per_s = link->h2d_both_bytes_per_s;
		device->copy_latency_ns = link->latency_ns;
	} else {
		device->d2h_bytes_per_s = GUESSED_BYTES_PER_S;
		device->h2d_bytes_per_s = GUESSED_BYTES_PER_S;
		device->d2h_both_bytes_per_s = GUESSED_BYTES_PER_S;
		device->h2d_both_bytes_per_s = GUESSED_BYTES_PER_S;
		device->copy_latency_ns = GUESSED_LATENCY_NS;
	}
	return device->name ? 0 : -1;
}

static json_t *to_json(const struct ts_profile *profile,
        const struct ts_recording *step, struct ts_values *values,
        const struct ts_profile_context *context)
{
	struct ts_memline line;
	json_t *root;

	if (ts_memline_make(step, values->device, &line))
		return NULL;
	root = ts_profile_to_json(profile);
	if (root) {
		json_object_set_new(
		        root, "tool_version", json_string(TS_VERSION));
		json_object_set_new(
		        root, "pid", json_integer((json_int_t)getpid()));
		tell_signatures(root, step, values);
		tell_lives(root, step, values);
		tell_memory(root, step, values, &line);
		tell_run(root, step, context);
	}
	ts_memline_finish(&line);
	return root;
}

json_t *ts_profile_make(const struct ts_recording *step,
        const struct ts_profile_context *context)
{
	struct ts_profile_builder builder;
	struct ts_profile profile;
	struct ts_values values;
	json_t *root = NULL;

	ts_builder_init(&builder);
	if (ts_values_build(step, &builder, &values)) {
		ts_builder_finish(&builder);
		return NULL;
	}
	builder.profile.resident_bytes = context->outside_bytes;
	if (!ts_builder_take(&builder, &profile)) {
		if (!fill_device(&profile.device, context))
			root = to_json(&profile, step, &values, context);
		ts_profile_finish(&profile);
	}
	ts_builder_finish(&builder);
	ts_values_finish(&values);
	return root;
}
