/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "planner/model_internal.h"

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

void ts_engines_want(struct ts_model *m, uint32_t gap)
{
	ts_due_push(&m->state.heap, m->state.due[gap], gap);
}

static void sort_spare(struct ts_run_state *s)
{
	if (!s->spare_sorted)
		ts_due_sort(&s->spare);
	s->spare_sorted = true;
	s->spare_changes = 0;
}

static void add_spare(struct ts_run_state *s, uint32_t gap)
{
	if (s->spare_sorted)
		ts_due_push(&s->spare, s->due[gap], gap);
	else
		ts_due_append(&s->spare, s->due[gap], gap);
}

/* After the gap's status or what the host has changed. */
static void note_spare(struct ts_model *m, uint32_t gap)
{
	struct ts_run_state *s = &m->state;
	uint32_t place = s->spare.place_of[gap];
	bool is =
	        s->status[gap] == BACK && s->host[m->graph->gaps[gap].version];

	if (is == (place != TS_NONE))
		return;
	if (is)
		add_spare(s, gap);
	else
		ts_due_remove(&s->spare, place, s->spare_sorted);
	/* Keeping the order costs more than making it again would. */
	if (++s->spare_changes > s->spare.n)
		s->spare_sorted = false;
}

static void set_status(
        struct ts_model *m, uint32_t gap, enum ts_gap_status status)
{
	m->state.status[gap] = (uint8_t)status;
	note_spare(m, gap);
}

static void set_host(struct ts_model *m, uint32_t version, bool has)
{
	uint32_t gap = m->state.gap_of[version];

	if (m->state.host[version] == has)
		return;
	m->state.host[version] = has;
	if (gap != TS_NONE)
		note_spare(m, gap);
}

/* Op that runs or has just run. */
static uint32_t op_now(const struct ts_model *m)
{
	uint32_t k = m->state.instr;

	return k ? m->program.instrs[k - 1].op : 0;
}

/* Op that runs, or that is the next to run. */
static uint32_t op_next(const struct ts_model *m)
{
	uint32_t k = m->state.instr;

	if (m->running)
		return m->program.instrs[k - 1].op;
	return k < m->program.n_instrs ? m->program.instrs[k].op : 0;
}

/* The device copy is gone; once its window is open it may come back. */
void ts_engines_release(struct ts_model *m, uint32_t gap)
{
	m->state.used -= size_of(m, gap);
	/* What is evicted had not been away in vain: it comes back later. */
	if (m->left[gap] == TS_NONE)
		m->left[gap] = op_now(m);
	set_status(m, gap, OUT);
	if (m->state.opened[gap])
		ts_engines_want(m, gap);
}

static void begin_copy(
        struct ts_model *m, struct ts_engine *e, uint32_t what, uint64_t bytes)
{
	e->busy = what;
	e->left = (double)bytes +
	          (double)m->graph->profile->device.copy_latency_ns * e->alone;
	e->begun = m->state.t;
}

static void start_d2h(struct ts_model *m)
{
	struct ts_run_state *s = &m->state;

	while (s->d2h.busy == TS_NONE && s->queue_count &&
	        (!m->options.lazy_copies || m->pressed)) {
		uint32_t version = s->queue[s->queue_head];

		s->queue_head = (s->queue_head + 1) % (m->graph->n_gaps + 1);
		s->queue_count--;
		if (!s->queued[version])
			continue;
		s->queued[version] = 0;
		s->d2h_old = false;
		begin_copy(m, &s->d2h, version,
		        m->graph->profile->values[version].size_bytes);
	}
}

/* Starts @gap's copy in if @extra bytes beside it still fit. */
static bool start_gap(struct ts_model *m, uint32_t place, uint64_t extra)
{
	struct ts_run_state *s = &m->state;
	uint32_t gap = ts_due_gap(&s->heap, place);

	if (s->used + size_of(m, gap) + extra > m->limit)
		return false;
	ts_due_remove(&s->heap, place, true);
	s->used += size_of(m, gap);
	if (s->used > s->peak)
		s->peak = s->used;
	set_status(m, gap, INCOMING);
	m->back_op[gap] = op_next(m);
	s->outcome.h2d_bytes += size_of(m, gap);
	begin_copy(m, &s->h2d, gap, size_of(m, gap));
	return true;
}

