/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "agent/cli/inspection.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "planner/profile_json.h"

/* Shorter gaps are of no use to anyone. */
#define IDLE_MIN_NS 1000000u

static struct ts_row *row_of(struct ts_rows *rows, const char *name)
{
	for (size_t i = 0; i < rows->count; i++)
		if (!strcmp(rows->rows[i].name, name))
			return &rows->rows[i];
	if (rows->count == rows->room) {
		size_t room = 2 * rows->room + 32;
		struct ts_row *more = realloc(rows->rows, room * sizeof(*more));

		if (!more)
			return NULL;
		rows->rows = more;
		rows->room = room;
	}
	memset(&rows->rows[rows->count], 0, sizeof(*rows->rows));
	snprintf(rows->rows[rows->count].name, sizeof(rows->rows[0].name), "%s",
	        name);
	return &rows->rows[rows->count++];
}

static int compare_ns(const void *a, const void *b)
{
	const struct ts_row *left = a, *right = b;

	return (left->ns < right->ns) - (left->ns > right->ns);
}

/* Memory that lies idle for long comes first. */
static int compare_idle(const void *a, const void *b)
{
	const struct ts_row *left = a, *right = b;
	double l = (double)left->bytes * (double)left->ns;
	double r = (double)right->bytes * (double)right->ns;

	return (l < r) - (l > r);
}

/* The agent's names end in geometry and hash, which tell people nothing. */
static void function_name(const char *name, char *ret, size_t bytes)
{
	const char *end = strstr(name, " #");
	size_t length = strlen(name);

	if (end) {
		while (end > name && end[-1] != ' ')
			end--;
		if (end > name)
			length = (size_t)(end - 1 - name);
	}
	if (length >= bytes)
		length = bytes - 1;
	memcpy(ret, name, length);
	ret[length] = '\0';
}

static const struct ts_region *region_of(
        const struct ts_profile *p, uint32_t op, bool *ret_backward)
{
	for (uint32_t i = 0; i < p->n_regions; i++) {
		const struct ts_region *r = &p->regions[i];

		*ret_backward = op >= r->backward_first_op &&
		                op < r->backward_end_op &&
		                r->backward_first_op != TS_NONE;
		if (*ret_backward || (op >= r->first_op && op < r->end_op))
			return r;
	}
	return NULL;
}

static int count_op(struct ts_rows *rows, const char *name, uint64_t ns)
{
	struct ts_row *row = row_of(rows, name);

	if (!row)
		return -ENOMEM;
	row->count++;
	row->ns += ns;
	return 0;
}

static int count_ops(struct ts_inspection *in)
{
	const struct ts_profile *p = in->profile;

	for (uint32_t i = 0; i < p->n_ops; i++) {
		const struct ts_profile_op *op = &p->ops[i];
		const struct ts_signature *sig = &p->signatures[op->signature];
		const struct ts_region *region;
		char name[96];
		bool backward;

		in->busy_ns += op->duration_ns;
		if (count_op(&in->families, ts_op_class_names[sig->op_class],
		            op->duration_ns))
			return -ENOMEM;
		function_name(sig->name, name, sizeof(name));
		if (count_op(&in->kernels, name, op->duration_ns))
			return -ENOMEM;
		region = region_of(p, i, &backward);
		if (region)
			snprintf(name, sizeof(name), "layer type %u %s",
			        region->type,
			        backward ? "backward" : "forward");
		else
			snprintf(name, sizeof(name), "outside layers");
		if (count_op(&in->regions, name, op->duration_ns))
			return -ENOMEM;
	}
	return 0;
}

