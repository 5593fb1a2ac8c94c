/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "planner/model.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Where a swapped gap stands. */
enum status {
	/* Not begun, or over: the value is where ops expect it. */
	RESIDENT,
	/* Begun; the device copy goes when the copy out is done. */
	OUTGOING,
	OUT,
	INCOMING,
	/* Back (or never gone) and waiting for its use. */
	BACK,
};

/* Prefetches leave room for what so many instructions allocate. */
#define LOOK_AHEAD 3
/* States that ts_model_anchor() remembers. */
#define SNAPSHOTS 24

/* A copy engine; the work of a copy includes its latency, as bytes. */
struct engine {
	uint32_t busy; /* version (D2H) or gap (H2D), TS_NONE: idle */
	double left;
	double alone; /* bytes per ns */
	double both;
	double begun;
};

/* All that changes while a step runs; arrays are copied by snapshots. */
struct run_state {
	double t;
	uint64_t used;
	uint64_t peak;
	uint32_t iteration;
	uint32_t instr;
	struct engine d2h;
	struct engine h2d;
	uint32_t queue_head;
	uint32_t queue_count;
	uint32_t heap_count;
	uint32_t back_count;
	struct ts_outcome outcome;

	uint8_t *status;   /* by gap */
	uint8_t *began;    /* by gap: iteration */
	uint8_t *opened;   /* by gap: its window is open */
	uint8_t *host;     /* by value: the host has it */
	uint8_t *queued;   /* by value */
	uint32_t *gap_of;  /* by value: gap that is open, TS_NONE */
	uint32_t *queue;   /* ring of versions to copy out */
	uint32_t *heap;    /* gaps to copy in, earliest deadline first */
	uint32_t *back;    /* gaps that are BACK */
	uint32_t *back_at; /* by gap: place in back */
};

struct ts_model {
	const struct ts_graph *graph;
	uint64_t limit;
	struct ts_model_options options;
	ts_trace_fn trace;
	void *trace_data;
	struct ts_program program;
	const struct ts_choice *choice;
	uint64_t *ahead; /* by instr: most that the next ones add */
	uint32_t ahead_room;
	/* Copies and windows by op: heads of lists linked through next. */
	uint32_t *copy_head, *copy_next;
	uint32_t *window_head, *window_next;
	struct run_state state;
	uint64_t *wait_ns;
	/* Compute is short of memory: lazy copies may start. */
	bool pressed;
	uint64_t runs;
	uint64_t instrs;

	struct ts_choice anchor;
	uint32_t *anchor_need, *anchor_copy;
	struct ts_instr *anchor_instrs;
	uint32_t anchor_n_instrs;
	uint32_t anchor_room;
	bool anchored;
	uint32_t n_snapshots;
	struct run_state snapshots[SNAPSHOTS];
};

static int state_init(struct run_state *s, const struct ts_graph *g)
{
	uint64_t gaps = g->n_gaps + UINT64_C(1);
	uint64_t values = g->profile->n_values + UINT64_C(1);

	s->status = calloc(gaps, 1);
	s->began = calloc(gaps, 1);
	s->opened = calloc(gaps, 1);
	s->host = calloc(values, 1);
	s->queued = calloc(values, 1);
	s->gap_of = calloc(values, sizeof(*s->gap_of));
	s->queue = calloc(gaps, sizeof(*s->queue));
	s->heap = calloc(gaps, sizeof(*s->heap));
	s->back = calloc(gaps, sizeof(*s->back));
	s->back_at = calloc(gaps, sizeof(*s->back_at));
	if (!s->status || !s->began || !s->opened || !s->host || !s->queued ||
	        !s->gap_of || !s->queue || !s->heap || !s->back || !s->back_at)
		return -ENOMEM;
	return 0;
}

static void state_finish(struct run_state *s)
{
	free(s->status);
	free(s->began);
	free(s->opened);
	free(s->host);
	free(s->queued);
	free(s->gap_of);
	free(s->queue);
	free(s->heap);
	free(s->back);
	free(s->back_at);
}

