/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "agent/planned_predict.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/enforce.h"
#include "runtime/fence.h"

/* The first step starts with nothing under way, the second settles. */
#define STEPS 3

/* One copy of the driver's at most; see runtime/hostpool.c. */
#define COPY_BYTES_MAX (64ull << 20)

enum { OUT, IN, WAYS };

struct copy {
	double bytes;
	struct ts_fence after; /* numbers of ops and copies, from 1 on */
};

struct copies {
	struct copy *items;
	uint32_t count, room;
};

struct op {
	double ns;
	struct ts_fence after;
};

struct work {
	const struct ts_page_view *view;
	const struct ts_page_plan *pages;
	const struct ts_planned_extras *extras;
	struct op *ops; /* of all steps */
	uint32_t n_ops;
	struct copies copies[WAYS];
	struct ts_fence *of_range, *of_chunk;
	bool *here; /* by range: it has taken over its chunks */
	/* By range: offsets into chunks. */
	uint32_t *first_chunk, *chunks;
	/* By op: ranges that die before it. */
	uint32_t *first_death, *deaths;
};

/* ------------------------------------------------------------------ chunks */

static const struct ts_plan_strip *strip_at(
        const struct ts_page_plan *pages, uint64_t address)
{
	uint32_t low = 0, high = pages->n_strips;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;
		const struct ts_plan_strip *strip = &pages->strips[middle];

		if (strip->address + strip->pages * pages->page_bytes <=
		        address)
			low = middle + 1;
		else
			high = middle;
	}
	if (low == pages->n_strips || pages->strips[low].address > address)
		return NULL;
	return &pages->strips[low];
}

/* The chunks of every range one after the other. */
static int find_chunks(struct work *work)
{
	const struct ts_page_view *view = work->view;
	uint64_t page_bytes = work->pages->page_bytes, total = 0;

	for (uint32_t i = 0; i < view->n_ranges; i++)
		total += view->ranges[i].bytes / page_bytes;
	work->first_chunk = malloc((view->n_ranges + 1ull) * sizeof(uint32_t));
	work->chunks = malloc((total + 1) * sizeof(uint32_t));
	if (!work->first_chunk || !work->chunks)
		return -ENOMEM;
	total = 0;
	for (uint32_t i = 0; i < view->n_ranges; i++) {
		uint64_t at = view->ranges[i].address;
		uint64_t end = at + view->ranges[i].bytes;

		work->first_chunk[i] = (uint32_t)total;
		for (; at < end; at += page_bytes) {
			const struct ts_plan_strip *strip =
			        strip_at(work->pages, at);

			if (strip)
				work->chunks[total++] =
				        work->pages->chunk_of
				                [strip->first_page +
				                        (at - strip->address) /
				                                page_bytes];
		}
	}
	work->first_chunk[view->n_ranges] = (uint32_t)total;
	return 0;
}

static int list_deaths(struct work *work)
{
	const struct ts_page_view *view = work->view;
	uint32_t n = view->profile.n_ops, total = 0;

	work->first_death = calloc(n + 2ull, sizeof(uint32_t));
	work->deaths = malloc((view->n_ranges + 1ull) * sizeof(uint32_t));
	if (!work->first_death || !work->deaths)
		return -ENOMEM;
	for (uint32_t i = 0; i < view->n_ranges; i++)
		if (view->ranges[i].end < n)
			work->first_death[view->ranges[i].end]++;
	for (uint32_t i = 0; i <= n; i++) {
		uint32_t count = work->first_death[i];

		work->first_death[i] = total;
		total += count;
	}
	for (uint32_t i = 0; i < view->n_ranges; i++)
		if (view->ranges[i].end < n)
			work->deaths[work->first_death[view->ranges[i].end]++] =
			        i;
	/* Each entry is where its own begin again. */
	memmove(work->first_death + 1, work->first_death, n * sizeof(uint32_t));
	work->first_death[0] = 0;
	return 0;
}

/* ------------------------------------------------- what waits for what else */

/* The range has its chunks from now on, after whoever had them. */
static void come(struct work *work, uint32_t range)
{
	if (work->here[range])
		return;
	work->here[range] = true;
	for (uint32_t k = work->first_chunk[range];
	        k < work->first_chunk[range + 1]; k++)
		ts_fence_join(&work->of_range[range],
		        &work->of_chunk[work->chunks[k]]);
}

static void go(struct work *work, uint32_t range)
{
	if (!work->here[range])
		return;
	work->here[range] = false;
	for (uint32_t k = work->first_chunk[range];
	        k < work->first_chunk[range + 1]; k++)
		ts_fence_join(&work->of_chunk[work->chunks[k]],
		        &work->of_range[range]);
}

