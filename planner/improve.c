/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Local search: a fixed number of evaluations on the event model, so that the
 * same input gives the same plan on every machine. Called by ts_plan_make().
 *
 * It walks: a change is taken where the step gets no slower than the walk's
 * threshold allows, which shrinks to nothing; the best plan seen is kept.
 */
#include "planner/repair.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Up to so many movable gaps a tape counts as short. */
#define SMALL 40
/* Up to so many, all changes of two of them are looked at. */
#define SHORTEST 14
/* Up to so many combinations all are looked at, whatever the budget is. */
#define ENUMERATED 3000
/* Threshold at the start of the walk on a short tape. */
#define SLACK 0.3
/* Changes that are guessed to be good until the walk stops to look. */
#define MOST_DRIFT 4
/* Times that windows are fitted on the way. */
#define WALKS 4
/* Steps that an evaluation counts as where steps lean on one another. */
#define WIDE_STEPS 3
/* A copy back may begin so many times earlier than it takes. */
static const uint32_t leads[] = {2, 8, 64};
#define N_LEADS (sizeof(leads) / sizeof(leads[0]))

/* A gap that may change, and what it may become. */
struct movable {
	uint32_t gap;
	double cost_per_byte; /* of its replay; infinite: 1e300 */
	uint32_t n_actions;
	uint8_t actions[TS_ACTIONS];
};

struct improve {
	struct ts_search *search;
	/* Where the walk stands. */
	struct ts_choice here;
	uint64_t here_ns;
	enum ts_window_mode windows;
	/* How much slower a step may get, in parts of the step. */
	double threshold;
	struct movable *movable; /* dearest replay per byte first */
	uint32_t n;
	uint64_t random;
	uint32_t left; /* evaluations */
	/*
	 * A long tape whose steps lean on one another: trials are guessed at
	 * from the step before, windows are changed one by one, and what looks
	 * good is run. Changes since then.
	 */
	bool wide;
	uint32_t drift;
	/* Instructions that the model had run before; the budget; trials. */
	uint64_t instrs_before, instrs, compiled;
};

/* Guesses differ a lot in what they take: these count instructions. */
static void count_work(struct improve *im)
{
	const struct ts_search *s = im->search;
	uint64_t step = s->graph->n_ops + UINT64_C(1);
	uint64_t done = ts_model_instrs(s->model) - im->instrs_before;
	uint64_t per = WIDE_STEPS * step;

	/* To compile a trial takes about half as long as to run it. */
	done += im->compiled * step / 2;

	im->left =
	        done < im->instrs ? (uint32_t)((im->instrs - done) / per) : 0;
}

/* xorshift64*: a fixed stream, not a source of randomness. */
static uint32_t draw(struct improve *im, uint32_t below)
{
	im->random ^= im->random >> 12;
	im->random ^= im->random << 25;
	im->random ^= im->random >> 27;
	return (uint32_t)((im->random * UINT64_C(2685821657736338717)) >> 33) %
	       below;
}

/* Begin of an op that may lie in the next step, if nothing waits. */
static uint64_t start_of(const struct ts_graph *g, uint32_t op)
{
	uint32_t n = g->n_ops;

	return op < n ? g->start_ns[op] : g->start_ns[n] + g->start_ns[op - n];
}

