/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Chunks for the pages of a plan that has fewer than they would take: whom it
 * has stay for long goes meanwhile where that costs least (planner/share.h).
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "agent/planned_make_internal.h"
#include "planner/graph.h"
#include "planner/share.h"

/* Ranges over pages, and when these are there: what steps never come near. */
#define MAX_COVERS    (UINT32_C(1) << 21)
#define MAX_TENANCIES (UINT32_C(1) << 21)

/* Pages, from a cut on to the next, and the ranges that lie there. */
struct share {
	struct ts_planned_work *work;
	const struct ts_graph *g;
	uint64_t *cuts;
	uint32_t n_cuts;
	uint32_t *first, *over; /* by cut: offsets into ranges over it */
	uint32_t *first_gap, *gap_list; /* by range: all its gaps */
	struct ts_share_tenancy *tenancies;
	uint32_t n_tenancies, tenancies_room;
	struct ts_pack_run *runs;
	uint64_t *address; /* by run */
	uint32_t n_runs;
	struct ts_share_gap *gaps;
	/* By gap: what the plan has made again is, where it is away. */
	const uint8_t *planned;
	/* By gap: before which it has to be there, if all that can be is away.
	 */
	uint32_t *need_op;
	uint64_t looked;
};

static bool is_there(const struct ts_page_range *range)
{
	return range->bytes && (range->used || range->before) &&
	       range->end > range->first;
}

static int by_number(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;

	return *x < *y ? -1 : *x > *y;
}

