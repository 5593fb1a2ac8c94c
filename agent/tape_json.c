/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "agent/tape_json.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/agent_internal.h"
#include "agent/base/list.h"
#include "agent/jsonfile.h"
#include "agent/status.h"

static const char *const kind_names[] = {
        [TS_OP_LAUNCH] = "launch",
        [TS_OP_COPY] = "copy",
        [TS_OP_SET] = "set",
        [TS_OP_GRAPH] = "graph",
};

static const char *const access_names[] = {
        [TS_ACCESS_READ] = "r",
        [TS_ACCESS_WRITE] = "w",
        [TS_ACCESS_READWRITE] = "rw",
};

/* A block's place in the array of blocks. */
struct place {
	struct ts_map_node node; /* by serial */
	size_t index;
};

struct writer {
	const struct ts_tape *tape;
	struct ts_map places;
	json_t *blocks, *functions;
};

json_t *ts_tape_totals(
        const uint64_t *totals, uint64_t captured, uint64_t collectives)
{
	return json_pack("{s:I, s:I, s:I, s:I, s:I, s:I}", "launches",
	        (json_int_t)totals[TS_OP_LAUNCH], "copies",
	        (json_int_t)totals[TS_OP_COPY], "sets",
	        (json_int_t)totals[TS_OP_SET], "graph_launches",
	        (json_int_t)totals[TS_OP_GRAPH], "captured",
	        (json_int_t)captured, "collectives", (json_int_t)collectives);
}

static json_t *hex(uint64_t value)
{
	char text[24];

	snprintf(text, sizeof(text), "0x%" PRIx64, value);
	return json_string(text);
}

static json_int_t block_index(struct writer *writer, const struct ts_use *use)
{
	struct ts_map_node *node = ts_map_find(&writer->places, use->serial);
	struct place *place;
	json_t *block;

	if (node)
		return (json_int_t)ts_container_of(node, struct place, node)
		        ->index;
	place = calloc(1, sizeof(*place));
	if (!place)
		return -1;
	place->index = json_array_size(writer->blocks);
	ts_map_insert(&writer->places, &place->node, use->serial);
	block = json_pack("{s:I, s:i, s:I, s:s}", "serial",
	        (json_int_t)use->serial, "device", use->device, "bytes",
	        (json_int_t)use->bytes, "source",
	        use->reported ? "framework" : "driver");
	json_object_set_new(block, "address", hex(use->address));
	json_array_append_new(writer->blocks, block);
	return (json_int_t)place->index;
}

static json_t *uses_json(struct writer *writer, const struct ts_tape_op *op)
{
	json_t *uses = json_array();

	for (uint32_t i = 0; i < op->use_count; i++) {
		const struct ts_use *use =
		        ts_tape_use(writer->tape, op->first_use + i);

		json_array_append_new(
		        uses, json_pack("[I, s]", block_index(writer, use),
		                      access_names[use->access]));
	}
	return uses;
}

static json_t *triple(const uint32_t *values)
{
	return json_pack("[I, I, I]", (json_int_t)values[0],
	        (json_int_t)values[1], (json_int_t)values[2]);
}

/* Names come once; ops refer to them. */
static size_t function_index(struct writer *writer, const char *name)
{
	size_t count = json_array_size(writer->functions);

	for (size_t i = 0; i < count; i++)
		if (!strcmp(json_string_value(
		                    json_array_get(writer->functions, i)),
		            name))
			return i;
	json_array_append_new(writer->functions, json_string(name));
	return count;
}

static json_t *op_json(struct writer *writer, uint64_t number)
{
	const struct ts_tape_op *op = ts_tape_op(writer->tape, number);
	const char *name = op->func ? op->func->name : op->name;
	json_t *json = json_pack("{s:I, s:s, s:I}", "op", (json_int_t)number,
	        "kind", kind_names[op->kind], "name",
	        (json_int_t)function_index(writer, name ? name : "?"));

	json_object_set_new(json, "stream", hex(op->stream));
	if (op->kind == TS_OP_LAUNCH) {
		json_object_set_new(json, "grid", triple(op->grid));
		json_object_set_new(json, "block", triple(op->block));
	} else if (op->kind != TS_OP_GRAPH) {
		json_object_set_new(
		        json, "bytes", json_integer((json_int_t)op->bytes));
	}
	if (op->captured)
		json_object_set_new(json, "captured", json_true());
	if (op->collective)
		json_object_set_new(json, "collective", json_true());
	if (op->in_bytes)
		json_object_set_new(json, "in_bytes",
		        json_integer((json_int_t)op->in_bytes));
	if (op->out_bytes)
		json_object_set_new(json, "out_bytes",
		        json_integer((json_int_t)op->out_bytes));
	json_object_set_new(json, "uses", uses_json(writer, op));
	return json;
}

static json_t *devices_json(void)
{
	struct ts_pager_stats stats;
	json_t *devices = json_array();

	for (int device = 0; device < TS_AGENT_DEVICES; device++) {
		json_t *json;

		if (!ts_status_device(device, &stats))
			continue;
		json = json_pack("{s:i, s:I, s:I, s:I, s:I}", "device", device,
		        "total_bytes", (json_int_t)stats.total_bytes,
		        "limit_bytes", (json_int_t)stats.limit_bytes,
		        "peak_bytes", (json_int_t)stats.peak_bytes,
		        "page_bytes", (json_int_t)stats.page_bytes);
		json_object_set_new(json, "moved", ts_status_moved(&stats));
		json_array_append_new(devices, json);
	}
	return devices;
}

static void free_places(struct writer *writer)
{
	struct ts_map_node *node;

	while ((node = writer->places.root)) {
		ts_map_remove(&writer->places, node->key);
		free(ts_container_of(node, struct place, node));
	}
}

json_t *ts_tape_json(void)
{
	struct ts_tape *tape = &ts_agent.tape;
	struct writer writer = {.tape = tape,
	        .blocks = json_array(),
	        .functions = json_array()};
	json_t *json = ts_json_head("tape"), *ops = json_array();
	uint64_t first, length, steps, totals[TS_OP_KIND_COUNT];

	ts_map_init(&writer.places);
	json_object_set_new(json, "devices", devices_json());
	for (int kind = 0; kind < TS_OP_KIND_COUNT; kind++)
		totals[kind] = atomic_load(&tape->totals[kind]);
	ts_mutex_lock(&tape->lock);
	steps = ts_step_last(&tape->step, &first, &length);
	if (!steps || first < tape->oldest_op) {
		first = tape->oldest_op;
		length = tape->op_count - first;
	}
	for (uint64_t i = first; i < first + length; i++)
		json_array_append_new(ops, op_json(&writer, i));
	json_object_set_new(json, "totals",
	        ts_tape_totals(totals, atomic_load(&tape->captured),
	                atomic_load(&tape->collectives)));
	json_object_set_new(
	        json, "lost_ops", json_integer((json_int_t)tape->lost));
	ts_mutex_unlock(&tape->lock);
	json_object_set_new(json, "step",
	        json_pack("{s:b, s:I, s:I, s:I}", "found", steps != 0, "steps",
	                (json_int_t)steps, "first_op", (json_int_t)first, "ops",
	                (json_int_t)length));
	json_object_set_new(json, "names", writer.functions);
	json_object_set_new(json, "blocks", writer.blocks);
	json_object_set_new(json, "ops", ops);
	free_places(&writer);
	return json;
}
