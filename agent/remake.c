/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "agent/remake.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "agent/agent_internal.h"
#include "agent/base/log.h"
#include "agent/proof_closure_internal.h"

/* A value that is given up, and what it is made from: all of it stays. */
struct given_up {
	uint32_t index; /* of the closure */
	struct ts_kept_use value;
	struct ts_kept_use leaves[TS_CLOSURE_LEAVES];
	unsigned int leaf_count;
	ts_stream_key stream;
};

static struct {
	atomic_bool on;
	/* Guarded by proof.lock. */
	struct ts_closures *closures;
	bool *chosen;      /* by closure */
	uint32_t *from_op; /* by closure */
	bool *wanted;      /* by op: of chosen closures */
	uint32_t n_chosen;
	bool on_step, pressed; /* the pager had to move memory */
	uint32_t at;
	struct given_up *items;
	uint32_t count;
	uint64_t given, made, early, failed, bytes, launches;
} remake;

static struct ts_pager *the_pager(void)
{
	return ts_agent_pager(remake.closures->step->devices[0].device);
}

bool ts_remake_is_on(void)
{
	return atomic_load_explicit(&remake.on, memory_order_acquire);
}

/* ------------------------------------------------------------- which */

static uint64_t copy_ns(const struct ts_device *device, uint64_t bytes)
{
	double ns = (double)bytes * 1e9 / (double)device->d2h_bytes_per_s +
	            (double)bytes * 1e9 / (double)device->h2d_bytes_per_s;

	return (uint64_t)ns + 2 * device->copy_latency_ns;
}

/* All of it runs in the order of one stream, whatever else there is. */
static bool is_on_one_stream(
        const struct ts_closures *closures, const struct ts_closure *closure)
{
	const struct ts_rec_op *ops = closures->step->step.ops;
	uint64_t stream = ops[closure->to_op].stream;

	for (uint32_t i = 0; i < closure->op_count; i++)
		if (ops[closures->op_list[closure->first_op + i]].stream !=
		        stream)
			return false;
	return true;
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
	       is_on_one_stream(closures, closure) &&
	       ts_graph_closure_ns(g, values, n) <
	               copy_ns(&closures->profile.device, closure->bytes);
}

bool ts_remake_start(struct ts_closures *closures)
{
	uint32_t ops = closures->step->op_count;

	remake.closures = closures;
	remake.chosen = calloc(closures->count + 1, sizeof(bool));
	remake.from_op = calloc(closures->count + 1, sizeof(uint32_t));
	remake.wanted = calloc(ops + 1, sizeof(bool));
	remake.items = calloc(closures->count + 1, sizeof(*remake.items));
	if (!remake.chosen || !remake.from_op || !remake.wanted ||
	        !remake.items || !the_pager()) {
		ts_remake_stop();
		return false;
	}
	for (uint32_t i = 0; i < closures->count; i++) {
		const struct ts_closure *closure = &closures->list[i];

		remake.from_op[i] = idle_from(closures, closure);
		if (remake.from_op[i] == TS_NONE ||
		        !is_worth_it(closures, closure))
			continue;
		remake.chosen[i] = true;
		remake.n_chosen++;
		for (uint32_t k = 0; k < closure->op_count; k++)
			remake.wanted[closures->op_list[closure->first_op +
			                                k]] = true;
	}
	if (!remake.n_chosen) {
		ts_remake_stop();
		return false;
	}
	ts_log(TS_LOG_DEBUG,
	        "remake: %u values are cheaper to make than to "
	        "copy",
	        remake.n_chosen);
	atomic_store(&remake.on, true);
	return true;
}

static void let_go_leaves(const struct given_up *item)
{
	for (unsigned int i = 0; i < item->leaf_count; i++)
		ts_pager_dead(the_pager(), item->leaves[i].address,
		        item->leaves[i].bytes);
}

void ts_remake_stop(void)
{
	for (uint32_t i = 0; i < remake.count && the_pager(); i++)
		let_go_leaves(&remake.items[i]);
	atomic_store(&remake.on, false);
	free(remake.chosen);
	free(remake.from_op);
	free(remake.wanted);
	free(remake.items);
	remake.chosen = NULL;
	remake.from_op = NULL;
	remake.wanted = NULL;
	remake.items = NULL;
	remake.closures = NULL;
	remake.n_chosen = 0;
	remake.count = 0;
	remake.on_step = false;
}