static int add_copy(
        struct copies *list, double bytes, const struct ts_fence *after)
{
	if (list->count == list->room) {
		uint32_t room = 2 * list->room + 256;
		struct copy *more = realloc(list->items, room * sizeof(*more));

		if (!more)
			return -ENOMEM;
		list->items = more;
		list->room = room;
	}
	list->items[list->count++] = (struct copy){bytes, *after};
	return 0;
}

/* Copies of @bytes that lie side by side. */
static int copy_run(struct work *work, uint64_t bytes, int way,
        const struct ts_fence *after)
{
	int rc = 0;

	while (bytes && !rc) {
		uint64_t one = bytes < COPY_BYTES_MAX ? bytes : COPY_BYTES_MAX;

		rc = add_copy(&work->copies[way], (double)one, after);
		bytes -= one;
	}
	return rc;
}

/* Ranges side by side that move one after the other share copies. */
static int copy_ranges(struct work *work, const struct ts_planned_move *moves,
        uint32_t count, int way, const struct ts_fence *after)
{
	uint64_t end = 0, bytes = 0;
	int rc = 0;

	for (uint32_t i = 0; i < count && !rc; i++) {
		const struct ts_page_range *range =
		        &work->view->ranges[moves[i].range];

		if (!moves[i].copies)
			continue;
		if (range->address != end) {
			rc = copy_run(work, bytes, way, after);
			bytes = 0;
		}
		bytes += range->bytes;
		end = range->address + range->bytes;
	}
	return rc ? rc : copy_run(work, bytes, way, after);
}

/* The copies of @count moves, which wait for the same and end as one. */
static int add_batch(struct work *work, const struct ts_planned_move *moves,
        uint32_t count, int way)
{
	struct ts_fence after = {0, 0, 0};
	uint64_t number;
	int rc;

	for (uint32_t i = 0; i < count; i++) {
		if (way == IN)
			come(work, moves[i].range);
		if (moves[i].copies)
			ts_fence_join(&after, &work->of_range[moves[i].range]);
	}
	rc = copy_ranges(work, moves, count, way, &after);
	number = work->copies[way].count;
	for (uint32_t i = 0; i < count; i++) {
		struct ts_fence *fence = &work->of_range[moves[i].range];

		if (moves[i].copies && way == OUT)
			fence->out = number;
		else if (moves[i].copies)
			fence->in = number;
		if (way == OUT)
			go(work, moves[i].range);
	}
	return rc;
}

/* Batches of what moves before an op one way, as the runtime makes them. */
static int add_moves(struct work *work, const struct ts_planned_move *moves,
        uint32_t count, int way)
{
	uint32_t first = 0;
	uint64_t bytes = 0;
	int rc = 0;

	for (uint32_t i = 0; i < count && !rc; i++) {
		bytes += work->view->ranges[moves[i].range].bytes;
		if (i + 1 < count && (moves[i + 1].tick == moves[i].tick ||
		                             bytes < TS_ENFORCE_BATCH_BYTES))
			continue;
		rc = add_batch(work, &moves[first], i + 1 - first, way);
		first = i + 1;
		bytes = 0;
	}
	return rc;
}

/* The same of those from *@move on that move before op @index. */
static int add_moves_at(struct work *work, const struct ts_planned_move **move,
        uint32_t index, int way)
{
	const struct ts_planned_move *first = *move;
	const struct ts_planned_move *end =
	        work->extras->moves + work->extras->n_moves;

	while (*move < end && (*move)->op == index &&
	        (*move)->take == (way == IN))
		++*move;
	return add_moves(work, first, (uint32_t)(*move - first), way);
}

/* The range of the @index-th use of @op. */
static uint32_t used_by(
        const struct work *work, const struct ts_profile_op *op, uint32_t index)
{
	uint32_t at = index < op->n_reads
	                      ? op->first_read + index
	                      : op->first_write + index - op->n_reads;

	return work->view->range_of[work->view->profile.uses[at]];
}

static void add_op(struct work *work, uint32_t index)
{
	const struct ts_profile *profile = &work->view->profile;
	const struct ts_profile_op *from = &profile->ops[index];
	struct op *op = &work->ops[work->n_ops++];

	*op = (struct op){.ns = (double)from->duration_ns};
	for (uint32_t k = 0; k < from->n_reads + from->n_writes; k++) {
		uint32_t range = used_by(work, from, k);

		if (ts_page_range_lingers(&work->view->ranges[range], index))
			continue;
		come(work, range);
		ts_fence_join(&op->after, &work->of_range[range]);
	}
	/* Not before: it may use a range more than once. */
	for (uint32_t k = 0; k < from->n_reads + from->n_writes; k++) {
		uint32_t range = used_by(work, from, k);

		if (!ts_page_range_lingers(&work->view->ranges[range], index))
			work->of_range[range].op = work->n_ops;
	}
}