/* Gaps over some op that does not fit with everything kept. */
static int find_movable(struct improve *im)
{
	const struct ts_search *s = im->search;
	const struct ts_graph *g = s->graph;
	uint32_t *over = calloc(g->n_ops + UINT64_C(1), sizeof(*over));

	im->movable = calloc(g->n_gaps + UINT64_C(1), sizeof(*im->movable));
	if (!over || !im->movable) {
		free(over);
		return -ENOMEM;
	}
	for (uint32_t i = 0; i < g->n_ops; i++)
		over[i + 1] = over[i] + (g->mem_bytes[i] > s->limit_bytes);
	for (uint32_t i = 0; i < g->n_gaps; i++) {
		uint32_t gap = s->pass.order_by_cost[i];
		const struct ts_gap *info = &g->gaps[gap];
		struct movable *m = &im->movable[im->n];
		uint32_t end = info->to_op < g->n_ops ? info->to_op : g->n_ops;
		uint32_t inside = over[end] - over[info->from_op + 1];

		if (info->to_op > g->n_ops)
			inside += over[info->to_op - g->n_ops];
		/* On short tapes even delays elsewhere may help. */
		if (!inside && g->n_gaps > SHORTEST)
			continue;
		*m = (struct movable){.gap = gap,
		        .cost_per_byte =
		                info->replay_ns == TS_NEVER
		                        ? 1e300
		                        : (double)info->replay_ns /
		                                  (double)(info->size_bytes +
		                                           1)};
		m->actions[m->n_actions++] = TS_KEEP;
		m->actions[m->n_actions++] = TS_SWAP;
		if (info->replay_ns != TS_NEVER)
			m->actions[m->n_actions++] = TS_REPLAY;
		im->n++;
	}
	free(over);
	return 0;
}

/* Evaluates the trial, which may be the best; TS_NEVER where it fails. */
static int evaluate(
        struct improve *im, enum ts_window_mode windows, uint64_t *ret_step_ns)
{
	struct ts_search *s = im->search;
	struct ts_outcome outcome;
	int err;

	im->left--;
	*ret_step_ns = TS_NEVER;
	err = ts_search_windows(s, windows);
	if (err)
		return err == -EINVAL ? 0 : err;
	err = ts_model_try(s->model, &s->trial, &outcome);
	if (err || !outcome.fits)
		return err;
	*ret_step_ns = outcome.step_ns;
	if (outcome.step_ns < s->best.outcome.step_ns) {
		ts_choice_copy(&s->best.choice, &s->trial);
		s->best.outcome = outcome;
		s->best.windows = windows;
	}
	return 0;
}

/* Runs where the walk is; where that is no good, back to the best plan. */
static int stop_and_look(struct improve *im)
{
	struct ts_search *s = im->search;
	struct ts_outcome outcome;
	int err = ts_model_anchor(s->model, &im->here, &outcome);

	im->drift = 0;
	if (!err && outcome.fits && outcome.step_ns < s->best.outcome.step_ns) {
		ts_choice_copy(&s->best.choice, &im->here);
		s->best.outcome = outcome;
		s->best.windows = im->windows;
	}
	im->here_ns = outcome.step_ns;
	if (err || (outcome.fits && outcome.step_ns <= s->best.outcome.step_ns))
		return err;
	ts_choice_copy(&im->here, &s->best.choice);
	im->here_ns = s->best.outcome.step_ns;
	return ts_model_anchor(s->model, &im->here, &outcome);
}

/* Guesses at the trial; goes there where it looks no slower. */
static int try_wide(struct improve *im)
{
	struct ts_search *s = im->search;
	struct ts_outcome outcome;
	int err = ts_model_guess(s->model, &s->trial, im->here_ns, &outcome);

	im->compiled++;
	count_work(im);
	if (err || !outcome.fits || outcome.step_ns > im->here_ns)
		return err;
	im->here_ns = outcome.step_ns;
	ts_choice_copy(&im->here, &s->trial);
	return ++im->drift < MOST_DRIFT ? 0 : stop_and_look(im);
}

/* Evaluates the trial; goes there where the threshold allows. */
static int try(struct improve *im, enum ts_window_mode windows)
{
	struct ts_search *s = im->search;
	struct ts_outcome again;
	uint64_t step_ns;
	int err;

	if (im->wide)
		return try_wide(im);
	err = evaluate(im, windows, &step_ns);
	if (err || step_ns == TS_NEVER)
		return err;
	if ((double)step_ns > (double)im->here_ns * (1 + im->threshold))
		return 0;
	ts_choice_copy(&im->here, &s->trial);
	im->here_ns = step_ns;
	im->windows = windows;
	return ts_model_anchor(s->model, &s->trial, &again);
}

