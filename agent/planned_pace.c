/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "agent/planned_pace.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* The first starts with nothing under way, then it settles. */
#define STEPS 3
/* Finer than any op; differences stay within 32 bits over two steps. */
#define TICKS_MAX (1u << 30)
/* One copy of the driver's at most; see runtime/hostpool.c. */
#define COPY_BYTES_MAX (64ull << 20)

enum { OUT, IN, WAYS };

/* Of ops and copies out, so many have to be done, counted from the step's. */
struct fence {
	int64_t ops, outs;
};

struct engine {
	bool runs, moves;
	double left;
	uint32_t gap;
	int32_t step;
};

struct pending {
	uint32_t gap;
	int32_t step;
};

struct work {
	const struct ts_graph *g;
	const uint8_t *action, *ends, *copies;
	const uint32_t *need_op;
	const uint64_t *replay_ns;
	uint32_t *rank; /* by gap: of its copy out, or TS_NONE */
	uint32_t *outs; /* gaps with one, in their order */
	uint32_t n_outs;
	struct fence *back;           /* by gap: before its copy in */
	int64_t *born;                /* by op: copies out before it */
	uint32_t *first_need, *needs; /* by op: gaps that end there */
	struct pending *pending;
	uint32_t n_pending;
	int32_t *came; /* by gap: step of the last instance that is back */
	double now;
	struct engine compute, ways[WAYS];
	int64_t ops_done, outs_done;
	/* Of the last but one step's instances. */
	double *op_begin, *op_end, *out_end, *in_begin;
};

static bool comes_back(const struct work *w, uint32_t gap)
{
	return w->action[gap] == TS_SWAP && !w->ends[gap];
}

static void raise(int64_t *to, int64_t least)
{
	if (*to < least)
		*to = least;
}

/* Steps from the one at hand to the last in which op @op comes before @before.
 */
static int64_t steps_to(const struct work *w, uint32_t op, uint32_t before)
{
	return op < before ? (int64_t)((before - 1 - op) / w->g->n_ops) : -1;
}

static void set_fences(
        struct work *w, const struct ts_planned_handover *list, uint32_t n)
{
	int64_t ops = w->g->n_ops, outs = w->n_outs;

	for (uint32_t i = 0; i < w->g->n_gaps; i++) {
		w->back[i].ops = (int64_t)w->g->gaps[i].from_op + 1;
		w->back[i].outs = INT64_MIN;
		if (w->rank[i] != TS_NONE)
			w->back[i].outs = (int64_t)w->rank[i] + 1;
	}
	for (uint32_t i = 0; i < w->g->n_ops; i++)
		w->born[i] = INT64_MIN;
	for (uint32_t i = 0; i < n; i++) {
		const struct ts_planned_handover *h = &list[i];
		bool comes = h->to != TS_NONE && w->action[h->to] == TS_SWAP;
		uint32_t before = h->to == TS_NONE ? h->at : w->need_op[h->to];
		uint32_t op = h->from == TS_NONE ? h->end - 1
		                                 : w->g->gaps[h->from].from_op;
		int64_t steps = steps_to(w, op, before);
		bool copied = h->from != TS_NONE && w->rank[h->from] != TS_NONE;

		if (comes)
			raise(&w->back[h->to].ops, steps * ops + op + 1);
		if (!copied)
			continue;
		raise(comes ? &w->back[h->to].outs
		            : &w->born[before % w->g->n_ops],
		        steps * outs + w->rank[h->from] + 1);
	}
}

static int prepare(
        struct work *w, const struct ts_planned_handover *list, uint32_t n)
{
	const struct ts_graph *g = w->g;
	uint64_t gaps = g->n_gaps + 1ull, ops = g->n_ops + 2ull;

