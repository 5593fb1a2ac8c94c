/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Settings of the pass over all gaps. Called by ts_plan_make(). */
#include "planner/repair.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Rounds in which replays show what they take. */
#define FITTING 3
/* Settings that go on with later times together; rounds. */
#define TOGETHER    2
#define MORE_ROUNDS 5
/* What that takes, in beginnings of a setting. */
#define GOING_ON 4
/* Times that the windows of the best plan are fitted to its run. */
#define REFITS 4
/* Shares of the waits that memory is set aside for. */
static const double aheads[] = {0.25, 0.5, 1};
#define N_AHEADS (sizeof(aheads) / sizeof(aheads[0]))
/* Waits of a smaller share of the step are not worth that. */
#define LITTLE_WAIT 0.02
/* Most that is set aside, in parts of the limit. */
#define MOST_AHEAD 0.25
/* Share of its time that the engine has to spare for that. */
#define IDLE_SHARE 0.5
/* How far times move to those that a run had. */
#define SHIFT 0.4
/* Shares of the limit that copies on their way may take beside the plan. */
static const double headrooms[] = {0.01, 0};
#define N_HEADROOMS (sizeof(headrooms) / sizeof(headrooms[0]))
/* Share of the link's speed that is counted on; where memory is tight. */
#define LINK_SHARE  0.97
#define LITTLE_LINK 0.8
/* Plans so near to the best get some local search. */
#define CLOSE 1.01
/*
 * Settings so far from it are not tried with less headroom; those that begin
 * so far from the best beginning, not at all.
 */
#define FAR     1.1
#define TOO_FAR 2

/* See struct ts_cover_options; pull in lengths of a region's backward. */
struct setting {
	bool by_area;
	bool reserve;
	double pull;
	double link_share;
	double peak_price;
	bool no_replays;
};

static const struct setting settings[] = {
        {true, false, 2.5, LINK_SHARE, 0, false},
        {false, false, 2.5, LINK_SHARE, 0, false},
        {false, true, 2.5, LINK_SHARE, 0, false},
        {true, false, 1.1, LINK_SHARE, 0, false},
        {true, false, 2.5, LINK_SHARE, 0.25, false},
        {true, false, 2.5, LITTLE_LINK, 0.25, false},
        /* Where all of these go badly; and where none of them fits. */
        {true, false, 0, LINK_SHARE, 0, true},
        {false, false, 0, LINK_SHARE, 0, true},
        {false, true, 0, LINK_SHARE, 0, true},
};
#define N_SETTINGS (sizeof(settings) / sizeof(settings[0]))
/* Badly: so many times slower than the ideal. */
#define POOR 1.5

/*
 * Compares what the compiled trial takes with what the pass believed; the
 * difference is there from the next round on. True: all ops fit.
 */
static bool learn(struct ts_search *s, uint64_t *bytes)
{
	const struct ts_graph *g = s->graph;
	struct ts_cover *c = &s->cover;
	bool fits = true;

	ts_program_memory(&s->program, &s->trial, bytes);
	for (uint32_t i = 0; i < g->n_ops; i++) {
		int64_t believed = ts_segtree_get(&c->memory, i);
		int64_t more = (int64_t)bytes[i] - believed;

		fits = fits && bytes[i] <= s->limit_bytes;
		if (more > 0)
			c->extra_bytes[i] += (uint64_t)more;
	}
	return fits;
}

/* Replays that the compiled trial has room for after all, dearest first. */
static int keep_what_fits(
        struct ts_search *s, const uint64_t *bytes, uint64_t limit_bytes)
{
	const struct ts_graph *g = s->graph;
	int64_t limit = (int64_t)limit_bytes;
	struct ts_segtree memory;
	int err = ts_segtree_init(&memory, bytes, g->n_ops);

	for (uint32_t i = 0; !err && i < g->n_gaps; i++) {
		uint32_t gap = s->pass.order_by_cost[i], at;
		uint32_t from = g->gaps[gap].from_op + 1;
		uint32_t to = s->program.need_op[gap];
		int64_t size = (int64_t)g->gaps[gap].size_bytes;

		if (s->trial.action[gap] != TS_REPLAY || to > g->n_ops ||
		        ts_segtree_range_max(&memory, from, to, &at) + size >
		                limit)
			continue;
		s->trial.action[gap] = TS_KEEP;
		ts_segtree_add(&memory, from, to, size);
	}
	if (!err)
		ts_segtree_finish(&memory);
	return err;
}