/* @running: bytes that the instruction now running gives back at its end. */
static void start_h2d(struct ts_model *m, uint64_t running)
{
	struct ts_run_state *s = &m->state;
	uint64_t extra;

	if (s->h2d.busy != TS_NONE || !s->heap.n)
		return;
	extra = s->instr < m->program.n_instrs ? m->ahead[s->instr] : 0;
	start_gap(m, 0, extra > running ? extra - running : 0);
}

static void finish_d2h(struct ts_model *m)
{
	struct ts_run_state *s = &m->state;
	uint32_t version = s->d2h.busy, gap = s->gap_of[version];

	trace(m, TS_LANE_D2H, version, s->d2h.begun, s->t);
	s->d2h.busy = TS_NONE;
	s->outcome.d2h_bytes += m->graph->profile->values[version].size_bytes;
	/* Who still wants it has it copied once more. */
	if (s->d2h_old)
		return;
	set_host(m, version, true);
	if (gap != TS_NONE && s->status[gap] == OUTGOING)
		ts_engines_release(m, gap);
}

/*
 * Goes on to the next end of a copy or to @until, whichever comes first.
 * Returns false where time has reached @until (or no copy runs and @until
 * is negative: "as long as it takes").
 */
static bool advance(struct ts_model *m, double until, uint64_t running)
{
	struct ts_run_state *s = &m->state;
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
		set_status(m, s->h2d.busy, BACK);
		s->h2d.busy = TS_NONE;
	}
	start_d2h(m);
	start_h2d(m, running);
	return true;
}

/* Drops cancelled entries, and all but the first of one version. */
static void compact_queue(struct ts_model *m)
{
	struct ts_run_state *s = &m->state;
	uint32_t room = m->graph->n_gaps + 1, kept = 0;

	for (uint32_t i = 0; i < s->queue_count; i++) {
		uint32_t version = s->queue[(s->queue_head + i) % room];

		if (s->queued[version] != 1)
			continue;
		s->queued[version] = 2;
		s->queue[(s->queue_head + kept++) % room] = version;
	}
	s->queue_count = kept;
	for (uint32_t i = 0; i < kept; i++)
		s->queued[s->queue[(s->queue_head + i) % room]] = 1;
}

static void enqueue(struct ts_model *m, uint32_t version)
{
	struct ts_run_state *s = &m->state;
	uint32_t room = m->graph->n_gaps + 1;

	if (s->host[version] || s->queued[version] ||
	        (s->d2h.busy == version && !s->d2h_old))
		return;
	if (s->queue_count == room)
		compact_queue(m);
	s->queued[version] = 1;
	s->queue[(s->queue_head + s->queue_count++) % room] = version;
}

static void begin_gap(struct ts_model *m, uint32_t gap)
{
	struct ts_run_state *s = &m->state;
	uint32_t version = m->graph->gaps[gap].version;

	s->due[gap] = s->iteration * m->graph->n_ops + m->program.need_op[gap];
	m->left_before[gap] = m->left[gap];
	m->left[gap] = TS_NONE;
	s->opened[gap] = 0;
	s->gap_of[version] = gap;
	set_status(m, gap, OUTGOING);
	if (s->host[version])
		ts_engines_release(m, gap);
	else
		enqueue(m, version);
}

static void end_gap(struct ts_model *m, uint32_t gap)
{
	struct ts_run_state *s = &m->state;
	const struct ts_gap *info = &m->graph->gaps[gap];
	uint32_t first;

	set_status(m, gap, RESIDENT);
	s->gap_of[info->version] = TS_NONE;
	/* A copy out that has not begun is of no use any more. */
	s->queued[info->version] = 0;
	if (info->to_op < m->graph->n_ops || info->born_op == TS_NONE)
		return;
	/* The copy now is one of the next step's first version. */
	first = info->version;
	while (m->older[first] != TS_NONE)
		first = m->older[first];
	set_host(m, first, s->host[info->version]);
	set_host(m, info->version, false);
}

static bool needs(
        const struct ts_model *m, const struct ts_instr *instr, uint32_t gap)
{
	for (uint32_t k = 0; k < instr->n_needs; k++) {
		if (m->program.needs[instr->first_need + k] == gap)
			return true;
	}
	return false;
}