static uint32_t cut_at(const struct share *s, uint64_t address)
{
	uint32_t low = 0, high = s->n_cuts;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (s->cuts[middle] < address)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static int by_first(const void *a, const void *b, void *data)
{
	const struct ts_page_range *ranges = data;
	const struct ts_page_range *x = &ranges[*(const uint32_t *)a];
	const struct ts_page_range *y = &ranges[*(const uint32_t *)b];

	return x->first < y->first ? -1 : x->first > y->first;
}

static int cut_ranges(struct share *s)
{
	const struct ts_page_view *view = s->work->view;
	uint64_t total = 0;
	uint32_t n = 0;

	s->cuts = malloc((2ull * view->n_ranges + 1) * sizeof(*s->cuts));
	if (!s->cuts)
		return -ENOMEM;
	for (uint32_t i = 0; i < view->n_ranges; i++)
		if (is_there(&view->ranges[i])) {
			s->cuts[n++] = view->ranges[i].address;
			s->cuts[n++] =
			        view->ranges[i].address + view->ranges[i].bytes;
		}
	qsort(s->cuts, n, sizeof(*s->cuts), by_number);
	for (uint32_t i = 0; i < n; i++)
		if (!s->n_cuts || s->cuts[s->n_cuts - 1] != s->cuts[i])
			s->cuts[s->n_cuts++] = s->cuts[i];
	s->first = calloc(s->n_cuts + 2ull, sizeof(*s->first));
	if (!s->first)
		return -ENOMEM;
	for (int pass = 0; pass < 2; pass++) {
		for (uint32_t i = 0; i < view->n_ranges; i++) {
			const struct ts_page_range *r = &view->ranges[i];

			if (!is_there(r))
				continue;
			for (uint32_t c = cut_at(s, r->address);
			        s->cuts[c] < r->address + r->bytes; c++) {
				if (pass)
					s->over[s->first[c + 1]++] = i;
				else
					s->first[c + 2]++;
				total += !pass;
			}
			if (total > MAX_COVERS)
				return -E2BIG;
		}
		if (pass)
			break;
		for (uint32_t c = 2; c < s->n_cuts + 2; c++)
			s->first[c] += s->first[c - 1];
		s->over = malloc((total + 1) * sizeof(*s->over));
		if (!s->over)
			return -ENOMEM;
	}
	for (uint32_t c = 0; c < s->n_cuts; c++)
		qsort_r(s->over + s->first[c], s->first[c + 1] - s->first[c],
		        sizeof(*s->over), by_first, view->ranges);
	return 0;
}

/* All gaps by range, ascending. */
static int list_all_gaps(struct share *s)
{
	const struct ts_graph *g = s->g;
	const uint32_t *range_of = s->work->view->range_of;
	uint32_t n = s->work->view->n_ranges;

	s->first_gap = calloc(n + 2ull, sizeof(*s->first_gap));
	s->gap_list = malloc((g->n_gaps + 1ull) * sizeof(*s->gap_list));
	if (!s->first_gap || !s->gap_list)
		return -ENOMEM;
	for (uint32_t i = 0; i < g->n_gaps; i++)
		s->first_gap[range_of[g->gaps[i].version] + 2]++;
	for (uint32_t i = 2; i < n + 2; i++)
		s->first_gap[i] += s->first_gap[i - 1];
	for (uint32_t i = 0; i < g->n_gaps; i++)
		s->gap_list[s->first_gap[range_of[g->gaps[i].version] + 1]++] =
		        i;
	return 0;
}

static uint64_t ticks_of(const struct share *s, uint64_t ns)
{
	const struct ts_planned_run *run = &s->work->run;

	return (uint64_t)((double)ns * run->n_ticks / (double)run->step_ns);
}

static uint64_t copy_ticks(const struct share *s, uint64_t bytes, bool in)
{
	const struct ts_device *d = &s->g->profile->device;
	uint64_t rate = in ? d->h2d_both_bytes_per_s : d->d2h_both_bytes_per_s;

	return ticks_of(s, d->copy_latency_ns + (uint64_t)((double)bytes * 1e9 /
	                                                   (double)rate));
}

static void price_gaps(struct share *s)
{
	const struct ts_graph *g = s->g;

	for (uint32_t i = 0; i < g->n_gaps; i++) {
		const struct ts_gap *gap = &g->gaps[i];
		uint64_t out =
		        gap->dirty ? copy_ticks(s, gap->size_bytes, false) : 0;
		uint64_t in = copy_ticks(s, gap->size_bytes, true);
		uint64_t idle = ticks_of(s, gap->idle_ns);

		s->gaps[i].cost = (in + out) / 2;
		if (idle < in + out)
			s->gaps[i].cost += in + out - idle;
		if (s->planned[i] == TS_REPLAY)
			s->gaps[i].cost = ticks_of(s, gap->replay_ns);
		s->gaps[i].away = s->work->run.gaps[i].away;
		s->gaps[i].wraps = s->need_op[i] >= g->n_ops;
	}
}

/* Whatever else moves: away where somebody comes between, and made again. */
static uint8_t action_of(const struct share *s, uint32_t gap)
{
	return s->planned[gap] == TS_REPLAY ? TS_REPLAY : TS_SWAP;
}

/*
 * When everything has to be there, if all gaps were ones in which it is away:
 * what is made again needs what it is made from.
 */
static int find_needs(struct share *s)
{
	const struct ts_graph *g = s->g;
	struct ts_program program = {0};
	struct ts_choice all;
	int rc;

	s->need_op = malloc((g->n_gaps + 1ull) * sizeof(*s->need_op));
	if (!s->need_op)
		return -ENOMEM;
	rc = ts_choice_init(&all, g->n_gaps);
	if (rc)
		return rc;
	for (uint32_t i = 0; i < g->n_gaps; i++)
		all.action[i] = action_of(s, i);
	rc = ts_program_init(&program, g);
	if (!rc)
		rc = ts_program_compile(&program, &all);
	if (!rc)
		memcpy(s->need_op, program.need_op,
		        g->n_gaps * sizeof(*s->need_op));
	ts_program_finish(&program);
	ts_choice_finish(&all);
	return rc;
}

static int add_tenancy(struct share *s, uint32_t from, uint32_t end,
        uint32_t gap_before, uint32_t gap)
{
	const struct ts_planned_run *run = &s->work->run;
	struct ts_share_tenancy *to;
	uint64_t begin = run->begin_tick[from], free = run->end_tick[end - 1];

	if (s->n_tenancies == s->tenancies_room) {
		uint32_t room = 2 * s->tenancies_room + 1024;
		void *more;

		if (room > MAX_TENANCIES)
			return -E2BIG;
		more = realloc(s->tenancies, room * sizeof(*to));
		if (!more)
			return -ENOMEM;
		s->tenancies = more;
		s->tenancies_room = room;
	}
	to = &s->tenancies[s->n_tenancies++];
	if (gap_before != TS_NONE) {
		const struct ts_planned_gap *b = &run->gaps[gap_before];
		uint64_t in =
		        copy_ticks(s, s->g->gaps[gap_before].size_bytes, true);

		if (b->replayed)
			in = ticks_of(s, s->g->gaps[gap_before].replay_ns);
		if (b->away)
			begin = b->wraps ? b->come_tick - run->n_ticks
			                 : b->come_tick;
		else
			begin = begin > in ? begin - in : 0;
	}
	if (gap != TS_NONE) {
		const struct ts_planned_gap *a = &run->gaps[gap];

		if (a->away)
			free = a->gone_tick;
		else if (s->g->gaps[gap].dirty)
			free += copy_ticks(
			        s, s->g->gaps[gap].size_bytes, false);
	}
	*to = (struct ts_share_tenancy){.from = from,
	        .end = end,
	        .from_tick = (uint32_t)begin,
	        .free_tick = (uint32_t)free,
	        .gap = gap == TS_NONE ? TS_SHARE_EMPTY : gap};
	return 0;
}

/* When the pages of a range have to be there. */
static int add_range(struct share *s, uint32_t index)
{
	const struct ts_page_range *range = &s->work->view->ranges[index];
	uint32_t from = range->first, before = TS_NONE, around = TS_NONE;
	uint32_t n_ops = s->work->n_ops;
	int rc = 0;

	if (s->first_gap[index + 1] > s->first_gap[index]) {
		uint32_t last = s->gap_list[s->first_gap[index + 1] - 1];

		/* What is made from it may need it in this step. */
		if (s->need_op[last] >= n_ops) {
			around = last;
			before = last;
			from = s->need_op[last] - n_ops;
		}
	}
	for (uint32_t k = s->first_gap[index];
	        k < s->first_gap[index + 1] && !rc; k++) {
		const struct ts_gap *gap = &s->g->gaps[s->gap_list[k]];

		rc = add_tenancy(
		        s, from, gap->from_op + 1, before, s->gap_list[k]);
		if (s->gap_list[k] == around)
			return rc;
		before = s->gap_list[k];
		from = s->need_op[before];
	}
	if (rc || from >= range->end)
		return rc;
	return add_tenancy(s, from, range->end, before, TS_NONE);
}

static int make_runs(struct share *s)
{
	uint64_t page = s->work->step->survey->page_bytes;

	s->runs = malloc((s->n_cuts + 1ull) * sizeof(*s->runs));
	s->address = malloc((s->n_cuts + 1ull) * sizeof(*s->address));
	if (!s->runs || !s->address)
		return -ENOMEM;
	for (uint32_t c = 0; c + 1 < s->n_cuts; c++) {
		uint32_t n = s->first[c + 1] - s->first[c];
		struct ts_pack_run *run = &s->runs[s->n_runs];
		int rc = 0;

		if (!n)
			continue;
		*run = (struct ts_pack_run){
		        .count = (uint32_t)((s->cuts[c + 1] - s->cuts[c]) /
		                            page),
		        .first_span = s->n_tenancies};
		for (uint32_t k = s->first[c]; k < s->first[c + 1] && !rc; k++)
			rc = add_range(s, s->over[k]);
		if (rc)
			return rc;
		run->n_spans = s->n_tenancies - run->first_span;
		for (uint32_t k = 1; k < run->n_spans; k++) {
			const struct ts_share_tenancy *t =
			        s->tenancies + run->first_span + k;

			if (t->from < t[-1].end) {
				return -EINVAL;
			}
		}
		s->address[s->n_runs++] = s->cuts[c];
	}
	return 0;
}

static int by_address(const void *a, const void *b)
{
	const struct ts_plan_place *x = a, *y = b;

	return x->address < y->address ? -1 : x->address > y->address;
}

static int list_places(const struct share *s, const struct ts_packing *packing,
        struct ts_planned_sharing *to)
{
	uint64_t page = s->work->step->survey->page_bytes;

	to->places = malloc((packing->n_pieces + 1ull) * sizeof(*to->places));
	if (!to->places)
		return -ENOMEM;
	to->n_places = packing->n_pieces;
	to->n_chunks = packing->n_chunks;
	for (uint32_t i = 0; i < packing->n_pieces; i++) {
		const struct ts_pack_piece *piece = &packing->pieces[i];

		to->places[i] = (struct ts_plan_place){
		        s->address[piece->run] + piece->offset * page,
		        piece->count, piece->first_chunk};
	}
	if (to->n_places)
		qsort(to->places, to->n_places, sizeof(*to->places),
		        by_address);
	return 0;
}

static int by_all(const void *a, const void *b)
{
	return memcmp(a, b, sizeof(struct ts_planned_handover));
}

/* The gap before a tenancy, TS_NONE: nothing of it was there. */
static uint32_t gap_before(
        const struct share *s, const uint32_t *run_of, uint32_t tenancy)
{
	const struct ts_pack_run *run = &s->runs[run_of[tenancy]];
	uint32_t before = tenancy == run->first_span
	                          ? run->first_span + run->n_spans - 1
	                          : tenancy - 1;
	uint32_t gap = s->tenancies[before].gap;

	return gap == TS_SHARE_EMPTY ? TS_NONE : gap;
}

static int list_handovers(const struct share *s,
        const struct ts_sharing *sharing, struct ts_planned_sharing *to)
{
	uint32_t *run_of = malloc((s->n_tenancies + 1ull) * sizeof(*run_of));
	uint32_t kept = 0;

	to->handovers =
	        malloc((sharing->n_handovers + 1ull) * sizeof(*to->handovers));
	if (!run_of || !to->handovers) {
		free(run_of);
		return -ENOMEM;
	}
	for (uint32_t r = 0; r < s->n_runs; r++)
		for (uint32_t k = 0; k < s->runs[r].n_spans; k++)
			run_of[s->runs[r].first_span + k] = r;
	for (uint32_t i = 0; i < sharing->n_handovers; i++) {
		const struct ts_share_handover *h = &sharing->handovers[i];
		const struct ts_share_tenancy *from = &s->tenancies[h->from];
		struct ts_planned_handover *made = &to->handovers[i];

		*made = (struct ts_planned_handover){
		        .to = gap_before(s, run_of, h->to),
		        .from = from->gap == TS_SHARE_EMPTY ? TS_NONE
		                                            : from->gap};
		if (made->to == TS_NONE)
			made->at = s->tenancies[h->to].from;
		if (made->from == TS_NONE)
			made->end = from->end;
	}
	free(run_of);
	to->n_handovers = sharing->n_handovers;
	if (to->n_handovers)
		qsort(to->handovers, to->n_handovers, sizeof(*to->handovers),
		        by_all);
	for (uint32_t i = 0; i < to->n_handovers; i++)
		if (!kept ||
		        by_all(&to->handovers[kept - 1], &to->handovers[i]))
			to->handovers[kept++] = to->handovers[i];
	to->n_handovers = kept;
	return 0;
}

/* Away where somebody comes between, there everywhere else. */
static void change_choice(const struct share *s,
        const struct ts_sharing *sharing, struct ts_choice *choice)
{
	for (uint32_t i = 0; i < s->g->n_gaps; i++) {
		choice->action[i] =
		        sharing->free_op[i] ? action_of(s, i) : TS_KEEP;
		choice->window[i] = sharing->free_op[i];
	}
}

/* What @program makes again before each op, n_ops of them, into @ret_ns. */
static int time_replays(const struct share *s, const struct ts_program *program,
        uint64_t *ret_ns)
{
	struct ts_plan plan = {0};
	int rc = ts_plan_tell_replays(&plan, program);

	if (!rc)
		rc = ts_planned_time_replays(
		        s->work, plan.replays, plan.n_replays);
	for (uint32_t i = 0; i < plan.n_replays && !rc; i++)
		ret_ns[plan.replays[i].before_op] +=
		        plan.replays[i].duration_ns;
	ts_plan_finish(&plan);
	return rc;
}

/*
 * Where less is away what is made again may be made later, in another gap of
 * what it is made from, which then has to be there earlier than was taken for
 * granted: others may have its chunk.
 */
static bool needs_earlier(const struct share *s, const struct ts_choice *choice,
        const struct ts_program *program)
{
	for (uint32_t i = 0; i < s->g->n_gaps; i++)
		if (choice->action[i] != TS_KEEP &&
		        program->need_op[i] < s->need_op[i])
			return true;
	return false;
}

/* How a step goes by @choice and @sharing. */
static int pace(const struct share *s, const struct ts_choice *choice,
        const struct ts_planned_sharing *sharing, struct ts_planned_run *ret)
{
	const struct ts_graph *g = s->g;
	uint8_t *ends = calloc(g->n_gaps + 1ull, 1);
	uint8_t *copies = calloc(g->n_gaps + 1ull, 1);
	uint64_t *replay_ns = calloc(g->n_ops + 1ull, sizeof(*replay_ns));
	struct ts_program program = {0};
	int rc = ts_program_init(&program, g);

	if (!ends || !copies || !replay_ns)
		rc = -ENOMEM;
	if (!rc)
		rc = ts_program_compile(&program, choice);
	if (!rc && needs_earlier(s, choice, &program))
		rc = -ENOSPC;
	if (!rc)
		rc = time_replays(s, &program, replay_ns);
	for (uint32_t i = 0; i < g->n_gaps && !rc; i++) {
		ends[i] = ts_planned_is_last(s->work, &g->gaps[i],
		        s->work->view->range_of[g->gaps[i].version]);
		copies[i] = program.copy_op[i] != TS_NONE;
	}
	if (!rc)
		rc = ts_planned_pace(
		        &(struct ts_planned_pace_input){.graph = g,
		                .action = choice->action,
		                .ends = ends,
		                .copies = copies,
		                .need_op = program.need_op,
		                .replay_ns = replay_ns,
		                .handovers = sharing->handovers,
		                .n_handovers = sharing->n_handovers},
		        ret);
	ts_program_finish(&program);
	free(ends);
	free(copies);
	free(replay_ns);
	return rc;
}

/* Only of what can move: other runs may have other small values. */
static int tell_choice(const struct share *s, const struct ts_choice *choice,
        struct ts_plan *plan)
{
	const struct ts_graph *g = s->g;
	struct ts_program program = {0};
	int rc = ts_program_init(&program, g);
	uint32_t kept = 0;

	if (!rc)
		rc = ts_program_compile(&program, choice);
	if (!rc)
		rc = ts_plan_tell(plan, g, choice, &program, NULL);
	ts_program_finish(&program);
	for (uint32_t i = 0; i < g->n_gaps && !rc; i++)
		if (g->gaps[i].size_bytes >= s->work->step->survey->page_bytes)
			plan->decisions[kept++] = plan->decisions[i];
	if (!rc)
		plan->n_decisions = kept;
	return rc;
}

/* Which is best differs from step to step; these are often. */
static const struct way {
	uint32_t order, wait_part;
} ways[] = {{0, 64}, {0, 1024}, {2, 64}, {1, 1024}, {1, 64}, {3, 64}};

/* One way; what comes of it, if a step is shorter than @best's. */
static int try_way(struct share *s, const struct way *way,
        struct ts_choice *choice, struct ts_planned_sharing *best,
        struct ts_planned_run *best_run)
{
	struct ts_planned_work *work = s->work;
	struct ts_planned_sharing made = {0};
	struct ts_planned_run run = {0};
	struct ts_sharing sharing;
	struct ts_choice own;
	int rc = ts_choice_init(&own, s->g->n_gaps);

	if (rc)
		return rc;
	rc = ts_share(
	        &(struct ts_share_input){.runs = s->runs,
	                .n_runs = s->n_runs,
	                .tenancies = s->tenancies,
	                .gaps = s->gaps,
	                .n_gaps = s->g->n_gaps,
	                .n_ops = work->n_ops,
	                .n_ticks = work->run.n_ticks,
	                .most_chunks =
	                        (uint32_t)(work->chunks_bytes /
	                                   work->step->survey->page_bytes),
	                .wait_part = way->wait_part},
	        way->order, &sharing);
	s->looked += sharing.work;
	if (!rc)
		rc = list_places(s, &sharing.packing, &made);
	if (!rc)
		rc = list_handovers(s, &sharing, &made);
	if (!rc) {
		change_choice(s, &sharing, &own);
		rc = pace(s, &own, &made, &run);
	}
	if (!rc && (!best->places || run.step_ns < best_run->step_ns)) {
		ts_planned_sharing_finish(best);
		ts_planned_run_finish(best_run);
		*best = made;
		*best_run = run;
		ts_choice_copy(choice, &own);
	} else {
		ts_planned_sharing_finish(&made);
		ts_planned_run_finish(&run);
	}
	ts_sharing_finish(&sharing);
	ts_choice_finish(&own);
	return rc;
}

/* Enough of looking for chunks, as ts_share() counts. */
#define ENOUGH_WORK (UINT64_C(1) << 27)

static int try_ways(struct share *s, struct ts_choice *choice,
        struct ts_planned_sharing *best, struct ts_planned_run *best_run)
{
	int rc = 0;

	for (size_t i = 0; i < sizeof(ways) / sizeof(ways[0]); i++) {
		rc = try_way(s, &ways[i], choice, best, best_run);
		if ((rc && rc != -ENOSPC && rc != -E2BIG) ||
		        s->looked > ENOUGH_WORK)
			break;
	}
	return best->places ? 0 : rc;
}

int ts_planned_share(struct ts_planned_work *work, const struct ts_graph *g,
        struct ts_choice *choice, struct ts_plan *plan,
        struct ts_planned_sharing *ret)
{
	struct share s = {.work = work, .g = g, .planned = choice->action};
	struct ts_planned_run run = {0};
	struct ts_choice shared;
	int rc = ts_choice_init(&shared, g->n_gaps);

	if (!rc)
		rc = cut_ranges(&s);

	s.gaps = calloc(g->n_gaps + 1ull, sizeof(*s.gaps));
	if (!s.gaps)
		rc = -ENOMEM;
	if (!rc)
		rc = list_all_gaps(&s);
	if (!rc)
		rc = find_needs(&s);
	if (!rc) {
		price_gaps(&s);
		rc = make_runs(&s);
	}
	if (!rc)
		rc = try_ways(&s, &shared, ret, &run);
	if (!rc)
		rc = tell_choice(&s, &shared, plan);
	if (!rc)
		ts_choice_copy(choice, &shared);
	ts_choice_finish(&shared);
	ts_planned_run_finish(&work->run);
	if (rc)
		ts_planned_run_finish(&run);
	work->run = run;
	free(s.cuts);
	free(s.first);
	free(s.over);
	free(s.first_gap);
	free(s.gap_list);
	free(s.tenancies);
	free(s.runs);
	free(s.address);
	free(s.gaps);
	free(s.need_op);
	return rc;
}

void ts_planned_sharing_finish(struct ts_planned_sharing *sharing)
{
	free(sharing->places);
	free(sharing->handovers);
	memset(sharing, 0, sizeof(*sharing));
}