/* The range of what the @index-th read of @rebuild is; past them @made. */
static uint32_t rebuilt_from(const struct work *work,
        const struct ts_rebuild *rebuild, uint32_t index, uint32_t made)
{
	uint32_t at = rebuild->first_read + index;

	return index == rebuild->n_reads
	               ? made
	               : work->view->range_of[work->view->profile.uses[at]];
}

/* A range of a block is needed, with those that the block shares. */
static void need(struct work *work, uint32_t range, struct ts_fence *after)
{
	const struct ts_page_view *view = work->view;

	come(work, range);
	ts_fence_join(after, &work->of_range[range]);
	for (int i = 0; i < 2 && range < view->n_blocks; i++) {
		uint32_t shared = view->shared[range][i];

		if (shared == TS_NONE)
			continue;
		come(work, shared);
		ts_fence_join(after, &work->of_range[shared]);
	}
}

static void was_used(struct work *work, uint32_t range)
{
	const struct ts_page_view *view = work->view;

	work->of_range[range].op = work->n_ops;
	for (int i = 0; i < 2 && range < view->n_blocks; i++)
		if (view->shared[range][i] != TS_NONE)
			work->of_range[view->shared[range][i]].op = work->n_ops;
}

/*
 * Values are made again by their rebuilds: one op more each. Before the first
 * of those that are made together all is there that any of them needs.
 */
static void add_replays(
        struct work *work, const struct ts_replay *replays, uint32_t count)
{
	const struct ts_profile *profile = &work->view->profile;
	struct ts_fence after = {0, 0, 0};

	for (uint32_t i = 0; i < count; i++) {
		uint32_t value = replays[i].value;
		const struct ts_rebuild *rebuild =
		        &profile->rebuilds[profile->values[value].rebuild];

		for (uint32_t k = 0; k <= rebuild->n_reads; k++)
			need(work,
			        rebuilt_from(work, rebuild, k,
			                work->view->range_of[value]),
			        &after);
	}
	for (uint32_t i = 0; i < count; i++)
		work->ops[work->n_ops++] = (struct op){
		        .ns = (double)replays[i].duration_ns, .after = after};
	for (uint32_t i = 0; i < count; i++) {
		uint32_t value = replays[i].value;
		const struct ts_rebuild *rebuild =
		        &profile->rebuilds[profile->values[value].rebuild];

		for (uint32_t k = 0; k <= rebuild->n_reads; k++)
			was_used(work, rebuilt_from(work, rebuild, k,
			                       work->view->range_of[value]));
	}
}

static int add_step(struct work *work)
{
	const struct ts_planned_move *move = work->extras->moves;
	const struct ts_replay *replay = work->extras->replays;
	const struct ts_replay *last = replay + work->extras->n_replays;
	int rc = 0;

	for (uint32_t i = 0; i < work->view->profile.n_ops && !rc; i++) {
		uint32_t count = 0;

		rc = add_moves_at(work, &move, i, OUT);
		/* What comes has the chunks of what is gone for good, too. */
		for (uint32_t k = work->first_death[i];
		        k < work->first_death[i + 1]; k++)
			go(work, work->deaths[k]);
		if (!rc)
			rc = add_moves_at(work, &move, i, IN);
		while (replay + count < last && replay[count].before_op == i)
			count++;
		add_replays(work, replay, count);
		replay += count;
		add_op(work, i);
	}
	/* What goes on under another name in the next step. */
	for (uint32_t i = 0; i < work->view->n_ranges; i++) {
		const struct ts_page_range *range = &work->view->ranges[i];

		if (!range->before || range->end < work->view->profile.n_ops)
			go(work, i);
	}
	return rc;
}

/* -------------------------------------------------------------------- time */

struct engine {
	uint32_t done; /* of its list */
	bool runs, moves;
	double left; /* of its latency, or of its bytes */
};

struct clock {
	const struct work *work;
	double now, alone[WAYS], both[WAYS], latency;
	struct engine compute, ways[WAYS];
};

static bool may_start(const struct clock *clock, const struct ts_fence *after)
{
	return after->op <= clock->compute.done &&
	       after->out <= clock->ways[OUT].done &&
	       after->in <= clock->ways[IN].done;
}

static void start_what_can(struct clock *clock)
{
	const struct work *work = clock->work;

	for (int way = 0; way < WAYS; way++) {
		const struct copies *list = &work->copies[way];
		struct engine *engine = &clock->ways[way];

		if (engine->runs || engine->done == list->count ||
		        !may_start(clock, &list->items[engine->done].after))
			continue;
		engine->runs = true;
		engine->moves = false;
		engine->left = clock->latency;
	}
	if (!clock->compute.runs && clock->compute.done < work->n_ops &&
	        may_start(clock, &work->ops[clock->compute.done].after)) {
		clock->compute.runs = true;
		clock->compute.left = work->ops[clock->compute.done].ns;
	}
}