/* All combinations, where there are few enough. */
static int enumerate(struct improve *im, uint32_t combinations)
{
	struct ts_search *s = im->search;
	int err = 0;

	for (uint32_t c = 0; !err && c < combinations; c++) {
		uint32_t rest = c;

		memset(s->trial.action, TS_KEEP, s->trial.n_gaps);
		for (uint32_t i = 0; i < im->n; i++) {
			const struct movable *m = &im->movable[i];

			s->trial.action[m->gap] =
			        m->actions[rest % m->n_actions];
			rest /= m->n_actions;
		}
		for (uint32_t w = 0; !err && w < 2 * TS_WINDOW_MODES; w++) {
			memset(s->trial.late, w >= TS_WINDOW_MODES,
			        s->trial.n_gaps);
			err = try(
			        im, (enum ts_window_mode)(w % TS_WINDOW_MODES));
		}
	}
	return err;
}

/* A movable gap with action @action, near the front of the order or back. */
static const struct movable *pick(struct improve *im, enum ts_action action)
{
	const struct ts_choice *choice = &im->here;

	for (uint32_t attempt = 0; attempt < 64; attempt++) {
		const struct movable *m = &im->movable[draw(im, im->n)];

		if (choice->action[m->gap] == action)
			return m;
	}
	return NULL;
}

/* The cheapest way to free about @bytes: a kept gap to replay instead. */
static const struct movable *make_room(
        struct improve *im, const struct movable *instead)
{
	const struct ts_search *s = im->search;
	uint64_t bytes = s->graph->gaps[instead->gap].size_bytes;
	uint32_t skip = draw(im, 4);

	for (uint32_t i = im->n; i-- > 0;) {
		const struct movable *m = &im->movable[i];

		if (im->here.action[m->gap] != TS_KEEP ||
		        m->cost_per_byte >= instead->cost_per_byte)
			continue;
		if (s->graph->gaps[m->gap].size_bytes < bytes || skip--)
			continue;
		return m;
	}
	return NULL;
}

/* The copy back of a gap of the trial may begin at some earlier time. */
static void draw_window(struct improve *im, uint32_t gap)
{
	const struct ts_search *s = im->search;
	const struct ts_graph *g = s->graph;
	const struct ts_gap *info = &g->gaps[gap];
	const struct ts_device *d = &g->profile->device;
	double lead =
	        leads[draw(im, N_LEADS)] *
	        ((double)info->size_bytes * 1e9 / (double)d->h2d_bytes_per_s +
	                (double)d->copy_latency_ns);
	uint32_t low = info->from_op + 1, high = info->to_op;
	double need = (double)start_of(g, info->to_op);

	while (low < high) {
		uint32_t mid = low + (high - low + 1) / 2;

		if (need - (double)start_of(g, mid) >= lead)
			low = mid;
		else
			high = mid - 1;
	}
	s->trial.window[gap] = low;
}

/* Gaps that the trial swaps and where the walk is does not. */
static void draw_windows(struct improve *im)
{
	const struct ts_choice *trial = &im->search->trial;

	for (uint32_t i = 0; i < im->n; i++) {
		uint32_t gap = im->movable[i].gap;

		if (trial->action[gap] == TS_SWAP &&
		        im->here.action[gap] != TS_SWAP)
			draw_window(im, gap);
	}
}

