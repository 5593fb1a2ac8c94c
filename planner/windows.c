/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* When copies back may start. Called by repair, cover search and baselines. */
#include "planner/cover.h"

#include <errno.h>
#include <stdlib.h>

/* A quarter more than the copy takes, against jitter. */
#define JITTER 1.25
/* Where memory decides as well, a copy may take so much longer than alone. */
#define LEAD 4

static double copy_ns(const struct ts_graph *g, uint64_t bytes, uint64_t rate)
{
	return (double)bytes / (double)rate * 1e9 +
	       (double)g->profile->device.copy_latency_ns;
}

void ts_windows_set(const struct ts_graph *g, struct ts_choice *choice,
        enum ts_window_mode mode)
{
	const struct ts_profile *p = g->profile;
	double free_from = 4.0 * (double)g->start_ns[g->n_ops];
	double total = (double)g->start_ns[g->n_ops];
	uint64_t rate = p->device.h2d_both_bytes_per_s;

	/* Latest deadline first: each copy ends before the next begins. */
	for (uint32_t i = g->n_gaps; i-- > 0;) {
		uint32_t gap = g->by_to[i], low, high, turn = 0;
		const struct ts_gap *info = &g->gaps[gap];
		double end;

		if (choice->action[gap] != TS_SWAP)
			continue;
		while (turn < p->n_turns && p->turns[turn] <= info->from_op)
			turn++;
		if (mode == TS_WINDOWS_NEED) {
			choice->window[gap] = info->to_op;
			continue;
		}
		if (mode == TS_WINDOWS_TURN && turn < p->n_turns &&
		        p->turns[turn] < info->to_op) {
			choice->window[gap] = p->turns[turn];
			continue;
		}
		end = info->to_op >= g->n_ops
		              ? total + (double)g->start_ns[info->to_op -
		                                            g->n_ops]
		              : (double)g->start_ns[info->to_op];
		if (end > free_from)
			end = free_from;
		end -= JITTER * copy_ns(g, info->size_bytes, rate);
		free_from = end;
		low = info->from_op + 1;
		high = info->to_op;
		while (low < high) {
			uint32_t mid = low + (high - low + 1) / 2;
			double begin =
			        mid >= g->n_ops
			                ? total + (double)g->start_ns[mid -
			                                              g->n_ops]
			                : (double)g->start_ns[mid];

			if (begin <= end)
				low = mid;
			else
				high = mid - 1;
		}
		choice->window[gap] = low;
	}
}

/* Last op before @end, after @from, at which @size more does not fit. */
static uint32_t blocked_until(const struct ts_segtree *memory, uint32_t n,
        uint32_t from, uint32_t end, int64_t room)
{
	uint32_t at;

	if (end > n) {
		at = ts_segtree_last_above(memory, end - n, room);
		if (at < n)
			return at + n;
		end = n;
	}
	at = ts_segtree_last_above(memory, end, room);
	return at < n && at > from ? at : from;
}

/* What windows are fitted to. */
struct fit {
	const struct ts_graph *graph;
	const struct ts_program *program;
	struct ts_choice *choice;
	const double *time_ns; /* by op, and the end of the step */
	struct ts_segtree memory;
	int64_t limit;
};

/* Begin of an op that may lie in the next step. */
static double begin_of(const struct fit *f, uint32_t op)
{
	uint32_t n = f->graph->n_ops;

	return op < n ? f->time_ns[op] : f->time_ns[n] + f->time_ns[op - n];
}

/* Latest op in [low, high] that begins at @ns or before; low if none does. */
static uint32_t latest_start(
        const struct fit *f, uint32_t low, uint32_t high, double ns)
{
	while (low < high) {
		uint32_t mid = low + (high - low + 1) / 2;

		if (begin_of(f, mid) <= ns)
			low = mid;
		else
			high = mid - 1;
	}
	return low;
}

/* Adds @size to ops [from, end), which may lie in the next step. */
static void occupy(struct fit *f, uint32_t from, uint32_t end, int64_t size)
{
	uint32_t n = f->graph->n_ops;

	if (from < n)
		ts_segtree_add(&f->memory, from, end < n ? end : n, size);
	if (end > n)
		ts_segtree_add(
		        &f->memory, from > n ? from - n : 0, end - n, size);
}