static double speed_of(const struct clock *clock, int way)
{
	if (!clock->ways[way].moves)
		return 1;
	return clock->ways[OUT].moves && clock->ways[IN].moves
	               ? clock->both[way]
	               : clock->alone[way];
}

/* To the next end of something; false where nothing runs. */
static bool advance(struct clock *clock)
{
	double step = clock->compute.runs ? clock->compute.left : -1;
	double speed[WAYS];

	for (int way = 0; way < WAYS; way++) {
		speed[way] = speed_of(clock, way);
		if (clock->ways[way].runs &&
		        (step < 0 || clock->ways[way].left / speed[way] < step))
			step = clock->ways[way].left / speed[way];
	}
	if (step < 0)
		return false;
	clock->now += step;
	if (clock->compute.runs) {
		clock->compute.left -= step;
		if (clock->compute.left <= 0) {
			clock->compute.runs = false;
			clock->compute.done++;
		}
	}
	for (int way = 0; way < WAYS; way++) {
		struct engine *engine = &clock->ways[way];
		const struct copies *list = &clock->work->copies[way];

		if (!engine->runs)
			continue;
		engine->left -= step * speed[way];
		/* Of a byte it is what rounding left. */
		if (engine->left > 1e-3)
			continue;
		if (!engine->moves) {
			engine->moves = true;
			engine->left = list->items[engine->done].bytes;
		} else {
			engine->runs = false;
			engine->moves = false;
			engine->done++;
		}
	}
	return true;
}

/* From the last step's first op to what would be the first of the next. */
static uint64_t run(const struct work *work)
{
	const struct ts_device *device = &work->view->profile.device;
	struct clock clock = {.work = work,
	        .alone = {(double)device->d2h_bytes_per_s * 1e-9,
	                (double)device->h2d_bytes_per_s * 1e-9},
	        .both = {(double)device->d2h_both_bytes_per_s * 1e-9,
	                (double)device->h2d_both_bytes_per_s * 1e-9},
	        .latency = (double)device->copy_latency_ns};
	uint32_t n = work->view->profile.n_ops + work->extras->n_replays;
	uint32_t first = (STEPS - 2) * n, last = (STEPS - 1) * n;
	double begin = -1;

	for (;;) {
		start_what_can(&clock);
		if (begin < 0 && clock.compute.done == first &&
		        clock.compute.runs)
			begin = clock.now;
		if (clock.compute.done == last && clock.compute.runs)
			return (uint64_t)(clock.now - begin + 0.5);
		if (!advance(&clock))
			return UINT64_MAX;
	}
}

/* ------------------------------------------------------------------- whole */

static int by_turn(const void *a, const void *b, void *data)
{
	const struct ts_planned_move *x = a, *y = b;
	const struct ts_page_range *ranges = data;
	uint64_t ax = ranges[x->range].address, ay = ranges[y->range].address;

	if (x->op != y->op)
		return x->op < y->op ? -1 : 1;
	if (x->take != y->take)
		return x->take ? 1 : -1;
	if (x->tick != y->tick)
		return x->tick < y->tick ? -1 : 1;
	return ax < ay ? -1 : ax > ay;
}

static int allocate(struct work *work)
{
	const struct ts_page_view *view = work->view;

	work->ops = malloc((STEPS * ((uint64_t)view->profile.n_ops +
	                                    work->extras->n_replays) +
	                           1) *
	                   sizeof(struct op));
	work->of_range = calloc(view->n_ranges + 1ull, sizeof(*work->of_range));
	work->of_chunk =
	        calloc(work->pages->n_chunks + 1ull, sizeof(*work->of_chunk));
	work->here = calloc(view->n_ranges + 1ull, sizeof(*work->here));
	return work->ops && work->of_range && work->of_chunk && work->here
	               ? 0
	               : -ENOMEM;
}

int ts_planned_predict(const struct ts_page_view *view,
        const struct ts_page_plan *pages,
        const struct ts_planned_extras *extras, uint64_t *ret_step_ns)
{
	struct work work = {.view = view, .pages = pages, .extras = extras};
	int rc = allocate(&work);

	qsort_r(extras->moves, extras->n_moves, sizeof(*extras->moves), by_turn,
	        view->ranges);
	if (!rc)
		rc = find_chunks(&work);
	if (!rc)
		rc = list_deaths(&work);
	for (int i = 0; i < STEPS && !rc; i++)
		rc = add_step(&work);
	if (!rc)
		*ret_step_ns = run(&work);
	free(work.ops);
	free(work.copies[OUT].items);
	free(work.copies[IN].items);
	free(work.of_range);
	free(work.of_chunk);
	free(work.here);
	free(work.first_chunk);
	free(work.chunks);
	free(work.first_death);
	free(work.deaths);
	return rc;
}