/* One random change of where the walk is, in the trial. False: nothing. */
static bool mutate(struct improve *im)
{
	struct ts_search *s = im->search;
	uint8_t *action = s->trial.action;
	const struct movable *a, *b;

	ts_choice_copy(&s->trial, &im->here);
	switch (draw(im, im->wide ? 9 : 7)) {
	case 7: /* A copy back begins at another time. */
	case 8:
		a = pick(im, TS_SWAP);
		if (!a)
			return false;
		draw_window(im, a->gap);
		return s->trial.window[a->gap] != im->here.window[a->gap];
	case 0: /* Memory is left: keep what was replayed. */
		a = pick(im, TS_REPLAY);
		if (!a)
			return false;
		action[a->gap] = TS_KEEP;
		return true;
	case 1: /* The link has time left. */
		a = pick(im, TS_REPLAY);
		if (!a)
			return false;
		action[a->gap] = TS_SWAP;
		return true;
	case 2: /* A better use of the link. */
		a = pick(im, TS_REPLAY);
		b = pick(im, TS_SWAP);
		if (!a || !b || b->n_actions < TS_ACTIONS)
			return false;
		action[a->gap] = TS_SWAP;
		action[b->gap] = TS_REPLAY;
		return true;
	case 3: /* A better use of memory. */
		a = pick(im, TS_REPLAY);
		b = a ? make_room(im, a) : NULL;
		if (!b || b->n_actions < TS_ACTIONS)
			return false;
		action[a->gap] = TS_KEEP;
		action[b->gap] = TS_REPLAY;
		return true;
	case 4: /* What waits for the link is replayed or kept. */
		a = pick(im, TS_SWAP);
		if (!a)
			return false;
		action[a->gap] = draw(im, 2) && a->n_actions == TS_ACTIONS
		                         ? TS_REPLAY
		                         : TS_KEEP;
		return true;
	case 5: /* Kept and swapped change places. */
		a = pick(im, TS_KEEP);
		b = pick(im, TS_SWAP);
		if (!a || !b)
			return false;
		action[a->gap] = TS_SWAP;
		action[b->gap] = TS_KEEP;
		return true;
	default:
		a = &im->movable[draw(im, im->n)];
		action[a->gap] = a->actions[draw(im, a->n_actions)];
		return action[a->gap] != im->here.action[a->gap];
	}
}

/* Dearest replays first: which of them can be kept, or swapped, after all? */
static int spare_replays(
        struct improve *im, enum ts_action action, uint32_t enough)
{
	struct ts_search *s = im->search;
	int err = 0;

	for (uint32_t i = 0; !err && i < im->n && im->left > enough; i++) {
		const struct movable *m = &im->movable[i];

		if (im->here.action[m->gap] != TS_REPLAY)
			continue;
		ts_choice_copy(&s->trial, &im->here);
		s->trial.action[m->gap] = (uint8_t)action;
		if (action == TS_SWAP)
			draw_window(im, m->gap);
		err = try(im, im->windows);
	}
	return err;
}

/*
 * Random changes until so many evaluations are left of @evaluations; short
 * tapes may climb out of a hollow on the way.
 */
static int walk(struct improve *im, uint32_t evaluations, uint32_t until)
{
	struct ts_search *s = im->search;
	bool small = im->n <= SMALL;
	int err = 0;

	for (uint32_t idle = 0; !err && im->left > until &&
	                        idle < (im->wide ? 64 : 8) * evaluations;
	        idle++) {
		enum ts_window_mode windows = im->windows;

		im->threshold =
		        small ? SLACK * (double)im->left / (double)evaluations
		              : 0;
		if (!mutate(im))
			continue;
		if (im->wide)
			draw_windows(im);
		while (small && draw(im, 3) == 0) {
			const struct movable *m = &im->movable[draw(im, im->n)];

			s->trial.action[m->gap] =
			        m->actions[draw(im, m->n_actions)];
		}
		if (small && draw(im, 8) == 0)
			s->trial.late[im->movable[draw(im, im->n)].gap] ^= 1;
		if (small && draw(im, 8) == 0)
			windows =
			        (enum ts_window_mode)draw(im, TS_WINDOW_MODES);
		err = try(im, windows);
	}
	return err;
}