/* What had not left yet when its gap began was there a while longer. */
static void add_leaving(struct fit *f, const uint32_t *left)
{
	const struct ts_graph *g = f->graph;

	for (uint32_t i = 0; i < g->n_gaps; i++) {
		const struct ts_gap *gap = &g->gaps[i];
		uint32_t until = left[i];

		if (f->choice->action[i] != TS_SWAP || until == TS_NONE)
			continue;
		if (until < gap->from_op)
			until += g->n_ops;
		if (until < f->program->need_op[i])
			occupy(f, gap->from_op + 1, until + 1,
			        (int64_t)gap->size_bytes);
	}
}

/* Swapped gaps in order of the op that needs them: a counting sort. */
static int sort_by_need(const struct ts_program *p,
        const struct ts_choice *choice, uint32_t **ret_gaps, uint32_t *ret_n)
{
	const struct ts_graph *g = p->graph;
	uint32_t *first = calloc(2 * (uint64_t)g->n_ops + 2, sizeof(*first));
	uint32_t *gaps = calloc(g->n_gaps + UINT64_C(1), sizeof(*gaps));
	uint32_t n = 0;

	if (!first || !gaps) {
		free(first);
		free(gaps);
		return -ENOMEM;
	}
	for (uint32_t i = 0; i < g->n_gaps; i++) {
		if (choice->action[i] == TS_SWAP)
			first[p->need_op[i] + 1]++;
	}
	for (uint32_t i = 0; i <= 2 * g->n_ops; i++)
		first[i + 1] += first[i];
	for (uint32_t i = 0; i < g->n_gaps; i++) {
		if (choice->action[i] != TS_SWAP)
			continue;
		gaps[first[p->need_op[i]]++] = i;
		n++;
	}
	free(first);
	*ret_gaps = gaps;
	*ret_n = n;
	return 0;
}

/* By time: each copy ends before the next one begins. */
static void fit_time(struct fit *f, const uint32_t *gaps, uint32_t n)
{
	const struct ts_graph *g = f->graph;
	double free_from = 4.0 * f->time_ns[g->n_ops];
	uint64_t rate = g->profile->device.h2d_both_bytes_per_s;

	for (uint32_t i = n; i-- > 0;) {
		const struct ts_gap *info = &g->gaps[gaps[i]];
		uint32_t need = f->program->need_op[gaps[i]];
		double end = begin_of(f, need);

		if (end > free_from)
			end = free_from;
		free_from = end - LEAD * copy_ns(g, info->size_bytes, rate);
		f->choice->window[gaps[i]] =
		        latest_start(f, info->from_op + 1, need, free_from);
	}
}

/* By memory: what is needed first may come first. */
static void fit_memory(struct fit *f, const uint32_t *gaps, uint32_t n)
{
	const struct ts_graph *g = f->graph;

	for (uint32_t i = 0; i < n; i++) {
		uint32_t gap = gaps[i], need = f->program->need_op[gap], from;
		const struct ts_gap *info = &g->gaps[gap];
		int64_t size = (int64_t)info->size_bytes;

		from = 1 + blocked_until(&f->memory, g->n_ops, info->from_op,
		                   need, f->limit - size);
		if (f->choice->window[gap] < from)
			f->choice->window[gap] = from;
		occupy(f, f->choice->window[gap], need, size);
	}
}

int ts_windows_fit(const struct ts_program *program, struct ts_choice *choice,
        uint64_t limit_bytes, const double *time_ns, const uint32_t *left)
{
	const struct ts_graph *g = program->graph;
	uint64_t *bytes = calloc(g->n_ops + UINT64_C(1), sizeof(*bytes));
	double *ideal_ns = calloc(g->n_ops + UINT64_C(1), sizeof(*ideal_ns));
	struct fit fit = {.graph = g,
	        .program = program,
	        .choice = choice,
	        .time_ns = time_ns ? time_ns : ideal_ns,
	        .limit = (int64_t)limit_bytes};
	uint32_t *gaps = NULL, n;
	int err = bytes && ideal_ns ? 0 : -ENOMEM;

	if (!err)
		err = sort_by_need(program, choice, &gaps, &n);
	if (!err) {
		for (uint32_t i = 0; i <= g->n_ops; i++)
			ideal_ns[i] = (double)g->start_ns[i];
		ts_program_memory(program, choice, bytes);
		err = ts_segtree_init(&fit.memory, bytes, g->n_ops);
	}
	if (!err) {
		if (left)
			add_leaving(&fit, left);
		fit_time(&fit, gaps, n);
		fit_memory(&fit, gaps, n);
	}
	ts_segtree_finish(&fit.memory);
	free(gaps);
	free(ideal_ns);
	free(bytes);
	return err;
}