/*
 * Rounds of one setting: first until all ops fit, then with later times, as
 * long as that helps. *ret_step_ns is the best step of these rounds.
 */
static int try_setting(struct ts_search *s,
        const struct ts_cover_options *options, uint32_t rounds,
        uint64_t *bytes, uint64_t *ret_step_ns)
{
	uint32_t most = rounds + FITTING;
	uint64_t begun = ts_search_work(s);
	int err = 0;

	*ret_step_ns = TS_NEVER;
	for (uint32_t round = 0; !err && round < most; round++) {
		struct ts_outcome outcome;

		err = ts_cover_run(
		        &s->cover, options, s->program.share_until, &s->trial);
		if (!err)
			err = ts_program_compile(&s->program, &s->trial);
		if (err == -EINVAL)
			return 0;
		if (err)
			return err;
		if (!learn(s, bytes)) {
			if (!ts_search_may(s,
			            (ts_search_work(s) - begun) / (round + 1)))
				break;
			continue;
		}
		err = keep_what_fits(s, bytes, options->limit_bytes);
		if (!err)
			err = ts_search_offer(s, TS_WINDOWS_ROOM, &outcome);
		if (err || !outcome.fits || outcome.step_ns >= *ret_step_ns)
			return err;
		*ret_step_ns = outcome.step_ns;
		if (!--rounds || !ts_search_may(s, (ts_search_work(s) - begun) /
		                                           (round + 1)))
			return 0;
		ts_cover_move_times(
		        &s->cover, ts_model_op_times(s->model), SHIFT);
	}
	return err;
}

/* Longest backward of a region; without regions a part of the step. */
static double region_ns(const struct ts_graph *g)
{
	const struct ts_profile *p = g->profile;
	double longest = 0;

	for (uint32_t i = 0; i < p->n_regions; i++) {
		const struct ts_region *r = &p->regions[i];
		double ns;

		if (r->backward_first_op == TS_NONE)
			continue;
		ns = (double)(g->start_ns[r->backward_end_op] -
		              g->start_ns[r->backward_first_op]);
		longest = ns > longest ? ns : longest;
	}
	return longest > 0 ? longest : 0.05 * (double)g->start_ns[g->n_ops];
}

static bool perfect(const struct ts_search *s)
{
	return s->best.outcome.step_ns <= s->graph->start_ns[s->graph->n_ops];
}

static bool poor(const struct ts_search *s)
{
	double ideal = (double)s->graph->start_ns[s->graph->n_ops];

	return !s->best.outcome.fits ||
	       (double)s->best.outcome.step_ns > POOR * ideal;
}

/*
 * Copies back that compute waited for in the run of the best plan should have
 * begun before: sets memory aside for them at the ops ahead, as much as the
 * engine brings in while those run.
 */
static int make_room(struct ts_search *s, double share, uint64_t *bytes)
{
	const struct ts_graph *g = s->graph;
	const struct ts_program *p = ts_model_program(s->model);
	double rate = (double)g->profile->device.h2d_both_bytes_per_s * 1e-9;
	double most = MOST_AHEAD * (double)s->limit_bytes, pending = 0;
	struct ts_outcome outcome;
	int err;

	err = ts_model_run(s->model, &s->best.choice, &outcome, s->wait_ns);
	if (err)
		return err;
	/* Waits by op. */
	memset(bytes, 0, g->n_ops * sizeof(*bytes));
	for (uint32_t i = 0; i < g->n_gaps; i++)
		bytes[p->need_op[i] % g->n_ops] += s->wait_ns[i];
	for (uint32_t i = g->n_ops; i-- > 0;) {
		double ns = (double)g->profile->ops[i].duration_ns;

		pending += (double)bytes[i] * rate * share;
		if (pending > most)
			pending = most;
		if ((double)bytes[i] < ns)
			s->cover.extra_bytes[i] += (uint64_t)pending;
		pending -= ns * rate * IDLE_SHARE;
		if (pending < 0)
			pending = 0;
	}
	return 0;
}

