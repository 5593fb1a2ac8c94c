/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Planning time: the reference workloads, and growth with the tape's length.
 * Process time on one core, medians; beside each figure a fixed calibration
 * loop, so that figures of different machines can be told apart. With
 * --check the exit status says whether the limits hold; with --csv FILE the
 * growth is written for a plot.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#include "planner/plan.h"
#include "planner/workloads.h"

#define RUNS 7

/*
 * Long tapes: layers of activations alone, and a chain whose parameters and
 * optimizer state live on from step to step.
 */
enum shape {
	SHAPE_TRANSFORMER,
	SHAPE_CHAIN,
	SHAPES,
};
static const char *const shape_names[SHAPES] = {"transformer", "chain"};

/* Limits that --check holds the planner to. */
#define PASSES_MS   10.0
#define SEARCH_MS   60.0
#define MILLION_MS  3000.0
#define MILLION_MIB 1024.0
/* No length takes more of n log n than the shortest, with room for noise. */
#define GROWTH_FACTOR 1.5
/* Nor so many times longer than a longer one: no steps down either. */
#define STEP_FACTOR 1.5
/* Lengths up to so many ops are measured several times. */
#define SHORT_OPS 30000

static double cpu_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (double)t.tv_sec * 1e3 + (double)t.tv_nsec * 1e-6;
}

/* 20 million dependent steps: about 20 to 40 ms on machines of today. */
static double calibrate(void)
{
	volatile uint64_t sink;
	uint64_t x = 88172645463325252u;
	double begun = cpu_ms();

	for (int i = 0; i < 20000000; i++) {
		x ^= x << 13;
		x ^= x >> 7;
		x ^= x << 17;
	}
	sink = x;
	(void)sink;
	return cpu_ms() - begun;
}

