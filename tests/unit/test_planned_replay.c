/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Plans for a step in which values may be made again: a chain of layers, each
 * of two ops, whose values a backward reads in reverse over a link so slow that
 * copies never pay.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "agent/planned_filler.h"
#include "agent/planned_make_internal.h"
#include "tests/unit/suite.h"

#define MIB    (1ull << 20)
#define BASE   (1ull << 40)
#define LAYERS 12u
#define VALUE  value_bytes
#define OP_NS  1000000u

/* Two ops a layer forwards, one backwards, and two values; and one more op
 * between them, which needs all that there is, or nothing. */
#define OPS    (3 * LAYERS + 1)
#define BLOCKS (2 * LAYERS + 2)
#define WIDE   (BLOCKS - 1)

static uint64_t value_bytes = 16 * MIB;

static struct {
	struct ts_rec_op ops[OPS];
	struct ts_rec_use uses[3 * OPS];
	struct ts_rec_block blocks[BLOCKS];
	struct ts_recording recording;
	struct ts_values values;
	uint32_t block_of[BLOCKS];
	struct ts_profile profile;
	struct ts_plan_segment segment;
	struct ts_enforce_survey survey;
	struct ts_replay_candidate list[BLOCKS];
	uint32_t pool[6 * BLOCKS];
	struct ts_replay_candidates candidates;
	struct ts_planned_step step;
} s;

/* Backwards no op reads what its layer's values are made from. */
static bool reads_no_input;

/* The first one's is small, and shares a page with what the op between makes.
 */
static bool small_input;

/* Only the first value was proved. */
static bool first_alone;

/* Values have their block's number: the input, then two a layer. */
static uint32_t inner(uint32_t layer)
{
	return 2 * layer + 1;
}

static uint32_t outer(uint32_t layer)
{
	return 2 * layer + 2;
}

static void add_op(struct ts_profile_builder *builder, uint32_t signature,
        const uint32_t *reads, uint32_t n_reads, uint32_t write)
{
	uint32_t at = ts_builder_op(builder, signature, OP_NS, reads, n_reads,
	        &write, write != TS_NONE);
	struct ts_rec_op *op = &s.ops[at];

	*op = (struct ts_rec_op){.signature = at + 1,
	        .stream = 1,
	        .duration_ns = OP_NS,
	        .first_use = s.recording.use_count};
	for (uint32_t i = 0; i <= n_reads; i++) {
		uint32_t block = i < n_reads ? reads[i] : write;

		if (block == TS_NONE)
			continue;
		s.uses[s.recording.use_count++] =
		        (struct ts_rec_use){.block = block};
		op->use_count++;
		if (i == n_reads)
			s.blocks[block].born = at + 1;
		else if (block)
			s.blocks[block].died = at + 2;
	}
	s.recording.op_count++;
}

static void add_candidate(uint32_t layer, bool with_outer)
{
	struct ts_replay_candidates *all = &s.candidates;
	struct ts_replay_candidate *to = &s.list[all->count++];
	uint32_t from = layer ? outer(layer - 1) : 0;

	*to = (struct ts_replay_candidate){
	        .value = with_outer ? outer(layer) : inner(layer),
	        .closure = 100 + all->count,
	        .duration_ns = with_outer ? 2 * OP_NS : OP_NS,
	        .scratch_bytes = with_outer ? VALUE : 0,
	        .first_op = all->pool_count,
	        .n_ops = with_outer ? 2 : 1};
	for (uint32_t i = 0; i < to->n_ops; i++)
		s.pool[all->pool_count++] = 2 * layer + i;
	to->first_read = all->pool_count;
	to->n_reads = 1;
	s.pool[all->pool_count++] = from;
}

