/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "planner/model_internal.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Where one step leans on the one before, they settle after two. */
#define STEPS 3
/* On tapes of more ops two have to do. */
#define MOST_OPS   500000
#define LONG_STEPS 2

static int state_init(struct ts_run_state *s, const struct ts_graph *g)
{
	uint64_t gaps = g->n_gaps + UINT64_C(1);
	uint64_t values = g->profile->n_values + UINT64_C(1);

	s->status = calloc(gaps, 1);
	s->due = calloc(gaps, sizeof(*s->due));
	s->opened = calloc(gaps, 1);
	s->host = calloc(values, 1);
	s->queued = calloc(values, 1);
	s->gap_of = calloc(values, sizeof(*s->gap_of));
	s->queue = calloc(gaps, sizeof(*s->queue));
	s->heap.items = calloc(gaps, sizeof(*s->heap.items));
	s->heap.place_of = calloc(gaps, sizeof(*s->heap.place_of));
	s->spare.items = calloc(gaps, sizeof(*s->spare.items));
	s->spare.place_of = calloc(gaps, sizeof(*s->spare.place_of));
	s->spare.flip = UINT64_MAX;
	if (!s->status || !s->due || !s->opened || !s->host || !s->queued ||
	        !s->gap_of || !s->queue || !s->heap.items ||
	        !s->heap.place_of || !s->spare.items || !s->spare.place_of)
		return -ENOMEM;
	return 0;
}

static void state_finish(struct ts_run_state *s)
{
	free(s->status);
	free(s->due);
	free(s->opened);
	free(s->host);
	free(s->queued);
	free(s->gap_of);
	free(s->queue);
	free(s->heap.items);
	free(s->heap.place_of);
	free(s->spare.items);
	free(s->spare.place_of);
}

static struct ts_due_heap heap_copy(const struct ts_due_heap *to,
        const struct ts_due_heap *from, uint64_t gaps)
{
	memcpy(to->items, from->items, from->n * sizeof(*to->items));
	memcpy(to->place_of, from->place_of, gaps * sizeof(*to->place_of));
	return (struct ts_due_heap){
	        to->items, from->n, from->flip, to->place_of};
}

static void state_copy(struct ts_run_state *to, const struct ts_run_state *from,
        const struct ts_graph *g)
{
	struct ts_run_state arrays = *to;
	uint64_t gaps = g->n_gaps, values = g->profile->n_values;

	*to = *from;
	to->status = memcpy(arrays.status, from->status, gaps);
	to->due = memcpy(arrays.due, from->due, gaps * 4);
	to->opened = memcpy(arrays.opened, from->opened, gaps);
	to->host = memcpy(arrays.host, from->host, values);
	to->queued = memcpy(arrays.queued, from->queued, values);
	to->gap_of = memcpy(arrays.gap_of, from->gap_of, values * 4);
	to->queue = memcpy(arrays.queue, from->queue, (gaps + 1) * 4);
	to->heap = heap_copy(&arrays.heap, &from->heap, gaps);
	to->spare = heap_copy(&arrays.spare, &from->spare, gaps);
}

/* What runs look up of every value, in one place. */
static void index_values(struct ts_model *m)
{
	const struct ts_graph *g = m->graph;

	for (uint32_t v = 0; v < g->profile->n_values; v++) {
		const struct ts_object *object = &g->objects[g->object_of[v]];

		m->older[v] = g->profile->values[v].in_place_of;
		if (g->writer[v] != TS_NONE || object->persistent ||
		        object->last_op == TS_NONE)
			continue;
		m->input_bytes += object->size_bytes;
		m->inputs[m->n_inputs++] = v;
	}
}

int ts_model_create(const struct ts_graph *graph, uint64_t limit_bytes,
        struct ts_model **ret_model)
{
	struct ts_model *m = calloc(1, sizeof(*m));
	uint64_t gaps = graph->n_gaps + UINT64_C(1);
	uint64_t ops = graph->n_ops + UINT64_C(1);
	uint64_t values = graph->profile->n_values + UINT64_C(1);