/* Indices of all movable gaps, the largest first. */
static void order_by_size(const struct improve *im, uint32_t order[SHORTEST])
{
	const struct ts_gap *gaps = im->search->graph->gaps;

	for (uint32_t i = 0; i < im->n; i++) {
		uint64_t size = gaps[im->movable[i].gap].size_bytes;
		uint32_t at = i;

		for (; at > 0 &&
		        gaps[im->movable[order[at - 1]].gap].size_bytes < size;
		        at--)
			order[at] = order[at - 1];
		order[at] = i;
	}
}

/*
 * From scratch, once for every action of every gap: nothing else is kept at
 * first, then each gap in turn, as @order has them, gets what is best.
 */
static int build_up(struct improve *im, const uint32_t order[SHORTEST])
{
	struct ts_search *s = im->search;
	uint8_t *action = s->trial.action;
	int err = 0;

	for (uint32_t i = 0; !err && i < im->n * TS_ACTIONS; i++) {
		const struct movable *fixed = &im->movable[i / TS_ACTIONS];
		uint64_t here_ns;

		if (i % TS_ACTIONS >= fixed->n_actions || !im->left)
			continue;
		ts_choice_copy(&s->trial, &s->best.choice);
		for (uint32_t k = 0; k < im->n; k++) {
			const struct movable *m = &im->movable[k];

			action[m->gap] = m->actions[m->n_actions - 1];
		}
		action[fixed->gap] = fixed->actions[i % TS_ACTIONS];
		err = evaluate(im, im->windows, &here_ns);
		for (uint32_t k = 0; !err && k < im->n * TS_ACTIONS; k++) {
			const struct movable *m =
			        &im->movable[order[k / TS_ACTIONS]];
			uint8_t before = action[m->gap];
			uint64_t step_ns;

			if (k % TS_ACTIONS >= m->n_actions || m == fixed ||
			        !im->left ||
			        m->actions[k % TS_ACTIONS] == before)
				continue;
			action[m->gap] = m->actions[k % TS_ACTIONS];
			err = evaluate(im, im->windows, &step_ns);
			if (step_ns < here_ns)
				here_ns = step_ns;
			else
				action[m->gap] = before;
		}
	}
	return err;
}

/* Copies out as they are, all as early as may be, all late. */
#define LATENESSES 3
static void set_lateness(struct ts_choice *choice, uint32_t lateness)
{
	if (lateness)
		memset(choice->late, lateness - 1, choice->n_gaps);
}

/*
 * Every change of one or two gaps of the best plan, in every window mode,
 * over again as long as that helps.
 */
static int neighbours(struct improve *im)
{
	struct ts_search *s = im->search;
	uint64_t before = TS_NEVER;
	int err = 0;

	im->threshold = 0;
	while (!err && s->best.outcome.step_ns < before) {
		before = s->best.outcome.step_ns;
		ts_choice_copy(&im->here, &s->best.choice);
		im->here_ns = before;
		for (uint32_t i = 0; !err && i < im->n * im->n; i++) {
			const struct movable *a = &im->movable[i / im->n];
			const struct movable *b = &im->movable[i % im->n];
			uint32_t all = a->n_actions * b->n_actions *
			               TS_WINDOW_MODES * LATENESSES;

			/* Pairs once; a gap with itself stands for one. */
			if (a > b)
				continue;
			for (uint32_t c = 0; !err && im->left && c < all; c++) {
				uint32_t rest = c / TS_WINDOW_MODES;

				ts_choice_copy(&s->trial, &s->best.choice);
				set_lateness(&s->trial, rest % LATENESSES);
				rest /= LATENESSES;
				s->trial.action[a->gap] =
				        a->actions[rest % a->n_actions];
				s->trial.action[b->gap] =
				        b->actions[rest / a->n_actions];
				err = try(im, (enum ts_window_mode)(
				                      c % TS_WINDOW_MODES));
			}
		}
	}
	return err;
}

/*
 * Short tapes: built up with the dearest replays first, and where the link is
 * slow one way with the largest gaps first, which are dearer there; then a walk
 * and all that is near.
 */