static void state_copy(struct run_state *to, const struct run_state *from,
        const struct ts_graph *g)
{
	struct run_state arrays = *to;
	uint64_t gaps = g->n_gaps, values = g->profile->n_values;

	*to = *from;
	to->status = memcpy(arrays.status, from->status, gaps);
	to->began = memcpy(arrays.began, from->began, gaps);
	to->opened = memcpy(arrays.opened, from->opened, gaps);
	to->host = memcpy(arrays.host, from->host, values);
	to->queued = memcpy(arrays.queued, from->queued, values);
	to->gap_of = memcpy(arrays.gap_of, from->gap_of, values * 4);
	to->queue = memcpy(arrays.queue, from->queue, (gaps + 1) * 4);
	to->heap = memcpy(arrays.heap, from->heap, from->heap_count * 4);
	to->back = memcpy(arrays.back, from->back, from->back_count * 4);
	to->back_at = memcpy(arrays.back_at, from->back_at, gaps * 4);
}

int ts_model_create(const struct ts_graph *graph, uint64_t limit_bytes,
        struct ts_model **ret_model)
{
	struct ts_model *m = calloc(1, sizeof(*m));
	uint64_t gaps = graph->n_gaps + UINT64_C(1);
	uint64_t ops = graph->n_ops + UINT64_C(1);

	if (!m)
		return -ENOMEM;
	m->graph = graph;
	m->limit = limit_bytes;
	m->copy_head = calloc(ops, sizeof(*m->copy_head));
	m->window_head = calloc(ops, sizeof(*m->window_head));
	m->copy_next = calloc(gaps, sizeof(*m->copy_next));
	m->window_next = calloc(gaps, sizeof(*m->window_next));
	m->anchor_need = calloc(gaps, sizeof(*m->anchor_need));
	m->anchor_copy = calloc(gaps, sizeof(*m->anchor_copy));
	if (!m->copy_head || !m->window_head || !m->copy_next ||
	        !m->window_next || !m->anchor_need || !m->anchor_copy ||
	        state_init(&m->state, graph) ||
	        ts_choice_init(&m->anchor, graph->n_gaps) ||
	        ts_program_init(&m->program, graph)) {
		ts_model_destroy(m);
		return -ENOMEM;
	}
	*ret_model = m;
	return 0;
}

