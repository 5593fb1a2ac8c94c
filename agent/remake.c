/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "agent/remake.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "agent/agent_internal.h"
#include "agent/base/log.h"
#include "agent/remake_internal.h"

/* Values that could not be given up in so many steps in a row stay. */
#define KEPT_MAX 2

struct ts_remake ts_remake;

struct ts_pager *ts_remake_pager(void)
{
	return ts_agent_pager(ts_remake.closures->step->devices[0].device);
}

bool ts_remake_is_on(void)
{
	return atomic_load_explicit(&ts_remake.on, memory_order_acquire);
}

bool ts_remake_is_planned(void)
{
	return ts_remake.plan != 0;
}

/* ------------------------------------------------------------- which */

static uint64_t copy_ns(const struct ts_device *device, uint64_t bytes)
{
	double ns = (double)bytes * 1e9 / (double)device->d2h_bytes_per_s +
	            (double)bytes * 1e9 / (double)device->h2d_bytes_per_s;

	return (uint64_t)ns + 2 * device->copy_latency_ns;
}

/* The op after which the value lies idle until closure->to_op. */
static uint32_t idle_from(
        const struct ts_closures *closures, const struct ts_closure *closure)
{
	const struct ts_graph *g = &closures->graph;
	uint32_t gap = ts_graph_gap_at(g, closure->value, closure->to_op);

	return gap == TS_NONE ? TS_NONE : g->gaps[gap].from_op;
}

static bool is_worth_it(
        const struct ts_closures *closures, const struct ts_closure *closure)
{
	const struct ts_graph *g = &closures->graph;
	uint32_t values[TS_CLOSURE_MAX];
	uint32_t n =
	        ts_graph_closure(g, closure->value, closure->to_op, values);

	return closure->verdict == TS_VERDICT_PROVED && n &&
	       ts_closure_is_on_one_stream(closures, closure) &&
	       ts_graph_closure_ns(g, values, n) <
	               copy_ns(&closures->profile.device, closure->bytes);
}

static int by_turn(const void *a, const void *b)
{
	const struct ts_replay_choice *x = a, *y = b;

	if (x->from_op != y->from_op)
		return x->from_op < y->from_op ? -1 : 1;
	return x->closure < y->closure ? -1 : x->closure > y->closure;
}

/* Steps give up what @choices say, which become the function's. */
static int start(struct ts_closures *closures, struct ts_replay_choice *choices,
        uint32_t count)
{
	ts_remake.closures = closures;
	ts_remake.choices = choices;
	ts_remake.n_choices = count;
	ts_remake.kept = calloc(count + 1ull, sizeof(*ts_remake.kept));
	ts_remake.wanted =
	        calloc(closures->step->op_count + 1ull, sizeof(bool));
	ts_remake.items = calloc(count + 1ull, sizeof(*ts_remake.items));
	if (!ts_remake.kept || !ts_remake.wanted || !ts_remake.items ||
	        !ts_remake_pager())
		return -ENOMEM;
	qsort(choices, count, sizeof(*choices), by_turn);
	for (uint32_t i = 0; i < count; i++) {
		const struct ts_closure *closure =
		        &closures->list[choices[i].closure];

		for (uint32_t k = 0; k < closure->op_count; k++)
			ts_remake.wanted[closures->op_list[closure->first_op +
			                                   k]] = true;
	}
	atomic_store(&ts_remake.on, true);
	return 0;
}

bool ts_remake_start(struct ts_closures *closures)
{
	struct ts_replay_choice *choices =
	        calloc(closures->count + 1ull, sizeof(*choices));
	uint32_t count = 0;

	for (uint32_t i = 0; choices && i < closures->count; i++) {
		const struct ts_closure *closure = &closures->list[i];
		uint32_t from_op = idle_from(closures, closure);

		if (from_op != TS_NONE && is_worth_it(closures, closure))
			choices[count++] = (struct ts_replay_choice){
			        i, from_op, closure->to_op};
	}
	if (!count) {
		free(choices);
		return false;
	}
	if (start(closures, choices, count)) {
		ts_remake_stop(true);
		return false;
	}
	ts_log(TS_LOG_DEBUG,
	        "remake: %u values are cheaper to make than to copy", count);
	return true;
}