/* With one op that needs @wide_bytes for itself. */
static void make_wide_step(uint64_t limit_bytes, uint64_t wide_bytes)
{
	struct ts_profile_builder builder;
	uint32_t signature;

	memset(&s, 0, sizeof(s));
	ts_builder_init(&builder);
	builder.profile.device = (struct ts_device){.memory_bytes = 1 << 30,
	        .d2h_bytes_per_s = 1 << 30,
	        .h2d_bytes_per_s = 1 << 30,
	        .d2h_both_bytes_per_s = 1 << 30,
	        .h2d_both_bytes_per_s = 1 << 30};
	signature = ts_builder_signature(&builder, "op", TS_CLASS_OTHER, true);
	s.recording.first_op = 1;
	for (uint32_t i = 0; i < BLOCKS; i++) {
		uint64_t bytes = i == WIDE ? wide_bytes : VALUE;
		uint64_t address = BASE + i * VALUE;

		if (small_input && (!i || i == WIDE)) {
			bytes = MIB;
			address = BASE + (i ? MIB : 0);
		}
		ts_builder_value(&builder, bytes, TS_KIND_OTHER);
		s.block_of[i] = i;
		s.blocks[i] = (struct ts_rec_block){.serial = i + 1,
		        .address = address,
		        .bytes = bytes,
		        .died = TS_NEVER};
	}
	builder.profile.values[0].persistent = true;
	for (uint32_t i = 0; i < LAYERS; i++) {
		uint32_t from = i ? outer(i - 1) : 0, middle = inner(i);

		add_op(&builder, signature, &from, 1, middle);
		add_op(&builder, signature, &middle, 1, outer(i));
		add_candidate(i, false);
		if (i + 1 < LAYERS)
			add_candidate(i, true);
	}
	add_op(&builder, signature, NULL, 0, WIDE);
	s.blocks[WIDE].died = s.blocks[WIDE].born + 1;
	for (uint32_t i = LAYERS; i-- > 0;) {
		uint32_t reads[] = {i ? outer(i - 1) : 0, inner(i), outer(i)};

		add_op(&builder, signature, reads + reads_no_input,
		        3 - reads_no_input, TS_NONE);
	}
	ck_assert_int_eq(ts_builder_take(&builder, &s.profile), 0);
	s.recording.ops = s.ops;
	s.recording.uses = s.uses;
	s.recording.blocks = s.blocks;
	s.recording.block_count = BLOCKS;
	s.values.block_of = s.block_of;
	s.segment = (struct ts_plan_segment){
	        BASE, (uint32_t)((WIDE * VALUE + wide_bytes + 2 * MIB - 1) /
	                         (2 * MIB))};
	s.survey = (struct ts_enforce_survey){.segments = &s.segment,
	        .n_segments = 1,
	        .page_bytes = 2 * MIB,
	        .limit_bytes = limit_bytes};
	s.candidates.list = s.list;
	s.candidates.pool = s.pool;
	s.step = (struct ts_planned_step){.step = &s.recording,
	        .profile = &s.profile,
	        .values = &s.values,
	        .survey = &s.survey,
	        .candidates = &s.candidates};
}

static void make_step(uint64_t limit_bytes)
{
	make_wide_step(limit_bytes, 0);
}

/* Candidates of two ops alone are left. */
static void keep_outer(void)
{
	uint32_t kept = 0;

	for (uint32_t i = 0; i < s.candidates.count; i++) {
		if (s.list[i].n_ops < 2)
			continue;
		s.list[kept] = s.list[i];
		s.list[kept].closure = 101 + kept;
		kept++;
	}
	s.candidates.count = kept;
}

static const struct ts_replay_candidate *candidate_of(uint32_t closure)
{
	return &s.list[closure - 101];
}

/* Has the page plan the value away just from after @from to before @to? */
static bool is_away(const struct ts_page_plan *pages, uint32_t value,
        uint32_t from, uint32_t to)
{
	bool leaves = false, comes = false;

	for (uint32_t i = 0; i < pages->n_strips; i++) {
		const struct ts_plan_strip *strip = &pages->strips[i];
		const struct ts_plan_stay *stay =
		        &pages->stays[strip->first_stay];

		if (strip->address > BASE + value * VALUE ||
		        strip->address + strip->pages * pages->page_bytes <=
		                BASE + value * VALUE)
			continue;
		for (uint32_t k = 0; k < strip->n_stays; k++) {
			leaves |= stay[k].release_op == from + 1;
			comes |= stay[k].take_op == to;
		}
	}
	return leaves && comes;
}