/* Frees one copied value that is not used now, furthest use first. */
static bool evict(struct ts_model *m, const struct ts_instr *instr)
{
	struct ts_run_state *s = &m->state;
	uint32_t kept = TS_NONE, gap = TS_NONE;

	sort_spare(s);
	/* What is used now has the nearest deadlines: little is set aside. */
	while (s->spare.n && needs(m, instr, ts_due_gap(&s->spare, 0))) {
		gap = ts_due_gap(&s->spare, 0);
		ts_due_remove(&s->spare, 0, true);
		m->spare_next[gap] = kept;
		kept = gap;
	}
	gap = s->spare.n ? ts_due_gap(&s->spare, 0) : TS_NONE;
	for (; kept != TS_NONE; kept = m->spare_next[kept])
		ts_due_push(&s->spare, s->due[kept], kept);
	if (gap == TS_NONE)
		return false;
	s->outcome.evictions++;
	ts_engines_release(m, gap);
	return true;
}

static uint32_t missing_need(struct ts_model *m, const struct ts_instr *instr)
{
	struct ts_run_state *s = &m->state;

	for (uint32_t k = 0; k < instr->n_needs; k++) {
		uint32_t gap = m->program.needs[instr->first_need + k];

		if (s->status[gap] == OUTGOING)
			set_status(m, gap, BACK);
		if (s->status[gap] == BACK || s->status[gap] == RESIDENT)
			continue;
		if (s->status[gap] == OUT && !s->opened[gap]) {
			s->opened[gap] = 1;
			ts_engines_want(m, gap);
		}
		return gap;
	}
	return TS_NONE;
}

/* Moves @missing to the front where the in-engine is free. */
static void force_in(struct ts_model *m, uint32_t missing)
{
	struct ts_run_state *s = &m->state;

	if (s->h2d.busy != TS_NONE || s->status[missing] != OUT)
		return;
	if (s->heap.place_of[missing] != TS_NONE)
		start_gap(m, s->heap.place_of[missing], 0);
}

/* Compute stands still until @instr can run. False: it never can. */
static bool wait_for(
        struct ts_model *m, const struct ts_instr *instr, uint64_t alloc_bytes)
{
	struct ts_run_state *s = &m->state;
	const struct ts_profile *p = m->graph->profile;
	double begun = s->t;

	for (;;) {
		uint32_t missing = missing_need(m, instr);
		bool room = s->used + alloc_bytes <= m->limit;
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
		        s->used + alloc_bytes +
		        (missing != TS_NONE ? size_of(m, missing) : 0);
		return false;
	}
	m->pressed = false;
	if (p->n_turns && instr->op < p->turns[0])
		s->outcome.wait_forward_ns += (uint64_t)(s->t - begun);
	return true;
}

/* What the host has of a read version is old, and what it is to have. */
static void dirty(struct ts_model *m, uint32_t version)
{
	set_host(m, version, false);
	if (m->state.d2h.busy == version)
		m->state.d2h_old = true;
}

/* What an op writes is not on the host; what it overwrites no longer is. */
static void forget_copies(struct ts_model *m, uint32_t op)
{
	const struct ts_profile *p = m->graph->profile;
	const struct ts_profile_op *info = &p->ops[op];

	for (uint32_t k = 0; m->graph->dirties && k < info->n_reads; k++)
		if (m->graph->dirties[info->first_read + k])
			dirty(m, p->uses[info->first_read + k]);
	for (uint32_t k = 0; k < info->n_writes; k++) {
		uint32_t version = p->uses[info->first_write + k];
		uint32_t old = m->older[version];

		set_host(m, version, false);
		if (old != TS_NONE)
			set_host(m, old, false);
	}
}

/*
 * An op that overwrites a storage, or is the last to use it, waits for the
 * copy out of it that is on its way.
 */
