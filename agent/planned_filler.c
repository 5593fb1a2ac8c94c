/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "agent/planned_filler.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* What is to fill the memory beside op @op. */
static uint64_t filling(const struct ts_graph *g, uint64_t low, uint32_t op)
{
	uint64_t need = g->need_bytes[op];

	return g->floor_bytes - (need > low ? need : low);
}

/* Ops may have two slices anew, each with one more. */
static int copy_step(const struct ts_graph *g, struct ts_planned_filler *filler)
{
	const struct ts_profile *from = g->profile;
	struct ts_profile *to = &filler->profile;
	uint64_t values = (uint64_t)from->n_values + from->n_ops + 1;
	uint64_t uses = (uint64_t)from->n_uses + 2ull * from->n_ops + 1;

	for (uint32_t i = 0; i < from->n_ops; i++)
		uses += from->ops[i].n_reads + from->ops[i].n_writes;
	if (values > TS_MAX_VALUES || uses > TS_MAX_USES)
		return -ENOMEM;
	*to = *from;
	to->values = malloc(values * sizeof(*to->values));
	to->ops = malloc((from->n_ops + 1ull) * sizeof(*to->ops));
	to->uses = malloc(uses * sizeof(*to->uses));
	filler->dirties = calloc(uses, 1);
	if (!to->values || !to->ops || !to->uses || !filler->dirties)
		return -ENOMEM;
	memcpy(to->values, from->values, from->n_values * sizeof(*to->values));
	memcpy(to->ops, from->ops, from->n_ops * sizeof(*to->ops));
	memcpy(to->uses, from->uses, from->n_uses * sizeof(*to->uses));
	for (uint32_t i = 0; g->dirties && i < from->n_ops; i++)
		memcpy(filler->dirties + from->ops[i].first_read,
		        g->dirties + from->ops[i].first_read,
		        from->ops[i].n_reads);
	return 0;
}

/* @count uses from @first on once more at the end, and @value. */
static uint32_t add_use(struct ts_planned_filler *filler, uint32_t first,
        uint32_t count, uint32_t value)
{
	struct ts_profile *profile = &filler->profile;
	uint32_t made = profile->n_uses;

	memcpy(profile->uses + made, profile->uses + first,
	        count * sizeof(*profile->uses));
	memcpy(filler->dirties + made, filler->dirties + first, count);
	profile->uses[made + count] = value;
	profile->n_uses = made + count + 1;
	return made;
}

/* There from op @first to before op @end. */
static void fill(struct ts_planned_filler *filler, uint32_t first, uint32_t end,
        uint64_t bytes)
{
	struct ts_profile *profile = &filler->profile;
	struct ts_profile_op *op = &profile->ops[first];
	uint32_t value = profile->n_values++;

	profile->values[value] = (struct ts_value){.size_bytes = bytes,
	        .signature = TS_NONE,
	        .kind = TS_KIND_OTHER,
	        .pinned = true,
	        .no_replay = true,
	        .in_place_of = TS_NONE,
	        .rebuild = TS_NONE};
	op->first_write = add_use(filler, op->first_write, op->n_writes, value);
	op->n_writes++;
	if (end - first < 2)
		return;
	op = &profile->ops[end - 1];
	op->first_read = add_use(filler, op->first_read, op->n_reads, value);
	op->n_reads++;
}

int ts_planned_filler_make(const struct ts_graph *graph, uint64_t low_bytes,
        struct ts_planned_filler *ret_filler)
{
	struct ts_graph_options options = {0};
	uint32_t first = 0;
	int rc;

	memset(ret_filler, 0, sizeof(*ret_filler));
	rc = copy_step(graph, ret_filler);
	for (uint32_t i = 1; !rc && i <= graph->n_ops; i++) {
		uint64_t bytes = filling(graph, low_bytes, first);

		if (i < graph->n_ops && filling(graph, low_bytes, i) == bytes)
			continue;
		if (bytes)
			fill(ret_filler, first, i, bytes);
		first = i;
	}
	options.dirties = ret_filler->dirties;
	if (!rc)
		rc = ts_graph_init(
		        &ret_filler->graph, &ret_filler->profile, &options);
	if (rc)
		ts_planned_filler_finish(ret_filler);
	return rc;
}

void ts_planned_filler_finish(struct ts_planned_filler *filler)
{
	ts_graph_finish(&filler->graph);
	free(filler->profile.values);
	free(filler->profile.ops);
	free(filler->profile.uses);
	free(filler->dirties);
	memset(filler, 0, sizeof(*filler));
}