static void check_choices(const struct ts_planned_plan *plan)
{
	uint64_t bytes = 0;

	ck_assert_uint_gt(plan->n_replays, 0);
	for (uint32_t i = 0; i < plan->n_replays; i++) {
		const struct ts_replay_choice *choice = &plan->replays[i];
		const struct ts_replay_candidate *from;

		ck_assert_uint_gt(choice->closure, 100);
		ck_assert_uint_le(choice->closure, 100 + s.candidates.count);
		from = candidate_of(choice->closure);
		/* Never before its last use forwards, nor after its reader. */
		ck_assert_uint_lt(choice->from_op, choice->make_op);
		ck_assert_uint_ge(choice->from_op, s.blocks[from->value].born);
		ck_assert_uint_lt(
		        choice->make_op + 1, s.blocks[from->value].died);
		ck_assert(is_away(&plan->pages, from->value, choice->from_op,
		        choice->make_op));
		ck_assert_uint_le(from->scratch_bytes, plan->scratch_bytes);
		bytes += VALUE;
	}
	ck_assert_uint_eq(plan->replayed_bytes, bytes);
}

/* The plan names each launch, in order, right before who reads the value. */
static void check_launches(const struct ts_planned_plan *plan)
{
	uint32_t wanted = 0;

	for (uint32_t i = 0; i < plan->n_replays; i++) {
		const struct ts_replay_choice *choice = &plan->replays[i];
		const struct ts_replay_candidate *from =
		        candidate_of(choice->closure);
		uint32_t found = 0;

		wanted += from->n_ops;
		for (uint32_t k = 0; k < plan->plan.n_replays; k++) {
			const struct ts_replay *replay = &plan->plan.replays[k];

			if (replay->before_op == choice->make_op &&
			        found < from->n_ops &&
			        replay->op == s.pool[from->first_op + found])
				found++;
		}
		ck_assert_uint_eq(found, from->n_ops);
	}
	ck_assert_uint_eq(plan->plan.n_replays, wanted);
}

static uint64_t replayed_ns(const struct ts_planned_plan *plan)
{
	uint64_t ns = 0;

	for (uint32_t i = 0; i < plan->n_replays; i++)
		ns += candidate_of(plan->replays[i].closure)->duration_ns;
	return ns;
}

static void check_plan(const struct ts_planned_plan *plan)
{
	check_choices(plan);
	check_launches(plan);
	ck_assert_uint_eq(plan->plan.replay_ns, replayed_ns(plan));
	/* One after the other they take as long as all of them. */
	ck_assert_uint_ge(plan->plan.predicted_step_ns,
	        OPS * (uint64_t)OP_NS + replayed_ns(plan));
	ck_assert_uint_gt(plan->kept_ns, plan->plan.predicted_step_ns);
	/* What scratch takes there is not for pages. */
	ck_assert_uint_le(plan->chunks_there * 2 * MIB + plan->scratch_bytes,
	        s.survey.limit_bytes);
}

START_TEST(values_are_made_again_where_copies_do_not_pay)
{
	struct ts_planned_plan plan;

	make_step(288 * MIB);
	ck_assert_int_eq(ts_planned_make(&s.step, &plan, NULL), 0);
	check_plan(&plan);
	ts_planned_plan_finish(&plan);
	ts_profile_finish(&s.profile);
}
END_TEST

START_TEST(what_else_ops_make_takes_scratch)
{
	struct ts_planned_plan plan;

	make_step(288 * MIB);
	/* The inner values were not proved: each is made for the outer one. */
	keep_outer();
	ck_assert_int_eq(ts_planned_make(&s.step, &plan, NULL), 0);
	check_plan(&plan);
	ck_assert_uint_eq(plan.scratch_bytes, VALUE);
	ts_planned_plan_finish(&plan);
	ts_profile_finish(&s.profile);
}
END_TEST

