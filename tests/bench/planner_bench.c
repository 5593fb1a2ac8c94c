/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Planning time: the reference workloads, and growth with the tape's length.
 * Process time on one core, medians; beside each figure a fixed calibration
 * loop, so that figures of different machines can be told apart. With
 * --check the exit status says whether the limits hold; with --csv FILE the
 * growth is written for a plot.
 */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#include "planner/plan.h"
#include "planner/workloads.h"
#include "tests/unit/planner/long_tape.h"

#define RUNS 7

/* See long_tape.h. */
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

static int make_shape(enum shape shape, uint32_t ops, struct ts_profile *p)
{
	return shape == SHAPE_CHAIN ? ts_long_chain(ops, p)
	                            : ts_long_transformer(ops, p);
}

/* The longest at smaller limits. False: too slow, or too much memory. */
static bool bench_longest(
        enum shape shape, const struct ts_plan_options *options)
{
	static const uint64_t percents[] = {30, 20};
	uint32_t ops = lengths[N_LENGTHS - 1];
	struct rusage usage;
	struct ts_profile p;
	bool ok = true;

	if (make_shape(shape, ops, &p))
		exit(2);
	for (size_t i = 0; i < sizeof(percents) / sizeof(percents[0]); i++) {
		uint64_t bytes = peak_of(&p) / 100 * percents[i];
		double ms = median_ms(&p, bytes, options, 1);

		printf("at %2" PRIu64 " %% %13u %12.2f %16.3f %8.1f ms\n",
		        percents[i], p.n_ops, ms,
		        ms / (p.n_ops * log2(p.n_ops)) * 1e6, calibrate());
		ok &= ms <= MILLION_MS;
	}
	getrusage(RUSAGE_SELF, &usage);
	printf("most memory: %.0f MiB\n", (double)usage.ru_maxrss / 1024);
	ts_profile_finish(&p);
	return ok && (double)usage.ru_maxrss / 1024 <= MILLION_MIB;
}

/* One shape at all lengths. False: too slow, or too much memory. */
static bool bench_growth(enum shape shape, FILE *csv)
{
	struct ts_plan_options options = ts_plan_default_options();
	double ms[N_LENGTHS], share[N_LENGTHS];

	options.search_evaluations = 0;
	options.baselines = false;
	options.pages = false;
	printf("\n%-11s %9s %12s %16s %11s\n", shape_names[shape], "ops",
	        "planning ms", "per n log n", "calibration");
	for (size_t i = 0; i < N_LENGTHS; i++) {
		struct ts_profile p;

		if (make_shape(shape, lengths[i], &p))
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
	return bench_longest(shape, &options) && grows_evenly(ms, share) &&
	       ms[N_LENGTHS - 1] <= MILLION_MS;
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