	w->rank = malloc(gaps * sizeof(*w->rank));
	w->outs = malloc(gaps * sizeof(*w->outs));
	w->back = malloc(gaps * sizeof(*w->back));
	w->born = malloc(ops * sizeof(*w->born));
	w->first_need = calloc(ops + 1, sizeof(*w->first_need));
	w->needs = malloc(gaps * sizeof(*w->needs));
	w->pending = malloc(2 * gaps * sizeof(*w->pending));
	w->came = malloc(gaps * sizeof(*w->came));
	w->op_begin = calloc(2 * ops, sizeof(double));
	w->op_end = calloc(2 * ops, sizeof(double));
	w->out_end = calloc(gaps, sizeof(double));
	w->in_begin = calloc(gaps, sizeof(double));
	if (!w->rank || !w->outs || !w->back || !w->born || !w->first_need ||
	        !w->needs || !w->pending || !w->came || !w->op_begin ||
	        !w->op_end || !w->out_end || !w->in_begin)
		return -ENOMEM;
	/* Gaps ascend by the op that they begin after. */
	for (uint32_t i = 0; i < g->n_gaps; i++) {
		w->rank[i] = TS_NONE;
		w->came[i] = -1;
		if (w->action[i] == TS_SWAP && w->copies[i]) {
			w->rank[i] = w->n_outs;
			w->outs[w->n_outs++] = i;
		}
		if (comes_back(w, i))
			w->first_need[w->need_op[i] % g->n_ops + 2]++;
	}
	for (uint32_t i = 2; i < g->n_ops + 2; i++)
		w->first_need[i] += w->first_need[i - 1];
	for (uint32_t i = 0; i < g->n_gaps; i++)
		if (comes_back(w, i))
			w->needs[w->first_need[w->need_op[i] % g->n_ops +
			                       1]++] = i;
	set_fences(w, list, n);
	return 0;
}

static double latency(const struct work *w, uint64_t bytes)
{
	return (double)w->g->profile->device.copy_latency_ns *
	       (double)(bytes / COPY_BYTES_MAX + 1);
}

static bool op_may_start(const struct work *w)
{
	uint32_t op = (uint32_t)(w->ops_done % w->g->n_ops);
	int32_t step = (int32_t)(w->ops_done / w->g->n_ops);

	if (w->born[op] != INT64_MIN &&
	        w->outs_done < w->born[op] + (int64_t)step * w->n_outs)
		return false;
	for (uint32_t k = w->first_need[op]; k < w->first_need[op + 1]; k++) {
		uint32_t gap = w->needs[k];

		if (w->came[gap] < step - (w->need_op[gap] >= w->g->n_ops))
			return false;
	}
	return true;
}

/* The copy in that can run and is wanted first; false: there is none. */
static bool pick(struct work *w)
{
	struct engine *in = &w->ways[IN];
	uint32_t best = TS_NONE;
	int64_t least = INT64_MAX;

	for (uint32_t i = 0; i < w->n_pending; i++) {
		const struct pending *p = &w->pending[i];
		const struct fence *fence = &w->back[p->gap];
		int64_t due =
		        (int64_t)p->step * w->g->n_ops + w->need_op[p->gap];

		if (due < least &&
		        w->ops_done >=
		                fence->ops + (int64_t)p->step * w->g->n_ops &&
		        (fence->outs == INT64_MIN ||
		                w->outs_done >=
		                        fence->outs +
		                                (int64_t)p->step * w->n_outs)) {
			least = due;
			best = i;
		}
	}
	if (best == TS_NONE)
		return false;
	in->gap = w->pending[best].gap;
	in->step = w->pending[best].step;
	w->pending[best] = w->pending[--w->n_pending];
	return true;
}