static struct ts_cover_options options_of(const struct ts_search *s,
        const struct setting *setting, double region, double headroom)
{
	return (struct ts_cover_options){.no_swaps = s->no_swaps,
	        .no_replays = setting->no_replays,
	        .by_area = setting->by_area,
	        .reserve = setting->reserve,
	        .pull_ns = region * setting->pull,
	        .link_share = setting->link_share,
	        .peak_price = setting->peak_price,
	        .limit_bytes =
	                (uint64_t)((double)s->limit_bytes * (1 - headroom))};
}

/*
 * The setting with the best step, which does not come again, nor do those that
 * began the very same way; its step.
 */
static uint32_t take_best(uint64_t step_ns[], uint64_t *ret_step_ns)
{
	uint32_t best = 0;

	for (uint32_t k = 1; k < N_SETTINGS; k++) {
		if (step_ns[k] < step_ns[best])
			best = k;
	}
	*ret_step_ns = step_ns[best];
	if (step_ns[best] == TS_NEVER)
		return TS_NONE;
	for (uint32_t k = 0; k < N_SETTINGS; k++) {
		if (step_ns[k] == *ret_step_ns)
			step_ns[k] = TS_NEVER;
	}
	return best;
}

/* All that a search over settings works with. */
struct cover_search {
	struct ts_search *search;
	double region;
	uint64_t *bytes; /* scratch, by op */
	uint64_t step_ns[N_SETTINGS];
	uint64_t work; /* the most that a setting has taken to begin */
};

/* From the beginning; *ret_step_ns is the best step of these rounds. */
static int start_setting(struct cover_search *c, uint32_t setting,
        double headroom, uint32_t rounds, uint64_t *ret_step_ns)
{
	struct ts_cover_options options =
	        options_of(c->search, &settings[setting], c->region, headroom);

	ts_cover_reset(&c->search->cover);
	return try_setting(c->search, &options, rounds, c->bytes, ret_step_ns);
}

/* Whether a setting is worth a look, after those before it. */
static bool worth_a_look(const struct cover_search *c, uint32_t setting)
{
	const struct ts_search *s = c->search;
	bool other = false;

	if (setting && !ts_search_may(s, c->work))
		return false;
	if (s->swap_only || !settings[setting].no_replays)
		return settings[setting].no_replays == s->swap_only;
	for (uint32_t i = 0; i < setting; i++)
		other = other ||
		        (c->step_ns[i] != TS_NEVER && !settings[i].no_replays);
	return !other || (poor(s) && !settings[setting - 1].no_replays);
}

/* Every setting once; in c->step_ns how well it went. */
static int try_all(struct cover_search *c)
{
	int err = 0;

	for (uint32_t i = 0; !err && i < N_SETTINGS; i++) {
		uint64_t work = ts_search_work(c->search);

		c->step_ns[i] = TS_NEVER;
		if (worth_a_look(c, i))
			err = start_setting(
			        c, i, headrooms[0], 1, &c->step_ns[i]);
		work = ts_search_work(c->search) - work;
		if (work > c->work)
			c->work = work;
	}
	return err;
}

/* Rounds with memory set aside for what compute waited for. */
static int try_ahead(struct cover_search *c, uint32_t setting, double headroom)
{
	struct ts_search *s = c->search;
	struct ts_cover_options options =
	        options_of(s, &settings[setting], c->region, headroom);
	uint64_t got;
	int err = 0;

	for (uint32_t i = 0; !err && i < N_AHEADS; i++) {
		if (!s->best.outcome.fits ||
		        (double)s->best.outcome.wait_in_ns <
		                LITTLE_WAIT * (double)s->best.outcome.step_ns)
			break;
		if (!ts_search_may(s, 2 * c->work))
			break;
		ts_cover_reset(&s->cover);
		err = make_room(s, aheads[i], c->bytes);
		if (!err)
			err = try_setting(s, &options, 2, c->bytes, &got);
	}
	return err;
}