/* -------------------------------------------------------- given up */

static bool same_block(const struct ts_kept_use *a, const struct ts_kept_use *b)
{
	return a->serial == b->serial;
}

/* Something that is given up, or is needed to make that again. */
static bool is_bound(const struct ts_kept_use *use)
{
	for (uint32_t i = 0; i < remake.count; i++) {
		const struct given_up *item = &remake.items[i];

		if (same_block(&item->value, use))
			return true;
		for (unsigned int k = 0; k < item->leaf_count; k++)
			if (same_block(&item->leaves[k], use))
				return true;
	}
	return false;
}

static bool is_given_up(const struct ts_kept_use *use)
{
	for (uint32_t i = 0; i < remake.count; i++)
		if (same_block(&remake.items[i].value, use))
			return true;
	return false;
}

static void init_making(
        struct ts_making *making, uint32_t index, ts_stream_key stream)
{
	making->closures = remake.closures;
	making->closure = &remake.closures->list[index];
	making->stream = stream;
}

/* Gives the closure's value up, if all it is made from is there to stay. */
static void give_up(uint32_t index, ts_stream_key stream)
{
	struct given_up *item = &remake.items[remake.count];
	struct ts_making *making = calloc(1, sizeof(*making));
	bool free_to_go;

	if (!making)
		return;
	init_making(making, index, stream);
	free_to_go = ts_making_plan(making) == TS_VERDICT_OPEN &&
	             !is_bound(making->original);
	for (unsigned int i = 0; i < making->leaf_count && free_to_go; i++)
		free_to_go = !is_given_up(making->leaves[i]);
	ts_making_put(making);
	if (free_to_go) {
		*item = (struct given_up){.index = index,
		        .value = *making->original,
		        .leaf_count = making->leaf_count,
		        .stream = stream};
		for (unsigned int i = 0; i < making->leaf_count; i++)
			item->leaves[i] = *making->leaves[i];
		remake.count++;
		remake.given++;
		remake.bytes += item->value.bytes;
		/* Who frees a leaf meanwhile leaves its content there. */
		for (unsigned int i = 0; i < item->leaf_count; i++)
			ts_pager_live(the_pager(), item->leaves[i].address,
			        item->leaves[i].bytes);
		ts_pager_discard(
		        the_pager(), item->value.address, item->value.bytes);
	}
	free(making);
}

/* ------------------------------------------------------- made again */

/* Leaves as they were given up with: some may be free by now. */
static void use_leaves(struct ts_making *making, const struct given_up *item)
{
	making->leaf_count = item->leaf_count;
	for (unsigned int i = 0; i < item->leaf_count; i++)
		making->leaves[i] = &item->leaves[i];
	making->original = &item->value;
}

static int launch(struct ts_making *making)
{
	struct ts_shortage shortage;
	unsigned int count = making->leaf_count + 1;
	uint64_t in = 0, out = 0;
	int rc;

	ts_making_ranges(making, TS_ACCESS_READWRITE);
	rc = ts_pager_begin(the_pager(), making->ranges, count,
	        ts_agent_begin_flags(), making->stream, &in, &out, &shortage);
	if (rc)
		return rc;
	rc = ts_making_launch(making, false);
	ts_pager_end(the_pager(), making->ranges, count, making->stream, true);
	remake.launches += making->closure->op_count;
	return rc;
}

/* 0, or why it is still given up. */
static int make_again(uint32_t number)
{
	struct given_up *item = &remake.items[number];
	struct ts_making *making;
	enum ts_verdict verdict;
	int rc = 0;

	/* It would go into the graph. */
	if (atomic_load(&ts_agent.capturing))
		return -EBUSY;
	making = calloc(1, sizeof(*making));
	if (!making)
		return -ENOMEM;
	init_making(making, item->index, item->stream);
	making->final[0] = item->value.address;
	/* The program has freed it: nobody wants it. */
	if (ts_kept_is_alive(&item->value)) {
		verdict = ts_making_places(making);
		use_leaves(making, item);
		if (verdict == TS_VERDICT_OPEN)
			rc = launch(making);
		else
			rc = -ENOMEM;
		ts_making_put(making);
	}
	free(making);
	if (rc) {
		remake.failed++;
		ts_log(TS_LOG_ERROR,
		        "a value of %llu bytes could not be made again: %s",
		        (unsigned long long)item->value.bytes, strerror(-rc));
		return rc;
	}
	remake.made++;
	let_go_leaves(item);
	remake.items[number] = remake.items[--remake.count];
	return 0;
}