	if (!m)
		return -ENOMEM;
	m->graph = graph;
	m->limit = limit_bytes;
	m->most_ns = HUGE_VAL;
	m->inputs = calloc(values, sizeof(*m->inputs));
	m->older = calloc(values, sizeof(*m->older));
	m->copy_head = calloc(ops, sizeof(*m->copy_head));
	m->window_head = calloc(ops, sizeof(*m->window_head));
	m->copy_next = calloc(gaps, sizeof(*m->copy_next));
	m->window_next = calloc(gaps, sizeof(*m->window_next));
	m->op_ns = calloc(ops + 1, sizeof(*m->op_ns));
	m->left = calloc(gaps, sizeof(*m->left));
	m->back_op = calloc(gaps, sizeof(*m->back_op));
	m->left_before = calloc(gaps, sizeof(*m->left_before));
	m->spare_next = calloc(gaps, sizeof(*m->spare_next));
	m->anchor_need = calloc(gaps, sizeof(*m->anchor_need));
	m->anchor_copy = calloc(gaps, sizeof(*m->anchor_copy));
	if (!m->inputs || !m->older || !m->copy_head || !m->window_head ||
	        !m->copy_next || !m->window_next || !m->anchor_need ||
	        !m->left || !m->back_op || !m->left_before || !m->spare_next ||
	        !m->anchor_copy || !m->op_ns || state_init(&m->state, graph) ||
	        ts_choice_init(&m->anchor, graph->n_gaps) ||
	        ts_program_init(&m->program, graph)) {
		ts_model_destroy(m);
		return -ENOMEM;
	}
	index_values(m);
	*ret_model = m;
	return 0;
}

void ts_model_destroy(struct ts_model *m)
{
	if (!m)
		return;
	for (uint32_t i = 0; i < TS_SNAPSHOTS; i++)
		state_finish(&m->snapshots[i]);
	state_finish(&m->state);
	ts_choice_finish(&m->anchor);
	ts_program_finish(&m->program);
	free(m->anchor_instrs);
	free(m->op_ns);
	free(m->left);
	free(m->back_op);
	free(m->left_before);
	free(m->spare_next);
	free(m->anchor_need);
	free(m->anchor_copy);
	free(m->inputs);
	free(m->older);
	free(m->ahead);
	free(m->after_ns);
	free(m->copy_head);
	free(m->copy_next);
	free(m->window_head);
	free(m->window_next);
	free(m);
}

void ts_model_set_limit(struct ts_model *m, uint64_t limit_bytes)
{
	m->limit = limit_bytes;
	m->anchored = false;
}

void ts_model_set_options(
        struct ts_model *m, const struct ts_model_options *options)
{
	m->options = *options;
	m->anchored = false;
}

void ts_model_set_trace(struct ts_model *m, ts_trace_fn fn, void *data)
{
	m->trace = fn;
	m->trace_data = data;
}

uint64_t ts_model_runs(const struct ts_model *m)
{
	return m->runs;
}

uint64_t ts_model_instrs(const struct ts_model *m)
{
	return m->instrs;
}

const uint32_t *ts_model_left(const struct ts_model *m)
{
	return m->left;
}

const uint32_t *ts_model_back(const struct ts_model *m)
{
	return m->back_op;
}

const double *ts_model_op_times(const struct ts_model *m)
{
	return m->op_ns;
}

const struct ts_program *ts_model_program(const struct ts_model *m)
{
	return &m->program;
}

static int prepare(struct ts_model *m, const struct ts_choice *choice)
{
	const struct ts_graph *g = m->graph;
	struct ts_program *p = &m->program;
	int err = ts_program_compile(p, choice);
	double after_ns = 0;

	if (err)
		return err;
	m->choice = choice;
	memset(m->left, 0xff, g->n_gaps * sizeof(*m->left));
	memset(m->back_op, 0xff, g->n_gaps * sizeof(*m->back_op));
	memset(m->left_before, 0xff, g->n_gaps * sizeof(*m->left_before));
	if (p->n_instrs > m->ahead_room) {
		free(m->ahead);
		free(m->after_ns);
		m->ahead_room = 0;
		m->ahead = calloc(p->instrs_room, sizeof(*m->ahead));
		m->after_ns = calloc(p->instrs_room, sizeof(*m->after_ns));
		if (!m->ahead || !m->after_ns)
			return -ENOMEM;
		m->ahead_room = p->instrs_room;
	}
	for (uint32_t k = p->n_instrs; k-- > 0;) {
		after_ns += (double)p->instrs[k].duration_ns;
		m->after_ns[k] = after_ns;
	}
	for (uint32_t k = 0; k < p->n_instrs; k++) {
		int64_t sum = 0, most = 0;

		for (uint32_t j = k; j < p->n_instrs && j < k + TS_LOOK_AHEAD;
		        j++) {
			sum += (int64_t)p->instrs[j].alloc_bytes;
			if (sum > most)
				most = sum;
			sum -= (int64_t)p->instrs[j].free_bytes;
		}
		m->ahead[k] = (uint64_t)most;
	}
	memset(m->copy_head, 0xff, g->n_ops * sizeof(*m->copy_head));
	memset(m->window_head, 0xff, g->n_ops * sizeof(*m->window_head));
	for (uint32_t gap = g->n_gaps; gap-- > 0;) {
		uint32_t op = p->copy_op[gap], window;

		if (choice->action[gap] != TS_SWAP)
			continue;
		if (op != TS_NONE && !m->options.late_copies &&
		        !m->options.lazy_copies) {
			m->copy_next[gap] = m->copy_head[op];
			m->copy_head[op] = gap;
		}
		window = choice->window[gap];
		if (window <= g->gaps[gap].from_op)
			window = g->gaps[gap].from_op + 1;
		if (window >= p->need_op[gap])
			window = p->need_op[gap];
		window %= g->n_ops;
		m->window_next[gap] = m->window_head[window];
		m->window_head[window] = gap;
	}
	return 0;
}