static int start_by_plan(
        uint64_t plan, const struct ts_replay_choice *choices, uint32_t count)
{
	size_t bytes = (count + 1ull) * sizeof(*choices);
	struct ts_replay_choice *own;
	int rc;

	if (!ts_proof.closures)
		return -ESTALE;
	own = malloc(bytes);
	if (!own)
		return -ENOMEM;
	memcpy(own, choices, count * sizeof(*own));
	rc = start(ts_proof.closures, own, count);
	ts_remake.plan = plan;
	return rc;
}

void ts_remake_forget_item(uint32_t number)
{
	struct ts_given_up *item = &ts_remake.items[number];

	for (unsigned int i = 0; i < item->leaf_count; i++)
		ts_pager_dead(ts_remake_pager(), item->leaves[i].address,
		        item->leaves[i].bytes);
	free(item->leaves);
	*item = ts_remake.items[--ts_remake.count];
}

static void free_arena(bool driver_alive)
{
	if (ts_remake.arena && driver_alive) {
		/* Waits for what uses it. */
		ts_agent.ops->mem_free(ts_remake.arena);
		ts_agent_after_unmanaged();
	}
	ts_remake.arena = 0;
	ts_remake.arena_bytes = 0;
}

static void stop_choices(void)
{
	while (ts_remake.count && ts_remake_pager())
		ts_remake_forget_item(ts_remake.count - 1);
	atomic_store(&ts_remake.on, false);
	ts_remake.launched = false;
	free(ts_remake.choices);
	free(ts_remake.kept);
	free(ts_remake.wanted);
	free(ts_remake.items);
	ts_remake.choices = NULL;
	ts_remake.kept = NULL;
	ts_remake.wanted = NULL;
	ts_remake.items = NULL;
	ts_remake.closures = NULL;
	ts_remake.n_choices = 0;
	ts_remake.count = 0;
	ts_remake.plan = 0;
	ts_remake.on_step = false;
}

void ts_remake_stop(bool driver_alive)
{
	stop_choices();
	free_arena(driver_alive);
}

/* -------------------------------------------------------- given up */

static bool is_given_up(const struct ts_kept_use *use)
{
	for (uint32_t i = 0; i < ts_remake.count; i++)
		if (ts_remake.items[i].value.serial == use->serial)
			return true;
	return false;
}

/* Something that is given up, or is needed to make that again. */
static bool is_bound(const struct ts_kept_use *use)
{
	if (is_given_up(use))
		return true;
	for (uint32_t i = 0; i < ts_remake.count; i++)
		for (unsigned int k = 0; k < ts_remake.items[i].leaf_count; k++)
			if (ts_remake.items[i].leaves[k].serial == use->serial)
				return true;
	return false;
}

/*
 * Values of a plan may be made from others that are given up: those are made
 * first. Without one each goes by itself.
 */
static bool may_go(const struct ts_making *making)
{
	if (ts_remake.plan)
		return !is_given_up(making->original);
	for (unsigned int i = 0; i < making->leaf_count; i++)
		if (is_given_up(making->leaves[i]))
			return false;
	return !is_bound(making->original);
}

static bool note_item(
        const struct ts_making *making, const struct ts_replay_choice *choice)
{
	struct ts_given_up *item = &ts_remake.items[ts_remake.count];

	*item = (struct ts_given_up){.closure = choice->closure,
	        .make_op = choice->make_op,
	        .value = *making->original,
	        .leaves = calloc(
	                making->leaf_count + 1ull, sizeof(*item->leaves)),
	        .leaf_count = making->leaf_count,
	        .stream = making->stream};
	if (!item->leaves)
		return false;
	for (unsigned int i = 0; i < making->leaf_count; i++)
		item->leaves[i] = *making->leaves[i];
	ts_remake.count++;
	ts_remake.given++;
	ts_remake.bytes += item->value.bytes;
	/* Who frees a leaf meanwhile leaves its content there. */
	for (unsigned int i = 0; i < item->leaf_count; i++)
		ts_pager_live(ts_remake_pager(), item->leaves[i].address,
		        item->leaves[i].bytes);
	return true;
}