/* Before the step wants it: others may read it that know nothing of this. */
static int make_early(uint32_t number)
{
	ts_stream_key stream = remake.items[number].stream;
	int rc = make_again(number);

	if (!rc)
		rc = ts_gpu_errno(ts_agent.ops->stream_synchronize(
		        (CUstream)(uintptr_t)stream));
	remake.early += !rc;
	return rc;
}

static int make_all_again(void)
{
	int rc = 0;

	while (remake.count && !rc)
		rc = make_early(remake.count - 1);
	return rc;
}

bool ts_remake_all(void)
{
	int rc = 0;

	if (!ts_remake_is_on())
		return true;
	ts_mutex_lock(&ts_proof.lock);
	if (remake.count) {
		remake.on_step = false;
		rc = make_all_again();
	}
	ts_mutex_unlock(&ts_proof.lock);
	return !rc;
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
	const struct ts_observed *step = remake.closures->step;
	const struct ts_rec_op *rec = &step->step.ops[remake.at];
	uint64_t use = rec->first_use - step->step.first_use + index;

	return index < rec->use_count &&
	       step->devices[0].values.use_write[use] != TS_NONE;
}

/*
 * Does the op touch the value, or memory of a leaf that was freed, or write a
 * leaf? Where the step has it so that is no leaf: another block came.
 */
static bool disturbs(const struct ts_op *op, const struct given_up *item)
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
			                writes(index)))
				return true;
	}
	return false;
}

/* What the op needs again, because the step has it so or for safety. */
static int make_for(const struct ts_op *op)
{
	int rc = 0;

	for (uint32_t i = 0; i < remake.count && !rc;) {
		const struct given_up *item = &remake.items[i];
		const struct ts_closure *closure =
		        &remake.closures->list[item->index];

		if (closure->to_op > remake.at && !disturbs(op, item)) {
			i++;
			continue;
		}
		/* Another takes its place. In order on one stream alone. */
		rc = closure->to_op == remake.at && op->stream == item->stream
		             ? make_again(i)
		             : make_early(i);
	}
	return rc;
}

/* Memory is short once the pager has moved some. */
static bool is_pressed(void)
{
	struct ts_pager_stats stats;

	if (!remake.pressed) {
		ts_pager_stats(the_pager(), &stats);
		remake.pressed = stats.out_bytes != 0;
	}
	return remake.pressed;
}

CUresult ts_remake_comes(const struct ts_op *op, bool may_begin)
{
	const struct ts_observed *step = remake.closures->step;
	int rc = 0;

	if (!remake.on_step && !remake.count && may_begin &&
	        op->signature == step->signatures[0] && is_pressed()) {
		ts_closures_forget(remake.closures);
		remake.on_step = true;
		remake.at = 0;
	}
	if (remake.on_step && (op->signature != step->signatures[remake.at] ||
	                              atomic_load(&ts_agent.capturing)))
		remake.on_step = false;
	if (remake.count)
		rc = remake.on_step ? make_for(op) : make_all_again();
	return rc ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_SUCCESS;
}

void ts_remake_issued(const struct ts_op *op, bool issued)
{
	if (!remake.on_step)
		return;
	if (!issued) {
		remake.on_step = false;
		return;
	}
	if (remake.wanted[remake.at] &&
	        ts_closures_keep(remake.closures, op, remake.at)) {
		remake.on_step = false;
		return;
	}
	for (uint32_t i = 0; i < remake.closures->count; i++)
		if (remake.chosen[i] && remake.from_op[i] == remake.at)
			give_up(i, op->stream);
	if (++remake.at == remake.closures->step->op_count)
		remake.on_step = false;
}

json_t *ts_remake_status(void)
{
	json_t *json;

	if (!ts_proof.on || !ts_proof_lock_at_exit())
		return NULL;
	json = remake.given ? json_pack("{s:I, s:I, s:I, s:I, s:I, s:I}",
	                              "given_up", (json_int_t)remake.given,
	                              "bytes", (json_int_t)remake.bytes,
	                              "made_again", (json_int_t)remake.made,
	                              "early", (json_int_t)remake.early,
	                              "failed", (json_int_t)remake.failed,
	                              "launches", (json_int_t)remake.launches)
	                    : NULL;
	ts_mutex_unlock(&ts_proof.lock);
	return json;
}
