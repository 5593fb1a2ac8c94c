/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "agent/planned_run.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "planner/model.h"

/* Finer than any op; differences stay within 32 bits over two steps. */
#define TICKS_MAX (1u << 30)
/* Times of the model are sums of fractions. */
#define ROUNDING 1e-3

struct copy_out {
	uint32_t value;
	double begin, end;
};

/* When things happened last, in ns since the run began; below 0: never. */
struct record {
	double *op_begin, *op_end;
	struct copy_out *outs; /* all, ascending by value, then by begin */
	uint32_t n_outs, outs_room;
	bool short_of_memory;
	double *in_begin;     /* by gap */
	double *replay_begin; /* by gap */
};

struct work {
	const struct ts_graph *graph;
	const struct ts_choice *choice;
	const struct ts_model *model;
	struct record record;
	double start, step; /* of the last step, and its length */
	struct ts_planned_run *run;
};

static void note_out(struct record *record, struct copy_out out)
{
	if (record->n_outs == record->outs_room) {
		uint32_t room = 2 * record->outs_room + 256;
		void *more = realloc(record->outs, room * sizeof(out));

		if (!more) {
			record->short_of_memory = true;
			return;
		}
		record->outs = more;
		record->outs_room = room;
	}
	record->outs[record->n_outs++] = out;
}

static int by_value(const void *a, const void *b)
{
	const struct copy_out *x = a, *y = b;

	if (x->value != y->value)
		return x->value < y->value ? -1 : 1;
	return x->begin < y->begin ? -1 : x->begin > y->begin;
}

static void note(void *data, enum ts_lane lane, uint32_t index, double begin_ns,
        double end_ns)
{
	struct work *work = data;
	struct record *record = &work->record;
	const struct ts_instr *instrs = ts_model_program(work->model)->instrs;
	uint32_t gap;

	switch (lane) {
	case TS_LANE_COMPUTE:
		record->op_begin[instrs[index].op] = begin_ns;
		record->op_end[instrs[index].op] = end_ns;
		break;
	case TS_LANE_D2H:
		note_out(record, (struct copy_out){index, begin_ns, end_ns});
		break;
	case TS_LANE_H2D:
		record->in_begin[index] = begin_ns;
		break;
	case TS_LANE_REPLAY:
		gap = ts_graph_gap_at(
		        work->graph, instrs[index].value, instrs[index].op);
		if (gap != TS_NONE)
			record->replay_begin[gap] = begin_ns;
		break;
	}
}

static double *times(size_t count)
{
	double *made = malloc((count + 1) * sizeof(*made));

	for (size_t i = 0; made && i < count; i++)
		made[i] = -1;
	return made;
}

static int record_init(struct record *record, const struct ts_graph *g)
{
	record->op_begin = times(g->n_ops);
	record->op_end = times(g->n_ops);
	record->in_begin = times(g->n_gaps);
	record->replay_begin = times(g->n_gaps);
	return record->op_begin && record->op_end && record->in_begin &&
	                       record->replay_begin
	               ? 0
	               : -ENOMEM;
}

static void record_finish(struct record *record)
{
	free(record->op_begin);
	free(record->op_end);
	free(record->outs);
	free(record->in_begin);
	free(record->replay_begin);
}

/* @ns after the step's begin, which may lie in the step after. */
static uint32_t tick_of(const struct work *work, double ns)
{
	double tick = ns * work->run->n_ticks / work->step;

	return tick > 0 ? (uint32_t)tick : 0;
}

/* First op that begins after @ns of the step. */
static uint32_t op_after(const struct work *work, double ns)
{
	uint32_t low = 0, high = work->graph->n_ops;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (work->record.op_begin[middle] - work->start <= ns)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/* The first copy out of @value that begins at @ns or later, or NULL. */
static const struct copy_out *out_after(
        const struct record *record, uint32_t value, double ns)
{
	uint32_t low = 0, high = record->n_outs;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;
		const struct copy_out *out = &record->outs[middle];

		if (out->value < value ||
		        (out->value == value && out->begin < ns))
			low = middle + 1;
		else
			high = middle;
	}
	return low < record->n_outs && record->outs[low].value == value
	               ? &record->outs[low]
	               : NULL;
}

/*
 * When the version of @gap is on the host, which it leaves memory at @begin
 * for, and is back at @end at the latest; both since the step's begin. Copies
 * out wait for the gap, and one that did not begin in it was left out; in the
 * step before it may have. @begin where the host has it.
 */
static double copied_at(const struct work *work, const struct ts_gap *gap,
        double begin, double end)
{
	for (int step = 0; step < 2; step++) {
		double from = work->start - step * work->step;
		const struct copy_out *out = out_after(
		        &work->record, gap->version, from + begin - ROUNDING);

		if (out && out->begin < from + end)
			return out->end - from;
	}
	return begin;
}