void ts_model_destroy(struct ts_model *m)
{
	if (!m)
		return;
	for (uint32_t i = 0; i < SNAPSHOTS; i++)
		state_finish(&m->snapshots[i]);
	state_finish(&m->state);
	ts_choice_finish(&m->anchor);
	ts_program_finish(&m->program);
	free(m->anchor_instrs);
	free(m->anchor_need);
	free(m->anchor_copy);
	free(m->ahead);
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

uint64_t ts_model_limit(const struct ts_model *m)
{
	return m->limit;
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

const struct ts_program *ts_model_program(const struct ts_model *m)
{
	return &m->program;
}

static void trace(const struct ts_model *m, enum ts_lane lane, uint32_t index,
        double begin, double end)
{
	if (m->trace)
		m->trace(m->trace_data, lane, index, begin, end);
}

static uint64_t size_of(const struct ts_model *m, uint32_t gap)
{
	return m->graph->gaps[gap].size_bytes;
}

/* Deadline in ops since the first iteration. */
static uint64_t deadline(const struct ts_model *m, uint32_t gap)
{
	return (uint64_t)m->state.began[gap] * m->graph->n_ops +
	       m->program.need_op[gap];
}

static bool earlier(const struct ts_model *m, uint32_t a, uint32_t b)
{
	uint64_t da = deadline(m, a), db = deadline(m, b);

	return da != db ? da < db : a < b;
}

static void heap_push(struct ts_model *m, uint32_t gap)
{
	uint32_t *heap = m->state.heap, i = m->state.heap_count++;

	while (i && earlier(m, gap, heap[(i - 1) / 2])) {
		heap[i] = heap[(i - 1) / 2];
		i = (i - 1) / 2;
	}
	heap[i] = gap;
}

/* Takes out the item at place @i and restores the order. */
static void heap_remove(struct ts_model *m, uint32_t i)
{
	uint32_t *heap = m->state.heap, n = --m->state.heap_count;
	uint32_t last = heap[n];

	if (i == n)
		return;
	while (i && earlier(m, last, heap[(i - 1) / 2])) {
		heap[i] = heap[(i - 1) / 2];
		i = (i - 1) / 2;
	}
	for (;;) {
		uint32_t child = 2 * i + 1;

		if (child >= n)
			break;
		if (child + 1 < n && earlier(m, heap[child + 1], heap[child]))
			child++;
		if (!earlier(m, heap[child], last))
			break;
		heap[i] = heap[child];
		i = child;
	}
	heap[i] = last;
}

static void set_back(struct ts_model *m, uint32_t gap)
{
	struct run_state *s = &m->state;

	s->status[gap] = BACK;
	s->back_at[gap] = s->back_count;
	s->back[s->back_count++] = gap;
}

static void unset_back(struct ts_model *m, uint32_t gap)
{
	struct run_state *s = &m->state;
	uint32_t last = s->back[--s->back_count];

	s->back[s->back_at[gap]] = last;
	s->back_at[last] = s->back_at[gap];
}

/* The device copy is gone; once its window is open it may come back. */
static void release(struct ts_model *m, uint32_t gap)
{
	m->state.used -= size_of(m, gap);
	m->state.status[gap] = OUT;
	if (m->state.opened[gap])
		heap_push(m, gap);
}

static void begin_copy(
        struct ts_model *m, struct engine *e, uint32_t what, uint64_t bytes)
{
	e->busy = what;
	e->left = (double)bytes +
	          (double)m->graph->profile->device.copy_latency_ns * e->alone;
	e->begun = m->state.t;
}

static void start_d2h(struct ts_model *m)
{
	struct run_state *s = &m->state;

	while (s->d2h.busy == TS_NONE && s->queue_count &&
	        (!m->options.lazy_copies || m->pressed)) {
		uint32_t version = s->queue[s->queue_head];
		uint32_t gap = s->gap_of[version];

		s->queue_head = (s->queue_head + 1) % (m->graph->n_gaps + 1);
		s->queue_count--;
		s->queued[version] = 0;
		/* Used again before memory got short. */
		if (m->options.lazy_copies &&
		        (gap == TS_NONE || s->status[gap] != OUTGOING))
			continue;
		begin_copy(m, &s->d2h, version,
		        m->graph->profile->values[version].size_bytes);
	}
}

/* Starts @gap's copy in if @extra bytes beside it still fit. */
static bool start_gap(struct ts_model *m, uint32_t place, uint64_t extra)
{
	struct run_state *s = &m->state;
	uint32_t gap = s->heap[place];

	if (s->used + size_of(m, gap) + extra > m->limit)
		return false;
	heap_remove(m, place);
	s->used += size_of(m, gap);
	if (s->used > s->peak)
		s->peak = s->used;
	s->status[gap] = INCOMING;
	s->outcome.h2d_bytes += size_of(m, gap);
	begin_copy(m, &s->h2d, gap, size_of(m, gap));
	return true;
}

/* @running: bytes that the instruction now running gives back at its end. */
static void start_h2d(struct ts_model *m, uint64_t running)
{
	struct run_state *s = &m->state;
	uint64_t extra;

	if (s->h2d.busy != TS_NONE || !s->heap_count)
		return;
	extra = s->instr < m->program.n_instrs ? m->ahead[s->instr] : 0;
	start_gap(m, 0, extra > running ? extra - running : 0);
}

static void finish_d2h(struct ts_model *m)
{
	struct run_state *s = &m->state;
	uint32_t version = s->d2h.busy, gap = s->gap_of[version];

	trace(m, TS_LANE_D2H, version, s->d2h.begun, s->t);
	s->d2h.busy = TS_NONE;
	s->host[version] = 1;
	s->outcome.d2h_bytes += m->graph->profile->values[version].size_bytes;
	if (gap != TS_NONE && s->status[gap] == OUTGOING)
		release(m, gap);
}

/*
 * Goes on to the next end of a copy or to @until, whichever comes first.
 * Returns false where time has reached @until (or no copy runs and @until
 * is negative: "as long as it takes").
 */
static bool advance(struct ts_model *m, double until, uint64_t running)
{
	struct run_state *s = &m->state;
	bool out = s->d2h.busy != TS_NONE, in = s->h2d.busy != TS_NONE;
	double out_rate = in ? s->d2h.both : s->d2h.alone;
	double in_rate = out ? s->h2d.both : s->h2d.alone;
	double out_ns = out ? s->d2h.left / out_rate : -1;
	double in_ns = in ? s->h2d.left / in_rate : -1;
	bool out_first = out && (!in || out_ns <= in_ns);
	double step = out_first ? out_ns : in_ns;

	if (!out && !in) {
		if (until > s->t)
			s->t = until;
		return false;
	}
	if (until >= 0 && s->t + step > until) {
		step = until - s->t;
		s->d2h.left -= step * out_rate;
		s->h2d.left -= step * in_rate;
		s->t = until;
		return false;
	}
	s->t += step;
	s->d2h.left -= step * out_rate;
	s->h2d.left -= step * in_rate;
	if (out_first) {
		finish_d2h(m);
	} else {
		trace(m, TS_LANE_H2D, s->h2d.busy, s->h2d.begun, s->t);
		set_back(m, s->h2d.busy);
		s->h2d.busy = TS_NONE;
	}
	start_d2h(m);
	start_h2d(m, running);
	return true;
}

static void enqueue(struct ts_model *m, uint32_t version)
{
	struct run_state *s = &m->state;

	if (s->host[version] || s->queued[version] || s->d2h.busy == version)
		return;
	s->queued[version] = 1;
	s->queue[(s->queue_head + s->queue_count++) % (m->graph->n_gaps + 1)] =
	        version;
}

static void begin_gap(struct ts_model *m, uint32_t gap)
{
	struct run_state *s = &m->state;
	uint32_t version = m->graph->gaps[gap].version;

	s->began[gap] = (uint8_t)s->iteration;
	s->opened[gap] = 0;
	s->gap_of[version] = gap;
	s->status[gap] = OUTGOING;
	if (s->host[version])
		release(m, gap);
	else
		enqueue(m, version);
}

static void end_gap(struct ts_model *m, uint32_t gap)
{
	struct run_state *s = &m->state;
	const struct ts_gap *info = &m->graph->gaps[gap];
	uint32_t first;

	unset_back(m, gap);
	s->status[gap] = RESIDENT;
	s->gap_of[info->version] = TS_NONE;
	if (info->to_op < m->graph->n_ops || info->born_op == TS_NONE)
		return;
	/* The copy now is one of the next step's first version. */
	first = info->version;
	while (m->graph->profile->values[first].in_place_of != TS_NONE)
		first = m->graph->profile->values[first].in_place_of;
	s->host[first] = s->host[info->version];
	s->host[info->version] = 0;
}

/* Frees one copied value that is not used now, furthest use first. */
static bool evict(struct ts_model *m, const struct ts_instr *instr)
{
	struct run_state *s = &m->state;
	uint32_t best = TS_NONE;

	for (uint32_t i = 0; i < s->back_count; i++) {
		uint32_t gap = s->back[i];
		bool needed = !s->host[m->graph->gaps[gap].version];

		for (uint32_t k = 0; !needed && k < instr->n_needs; k++)
			needed = m->program.needs[instr->first_need + k] == gap;
		if (!needed && (best == TS_NONE || earlier(m, best, gap)))
			best = gap;
	}
	if (best == TS_NONE)
		return false;
	unset_back(m, best);
	s->outcome.evictions++;
	release(m, best);
	return true;
}

static uint32_t missing_need(struct ts_model *m, const struct ts_instr *instr)
{
	struct run_state *s = &m->state;

	for (uint32_t k = 0; k < instr->n_needs; k++) {
		uint32_t gap = m->program.needs[instr->first_need + k];

		if (s->status[gap] == OUTGOING)
			set_back(m, gap);
		if (s->status[gap] == BACK || s->status[gap] == RESIDENT)
			continue;
		if (s->status[gap] == OUT && !s->opened[gap]) {
			s->opened[gap] = 1;
			heap_push(m, gap);
		}
		return gap;
	}
	return TS_NONE;
}

/* Moves @missing to the front where the in-engine is free. */
static void force_in(struct ts_model *m, uint32_t missing)
{
	struct run_state *s = &m->state;

	if (s->h2d.busy != TS_NONE || s->status[missing] != OUT)
		return;
	for (uint32_t i = 0; i < s->heap_count; i++) {
		if (s->heap[i] == missing) {
			start_gap(m, i, 0);
			return;
		}
	}
}

/* Compute stands still until @instr can run. False: it never can. */
static bool wait_for(struct ts_model *m, const struct ts_instr *instr)
{
	struct run_state *s = &m->state;
	const struct ts_profile *p = m->graph->profile;
	double begun = s->t;

	for (;;) {
		uint32_t missing = missing_need(m, instr);
		bool room = s->used + instr->alloc_bytes <= m->limit;
		double before = s->t;

		if (missing == TS_NONE && room)
			break;
		if (missing != TS_NONE)
			force_in(m, missing);
		m->pressed =
		        !room || (missing != TS_NONE && s->h2d.busy == TS_NONE);
		start_d2h(m);
		if (s->d2h.busy != TS_NONE || s->h2d.busy != TS_NONE) {
			advance(m, -1, 0);
			if (missing != TS_NONE) {
				s->outcome.wait_in_ns +=
				        (uint64_t)(s->t - before);
				if (m->wait_ns)
					m->wait_ns[missing] +=
					        (uint64_t)(s->t - before);
			} else {
				s->outcome.wait_memory_ns +=
				        (uint64_t)(s->t - before);
			}
			continue;
		}
		if (evict(m, instr))
			continue;
		s->outcome.stuck_op = instr->op;
		s->outcome.stuck_bytes =
		        s->used + instr->alloc_bytes +
		        (missing != TS_NONE ? size_of(m, missing) : 0);
		return false;
	}
	m->pressed = false;
	if (p->n_turns && instr->op < p->turns[0])
		s->outcome.wait_forward_ns += (uint64_t)(s->t - begun);
	return true;
}

static void after_op(struct ts_model *m, const struct ts_instr *instr)
{
	const struct ts_graph *g = m->graph;
	struct run_state *s = &m->state;

	for (uint32_t k = 0; k < instr->n_needs; k++) {
		uint32_t gap = m->program.needs[instr->first_need + k];

		if (s->status[gap] == BACK)
			end_gap(m, gap);
	}
	for (uint32_t v = m->copy_head[instr->op]; v != TS_NONE;
	        v = m->copy_next[v])
		enqueue(m, g->gaps[v].version);
	for (uint32_t k = g->from_first[instr->op];
	        k < g->from_first[instr->op + 1]; k++) {
		if (m->choice->action[k] == TS_SWAP)
			begin_gap(m, k);
		else if (m->choice->action[k] == TS_REPLAY)
			s->used -= g->gaps[k].size_bytes;
	}
}

/* Windows that open with op @op. */
static void open_windows(struct ts_model *m, uint32_t op)
{
	struct run_state *s = &m->state;

	for (uint32_t gap = m->window_head[op]; gap != TS_NONE;
	        gap = m->window_next[gap]) {
		if (s->opened[gap] || s->status[gap] == RESIDENT)
			continue;
		s->opened[gap] = 1;
		if (s->status[gap] == OUT)
			heap_push(m, gap);
	}
}

/* Barriers: everything queued is copied before the next op starts. */
static void drain(struct ts_model *m, uint32_t op)
{
	struct run_state *s = &m->state;
	const struct ts_profile *p = m->graph->profile;
	double before = s->t;

	while (s->d2h.busy != TS_NONE || s->h2d.busy != TS_NONE)
		advance(m, -1, 0);
	if (p->n_turns && op < p->turns[0])
		s->outcome.wait_forward_ns += (uint64_t)(s->t - before);
	s->outcome.wait_in_ns += (uint64_t)(s->t - before);
}

static bool run_instr(struct ts_model *m, uint32_t k)
{
	const struct ts_instr *instr = &m->program.instrs[k];
	struct run_state *s = &m->state;
	double end;

	if (!k || m->program.instrs[k - 1].op != instr->op) {
		open_windows(m, instr->op);
		start_h2d(m, 0);
	}
	if (!wait_for(m, instr))
		return false;
	s->used += instr->alloc_bytes;
	if (s->used > s->peak)
		s->peak = s->used;
	s->instr = k + 1;
	end = s->t + (double)instr->duration_ns;
	trace(m, instr->value == TS_NONE ? TS_LANE_COMPUTE : TS_LANE_REPLAY, k,
	        s->t, end);
	while (advance(m, end, instr->free_bytes))
		;
	s->used -= instr->free_bytes;
	if (instr->value == TS_NONE)
		after_op(m, instr);
	start_d2h(m);
	start_h2d(m, 0);
	if (m->options.barriers &&
	        (k + 1 == m->program.n_instrs ||
	                m->program.instrs[k + 1].op != instr->op))
		drain(m, instr->op);
	return true;
}

static int prepare(struct ts_model *m, const struct ts_choice *choice)
{
	const struct ts_graph *g = m->graph;
	struct ts_program *p = &m->program;
	int err = ts_program_compile(p, choice);

	if (err)
		return err;
	m->choice = choice;
	if (p->n_instrs > m->ahead_room) {
		uint64_t *more =
		        realloc(m->ahead, p->instrs_room * sizeof(*more));

		if (!more)
			return -ENOMEM;
		m->ahead = more;
		m->ahead_room = p->instrs_room;
	}
	for (uint32_t k = 0; k < p->n_instrs; k++) {
		int64_t sum = 0, most = 0;

		for (uint32_t j = k; j < p->n_instrs && j < k + LOOK_AHEAD;
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
	struct run_state *s = &m->state, arrays = *s;

	memset(s, 0, offsetof(struct run_state, status));
	s->used = s->peak = g->base_bytes;
	s->d2h = (struct engine){TS_NONE, 0,
	        (double)device->d2h_bytes_per_s * 1e-9,
	        (double)device->d2h_both_bytes_per_s * 1e-9, 0};
	s->h2d = (struct engine){TS_NONE, 0,
	        (double)device->h2d_bytes_per_s * 1e-9,
	        (double)device->h2d_both_bytes_per_s * 1e-9, 0};
	memset(arrays.status, 0, g->n_gaps);
	memset(arrays.began, 0, g->n_gaps);
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
		s->began[gap] = 0;
		release(m, gap);
		if (m->choice->window[gap] <= g->n_ops) {
			s->opened[gap] = 1;
			heap_push(m, gap);
		}
	}
	s->peak = s->used;
	/* From here on iterations count from one. */
	s->iteration = 1;
}

/* New step: versions that this step writes are not on the host yet. */
static void next_iteration(struct ts_model *m)
{
	const struct ts_graph *g = m->graph;
	struct run_state *s = &m->state;

	s->iteration++;
	s->instr = 0;
	for (uint32_t gap = 0; gap < g->n_gaps; gap++) {
		if (g->gaps[gap].born_op != TS_NONE &&
		        g->gaps[gap].to_op < g->n_ops)
			s->host[g->gaps[gap].version] = 0;
	}
}

static int snapshot(struct ts_model *m)
{
	struct run_state *to = &m->snapshots[m->n_snapshots];

	if (!to->status && state_init(to, m->graph))
		return -ENOMEM;
	state_copy(to, &m->state, m->graph);
	m->n_snapshots++;
	return 0;
}

/* Runs from state on to the end; snapshots on the way if asked to. */
static int go(struct ts_model *m, uint32_t iterations, bool remember)
{
	struct run_state *s = &m->state;
	uint32_t n = m->program.n_instrs, every = n / SNAPSHOTS + 1;
	double begun = 0;

	for (uint32_t i = 0; i < iterations; i++) {
		if (i)
			next_iteration(m);
		begun = i ? s->t : 0;
		/* Counters are those of the last iteration. */
		if (i + 1 == iterations && i) {
			uint64_t peak = s->peak;

			memset(&s->outcome, 0, sizeof(s->outcome));
			s->peak = peak;
		}
		for (uint32_t k = s->instr; k < n; k++) {
			if (remember && k % every == 0 &&
			        m->n_snapshots < SNAPSHOTS && snapshot(m))
				return -ENOMEM;
			m->instrs++;
			if (!run_instr(m, k)) {
				s->outcome.fits = false;
				s->outcome.step_ns = TS_NEVER;
				s->outcome.peak_bytes = s->outcome.stuck_bytes;
				return 0;
			}
		}
	}
	s->outcome.fits = true;
	s->outcome.step_ns = (uint64_t)(s->t - begun + 0.5);
	s->outcome.peak_bytes = s->peak;
	s->outcome.replay_ns = m->program.replay_ns;
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

static int run(struct ts_model *m, const struct ts_choice *choice,
        struct ts_outcome *ret_outcome, bool remember)
{
	int err = start(m, choice, ret_outcome);

	if (err)
		return err < 0 ? err : 0;
	start_state(m);
	/* Steps settle after two; see DESIGN on cyclic gaps. */
	err = go(m, m->program.cyclic ? 3 : 1, remember);
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
	if (err || !ret_outcome->fits || p->cyclic)
		return err;
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

/* First op at which the prepared program may run unlike the anchor's. */
static uint32_t first_change(const struct ts_model *m)
{
	const struct ts_graph *g = m->graph;
	const struct ts_program *p = &m->program;
	uint32_t first = g->n_ops;

	for (uint32_t gap = 0; gap < g->n_gaps; gap++) {
		const struct ts_gap *info = &g->gaps[gap];
		uint32_t was = m->anchor.action[gap];
		uint32_t is = m->choice->action[gap], op = TS_NONE;

		if (was == is && m->anchor_copy[gap] == p->copy_op[gap]) {
			if (is != TS_SWAP ||
			        (m->anchor_need[gap] == p->need_op[gap] &&
			                m->anchor.window[gap] ==
			                        m->choice->window[gap]))
				continue;
			op = info->from_op;
		} else {
			op = info->from_op;
			if (p->copy_op[gap] < op)
				op = p->copy_op[gap];
			if (m->anchor_copy[gap] < op)
				op = m->anchor_copy[gap];
		}
		if (op < first)
			first = op;
	}
	return first;
}

int ts_model_try(struct ts_model *m, const struct ts_choice *choice,
        struct ts_outcome *ret_outcome)
{
	const struct ts_program *p = &m->program;
	uint32_t same = 0, first, use = TS_NONE;
	int err;

	if (!m->anchored)
		return run(m, choice, ret_outcome, false);
	err = start(m, choice, ret_outcome);
	if (err)
		return err < 0 ? err : 0;
	first = first_change(m);
	while (same < p->n_instrs && same < m->anchor_n_instrs &&
	        p->instrs[same].op < first &&
	        !memcmp(&p->instrs[same], &m->anchor_instrs[same],
	                sizeof(p->instrs[0])))
		same++;
	/* Admission looks ahead over the next instructions. */
	same = same > LOOK_AHEAD ? same - LOOK_AHEAD : 0;
	for (uint32_t i = 0; i < m->n_snapshots && !p->cyclic; i++) {
		if (m->snapshots[i].instr <= same)
			use = i;
	}
	if (use == TS_NONE) {
		start_state(m);
		err = go(m, p->cyclic ? 3 : 1, false);
	} else {
		state_copy(&m->state, &m->snapshots[use], m->graph);
		err = go(m, 1, false);
	}
	if (!err)
		*ret_outcome = m->state.outcome;
	return err;
}