/*
 * One setting as far as it goes, apart from what others found, for where it
 * goes on depends on where its own best plan waits. The better one stays.
 */
static int go_on(struct cover_search *c, uint32_t setting, double headroom,
        uint64_t *ret_step_ns)
{
	struct ts_search *s = c->search;
	struct ts_best before;
	uint64_t got;
	int err = ts_search_begin_apart(s, &before);

	if (err)
		return err;
	err = start_setting(c, setting, headroom, MORE_ROUNDS, &got);
	if (!err)
		err = try_ahead(c, setting, headroom);
	if (!err && s->best.outcome.fits)
		err = ts_search_refit(s, REFITS);
	/* What is close may have more in it than what is best so far. */
	if (!err && s->evaluations && s->best.outcome.fits &&
	        (double)s->best.outcome.step_ns <
	                CLOSE * (double)before.outcome.step_ns)
		err = ts_search_improve(
		        s, ts_search_effort(s, TS_CLOSE_EVALUATIONS));
	if (!err)
		err = ts_search_note_settled(s);
	*ret_step_ns = s->best.outcome.step_ns;
	ts_search_end_apart(s, &before);
	return err;
}

/* The first settings, each from where the best of all of them waits. */
static int go_on_together(struct cover_search *c)
{
	struct ts_search *s = c->search;
	uint64_t step_ns[N_SETTINGS], got;
	uint32_t first = TS_NONE;
	int err = 0;

	memcpy(step_ns, c->step_ns, sizeof(step_ns));
	for (uint32_t i = 0; !err && i < TOGETHER; i++) {
		uint32_t setting = take_best(step_ns, &got);

		if (setting == TS_NONE || !ts_search_may(s, 2 * c->work))
			break;
		first = i ? first : setting;
		err = start_setting(
		        c, setting, headrooms[0], MORE_ROUNDS, &got);
	}
	if (!err && first != TS_NONE)
		err = try_ahead(c, first, headrooms[0]);
	if (!err && s->best.outcome.fits)
		err = ts_search_refit(s, REFITS);
	if (!err && s->evaluations && s->best.outcome.fits)
		err = ts_search_improve(
		        s, ts_search_effort(s, TS_CLOSE_EVALUATIONS));
	if (err || !ts_search_may(s, 2 * ts_search_run_work(s)))
		return err;
	return ts_search_note_settled(s);
}

/* The best settings, each by itself, to the end. */
static int go_on_apart(struct cover_search *c)
{
	struct ts_search *s = c->search;
	double most_ns = 0;
	int err = 0;

	for (uint32_t i = 0; !err && i < ts_search_effort(s, N_SETTINGS); i++) {
		uint64_t first_ns;
		uint32_t setting = take_best(c->step_ns, &first_ns);

		if (!i)
			most_ns = TOO_FAR * (double)first_ns;
		if (setting == TS_NONE || (double)first_ns > most_ns ||
		        !ts_search_may(s, GOING_ON * c->work))
			break;
		for (uint32_t k = 0; !err && k < N_HEADROOMS; k++) {
			uint64_t step_ns = TS_NEVER;

			if (perfect(s) || !ts_search_may(s, GOING_ON * c->work))
				break;
			err = go_on(c, setting, headrooms[k], &step_ns);
			if ((double)step_ns >
			        FAR * (double)s->best.outcome.step_ns)
				break;
		}
	}
	return err;
}

int ts_search_cover(struct ts_search *s)
{
	struct cover_search c = {.search = s,
	        .region = region_ns(s->graph),
	        .bytes = calloc(
	                s->graph->n_ops + UINT64_C(1), sizeof(*c.bytes))};
	int err = c.bytes ? 0 : -ENOMEM;

	if (!err && !s->cover.pass)
		err = ts_cover_init(&s->cover, &s->pass);
	if (!err && !s->program.graph)
		err = ts_program_init(&s->program, s->graph);
	if (!err)
		err = try_all(&c);
	if (!err)
		err = go_on_together(&c);
	if (!err && !s->quick)
		err = go_on_apart(&c);
	free(c.bytes);
	return err;
}