START_TEST(what_takes_too_much_scratch_is_copied)
{
	struct ts_planned_plan plan;

	/* A sixteenth of it is less than a value. */
	make_step(160 * MIB);
	ck_assert_int_eq(ts_planned_make(&s.step, &plan, NULL), 0);
	check_plan(&plan);
	ck_assert_uint_eq(plan.scratch_bytes, 0);
	for (uint32_t i = 0; i < plan.n_replays; i++)
		ck_assert_uint_eq(
		        candidate_of(plan.replays[i].closure)->value % 2, 1);
	ts_planned_plan_finish(&plan);
	ts_profile_finish(&s.profile);
}
END_TEST

START_TEST(without_proof_nothing_is_made_again)
{
	struct ts_planned_plan plan;

	make_step(288 * MIB);
	s.candidates.count = 0;
	ck_assert_int_eq(ts_planned_make(&s.step, &plan, NULL), 0);
	ck_assert_uint_eq(plan.n_replays, 0);
	ck_assert_uint_eq(plan.plan.n_replays, 0);
	ck_assert_uint_eq(plan.plan.replay_ns, 0);
	ck_assert_uint_gt(plan.plan.swap_bytes, 0);
	ts_planned_plan_finish(&plan);
	ts_profile_finish(&s.profile);
}
END_TEST

/* A plan for @limit_bytes without candidates says whether it is worth it to
 * find some. */
static bool is_worth_it(uint64_t limit_bytes, bool is_open, bool no_replay)
{
	struct ts_planned_plan plan;
	bool worth;

	make_step(limit_bytes);
	s.candidates.count = 0;
	s.step.is_open = is_open;
	for (uint32_t i = 0; no_replay && i < BLOCKS; i++)
		s.profile.values[i].no_replay = true;
	ck_assert_int_eq(ts_planned_make(&s.step, &plan, NULL), 0);
	worth = plan.is_open;
	/* The plan itself goes by what is proved. */
	for (uint32_t v = 0; v < plan.view.profile.n_values; v++)
		ck_assert(plan.view.profile.values[v].no_replay);
	ck_assert_uint_eq(plan.n_replays, 0);
	ts_planned_plan_finish(&plan);
	ts_profile_finish(&s.profile);
	return worth;
}

START_TEST(it_is_proved_where_it_pays)
{
	ck_assert(is_worth_it(288 * MIB, true, false));
	/* Done already; against the rules; and nothing has to move. */
	ck_assert(!is_worth_it(288 * MIB, false, false));
	ck_assert(!is_worth_it(288 * MIB, true, true));
	ck_assert(!is_worth_it(1024 * MIB, true, false));
}
END_TEST

/*
 * What the widest op needs is all there is. The other ops' values may have as
 * much: those that are never there for the same op share chunks, and copies
 * wait for one another. If no chunk had a tenant before the last one's copy is
 * done, these ops would have to do with less.
 */
START_TEST(what_the_widest_op_needs_is_enough)
{
	struct ts_planned_plan plan;
	uint64_t least_bytes = 1;

	make_wide_step(68 * MIB, 64 * MIB);
	s.candidates.count = 0;
	ck_assert_int_eq(ts_planned_make(&s.step, &plan, &least_bytes), 0);
	/* There was none that needs more. */
	ck_assert_uint_eq(least_bytes, 0);
	ck_assert_uint_le(plan.pages.n_chunks, plan.chunks_there);
	ck_assert_uint_ge(plan.moving_bytes, 64 * MIB);
	ck_assert_uint_le(
	        plan.moving_bytes, plan.chunks_there * s.survey.page_bytes);
	/* It tells of the step as it is. */
	ck_assert_uint_eq(plan.plan.n_values, BLOCKS);
	ck_assert_uint_eq(plan.plan.unlimited_peak_bytes,
	        (2 * LAYERS + 1) * VALUE + 64 * MIB);
	ts_planned_plan_finish(&plan);
	ts_profile_finish(&s.profile);

	/* Less than that is not. */
	make_wide_step(62 * MIB, 64 * MIB);
	ck_assert_int_eq(ts_planned_make(&s.step, &plan, NULL), -ENOSPC);
	ts_profile_finish(&s.profile);
}
END_TEST