static void start_what_can(struct work *w)
{
	struct engine *out = &w->ways[OUT], *in = &w->ways[IN];

	if (!out->runs && w->n_outs) {
		uint32_t gap = w->outs[w->outs_done % w->n_outs];
		int64_t step = w->outs_done / w->n_outs;

		if (w->ops_done >
		        step * w->g->n_ops + w->g->gaps[gap].from_op) {
			*out = (struct engine){.runs = true,
			        .gap = gap,
			        .step = (int32_t)step,
			        .left = latency(w, w->g->gaps[gap].size_bytes)};
		}
	}
	if (!in->runs && pick(w)) {
		in->runs = true;
		in->moves = false;
		in->left = latency(w, w->g->gaps[in->gap].size_bytes);
		w->in_begin[in->gap] = w->now;
	}
	if (!w->compute.runs && op_may_start(w)) {
		int64_t op = w->ops_done % w->g->n_ops;

		w->compute.runs = true;
		w->compute.left = (double)(w->replay_ns[op] +
		                           w->g->profile->ops[op].duration_ns);
		w->op_begin[op] = w->now;
	}
}

static double speed_of(const struct work *w, int way)
{
	const struct ts_device *d = &w->g->profile->device;
	bool both = w->ways[OUT].moves && w->ways[IN].moves;

	if (!w->ways[way].moves)
		return 1;
	if (way == OUT)
		return 1e-9 * (double)(both ? d->d2h_both_bytes_per_s
		                            : d->d2h_bytes_per_s);
	return 1e-9 *
	       (double)(both ? d->h2d_both_bytes_per_s : d->h2d_bytes_per_s);
}

static void op_ends(struct work *w)
{
	uint32_t op = (uint32_t)(w->ops_done % w->g->n_ops);
	int32_t step = (int32_t)(w->ops_done / w->g->n_ops);

	w->compute.runs = false;
	w->op_end[op] = w->now;
	w->ops_done++;
	for (uint32_t k = w->g->from_first[op]; k < w->g->from_first[op + 1];
	        k++)
		if (comes_back(w, k))
			w->pending[w->n_pending++] = (struct pending){k, step};
}

static void copy_goes_on(struct work *w, int way)
{
	struct engine *engine = &w->ways[way];

	if (!engine->moves) {
		engine->moves = true;
		engine->left = (double)w->g->gaps[engine->gap].size_bytes;
		return;
	}
	engine->runs = false;
	engine->moves = false;
	if (way == OUT) {
		w->out_end[engine->gap] = w->now;
		w->outs_done++;
	} else {
		w->came[engine->gap] = engine->step;
	}
}

/* To the next end of something; false where nothing runs. */
static bool advance(struct work *w)
{
	double next = w->compute.runs ? w->compute.left : -1, speed[WAYS];

	for (int way = 0; way < WAYS; way++) {
		speed[way] = speed_of(w, way);
		if (w->ways[way].runs &&
		        (next < 0 || w->ways[way].left / speed[way] < next))
			next = w->ways[way].left / speed[way];
	}
	if (next < 0)
		return false;
	w->now += next;
	for (int way = 0; way < WAYS; way++) {
		if (!w->ways[way].runs)
			continue;
		w->ways[way].left -= next * speed[way];
		/* Of a byte it is what rounding left. */
		if (w->ways[way].left <= 1e-3)
			copy_goes_on(w, way);
	}
	if (w->compute.runs) {
		w->compute.left -= next;
		if (w->compute.left <= 0)
			op_ends(w);
	}
	return true;
}

static uint32_t tick_of(const struct ts_planned_run *run, double ns)
{
	double tick = ns * run->n_ticks / (double)run->step_ns;

	return tick > 0 ? (uint32_t)tick : 0;
}