static void wait_for_storage(struct ts_model *m, uint32_t op)
{
	const struct ts_graph *g = m->graph;
	const struct ts_profile_op *info = &g->profile->ops[op];
	struct ts_run_state *s = &m->state;
	uint32_t object;
	bool in_use;

	if (s->d2h.busy == TS_NONE)
		return;
	object = g->object_of[s->d2h.busy];
	in_use = g->objects[object].last_op == op &&
	         !g->objects[object].persistent;
	for (uint32_t k = 0; !in_use && k < info->n_writes; k++)
		in_use =
		        g->object_of[g->profile->uses[info->first_write + k]] ==
		        object;
	if (!in_use)
		return;
	for (uint32_t version = s->d2h.busy; s->d2h.busy == version;) {
		double before = s->t;

		advance(m, -1, 0);
		s->outcome.wait_memory_ns += (uint64_t)(s->t - before);
	}
}

/* A value that will be replayed needs no copy. */
static void drop(struct ts_model *m, uint32_t gap)
{
	m->state.used -= size_of(m, gap);
	m->left[gap] = m->graph->gaps[gap].from_op;
	m->back_op[gap] = m->program.need_op[gap];
}

static void after_op(struct ts_model *m, const struct ts_instr *instr)
{
	const struct ts_graph *g = m->graph;
	struct ts_run_state *s = &m->state;

	for (uint32_t k = 0; k < instr->n_needs; k++) {
		uint32_t gap = m->program.needs[instr->first_need + k];

		if (s->status[gap] == BACK)
			end_gap(m, gap);
	}
	forget_copies(m, instr->op);
	for (uint32_t v = m->copy_head[instr->op]; v != TS_NONE;
	        v = m->copy_next[v])
		enqueue(m, g->gaps[v].version);
	for (uint32_t k = g->from_first[instr->op];
	        k < g->from_first[instr->op + 1]; k++) {
		if (m->choice->action[k] == TS_SWAP)
			begin_gap(m, k);
		else if (m->choice->action[k] == TS_REPLAY)
			drop(m, k);
	}
}

/* Windows that open with op @op. */
static void open_windows(struct ts_model *m, uint32_t op)
{
	struct ts_run_state *s = &m->state;

	for (uint32_t gap = m->window_head[op]; gap != TS_NONE;
	        gap = m->window_next[gap]) {
		if (s->opened[gap] || s->status[gap] == RESIDENT)
			continue;
		s->opened[gap] = 1;
		if (s->status[gap] == OUT)
			ts_engines_want(m, gap);
	}
}

/* Barriers: everything queued is copied before the next op starts. */
static void drain(struct ts_model *m, uint32_t op)
{
	struct ts_run_state *s = &m->state;
	const struct ts_profile *p = m->graph->profile;
	double before = s->t;

	while (s->d2h.busy != TS_NONE || s->h2d.busy != TS_NONE)
		advance(m, -1, 0);
	if (p->n_turns && op < p->turns[0])
		s->outcome.wait_forward_ns += (uint64_t)(s->t - before);
	s->outcome.wait_in_ns += (uint64_t)(s->t - before);
}

/* What was there before the step can be copied out from its start on. */
static void copy_what_came(struct ts_model *m)
{
	const struct ts_graph *g = m->graph;

	for (uint32_t gap = m->copy_head[0]; gap != TS_NONE;
	        gap = m->copy_next[gap]) {
		if (g->gaps[gap].born_op == TS_NONE)
			enqueue(m, g->gaps[gap].version);
	}
	start_d2h(m);
}

bool ts_engines_run_instr(struct ts_model *m, uint32_t k)
{
	const struct ts_instr *instr = &m->program.instrs[k];
	struct ts_run_state *s = &m->state;
	uint64_t alloc_bytes = instr->alloc_bytes + s->arriving;
	double end;

	s->arriving = 0;
	if (!k || m->program.instrs[k - 1].op != instr->op) {
		open_windows(m, instr->op);
		start_h2d(m, 0);
	}
	if (!k)
		copy_what_came(m);
	if (!wait_for(m, instr, alloc_bytes))
		return false;
	if (instr->value == TS_NONE) {
		wait_for_storage(m, instr->op);
		m->op_ns[instr->op] = s->t - m->begun_ns;
	}
	s->used += alloc_bytes;
	if (s->used > s->peak)
		s->peak = s->used;
	s->instr = k + 1;
	end = s->t + (double)instr->duration_ns;
	trace(m, instr->value == TS_NONE ? TS_LANE_COMPUTE : TS_LANE_REPLAY, k,
	        s->t, end);
	m->running = true;
	while (advance(m, end, instr->free_bytes))
		;
	m->running = false;
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