START_TEST(a_filler_leaves_smaller_ops_less)
{
	const uint64_t low = 40 * MIB;
	struct ts_graph_options options = {0};
	struct ts_planned_filler filler;
	uint8_t dirties[3 * OPS] = {0};
	struct ts_graph graph;

	make_wide_step(512 * MIB, 64 * MIB);
	dirties[s.profile.ops[OPS - 1].first_read + 1] = 1;
	options.dirties = dirties;
	ck_assert_int_eq(ts_graph_init(&graph, &s.profile, &options), 0);
	ck_assert_uint_eq(graph.floor_bytes, 64 * MIB);
	ck_assert_int_eq(ts_planned_filler_make(&graph, low, &filler), 0);
	ck_assert_uint_eq(filler.graph.floor_bytes, graph.floor_bytes);
	for (uint32_t i = 0; i < OPS; i++) {
		uint64_t need = graph.need_bytes[i];

		/* So that what is left to each that can is @low. */
		ck_assert_uint_eq(filler.graph.need_bytes[i],
		        need < low ? 64 * MIB - (low - need) : 64 * MIB);
		ck_assert_uint_ge(
		        filler.graph.mem_bytes[i], filler.graph.need_bytes[i]);
	}
	/* All else is as it was. */
	ck_assert_uint_eq(filler.graph.n_gaps, graph.n_gaps);
	for (uint32_t i = 0; i < graph.n_gaps; i++) {
		const struct ts_gap *was = &graph.gaps[i];
		const struct ts_gap *is = &filler.graph.gaps[i];

		ck_assert_uint_eq(is->version, was->version);
		ck_assert_uint_eq(is->from_op, was->from_op);
		ck_assert_uint_eq(is->to_op, was->to_op);
		ck_assert_uint_eq(is->dirty, was->dirty);
	}
	ts_planned_filler_finish(&filler);
	ts_graph_finish(&graph);
	ts_profile_finish(&s.profile);
}
END_TEST

START_TEST(where_all_fits_nothing_is_made_again)
{
	struct ts_planned_plan plan;

	make_step(1024 * MIB);
	ck_assert_int_eq(ts_planned_make(&s.step, &plan, NULL), 0);
	ck_assert_uint_eq(plan.n_replays, 0);
	ck_assert_uint_eq(plan.plan.swap_bytes, 0);
	ts_planned_plan_finish(&plan);
	ts_profile_finish(&s.profile);
}
END_TEST

/* Two values that are made @before these ops take so many @ops to make. */
static void check_times(uint64_t scratch_bytes, const uint32_t values[2],
        const uint32_t before[2], const uint64_t ops[2])
{
	struct ts_planned_work work = {
	        .step = &s.step, .scratch_bytes = scratch_bytes};
	struct ts_replay replays[2] = {
	        {.before_op = before[0], .value = values[0]},
	        {.before_op = before[1], .value = values[1]}};

	ck_assert_int_eq(ts_planned_time_replays(&work, replays, 2), 0);
	for (int i = 0; i < 2; i++)
		ck_assert_uint_eq(replays[i].duration_ns, ops[i] * OP_NS);
}

START_TEST(what_is_made_together_shares_its_ops)
{
	const uint32_t both[] = {outer(0), inner(0)};
	const uint32_t chain[] = {outer(1), outer(0)};
	struct ts_replay_candidate *second = NULL;

	make_step(288 * MIB);
	/* The one that the step makes first has them all to pay for. */
	check_times(0, both, (uint32_t[]){30, 30}, (uint64_t[]){1, 1});
	check_times(0, both, (uint32_t[]){30, 31}, (uint64_t[]){2, 1});
	/* The outer one of the second layer from the very first value on. */
	for (uint32_t i = 0; i < s.candidates.count; i++)
		if (s.list[i].value == outer(1))
			second = &s.list[i];
	ck_assert_ptr_nonnull(second);
	second->first_op = s.candidates.pool_count;
	second->n_ops = 4;
	for (uint32_t i = 0; i < 4; i++)
		s.pool[s.candidates.pool_count++] = i;
	/* What the first one was made from is over when that of the second one
	 * comes. */
	check_times(VALUE, chain, (uint32_t[]){30, 30}, (uint64_t[]){2, 2});
	/* Their scratch does not go round for both. */
	check_times(VALUE - 1, chain, (uint32_t[]){30, 30}, (uint64_t[]){4, 2});
	ts_profile_finish(&s.profile);
}
END_TEST

