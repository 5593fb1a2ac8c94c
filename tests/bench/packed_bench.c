/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What a run makes of a recorded profile: the plan of pages, as planned_make.c
 * makes it, and what it took. packed_bench PROFILE PERCENT...
 */
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "agent/planned_make.h"
#include "planner/profile_json.h"

#define PAGE (UINT64_C(2) << 20)

static double cpu_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (double)t.tv_sec * 1e3 + (double)t.tv_nsec * 1e-6;
}

struct input {
	struct ts_profile profile;
	struct ts_recording step;
	struct ts_values values;
	struct ts_enforce_survey survey;
	uint64_t peak_bytes;
};

static uint64_t number(const json_t *value, const char *key, uint64_t none)
{
	const json_t *at = json_object_get(value, key);

	return at ? (uint64_t)json_integer_value(at) : none;
}

static void add_blocks(struct input *in, const json_t *values)
{
	const struct ts_profile *p = &in->profile;
	uint32_t n = p->n_values;
	struct ts_recording *step = &in->step;

	step->blocks = calloc(n + 1ull, sizeof(*step->blocks));
	in->values.block_of = calloc(n + 1ull, sizeof(uint32_t));
	for (uint32_t v = 0; v < n; v++) {
		const json_t *value = json_array_get(values, v);
		uint32_t block = (uint32_t)number(value, "block", 0);
		struct ts_rec_block *to;

		if (block + 1ull > step->block_count)
			step->block_count = block + 1ull;
		if (block >= n)
			exit(3);
		in->values.block_of[v] = block;
		to = &step->blocks[block];
		if (p->values[v].in_place_of != TS_NONE)
			continue;
		*to = (struct ts_rec_block){.serial = block + 1,
		        .address = p->values[v].address,
		        .bytes = p->values[v].size_bytes,
		        .born = number(value, "born", 0),
		        .died = number(value, "died", TS_NEVER)};
	}
}

static void add_ops(struct input *in)
{
	const struct ts_profile *p = &in->profile;
	struct ts_recording *step = &in->step;

	step->op_count = p->n_ops;
	step->ops = calloc(p->n_ops + 1ull, sizeof(*step->ops));
	step->uses = calloc(p->n_uses + 1ull, sizeof(*step->uses));
	step->first_op = 0;
	for (uint32_t i = 0; i < p->n_ops; i++) {
		const struct ts_profile_op *op = &p->ops[i];

		step->ops[i].first_use = step->use_count;
		step->ops[i].duration_ns = op->duration_ns;
		step->ops[i].use_count = op->n_reads + op->n_writes;
		for (uint32_t k = 0; k < op->n_reads; k++)
			step->uses[step->use_count++].block =
			        in->values
			                .block_of[p->uses[op->first_read + k]];
		for (uint32_t k = 0; k < op->n_writes; k++)
			step->uses[step->use_count++].block =
			        in->values
			                .block_of[p->uses[op->first_write + k]];
	}
}

static int by_address(const void *a, const void *b)
{
	const struct ts_plan_segment *x = a, *y = b;

	return x->base < y->base ? -1 : x->base > y->base;
}

static void add_segments(struct input *in)
{
	struct ts_enforce_survey *s = &in->survey;
	uint32_t n = 0;

	s->page_bytes = PAGE;
	s->segments = calloc(in->step.block_count + 1, sizeof(*s->segments));
	for (size_t i = 0; i < in->step.block_count; i++) {
		const struct ts_rec_block *b = &in->step.blocks[i];
		uint64_t base = b->address / PAGE * PAGE;

		if (!b->bytes)
			continue;
		s->segments[n++] = (struct ts_plan_segment){base,
		        (uint32_t)((b->address + b->bytes - base + PAGE - 1) /
		                   PAGE)};
	}
	qsort(s->segments, n, sizeof(*s->segments), by_address);
	for (uint32_t i = 0; i < n; i++) {
		struct ts_plan_segment *last =
		        s->n_segments ? &s->segments[s->n_segments - 1] : NULL;
		uint64_t end =
		        s->segments[i].base + s->segments[i].pages * PAGE;

		if (last && s->segments[i].base <=
		                    last->base + last->pages * PAGE) {
			if (end > last->base + last->pages * PAGE)
				last->pages =
				        (uint32_t)((end - last->base) / PAGE);
		} else {
			s->segments[s->n_segments++] = s->segments[i];
		}
	}
	s->other_bytes = in->profile.resident_bytes;
}

int main(int argc, char **argv)
{
	struct ts_input_error error;
	struct input in = {0};
	json_t *root;

	if (argc < 3)
		return 2;
	root = json_load_file(argv[1], 0, NULL);
	if (!root || ts_profile_from_json(root, &in.profile, &error))
		return 1;
	in.values.device = 0;
	add_blocks(&in, json_object_get(root, "values"));
	in.peak_bytes =
	        number(json_object_get(root, "memory"), "peak_bytes", 0);
	add_ops(&in);
	add_segments(&in);
	json_decref(root);
	for (int i = 2; i < argc; i++) {
		struct ts_planned_step step = {.step = &in.step,
		        .profile = &in.profile,
		        .values = &in.values,
		        .survey = &in.survey};
		struct ts_planned_plan plan;
		uint64_t least = 0;
		double begun = cpu_ms();
		int rc;

		in.survey.limit_bytes =
		        (in.peak_bytes + in.profile.resident_bytes) / 100 *
		        (uint64_t)atoi(argv[i]);
		rc = ts_planned_make(&step, &plan, &least);
		printf("%s %s %%: ", argv[1], argv[i]);
		if (rc)
			printf("rc %d least %" PRIu64, rc, least >> 20);
		else
			printf("predicted %.1f model %.1f of %.1f ms, chunks "
			       "%u of %" PRIu64 " peak %u, moving %" PRIu64
			       " %%, out %.2f GB",
			        plan.plan.predicted_step_ns * 1e-6,
			        plan.model_ns * 1e-6,
			        plan.plan.unlimited_step_ns * 1e-6,
			        plan.pages.n_chunks, plan.chunks_there,
			        plan.pages.peak_pages,
			        plan.moving_bytes * 100 /
			                (plan.chunks_there * PAGE),
			        plan.plan.swap_bytes * 1e-9);
		printf(", took %.0f ms\n", cpu_ms() - begun);
		fflush(stdout);
		if (!rc)
			ts_planned_plan_finish(&plan);
	}
	return 0;
}