/* There is no other copy of it then: what it takes must surely fit at once. */
static bool surely_fits(struct ts_making *making)
{
	int device = making->closures->step->devices[0].device;

	/* The plan has reckoned with it. */
	if (ts_remake.plan)
		return true;
	for (unsigned int i = 0; i <= making->leaf_count; i++) {
		const struct ts_kept_use *use = i < making->leaf_count
		                                        ? making->leaves[i]
		                                        : making->original;

		making->ranges[i] = (struct ts_range){.address = use->address,
		        .bytes = use->bytes,
		        .access = TS_ACCESS_READWRITE,
		        .device = device};
	}
	return ts_pager_could_hold(
	        ts_remake_pager(), making->ranges, making->leaf_count + 1);
}

/*
 * Leaves of what is given up count as alive once more for each of those: a page
 * that @value ends in would not be its own.
 */
static void discard(const struct ts_kept_use *value)
{
	struct ts_pager *pager = ts_remake_pager();
	unsigned int times = 0;

	for (uint32_t i = 0; i < ts_remake.count; i++)
		for (unsigned int k = 0; k < ts_remake.items[i].leaf_count; k++)
			times += ts_remake.items[i].leaves[k].serial ==
			         value->serial;
	for (unsigned int i = 0; i < times; i++)
		ts_pager_dead(pager, value->address, value->bytes);
	ts_pager_discard(pager, value->address, value->bytes);
	for (unsigned int i = 0; i < times; i++)
		ts_pager_live(pager, value->address, value->bytes);
}

/* The value stays for this step; again and again it is given up no more. */
static void keep(uint32_t index)
{
	ts_remake.refused++;
	/* Without a plan one stays because of another. */
	if (ts_remake.plan && ++ts_remake.kept[index] == KEPT_MAX)
		ts_closures_demote(
		        ts_remake.closures, ts_remake.choices[index].closure);
}

/* Gives the closure's value up, if all it is made from is there to stay. */
static void give_up(uint32_t index, ts_stream_key stream)
{
	const struct ts_replay_choice *choice = &ts_remake.choices[index];
	struct ts_making *making = calloc(1, sizeof(*making));

	if (!making)
		return;
	making->closures = ts_remake.closures;
	making->closure = &ts_remake.closures->list[choice->closure];
	making->stream = stream;
	/* What was demoted is given up by nobody. */
	if (making->closure->verdict == TS_VERDICT_PROVED &&
	        ts_making_leaves(making) == TS_VERDICT_OPEN && may_go(making) &&
	        surely_fits(making) && note_item(making, choice)) {
		ts_remake.kept[index] = 0;
		discard(making->original);
	} else {
		keep(index);
	}
	free(making);
}

/* ------------------------------------------------------- made again */

/* Before the step wants them: others may read that know nothing of this. */
static int make_early(void)
{
	uint64_t made = ts_remake.made;
	int rc = ts_remake_wanted();

	/* On whatever streams they are being made. */
	if (!rc)
		rc = ts_gpu_errno(ts_agent.ops->ctx_synchronize());
	ts_remake.early += ts_remake.made - made;
	return rc;
}

static int make_all_again(void)
{
	for (uint32_t i = 0; i < ts_remake.count; i++)
		ts_remake.items[i].wanted = true;
	return ts_remake.count ? make_early() : 0;
}

bool ts_remake_all_locked(void)
{
	if (ts_remake.count)
		ts_remake.on_step = false;
	return !make_all_again();
}

bool ts_remake_all(void)
{
	bool done;

	if (!ts_remake_is_on())
		return true;
	ts_mutex_lock(&ts_proof.lock);
	done = ts_remake_all_locked();
	ts_mutex_unlock(&ts_proof.lock);
	return done;
}