/* ------------------------------------------------------------ shared chunks */

/* Is the page that strip @i begins with there before op @op? */
static bool is_there(const struct ts_page_plan *pages, uint32_t i, uint32_t op)
{
	const struct ts_plan_strip *strip = &pages->strips[i];
	const struct ts_plan_stay *stay = &pages->stays[strip->first_stay];
	bool there = false;

	for (uint32_t k = 0; k < strip->n_stays; k++)
		there |= stay[k].take_op <= op && op < stay[k].release_op;
	return there;
}

/* All of @value is there before op @op. */
static void check_there(
        const struct ts_page_plan *pages, uint32_t value, uint32_t op)
{
	const struct ts_rec_block *block = &s.blocks[value];
	uint64_t page = pages->page_bytes, bytes = 0;
	uint64_t from = block->address / page * page;
	uint64_t end = (block->address + block->bytes + page - 1) / page * page;

	for (uint32_t i = 0; i < pages->n_strips; i++)
		if (pages->strips[i].address >= from &&
		        pages->strips[i].address < end &&
		        is_there(pages, i, op))
			bytes += pages->strips[i].pages * page;
	ck_assert_uint_eq(bytes, end - from);
}

/* No chunk is two pages' at once. */
static void check_chunks(const struct ts_page_plan *pages, uint64_t most)
{
	bool *taken = calloc(pages->n_chunks + 1ull, sizeof(*taken));

	ck_assert_uint_le(pages->n_chunks, most);
	for (uint32_t op = 0; op < OPS; op++) {
		memset(taken, 0, pages->n_chunks * sizeof(*taken));
		for (uint32_t i = 0; i < pages->n_strips; i++) {
			const struct ts_plan_strip *strip = &pages->strips[i];

			for (uint32_t k = 0;
			        k < strip->pages && is_there(pages, i, op);
			        k++) {
				uint32_t chunk =
				        pages->chunk_of[strip->first_page + k];

				ck_assert_uint_lt(chunk, pages->n_chunks);
				ck_assert(!taken[chunk]);
				taken[chunk] = true;
			}
		}
	}
	free(taken);
}

/* What ops use is there, and what is made again and what that is made from. */
static void check_uses(const struct ts_planned_plan *plan)
{
	for (uint32_t i = 0; i < OPS; i++)
		for (uint32_t k = 0; k < s.ops[i].use_count; k++) {
			uint32_t block = s.uses[s.ops[i].first_use + k].block;

			if (s.blocks[block].bytes)
				check_there(&plan->pages, block, i);
		}
	for (uint32_t i = 0; i < plan->n_replays; i++) {
		const struct ts_replay_choice *choice = &plan->replays[i];
		const struct ts_replay_candidate *from =
		        candidate_of(choice->closure);

		check_there(&plan->pages, from->value, choice->make_op);
		for (uint32_t k = 0; k < from->n_reads; k++)
			check_there(&plan->pages, s.pool[from->first_read + k],
			        choice->make_op);
	}
}

/*
 * A plan for @limit_bytes in chunks of @chunks_bytes, which is less than it
 * takes. How many values it has made again; 0 where no plan is.
 */