static void start_state(struct ts_model *m)
{
	const struct ts_graph *g = m->graph;
	const struct ts_device *device = &g->profile->device;
	struct ts_run_state *s = &m->state, arrays = *s;

	memset(s, 0, offsetof(struct ts_run_state, status));
	s->heap.n = s->spare.n = s->spare_changes = 0;
	s->spare_sorted = true;
	memset(s->heap.place_of, 0xff, g->n_gaps * sizeof(uint32_t));
	memset(s->spare.place_of, 0xff, g->n_gaps * sizeof(uint32_t));
	s->used = s->peak = g->base_bytes;
	s->d2h = (struct ts_engine){TS_NONE, 0,
	        (double)device->d2h_bytes_per_s * 1e-9,
	        (double)device->d2h_both_bytes_per_s * 1e-9, 0};
	s->h2d = (struct ts_engine){TS_NONE, 0,
	        (double)device->h2d_bytes_per_s * 1e-9,
	        (double)device->h2d_both_bytes_per_s * 1e-9, 0};
	memset(arrays.status, 0, g->n_gaps);
	memset(arrays.opened, 0, g->n_gaps);
	memset(arrays.host, 0, g->profile->n_values);
	memset(arrays.queued, 0, g->profile->n_values);
	memset(arrays.gap_of, 0xff, g->profile->n_values * sizeof(uint32_t));
	/* What wraps was copied out by the step before. */
	for (uint32_t gap = 0; gap < g->n_gaps; gap++) {
		const struct ts_gap *info = &g->gaps[gap];

		if (m->choice->action[gap] != TS_SWAP)
			continue;
		if (m->program.held[gap] && info->earlier == TS_NONE)
			s->host[info->version] = 1;
		if (info->to_op < g->n_ops)
			continue;
		s->iteration = 0;
		s->gap_of[info->version] = gap;
		s->host[info->version] = 1;
		s->status[gap] = OUTGOING;
		/* Its deadline counts from a step before the first. */
		s->due[gap] = m->program.need_op[gap];
		ts_engines_release(m, gap);
		if (m->choice->window[gap] <= g->n_ops) {
			s->opened[gap] = 1;
			ts_engines_want(m, gap);
		}
	}
	s->peak = s->used;
	/* From here on iterations count from one. */
	s->iteration = 1;
}

/* New step: what came with the last one and died in it comes again. */
static void next_iteration(struct ts_model *m)
{
	struct ts_run_state *s = &m->state;

	s->iteration++;
	s->instr = 0;
	s->arriving = m->input_bytes;
	for (uint32_t i = 0; i < m->n_inputs; i++)
		s->host[m->inputs[i]] = 0;
}

static int snapshot(struct ts_model *m)
{
	struct ts_run_state *to = &m->snapshots[m->n_snapshots];

	if (!to->status && state_init(to, m->graph))
		return -ENOMEM;
	state_copy(to, &m->state, m->graph);
	m->n_snapshots++;
	return 0;
}

/*
 * The instructions that are left of the step; snapshots on the way if asked
 * to. 0 (look at outcome.fits) or -ENOMEM.
 */
static int finish_step(struct ts_model *m, double begun_ns, bool remember)
{
	struct ts_run_state *s = &m->state;
	uint32_t n = m->program.n_instrs, every = n / TS_SNAPSHOTS + 1;

	m->begun_ns = begun_ns;
	for (uint32_t k = s->instr; k < n; k++) {
		if (remember && k % every == 0 &&
		        m->n_snapshots < TS_SNAPSHOTS && snapshot(m))
			return -ENOMEM;
		m->instrs++;
		if (s->t - begun_ns + m->after_ns[k] > m->most_ns ||
		        !ts_engines_run_instr(m, k)) {
			s->outcome.fits = false;
			s->outcome.step_ns = TS_NEVER;
			s->outcome.peak_bytes = s->outcome.stuck_bytes;
			return 0;
		}
	}
	s->outcome.fits = true;
	s->outcome.step_ns = (uint64_t)(s->t - begun_ns + 0.5);
	s->outcome.peak_bytes = s->peak;
	s->outcome.replay_ns = m->program.replay_ns;
	return 0;
}