int ts_remake_reserve(uint64_t bytes)
{
	CUdeviceptr address = 0;
	int rc = 0;

	ts_mutex_lock(&ts_proof.lock);
	if (bytes != ts_remake.arena_bytes)
		rc = make_all_again();
	if (!rc && bytes != ts_remake.arena_bytes) {
		free_arena(true);
		if (bytes)
			rc = ts_proof_room_for(bytes, NULL);
		if (bytes && !rc)
			rc = ts_gpu_errno(
			        ts_agent.ops->mem_alloc(&address, bytes));
		if (!rc) {
			ts_remake.arena = address;
			ts_remake.arena_bytes = bytes;
			ts_agent_after_unmanaged();
		}
	}
	ts_mutex_unlock(&ts_proof.lock);
	return rc;
}

uint64_t ts_remake_reserved(void)
{
	uint64_t bytes;

	if (!ts_proof.on)
		return 0;
	ts_mutex_lock(&ts_proof.lock);
	bytes = ts_remake.arena_bytes;
	ts_mutex_unlock(&ts_proof.lock);
	return bytes;
}

int ts_remake_by_plan(
        uint64_t plan, const struct ts_replay_choice *choices, uint32_t count)
{
	int rc;

	ts_mutex_lock(&ts_proof.lock);
	rc = make_all_again();
	if (!rc) {
		stop_choices();
		if (count)
			rc = start_by_plan(plan, choices, count);
		if (rc)
			stop_choices();
	}
	ts_mutex_unlock(&ts_proof.lock);
	return rc;
}

void ts_remake_end_plan(uint64_t plan)
{
	if (!ts_remake_is_on())
		return;
	ts_mutex_lock(&ts_proof.lock);
	if (plan && ts_remake.plan == plan && !make_all_again()) {
		stop_choices();
		free_arena(true);
	}
	ts_mutex_unlock(&ts_proof.lock);
}

/* ------------------------------------------------------------- ops */

static bool overlap(const struct ts_kept_use *kept, const struct ts_use *use)
{
	return use->address < kept->address + kept->bytes &&
	       kept->address < use->address + use->bytes;
}

/* Does the step have it that the op which comes writes its use @index? */
static bool writes(uint32_t index)
{
	const struct ts_observed *step = ts_remake.closures->step;
	const struct ts_rec_op *rec = &step->step.ops[ts_remake.at];
	uint64_t use = rec->first_use - step->step.first_use + index;

	return index < rec->use_count &&
	       step->devices[0].values.use_write[use] != TS_NONE;
}

/*
 * Did words that are no operands lead to the leaf in the step that was proved?
 * Where another block had the leaf's address then, none did.
 */
static bool was_doubted(const struct ts_kept_use *leaf)
{
	const struct ts_recording *step = &ts_remake.closures->step->step;
	const struct ts_rec_op *rec = &step->ops[ts_remake.at];

	for (uint32_t k = 0; k < rec->doubt_count; k++)
		if (ts_recording_use(step, rec, rec->use_count + k)->block ==
		        leaf->block)
			return true;
	return false;
}

/*
 * May the op write the leaf @kept by its use @use, before which it has so many
 * that are @recorded? What words led to that are no operands was looked at
 * when it was proved: leaves were the same after it.
 */
static bool may_write(const struct ts_kept_use *kept, const struct ts_use *use,
        uint32_t recorded)
{
	return use->doubtful ? !was_doubted(kept) : writes(recorded);
}

/*
 * Does the op touch the value, or memory of a leaf that was freed, or write a
 * leaf? Where the step has it so that is no leaf: another block came.
 */
static bool disturbs(const struct ts_op *op, const struct ts_given_up *item)
{
	uint32_t recorded = 0;

	for (size_t i = 0; i < op->count; i++) {
		const struct ts_use *use = &op->uses[i];
		uint32_t index = recorded;

		recorded += !use->doubtful;
		if (use->unused)
			continue;
		if (overlap(&item->value, use))
			return true;
		for (unsigned int k = 0; k < item->leaf_count; k++)
			if (overlap(&item->leaves[k], use) &&
			        (item->leaves[k].serial != use->serial ||
			                may_write(
			                        &item->leaves[k], use, index)))
				return true;
	}
	return false;
}