static int search_short(struct improve *im)
{
	uint32_t order[SHORTEST], kept;
	int err;

	for (uint32_t i = 0; i < im->n; i++)
		order[i] = i;
	err = build_up(im, order);
	if (!err) {
		order_by_size(im, order);
		err = build_up(im, order);
	}
	kept = im->left / 2;
	im->left -= kept;
	if (!err)
		err = walk(im, im->left, 0);
	im->left += kept;
	return err ? err : neighbours(im);
}

/* From the best plan on, with windows fitted to how it ran. */
static int start_wide(struct improve *im)
{
	struct ts_search *s = im->search;
	struct ts_outcome outcome;
	int err = ts_search_refit(s, 2);

	ts_choice_copy(&im->here, &s->best.choice);
	im->here_ns = s->best.outcome.step_ns;
	im->windows = s->best.windows;
	im->drift = 0;
	if (!err)
		err = ts_model_anchor(s->model, &im->here, &outcome);
	count_work(im);
	return err;
}

/*
 * On from the best plan on a long tape. Now and then all windows are fitted at
 * once, which no change of one by one comes to.
 */
static int walk_wide(struct improve *im, uint32_t evaluations)
{
	int err = 0;

	im->wide = true;
	im->instrs_before = ts_model_instrs(im->search->model);
	im->instrs = evaluations * WIDE_STEPS *
	             (uint64_t)(im->search->graph->n_ops + 1);
	for (uint32_t i = WALKS; !err && i-- > 0;) {
		err = start_wide(im);
		if (!err && i + 1 == WALKS)
			err = spare_replays(im, TS_SWAP, evaluations / 2);
		if (!err)
			err = walk(im, evaluations, evaluations / WALKS * i);
		if (!err && im->drift)
			err = stop_and_look(im);
	}
	return err ? err : ts_search_refit(im->search, 2);
}

/* As many of the evaluations as the budget has left, with some to begin. */
static uint32_t affordable(const struct ts_search *s, uint32_t evaluations)
{
	uint64_t run = ts_search_run_work(s);

	while (evaluations && !ts_search_may(s, (evaluations + 2) * run))
		evaluations /= 2;
	return evaluations;
}

int ts_search_improve(struct ts_search *s, uint32_t evaluations)
{
	struct improve im = {
	        .search = s, .random = UINT64_C(0x9e3779b97f4a7c15)};
	struct ts_outcome outcome;
	uint64_t combinations = 1;
	int err = 0;

	evaluations = affordable(s, evaluations);
	im.left = evaluations;
	/* Nothing is faster than no limit. */
	if (s->best.outcome.step_ns <= s->graph->start_ns[s->graph->n_ops])
		return 0;
	if (evaluations)
		err = find_movable(&im);
	if (err || !evaluations || !im.n)
		goto out_free;
	err = ts_choice_init(&im.here, s->graph->n_gaps);
	if (err)
		goto out_free;
	ts_choice_copy(&im.here, &s->best.choice);
	im.here_ns = s->best.outcome.step_ns;
	im.windows = s->best.windows;
	for (uint32_t i = 0; i < im.n && combinations <= ENUMERATED; i++)
		combinations *= im.movable[i].n_actions;
	err = ts_model_anchor(s->model, &im.here, &outcome);
	if (!err && combinations <= ENUMERATED && !s->no_enumeration) {
		err = enumerate(&im, (uint32_t)combinations);
		/* The search that follows looks at what lies between them. */
		im.left = evaluations;
	}
	if (!err)
		err = spare_replays(&im, TS_KEEP, im.left / 4 * 3);
	if (!err && im.n <= SHORTEST)
		err = search_short(&im);
	if (!err)
		err = walk(&im, im.left, 0);
	if (!err && !s->quick && evaluations > TS_CLOSE_EVALUATIONS &&
	        im.n > SMALL && ts_graph_wraps(s->graph))
		err = walk_wide(&im, evaluations);
out_free:
	ts_choice_finish(&im.here);
	free(im.movable);
	return err;
}