/* From here on counters are those of the step that begins. */
static void forget_outcome(struct ts_model *m)
{
	memset(&m->state.outcome, 0, sizeof(m->state.outcome));
	if (m->wait_ns)
		memset(m->wait_ns, 0, m->graph->n_gaps * sizeof(*m->wait_ns));
}

/* Steps from state on; snapshots of the last one if asked to. */
static int go(struct ts_model *m, uint32_t iterations, bool remember)
{
	struct ts_run_state *s = &m->state;
	double begun = 0;

	for (uint32_t i = 0; i < iterations; i++) {
		bool last = i + 1 == iterations;
		int err;

		if (i) {
			next_iteration(m);
			begun = s->t;
		}
		if (i && last)
			forget_outcome(m);
		err = finish_step(m, begun, remember && last);
		if (err || !s->outcome.fits)
			return err;
	}
	/* Copies out that go on into the next step end there as in this one. */
	for (uint32_t gap = 0; gap < m->graph->n_gaps; gap++) {
		if (m->graph->gaps[gap].to_op >= m->graph->n_ops &&
		        m->left[gap] == TS_NONE)
			m->left[gap] = m->left_before[gap];
	}
	m->op_ns[m->graph->n_ops] = s->t - begun;
	return 0;
}

/* A plan that cannot be compiled does not fit; it is no error. */
static int start(struct ts_model *m, const struct ts_choice *choice,
        struct ts_outcome *ret_outcome)
{
	int err = prepare(m, choice);

	m->runs++;
	if (err == -EINVAL) {
		memset(ret_outcome, 0, sizeof(*ret_outcome));
		ret_outcome->step_ns = TS_NEVER;
		return 1;
	}
	return err;
}

/* Steps that a run takes until it counts. */
static uint32_t steps(const struct ts_model *m)
{
	if (!m->program.cyclic)
		return 1;
	return m->graph->n_ops > MOST_OPS ? LONG_STEPS : STEPS;
}

static int run(struct ts_model *m, const struct ts_choice *choice,
        struct ts_outcome *ret_outcome, bool remember)
{
	int err = start(m, choice, ret_outcome);

	if (err)
		return err < 0 ? err : 0;
	start_state(m);
	err = go(m, steps(m), remember);
	if (!err)
		*ret_outcome = m->state.outcome;
	return err;
}

int ts_model_run(struct ts_model *m, const struct ts_choice *choice,
        struct ts_outcome *ret_outcome, uint64_t *wait_ns)
{
	int err;

	if (wait_ns)
		memset(wait_ns, 0, m->graph->n_gaps * sizeof(*wait_ns));
	m->wait_ns = wait_ns;
	err = run(m, choice, ret_outcome, false);
	m->wait_ns = NULL;
	return err;
}

int ts_model_anchor(struct ts_model *m, const struct ts_choice *choice,
        struct ts_outcome *ret_outcome)
{
	const struct ts_program *p = &m->program;
	int err;

	m->n_snapshots = 0;
	m->anchored = false;
	err = run(m, choice, ret_outcome, true);
	if (err || !ret_outcome->fits)
		return err;
	m->anchor_cyclic = p->cyclic;
	m->anchor_begun_ns = m->begun_ns;
	if (p->n_instrs > m->anchor_room) {
		struct ts_instr *more = realloc(
		        m->anchor_instrs, p->instrs_room * sizeof(*more));

		if (!more)
			return -ENOMEM;
		m->anchor_instrs = more;
		m->anchor_room = p->instrs_room;
	}
	memcpy(m->anchor_instrs, p->instrs, p->n_instrs * sizeof(*p->instrs));
	m->anchor_n_instrs = p->n_instrs;
	ts_choice_copy(&m->anchor, choice);
	memcpy(m->anchor_need, p->need_op,
	        m->graph->n_gaps * sizeof(*p->need_op));
	memcpy(m->anchor_copy, p->copy_op,
	        m->graph->n_gaps * sizeof(*p->copy_op));
	m->anchored = true;
	return 0;
}

