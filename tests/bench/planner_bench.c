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

/* Limits that --check holds the planner to. */
#define PASSES_MS   10.0
#define SEARCH_MS   60.0
#define MILLION_MS  3000.0
#define MILLION_MIB 1024.0
/* n log n between the shortest and the longest tape, with room for noise. */
#define GROWTH_FACTOR 2.5

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

static bool bench_growth(const char *csv)
{
	static const unsigned layers[] = {38, 384, 3840, 38461};
	struct ts_plan_options options = ts_plan_default_options();
	FILE *out = csv ? fopen(csv, "w") : NULL;
	double first = 0, ms = 0;
	struct rusage usage;

	if (out)
		fputs("ops,planning_ms,ms_per_n_log_n\n", out);
	options.search_evaluations = 0;
	options.baselines = false;
	options.pages = false;
	printf("\n%9s %12s %16s %11s\n", "ops", "planning ms", "per n log n",
	        "calibration");
	for (int i = 0; i < 4; i++) {
		struct ts_transformer shape = *ts_transformer_find("gpt2-xl");
		struct ts_profile p;
		double share;

		shape.layers = layers[i];
		shape.vocabulary = 1000;
		if (ts_workload_transformer(
		            &shape, ts_machine_find("a100"), &p))
			exit(2);
		ms = median_ms(
		        &p, peak_of(&p) / 5 * 2, &options, i < 3 ? RUNS : 1);
		share = ms / (p.n_ops * log2(p.n_ops)) * 1e6;
		printf("%9u %12.2f %16.3f %8.1f ms\n", p.n_ops, ms, share,
		        calibrate());
		if (out)
			fprintf(out, "%u,%.3f,%.6f\n", p.n_ops, ms, share);
		/* The shortest tape is all start-up; the second counts. */
		if (i == 1)
			first = share;
		if (i == 3 && share > GROWTH_FACTOR * first)
			ms = HUGE_VAL;
		ts_profile_finish(&p);
	}
	if (out)
		fclose(out);
	getrusage(RUSAGE_SELF, &usage);
	printf("most memory: %.0f MiB\n", (double)usage.ru_maxrss / 1024);
	return ms <= MILLION_MS &&
	       (double)usage.ru_maxrss / 1024 <= MILLION_MIB;
}

int main(int argc, char **argv)
{
	const char *csv = NULL;
	bool check = false, ok;

	for (int i = 1; i < argc; i++) {
		if (!strcmp(argv[i], "--check"))
			check = true;
		else if (!strcmp(argv[i], "--csv") && i + 1 < argc)
			csv = argv[++i];
		else
			return 2;
	}
	ok = bench_workloads();
	ok &= bench_growth(csv);
	return check && !ok;
}