/* What the op needs again, because the step has it so or for safety. */
static int make_for(const struct ts_op *op)
{
	bool due = false, early = false;
	int rc = 0;

	for (uint32_t i = 0; i < ts_remake.count; i++) {
		struct ts_given_up *item = &ts_remake.items[i];
		bool in_order = op->stream == item->stream;

		item->wanted = item->make_op <= ts_remake.at && in_order;
		due |= item->wanted;
	}
	if (due)
		rc = ts_remake_wanted();
	for (uint32_t i = 0; i < ts_remake.count && !rc; i++) {
		struct ts_given_up *item = &ts_remake.items[i];

		item->wanted =
		        item->make_op <= ts_remake.at || disturbs(op, item);
		early |= item->wanted;
	}
	/* In order on one stream alone. */
	return early && !rc ? make_early() : rc;
}

/* Memory is short once the pager has moved some. */
static bool is_pressed(void)
{
	struct ts_pager_stats stats;

	if (!ts_remake.pressed) {
		ts_pager_stats(ts_remake_pager(), &stats);
		ts_remake.pressed = stats.out_bytes != 0;
	}
	return ts_remake.pressed;
}

/* May values be given up from this op on, the first of the step? */
static bool begins(const struct ts_op *op, bool may_begin)
{
	if (ts_remake.plan)
		return op->plan == ts_remake.plan && !op->plan_at;
	return !ts_remake.on_step && may_begin && is_pressed() &&
	       op->signature == ts_remake.closures->step->signatures[0];
}

static bool goes_on(const struct ts_op *op)
{
	if (!ts_remake.on_step || atomic_load(&ts_agent.capturing))
		return false;
	if (ts_remake.plan)
		return op->plan == ts_remake.plan &&
		       op->plan_at == ts_remake.at;
	return op->signature ==
	       ts_remake.closures->step->signatures[ts_remake.at];
}

CUresult ts_remake_comes(const struct ts_op *op, bool may_begin)
{
	int rc = 0;

	if (!ts_remake.count && begins(op, may_begin)) {
		ts_closures_forget(ts_remake.closures);
		ts_remake.on_step = true;
		ts_remake.at = 0;
		ts_remake.next = 0;
	}
	ts_remake.on_step = goes_on(op);
	if (ts_remake.count)
		rc = ts_remake.on_step ? make_for(op) : make_all_again();
	return rc ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_SUCCESS;
}

void ts_remake_issued(const struct ts_op *op, bool issued)
{
	if (!ts_remake.on_step)
		return;
	if (!issued) {
		ts_remake.on_step = false;
		return;
	}
	if (ts_remake.wanted[ts_remake.at] &&
	        ts_closures_keep(ts_remake.closures, op, ts_remake.at)) {
		ts_remake.on_step = false;
		return;
	}
	while (ts_remake.next < ts_remake.n_choices &&
	        ts_remake.choices[ts_remake.next].from_op == ts_remake.at)
		give_up(ts_remake.next++, op->stream);
	if (++ts_remake.at == ts_remake.closures->step->op_count) {
		ts_remake.on_step = false;
		ts_remake.steps++;
	}
}

bool ts_remake_wants_look(uint64_t every)
{
	if (!every || ts_remake.steps < every)
		return false;
	ts_remake.steps = 0;
	return true;
}

json_t *ts_remake_status(void)
{
	json_t *json;

	if (!ts_proof.on || !ts_proof_lock_at_exit())
		return NULL;
	json = ts_remake.given
	               ? json_pack("{s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, "
	                           "s:I, s:I}",
	                         "given_up", (json_int_t)ts_remake.given,
	                         "bytes", (json_int_t)ts_remake.bytes,
	                         "made_again", (json_int_t)ts_remake.made,
	                         "early", (json_int_t)ts_remake.early, "failed",
	                         (json_int_t)ts_remake.failed, "launches",
	                         (json_int_t)ts_remake.launches, "shared",
	                         (json_int_t)ts_remake.shared, "kept",
	                         (json_int_t)ts_remake.refused, "looks",
	                         (json_int_t)ts_proof.verified, "demoted",
	                         (json_int_t)ts_proof.demoted)
	               : NULL;
	ts_mutex_unlock(&ts_proof.lock);
	return json;
}