static void follow_gap(struct work *work, uint32_t index)
{
	const struct ts_graph *g = work->graph;
	const struct ts_gap *gap = &g->gaps[index];
	const struct record *record = &work->record;
	struct ts_planned_gap *to = &work->run->gaps[index];
	double begin = record->op_end[gap->from_op] - work->start;
	double come = record->in_begin[index] - work->start, gone;

	/* Never, or not any more once the step had settled. */
	if (record->in_begin[index] < 0 || come < -work->step)
		return;
	if (come < begin)
		come += work->step;
	gone = copied_at(work, gap, begin, come);
	while (come < gone)
		come += work->step;
	to->wraps = come >= work->step;
	if (to->wraps && gap->to_op < g->n_ops)
		return;
	to->release_op = gap->from_op + 1;
	to->copies = gone > begin;
	to->gone_tick = tick_of(work, gone);
	to->come_tick = tick_of(work, come);
	to->take_op = op_after(work, to->wraps ? come - work->step : come);
	/* It shall be away for an op at least, and not for a step. */
	to->away = to->wraps ? to->take_op < to->release_op
	                     : to->take_op > to->release_op;
}

/* What is made again is gone at once, and needs its memory when it is made. */
static void follow_replay(struct work *work, uint32_t index)
{
	const struct ts_gap *gap = &work->graph->gaps[index];
	const struct record *record = &work->record;
	const struct ts_program *program = ts_model_program(work->model);
	struct ts_planned_gap *to = &work->run->gaps[index];

	if (record->replay_begin[index] < 0)
		return;
	to->replayed = true;
	to->release_op = gap->from_op + 1;
	to->gone_tick =
	        tick_of(work, record->op_end[gap->from_op] - work->start);
	to->take_op = program->need_op[index];
	to->come_tick =
	        tick_of(work, record->replay_begin[index] - work->start);
	to->away = to->take_op > to->release_op;
}

static int follow(struct work *work)
{
	struct ts_planned_run *run = work->run;
	uint32_t n = work->graph->n_ops;

	run->n_ops = n;
	run->n_ticks =
	        work->step < TICKS_MAX ? (uint32_t)work->step : TICKS_MAX;
	if (run->n_ticks < n)
		run->n_ticks = n;
	run->begin_tick = malloc((n + 1ull) * sizeof(uint32_t));
	run->end_tick = malloc((n + 1ull) * sizeof(uint32_t));
	run->gaps = calloc(work->graph->n_gaps + 1ull, sizeof(*run->gaps));
	if (!run->begin_tick || !run->end_tick || !run->gaps)
		return -ENOMEM;
	for (uint32_t i = 0; i < n; i++) {
		run->begin_tick[i] =
		        tick_of(work, work->record.op_begin[i] - work->start);
		run->end_tick[i] =
		        tick_of(work, work->record.op_end[i] - work->start);
	}
	for (uint32_t i = 0; i < work->graph->n_gaps; i++)
		if (work->choice->action[i] == TS_SWAP)
			follow_gap(work, i);
		else if (work->choice->action[i] == TS_REPLAY)
			follow_replay(work, i);
	return 0;
}

int ts_planned_run_make(const struct ts_graph *graph,
        const struct ts_choice *choice, uint64_t limit_bytes,
        struct ts_planned_run *ret_run)
{
	struct ts_model_options late = {.late_copies = true};
	struct work work = {.graph = graph, .choice = choice, .run = ret_run};
	struct ts_outcome outcome;
	struct ts_model *model = NULL;
	int rc = record_init(&work.record, graph);

	memset(ret_run, 0, sizeof(*ret_run));
	if (!rc)
		rc = ts_model_create(graph, limit_bytes, &model);
	if (rc)
		goto out;
	work.model = model;
	ts_model_set_options(model, &late);
	ts_model_set_trace(model, note, &work);
	rc = ts_model_run(model, choice, &outcome, NULL);
	if (!rc && !outcome.fits)
		rc = -EAGAIN;
	if (!rc && work.record.short_of_memory)
		rc = -ENOMEM;
	if (rc)
		goto out;
	if (work.record.n_outs)
		qsort(work.record.outs, work.record.n_outs,
		        sizeof(*work.record.outs), by_value);
	work.start = work.record.op_begin[0];
	work.step = (double)outcome.step_ns;
	ret_run->step_ns = outcome.step_ns;
	ret_run->peak_bytes = outcome.peak_bytes;
	ret_run->out_bytes = outcome.d2h_bytes;
	rc = follow(&work);
out:
	if (rc)
		ts_planned_run_finish(ret_run);
	ts_model_destroy(model);
	record_finish(&work.record);
	return rc;
}

void ts_planned_run_finish(struct ts_planned_run *run)
{
	free(run->begin_tick);
	free(run->end_tick);
	free(run->gaps);
	memset(run, 0, sizeof(*run));
}
