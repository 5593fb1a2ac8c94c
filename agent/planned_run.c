/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "agent/planned_run.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "planner/model.h"

/* Finer than any op; differences stay within 32 bits over two steps. */
#define TICKS_MAX (1u << 30)

/* When things happened last, in ns since the run began; below 0: never. */
struct record {
	double *op_begin, *op_end;
	double *out_end;      /* by value */
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
		record->out_end[index] = end_ns;
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
	record->out_end = times(g->profile->n_values);
	record->in_begin = times(g->n_gaps);
	record->replay_begin = times(g->n_gaps);
	return record->op_begin && record->op_end && record->out_end &&
	                       record->in_begin && record->replay_begin
	               ? 0
	               : -ENOMEM;
}

static void record_finish(struct record *record)
{
	free(record->op_begin);
	free(record->op_end);
	free(record->out_end);
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

/*
 * When the version of @gap is on the host, which it leaves memory at @begin
 * for. Copies of gaps before count where they took place: one that had not
 * begun when its value was needed again was left out.
 */
static double copied_at(
        const struct work *work, const struct ts_gap *gap, double begin)
{
	const struct ts_graph *g = work->graph;
	uint32_t writer = g->writer[gap->version];
	double out = work->record.out_end[gap->version] - work->start;
	bool kept = writer == TS_NONE &&
	            g->objects[g->object_of[gap->version]].persistent;
	double born = writer == TS_NONE
	                      ? 0
	                      : work->record.op_begin[writer] - work->start;

	/* The step before left it there. */
	if (work->record.out_end[gap->version] < 0)
		return begin;
	/* The last copy was that of the step before. */
	if (!kept && out < born)
		out += work->step;
	return out > begin ? out : begin;
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
	gone = copied_at(work, gap, begin);
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
	if (rc)
		goto out;
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