/* What made the value: "layer.*.gelu", "embedding", "optimizer". */
static void value_name(
        const struct ts_inspection *in, uint32_t value, char *ret, size_t bytes)
{
	const struct ts_profile *p = in->profile;
	const struct ts_value *v = &p->values[value];
	uint32_t writer = in->graph->writer[value];
	char function[80];
	bool backward;

	if (v->kind != TS_KIND_ACTIVATION || v->signature == TS_NONE ||
	        writer == TS_NONE) {
		snprintf(ret, bytes, "%s", ts_value_kind_names[v->kind]);
		return;
	}
	function_name(
	        p->signatures[v->signature].name, function, sizeof(function));
	snprintf(ret, bytes, "%s%s",
	        region_of(p, writer, &backward) ? "layer.*." : "", function);
}

static int count_idle(struct ts_inspection *in)
{
	const struct ts_graph *g = in->graph;
	char name[96];

	for (uint32_t i = 0; i < g->n_gaps; i++) {
		const struct ts_gap *gap = &g->gaps[i];
		struct ts_row *row;

		if (gap->idle_ns < IDLE_MIN_NS)
			continue;
		value_name(in, gap->version, name, sizeof(name));
		row = row_of(&in->idle, name);
		if (!row)
			return -ENOMEM;
		/* The average goes with the bytes. */
		row->ns =
		        (uint64_t)(((double)row->ns * (double)row->bytes +
		                           (double)gap->idle_ns *
		                                   (double)gap->size_bytes) /
		                   (double)(row->bytes + gap->size_bytes + 1));
		row->bytes += gap->size_bytes;
		row->count++;
	}
	return 0;
}

static void read_peak(struct ts_inspection *in)
{
	const json_t *kinds = json_object_get(in->memory, "kinds_at_peak");

	in->peak_bytes = in->graph->peak_bytes;
	in->peak_op = in->graph->peak_op;
	if (kinds) {
		in->peak_bytes = (uint64_t)json_integer_value(
		        json_object_get(in->memory, "peak_bytes"));
		in->peak_op = (uint32_t)json_integer_value(
		        json_object_get(in->memory, "peak_op"));
		for (int i = 0; i < TS_KINDS; i++)
			in->kinds[i] = (uint64_t)json_integer_value(
			        json_object_get(kinds, ts_value_kind_names[i]));
		return;
	}
	for (uint32_t v = 0; v < in->profile->n_values; v++)
		if (ts_graph_alive(in->graph, v, in->peak_op))
			in->kinds[in->profile->values[v].kind] +=
			        in->profile->values[v].size_bytes;
}

int ts_inspection_init(struct ts_inspection *in, const json_t *root,
        const struct ts_graph *graph)
{
	const json_t *step;

	memset(in, 0, sizeof(*in));
	in->profile = graph->profile;
	in->graph = graph;
	in->run = json_object_get(root, "run");
	in->memory = json_object_get(root, "memory");
	if (count_ops(in) || count_idle(in)) {
		ts_inspection_finish(in);
		return -ENOMEM;
	}
	step = json_object_get(in->run, "step_ns");
	in->step_ns = json_is_integer(step) ? (uint64_t)json_integer_value(step)
	                                    : in->busy_ns;
	read_peak(in);
	qsort(in->families.rows, in->families.count, sizeof(struct ts_row),
	        compare_ns);
	qsort(in->kernels.rows, in->kernels.count, sizeof(struct ts_row),
	        compare_ns);
	qsort(in->regions.rows, in->regions.count, sizeof(struct ts_row),
	        compare_ns);
	qsort(in->idle.rows, in->idle.count, sizeof(struct ts_row),
	        compare_idle);
	return 0;
}

void ts_inspection_finish(struct ts_inspection *in)
{
	free(in->families.rows);
	free(in->kernels.rows);
	free(in->regions.rows);
	free(in->idle.rows);
	memset(in, 0, sizeof(*in));
}

uint64_t ts_inspection_live_bytes(const struct ts_inspection *in, uint32_t op)
{
	const json_t *live = json_object_get(in->memory, "live_bytes");

	if (live && op < json_array_size(live))
		return (uint64_t)json_integer_value(json_array_get(live, op));
	return in->graph->mem_bytes[op];
}
