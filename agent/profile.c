/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "agent/profile.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

#include "agent/memline.h"
#include "agent/proof.h"
#include "agent/recorder.h"
#include "planner/profile_json.h"

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

static void tell_signatures(json_t *root, const struct ts_recording *step,
        const struct ts_values *values)
{
	json_t *list = json_object_get(root, "signatures");

	for (size_t i = 0; i < values->signature_count; i++) {
		const struct ts_rec_op *op = &step->ops[values->example[i]];
		json_t *item = json_array_get(list, i);
		char hash[24];

		snprintf(hash, sizeof(hash), "%016" PRIx64, values->hashes[i]);
		json_object_set_new(item, "hash", json_string(hash));
		snprintf(hash, sizeof(hash), "%016" PRIx64, op->family);
		json_object_set_new(item, "family", json_string(hash));
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

/* Blocks from before the step that no op of it uses. 0 or -ENOMEM. */
static int tell_idle(json_t *root, const struct ts_recording *step,
        const struct ts_values *values)
{
	uint64_t first = step->first_op, end = first + step->op_count;
	bool *used = calloc(step->block_count + 1, sizeof(*used));
	json_t *list = json_array();

	if (!used || !list) {
		free(used);
		json_decref(list);
		return -ENOMEM;
	}
	for (size_t i = 0; i < step->op_count; i++) {
		const struct ts_rec_op *op = &step->ops[i];

		for (uint32_t k = 0; k < op->use_count; k++)
			used[ts_recording_use(step, op, k)->block] = true;
	}
	for (size_t i = 0; i < step->block_count; i++) {
		const struct ts_rec_block *block = &step->blocks[i];
		json_t *item;

		if (used[i] || block->device != values->device ||
		        block->born > first || block->died <= first ||
		        !block->bytes)
			continue;
		item = json_object();
		set_u64(item, "size_bytes", block->bytes);
		set_address(item, block->address);
		if (block->died <= end)
			set_u64(item, "died", block->died - first);
		json_array_append_new(list, item);
	}
	free(used);
	json_object_set_new(root, "idle", list);
	return 0;
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

static void tell_run(json_t *root, const struct ts_observed *observed,
        const struct ts_observed_device *device,
        const struct ts_profile_context *context)
{
	const struct ts_device_facts *facts = &context->facts[device->device];
	const struct ts_recording *step = &observed->step;
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
	set_u64(run, "device", (uint64_t)device->device);
	set_u64(run, "devices", observed->device_count);
	set_u64(run, "peak_bytes", ts_recorder_peak_bytes(device->device));
	set_known(run, "step_ns", step->duration_ns);
	set_u64(run, "first_op", step->first_op);
	set_u64(run, "first_launch", step->first_launch);
	set_u64(run, "launches", counts[TS_REC_LAUNCH]);
	set_u64(run, "copies", counts[TS_REC_COPY]);
	set_u64(run, "sets", counts[TS_REC_SET]);
	set_u64(run, "graph_launches", counts[TS_REC_GRAPH]);
	set_u64(run, "backward_ops", backward);
	set_u64(run, "update_ops", updating);
	set_u64(run, "own_copies", facts->link.copies);
	json_object_set_new(
	        run, "link_measured", json_boolean(facts->link_measured));
	/* Nothing of it was proved yet: roles and replays are guesses. */
	json_object_set_new(run, "proved", json_false());
	json_object_set_new(root, "run", run);
}

/* A letter for each word of an op's parameters, none where none are kept. */
static void tell_words(json_t *root, const struct ts_observed *observed)
{
	static const char letters[] = {[TS_WORD_VARYING] = 'v',
	        [TS_WORD_CONSTANT] = 'c',
	        [TS_WORD_POINTER] = 'p'};
	json_t *list = json_object_get(root, "ops");

	for (uint32_t i = 0; i < observed->op_count; i++) {
		const uint8_t *classes = ts_observed_classes(observed, i);
		uint32_t count = observed->step.ops[i].word_count;
		char text[TS_WORDS_BYTES_MAX + 1];

		if (!count || count > TS_WORDS_BYTES_MAX)
			continue;
		for (uint32_t k = 0; k < count; k++)
			text[k] = letters[classes[k]];
		json_object_set_new(json_array_get(list, i), "words",
		        json_stringn(text, count));
	}
}

json_t *ts_profile_make(const struct ts_observed *observed, size_t index,
        const struct ts_profile_context *context)
{
	const struct ts_observed_device *device = &observed->devices[index];
	const struct ts_recording *step = &observed->step;
	struct ts_memline line;
	json_t *root;

	if (ts_memline_make(step, device->device, &line))
		return NULL;
	root = ts_profile_to_json(&device->profile);
	if (root) {
		json_object_set_new(
		        root, "tool_version", json_string(TS_VERSION));
		json_object_set_new(
		        root, "pid", json_integer((json_int_t)getpid()));
		tell_signatures(root, step, &device->values);
		tell_lives(root, step, &device->values);
		tell_words(root, observed);
		if (tell_idle(root, step, &device->values)) {
			json_decref(root);
			ts_memline_finish(&line);
			return NULL;
		}
		tell_memory(root, step, &device->values, &line);
		tell_run(root, observed, device, context);
		if (!index)
			ts_proof_tell(observed, root);
	}
	ts_memline_finish(&line);
	return root;
}