static int by_value(const void *a, const void *b)
{
	const double *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

static double median_ms(const struct ts_profile *p, uint64_t limit,
        const struct ts_plan_options *options, int runs)
{
	double times[RUNS];

	for (int i = 0; i < runs; i++) {
		struct ts_plan plan;
		double begun = cpu_ms();

		if (ts_plan_make(p, limit, options, &plan, NULL))
			exit(2);
		times[i] = cpu_ms() - begun;
		ts_plan_finish(&plan);
	}
	qsort(times, (size_t)runs, sizeof(times[0]), by_value);
	return times[runs / 2];
}

static uint64_t peak_of(const struct ts_profile *p)
{
	struct ts_graph g;
	uint64_t peak;

	if (ts_graph_init(&g, p, &(struct ts_graph_options){0}))
		exit(2);
	peak = g.peak_bytes;
	ts_graph_finish(&g);
	return peak;
}

static bool bench_workloads(void)
{
	static const char *const names[] = {
	        "bert-large", "gpt2-xl", "llama-7b"};
	bool ok = true;

	printf("%-11s %5s %9s %9s %9s %11s\n", "workload", "limit", "passes ms",
	        "search ms", "pages ms", "calibration");
	for (int i = 0; i < 3; i++) {
		for (int limit = 50; limit >= 20; limit -= 30) {
			struct ts_plan_options options =
			        ts_plan_default_options();
			struct ts_profile p;
			double passes, search, pages;
			uint64_t bytes;

			if (ts_workload(names[i], ts_machine_find("a100"), &p))
				exit(2);
			bytes = peak_of(&p) * (uint64_t)limit / 100;
			options.pages = false;
			search = median_ms(&p, bytes, &options, RUNS);
			options.search_evaluations = 0;
			passes = median_ms(&p, bytes, &options, RUNS);
			options.pages = true;
			pages = median_ms(&p, bytes, &options, RUNS) - passes;
			printf("%-11s %4d%% %9.2f %9.2f %9.2f %8.1f ms\n",
			        names[i], limit, passes, search, pages,
			        calibrate());
			ok &= passes <= PASSES_MS && search <= SEARCH_MS;
			ts_profile_finish(&p);
		}
	}
	return ok;
}

static int make_transformer(uint32_t ops, struct ts_profile *p)
{
	struct ts_transformer shape = *ts_transformer_find("gpt2-xl");

	/* Forward and backward of a layer are 26 ops. */
	shape.layers = ops / 26;
	shape.vocabulary = 1000;
	return ts_workload_transformer(&shape, ts_machine_find("a100"), p);
}

static uint32_t persistent(
        struct ts_profile_builder *b, uint64_t mib, enum ts_value_kind kind)
{
	uint32_t value = ts_builder_value(b, mib << 20, kind);

	if (!b->err)
		b->profile.values[value].persistent = true;
	return value;
}

/* Updates parameter and state of one layer in place. */
static void update(struct ts_profile_builder *b, uint32_t signature,
        uint32_t weight, uint32_t state, uint32_t gradient)
{
	uint32_t old[] = {weight, state, gradient}, new[2];

	for (uint32_t i = 0; i < 2 && !b->err; i++) {
		const struct ts_value *value = &b->profile.values[old[i]];

		new[i] = ts_builder_value(b, value->size_bytes, value->kind);
		if (!b->err)
			b->profile.values[new[i]].in_place_of = old[i];
	}
	ts_builder_op(b, signature, 30000, old, 3, new, 2);
}

static int make_chain(uint32_t ops, struct ts_profile *p)
{
	const struct ts_machine *machine = ts_machine_find("a100");
	uint64_t both =
	        machine->link_bytes_per_s / 100 * machine->link_both_percent;
	struct ts_profile_builder b;
	uint32_t layers = ops / 3, forward, backward, step;
	uint32_t *x = calloc(layers + UINT64_C(1), sizeof(*x));
	uint32_t *w = calloc(layers, sizeof(*w)), gradient;
	uint32_t *m = calloc(layers, sizeof(*m));

	if (!x || !w || !m)
		exit(2);
	ts_builder_init(&b);
	forward = ts_builder_signature(&b, "forward", TS_CLASS_GEMM, true);
	backward = ts_builder_signature(&b, "backward", TS_CLASS_GEMM, true);
	step = ts_builder_signature(&b, "step", TS_CLASS_OPTIMIZER, false);
	x[0] = ts_builder_value(&b, 4 << 20, TS_KIND_INPUT);
	for (uint32_t i = 0; i < layers; i++) {
		w[i] = persistent(&b, 4 + i % 5, TS_KIND_PARAMETER);
		m[i] = persistent(&b, 8 + i % 3, TS_KIND_OPTIMIZER);
	}
	for (uint32_t i = 0; i < layers; i++) {
		uint32_t reads[] = {x[i], w[i]};

		x[i + 1] = ts_builder_value(
		        &b, (4 + i % 7) << 20, TS_KIND_ACTIVATION);
		ts_builder_op(&b, forward, 200000 + i % 11 * 10000, reads, 2,
		        &x[i + 1], 1);
	}
	gradient = x[layers];
	for (uint32_t i = layers; i-- > 0;) {
		uint32_t reads[] = {gradient, x[i], w[i]};

		gradient = ts_builder_value(
		        &b, (4 + i % 7) << 20, TS_KIND_GRADIENT);
		ts_builder_op(&b, backward, 400000 + i % 11 * 20000, reads, 3,
		        &gradient, 1);
	}
	for (uint32_t i = 0; i < layers; i++)
		update(&b, step, w[i], m[i], gradient);
	ts_builder_turn(&b, layers);
	b.profile.device =
	        (struct ts_device){.memory_bytes = machine->memory_bytes,
	                .d2h_bytes_per_s = machine->link_bytes_per_s,
	                .h2d_bytes_per_s = machine->link_bytes_per_s,
	                .d2h_both_bytes_per_s = both,
	                .h2d_both_bytes_per_s = both,
	                .copy_latency_ns = machine->copy_latency_ns};
	free(x);
	free(w);
	free(m);
	return ts_builder_take(&b, p);
}

/* Lengths of tapes, and what planning each took. */
static const uint32_t lengths[] = {
        1000, 3000, 10000, 20000, 50000, 100000, 200000, 500000, 1000000};
#define N_LENGTHS (sizeof(lengths) / sizeof(lengths[0]))

static bool grows_evenly(
        const double ms[N_LENGTHS], const double share[N_LENGTHS])
{
	for (size_t i = 0; i < N_LENGTHS; i++) {
		if (share[i] > GROWTH_FACTOR * share[0])
			return false;
		for (size_t k = i + 1; k < N_LENGTHS; k++) {
			if (ms[i] > STEP_FACTOR * ms[k])
				return false;
		}
	}
	return true;
}

/* One shape at all lengths. False: too slow, or too much memory. */
static bool bench_growth(enum shape shape, FILE *csv)
{
	struct ts_plan_options options = ts_plan_default_options();
	double ms[N_LENGTHS], share[N_LENGTHS];
	struct rusage usage;

	options.search_evaluations = 0;
	options.baselines = false;
	options.pages = false;
	printf("\n%-11s %9s %12s %16s %11s\n", shape_names[shape], "ops",
	        "planning ms", "per n log n", "calibration");
	for (size_t i = 0; i < N_LENGTHS; i++) {
		struct ts_profile p;

		if (shape == SHAPE_CHAIN ? make_chain(lengths[i], &p)
		                         : make_transformer(lengths[i], &p))
			exit(2);
		ms[i] = median_ms(&p, peak_of(&p) / 2, &options,
		        lengths[i] <= SHORT_OPS ? 3 : 1);
		share[i] = ms[i] / (p.n_ops * log2(p.n_ops)) * 1e6;
		printf("%21u %12.2f %16.3f %8.1f ms\n", p.n_ops, ms[i],
		        share[i], calibrate());
		if (csv)
			fprintf(csv, "%s,%u,%.3f,%.6f\n", shape_names[shape],
			        p.n_ops, ms[i], share[i]);
		ts_profile_finish(&p);
	}
	getrusage(RUSAGE_SELF, &usage);
	printf("most memory: %.0f MiB\n", (double)usage.ru_maxrss / 1024);
	return grows_evenly(ms, share) && ms[N_LENGTHS - 1] <= MILLION_MS &&
	       (double)usage.ru_maxrss / 1024 <= MILLION_MIB;
}

int main(int argc, char **argv)
{
	FILE *csv = NULL;
	bool check = false, ok;

	for (int i = 1; i < argc; i++) {
		if (!strcmp(argv[i], "--check"))
			check = true;
		else if (!strcmp(argv[i], "--csv") && i + 1 < argc)
			csv = fopen(argv[++i], "w");
		else
			return 2;
	}
	ok = bench_workloads();
	if (csv)
		fputs("shape,ops,planning_ms,ms_per_n_log_n\n", csv);
	for (int shape = 0; shape < SHAPES; shape++)
		ok &= bench_growth((enum shape)shape, csv);
	if (csv)
		fclose(csv);
	return check && !ok;
}