static uint32_t share(uint64_t limit_bytes, uint64_t chunks_bytes)
{
	struct ts_plan_options options = ts_plan_default_options();
	struct ts_page_view view;
	struct ts_planned_work work = {.step = &s.step,
	        .n_ops = OPS,
	        .view = &view,
	        .replays = true,
	        .shares = true,
	        .chunks_bytes = chunks_bytes};
	struct ts_planned_plan made = {0};
	struct ts_plan_stats stats;
	struct ts_graph graph;
	uint32_t n = 0;

	make_step(limit_bytes);
	if (first_alone)
		s.candidates.count = 1;
	ck_assert_int_eq(
	        ts_planned_view_make(&s.recording, &s.profile, &s.values,
	                &s.survey, &s.candidates, false, &view),
	        0);
	ck_assert_int_eq(ts_planned_add_rebuilds(&work), 0);
	ts_planned_allow_replays(&work, VALUE);
	options.dirties = view.dirties;
	ck_assert_int_eq(
	        ts_graph_init(&graph, &view.profile,
	                &(struct ts_graph_options){.dirties = view.dirties}),
	        0);
	options.pages = false;
	/* What it finds is not what is looked at. */
	options.quick = true;
	options.search_evaluations = 32;
	options.baselines = false;
	options.min_gap_bytes = 2 * MIB;
	if (!ts_plan_make(
	            &view.profile, limit_bytes, &options, &made.plan, &stats) &&
	        !ts_planned_place(&work, &graph, &made)) {
		n = made.n_replays;
		made.scratch_bytes = VALUE;
		check_chunks(&made.pages, chunks_bytes / (2 * MIB));
		check_uses(&made);
		/* These look for values at the pages that they begin with. */
		if (n && VALUE % (2 * MIB) == 0) {
			check_choices(&made);
			ck_assert_uint_eq(
			        made.plan.replay_ns, replayed_ns(&made));
			/* What is made together shares ops. */
			if (!reads_no_input)
				ck_assert_uint_ge(made.plan.predicted_step_ns,
				        OPS * (uint64_t)OP_NS +
				                replayed_ns(&made));
		}
	}
	ts_planned_plan_finish(&made);
	ts_graph_finish(&graph);
	ts_page_view_finish(&view);
	ts_planned_work_finish(&work);
	ts_profile_finish(&s.profile);
	return n;
}

/* With limits that far apart: so many plans at least, of all, and what they
 * have made again at most. */
static void share_all(
        uint64_t apart_bytes, uint32_t least_plans, uint32_t more_than)
{
	uint32_t most = 0, plans = 0;

	for (uint64_t limit = 64 * MIB; limit < 384 * MIB; limit += apart_bytes)
		for (uint64_t less = 0; less <= 32 * MIB; less += 16 * MIB) {
			uint32_t n = share(limit, limit - less);

			most = n > most ? n : most;
			plans += n > 0;
		}
	reads_no_input = false;
	small_input = false;
	first_alone = false;
	value_bytes = 16 * MIB;
	ck_assert_uint_ge(plans, least_plans);
	ck_assert_uint_gt(most, more_than);
}

START_TEST(what_is_made_again_shares_chunks)
{
	reads_no_input = _i > 0;
	small_input = _i > 1;
	/* Half as many where leaves are not there when they are needed. */
	share_all(48 * MIB, 18, LAYERS);
}
END_TEST

/* Of one value the small leaf is not used by any op any more. */
START_TEST(small_leaf_comes_back_for_what_is_made_of_it)
{
	reads_no_input = true;
	small_input = true;
	first_alone = true;
	share_all(48 * MIB, 10, 0);
}
END_TEST

/* Values begin and end within pages, which they share with others. */
START_TEST(edges_of_what_is_made_again_are_there)
{
	reads_no_input = _i;
	value_bytes = 17 * MIB;
	share_all(80 * MIB, 8, LAYERS);
}
END_TEST

static void add_tests(TCase *tcase)
{
	tcase_add_loop_test(tcase, what_is_made_again_shares_chunks, 0, 3);
	tcase_add_test(tcase, small_leaf_comes_back_for_what_is_made_of_it);
	tcase_add_loop_test(tcase, edges_of_what_is_made_again_are_there, 0, 2);
	tcase_add_test(tcase, what_is_made_together_shares_its_ops);
	tcase_add_test(tcase, values_are_made_again_where_copies_do_not_pay);
	tcase_add_test(tcase, what_else_ops_make_takes_scratch);
	tcase_add_test(tcase, what_takes_too_much_scratch_is_copied);
	tcase_add_test(tcase, without_proof_nothing_is_made_again);
	tcase_add_test(tcase, what_the_widest_op_needs_is_enough);
	tcase_add_test(tcase, a_filler_leaves_smaller_ops_less);
	tcase_add_test(tcase, where_all_fits_nothing_is_made_again);
	tcase_add_test(tcase, it_is_proved_where_it_pays);
}

int main(void)
{
	return run_suite("planned_replay", add_tests);
}