/* First op at which the gap may make a difference; TS_NONE: it makes none. */
static uint32_t change_of(const struct ts_model *m, uint32_t gap)
{
	const struct ts_program *p = &m->program;
	uint32_t was = m->anchor.action[gap], is = m->choice->action[gap];
	uint32_t op = m->graph->gaps[gap].from_op;

	if (was == is && m->anchor_copy[gap] == p->copy_op[gap])
		return is != TS_SWAP || (m->anchor_need[gap] ==
		                                        p->need_op[gap] &&
		                                m->anchor.window[gap] ==
		                                        m->choice->window[gap])
		               ? TS_NONE
		               : op;
	if (p->copy_op[gap] < op)
		op = p->copy_op[gap];
	return m->anchor_copy[gap] < op ? m->anchor_copy[gap] : op;
}

/* Where the prepared program begins to differ from the anchor's. */
struct change {
	uint32_t first_op;
	/* Some of it is in what one step leaves to the next. */
	bool wraps;
	/* What the anchor's last step began with is of no use. */
	bool lost;
};

static struct change find_change(const struct ts_model *m)
{
	const struct ts_graph *g = m->graph;
	struct change change = {.first_op = g->n_ops};

	for (uint32_t gap = 0; gap < g->n_gaps; gap++) {
		uint32_t op = change_of(m, gap);

		if (op == TS_NONE)
			continue;
		if (g->gaps[gap].to_op >= g->n_ops) {
			bool was = m->anchor.action[gap] == TS_SWAP;
			bool is = m->choice->action[gap] == TS_SWAP;

			change.wraps |= !was;
			change.lost |= !is;
			if (was)
				op = 0;
		}
		if (op < change.first_op)
			change.first_op = op;
	}
	return change;
}

/* The latest snapshot that the prepared program can start from, or TS_NONE. */
static uint32_t find_snapshot(const struct ts_model *m, uint32_t first_op)
{
	const struct ts_program *p = &m->program;
	uint32_t same = 0, use = TS_NONE;

	while (same < p->n_instrs && same < m->anchor_n_instrs &&
	        p->instrs[same].op < first_op &&
	        !memcmp(&p->instrs[same], &m->anchor_instrs[same],
	                sizeof(p->instrs[0])))
		same++;
	/* Admission looks ahead over the next instructions. */
	same = same > TS_LOOK_AHEAD ? same - TS_LOOK_AHEAD : 0;
	for (uint32_t i = 0; i < m->n_snapshots; i++) {
		if (m->snapshots[i].instr <= same)
			use = i;
	}
	return use;
}

/* The step that has begun, and one more where what it leaves is new. */
static int finish_steps(struct ts_model *m, bool one_more, double most_ns)
{
	double begun_ns = m->anchor_begun_ns;
	int err = 0;

	if (one_more) {
		err = finish_step(m, begun_ns, false);
		if (err || !m->state.outcome.fits)
			return err;
		next_iteration(m);
		forget_outcome(m);
		begun_ns = m->state.t;
	}
	m->most_ns = most_ns;
	err = finish_step(m, begun_ns, false);
	m->most_ns = HUGE_VAL;
	return err;
}

static int try_or_guess(struct ts_model *m, const struct ts_choice *choice,
        bool guess, double most_ns, struct ts_outcome *ret_outcome)
{
	struct change change;
	uint32_t use = TS_NONE;
	int err;

	if (!m->anchored || (m->anchor_cyclic && !guess))
		return run(m, choice, ret_outcome, false);
	err = start(m, choice, ret_outcome);
	if (err)
		return err < 0 ? err : 0;
	change = find_change(m);
	if (m->program.cyclic == m->anchor_cyclic && !change.lost)
		use = find_snapshot(m, change.first_op);
	if (use == TS_NONE) {
		start_state(m);
		err = go(m, steps(m), false);
	} else {
		state_copy(&m->state, &m->snapshots[use], m->graph);
		err = finish_steps(
		        m, change.wraps && m->anchor_cyclic, most_ns);
	}
	if (!err)
		*ret_outcome = m->state.outcome;
	return err;
}

int ts_model_try(struct ts_model *m, const struct ts_choice *choice,
        struct ts_outcome *ret_outcome)
{
	return try_or_guess(m, choice, false, HUGE_VAL, ret_outcome);
}

int ts_model_guess(struct ts_model *m, const struct ts_choice *choice,
        uint64_t most_ns, struct ts_outcome *ret_outcome)
{
	/* Steps are rounded. */
	int err = try_or_guess(
	        m, choice, true, (double)most_ns + 0.5, ret_outcome);

	if (!err && ret_outcome->fits && ret_outcome->step_ns > most_ns)
		ret_outcome->fits = false;
	return err;
}