/* First op of the step that begins after @ns. */
static uint32_t op_after(const struct work *w, const double *begin, double ns)
{
	uint32_t low = 0, high = w->g->n_ops;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (begin[middle] <= ns)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static void follow_gap(struct work *w, uint32_t index, double start,
        struct ts_planned_run *run)
{
	const struct ts_gap *gap = &w->g->gaps[index];
	struct ts_planned_gap *to = &run->gaps[index];
	uint32_t n = w->g->n_ops, least;
	double step = (double)run->step_ns;
	double begin = w->op_end[gap->from_op] - start, come;

	to->away = true;
	to->release_op = gap->from_op + 1;
	to->copies = w->rank[index] != TS_NONE;
	to->gone_tick = tick_of(run, begin);
	if (to->copies) {
		double gone = w->out_end[index] - start;

		while (gone < begin)
			gone += step;
		to->gone_tick = tick_of(run, gone);
	}
	/* Nothing comes back, when it would be told to. */
	to->take_op = w->need_op[index];
	to->come_tick = run->n_ticks;
	if (w->action[index] == TS_REPLAY) {
		to->replayed = true;
		to->come_tick = tick_of(run, w->op_begin[to->take_op] - start);
		to->away = to->take_op > to->release_op;
	}
	if (!comes_back(w, index))
		return;
	come = w->in_begin[index] - start;
	while (come >= step)
		come -= step;
	while (come < begin)
		come += step;
	/* Not before the chunks are free, nor after it is used. */
	to->take_op =
	        come < step ? op_after(w, w->op_begin, come + start)
	                    : n + op_after(w, w->op_begin, come - step + start);
	least = (uint32_t)(w->back[index].ops);
	if (to->take_op < least)
		to->take_op = least;
	if (to->take_op > w->need_op[index])
		to->take_op = w->need_op[index];
	to->wraps = to->take_op >= n;
	if (to->wraps) {
		to->take_op -= n;
		if (come < step)
			come = step;
	} else if (come >= step) {
		come = step - 1;
	}
	to->come_tick = tick_of(run, come);
}

static int tell(
        struct work *w, double start, double end, struct ts_planned_run *run)
{
	uint32_t n = w->g->n_ops;

	run->n_ops = n;
	run->step_ns = (uint64_t)(end - start + 0.5);
	run->n_ticks =
	        run->step_ns < TICKS_MAX ? (uint32_t)run->step_ns : TICKS_MAX;
	if (run->n_ticks < n)
		run->n_ticks = n;
	run->begin_tick = malloc((n + 1ull) * sizeof(uint32_t));
	run->end_tick = malloc((n + 1ull) * sizeof(uint32_t));
	run->gaps = calloc(w->g->n_gaps + 1ull, sizeof(*run->gaps));
	if (!run->begin_tick || !run->end_tick || !run->gaps)
		return -ENOMEM;
	for (uint32_t i = 0; i < n; i++) {
		run->begin_tick[i] = tick_of(run, w->op_begin[i] - start);
		run->end_tick[i] = tick_of(run, w->op_end[i] - start);
	}
	for (uint32_t i = 0; i < w->g->n_gaps; i++)
		if (w->action[i] != TS_KEEP) {
			follow_gap(w, i, start, run);
			if (run->gaps[i].copies)
				run->out_bytes += w->g->gaps[i].size_bytes;
		}
	return 0;
}

int ts_planned_pace(
        const struct ts_planned_pace_input *in, struct ts_planned_run *ret_run)
{
	struct work w = {.g = in->graph,
	        .action = in->action,
	        .ends = in->ends,
	        .copies = in->copies,
	        .need_op = in->need_op,
	        .replay_ns = in->replay_ns};
	int64_t last = (int64_t)STEPS * in->graph->n_ops;
	double start = 0;
	int rc;

	memset(ret_run, 0, sizeof(*ret_run));
	rc = prepare(&w, in->handovers, in->n_handovers);
	while (!rc) {
		bool waits = !w.compute.runs;

		start_what_can(&w);
		waits &= w.compute.runs;
		if (waits && w.ops_done == last - in->graph->n_ops)
			start = w.now;
		if (waits && w.ops_done == last)
			break;
		if (!advance(&w))
			rc = -EINVAL;
	}
	w.op_begin[0] = start;
	if (!rc)
		rc = tell(&w, start, w.now, ret_run);
	if (rc)
		ts_planned_run_finish(ret_run);
	free(w.rank);
	free(w.outs);
	free(w.back);
	free(w.born);
	free(w.first_need);
	free(w.needs);
	free(w.pending);
	free(w.came);
	free(w.op_begin);
	free(w.op_end);
	free(w.out_end);
	free(w.in_begin);
	return rc;
}
