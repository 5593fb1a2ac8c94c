/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "agent/proof_closure.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "agent/agent_internal.h"
#include "agent/proof_closure_internal.h"

/* -------------------------------------------------------------- which */

static int apply_verdicts(struct ts_closures *closures,
        const enum ts_verdict *verdicts, const bool *in_place)
{
	const struct ts_profile *from = &closures->step->devices[0].profile;
	struct ts_profile *to = &closures->profile;
	size_t signatures = from->n_signatures * sizeof(*from->signatures);
	size_t values = from->n_values * sizeof(*from->values);

	*to = *from;
	to->signatures = malloc(signatures + 1);
	to->values = malloc(values + 1);
	if (!to->signatures || !to->values)
		return -ENOMEM;
	memcpy(to->signatures, from->signatures, signatures);
	memcpy(to->values, from->values, values);
	for (uint32_t i = 0; i < to->n_signatures; i++)
		to->signatures[i].replayable = true;
	for (uint32_t i = 0; i < to->n_ops; i++) {
		const struct ts_profile_op *op = &to->ops[i];

		for (uint32_t k = 0; k < op->n_writes; k++) {
			struct ts_value *value =
			        &to->values[to->uses[op->first_write + k]];

			value->no_replay = verdicts[i] != TS_VERDICT_PROVED ||
			                   (value->no_replay && !in_place[i]);
		}
	}
	return 0;
}

static int by_size(const void *a, const void *b)
{
	const struct ts_closure *x = a, *y = b;

	if (x->bytes != y->bytes)
		return x->bytes > y->bytes ? -1 : 1;
	return x->to_op < y->to_op ? -1 : x->to_op > y->to_op;
}

static int by_turn(const void *a, const void *b)
{
	const struct ts_closure *x = a, *y = b;

	if (x->to_op != y->to_op)
		return x->to_op < y->to_op ? -1 : 1;
	return x->value < y->value ? -1 : x->value > y->value;
}

static int by_number(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return x < y ? -1 : x > y;
}

/* The ops that make the values, each once, in their order. */
static int list_ops(struct ts_closures *closures, struct ts_closure *closure)
{
	const struct ts_graph *g = &closures->graph;
	uint32_t values[TS_CLOSURE_MAX], ops[TS_CLOSURE_MAX], count = 0;
	uint32_t n =
	        ts_graph_closure(g, closure->value, closure->to_op, values);
	uint32_t *more;

	for (uint32_t i = 0; i < n; i++)
		ops[i] = g->writer[values[i]];
	qsort(ops, n, sizeof(*ops), by_number);
	for (uint32_t i = 0; i < n; i++)
		if (!count || ops[count - 1] != ops[i])
			ops[count++] = ops[i];
	more = realloc(closures->op_list,
	        (closures->op_list_count + count + 1) * sizeof(*more));
	if (!more)
		return -ENOMEM;
	closures->op_list = more;
	closure->first_op = closures->op_list_count;
	closure->op_count = count;
	for (uint32_t i = 0; i < count; i++) {
		closures->wanted[ops[i]] = true;
		more[closures->op_list_count++] = ops[i];
	}
	return 0;
}

static int find_all(
        struct ts_closures *closures, uint64_t least_bytes, uint32_t most)
{
	const struct ts_graph *g = &closures->graph;
	int rc = 0;

	closures->list = calloc(g->n_gaps + 1ull, sizeof(*closures->list));
	if (!closures->list)
		return -ENOMEM;
	for (uint32_t i = 0; i < g->n_gaps; i++) {
		const struct ts_gap *gap = &g->gaps[i];

		if (gap->replay_ns == TS_NEVER || gap->to_op >= g->n_ops ||
		        gap->size_bytes < least_bytes)
			continue;
		/* Between two ops that work in place on it, one after the
		 * other. */
		if (g->overwriter[gap->version] == gap->to_op)
			continue;
		closures->list[closures->count++] =
		        (struct ts_closure){.value = gap->version,
		                .to_op = gap->to_op,
		                .bytes = gap->size_bytes};
	}
	qsort(closures->list, closures->count, sizeof(*closures->list),
	        by_size);
	if (closures->count > most)
		closures->count = most;
	qsort(closures->list, closures->count, sizeof(*closures->list),
	        by_turn);
	for (uint32_t i = 0; i < closures->count && !rc; i++)
		rc = list_ops(closures, &closures->list[i]);
	return rc;
}

struct ts_closures *ts_closures_create(const struct ts_observed *step,
        const enum ts_verdict *verdicts, const bool *in_place,
        uint64_t least_bytes, uint32_t most)
{
	struct ts_graph_options options = {.min_gap_bytes = least_bytes};
	struct ts_closures *closures = calloc(1, sizeof(*closures));
	bool has_graph = false;
	int rc;

	if (!closures)
		return NULL;
	closures->step = step;
	closures->wanted = calloc(step->op_count + 1, sizeof(bool));
	closures->kept = calloc(step->op_count + 1, sizeof(*closures->kept));
	rc = closures->wanted && closures->kept ? 0 : -ENOMEM;
	if (!rc)
		rc = apply_verdicts(closures, verdicts, in_place);
	if (!rc)
		rc = ts_graph_init(
		        &closures->graph, &closures->profile, &options);
	has_graph = !rc;
	if (!rc)
		rc = find_all(closures, least_bytes, most);
	if (!rc && closures->count)
		return closures;
	if (!has_graph)
		memset(&closures->graph, 0, sizeof(closures->graph));
	ts_closures_destroy(closures);
	return NULL;
}

/* All of it runs in the order of one stream, whatever else there is. */
bool ts_closure_is_on_one_stream(
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

void ts_closures_forget(struct ts_closures *closures)
{
	for (uint32_t i = 0; closures->kept && i < closures->step->op_count;
	        i++) {
		if (!closures->kept[i].there)
			continue;
		ts_replay_finish(&closures->kept[i].launch);
		free(closures->kept[i].uses);
		closures->kept[i] = (struct ts_kept_op){.there = false};
	}
}

void ts_closures_destroy(struct ts_closures *closures)
{
	if (!closures)
		return;
	ts_closures_forget(closures);
	if (closures->graph.profile)
		ts_graph_finish(&closures->graph);
	free(closures->profile.signatures);
	free(closures->profile.values);
	free(closures->list);
	free(closures->op_list);
	free(closures->wanted);
	free(closures->kept);
	free(closures->pairs);
	free(closures);
}

void ts_closures_begin(struct ts_closures *closures)
{
	ts_closures_forget(closures);
	closures->next = 0;
	closures->pair_count = 0;
	for (uint32_t i = 0; i < closures->count; i++)
		closures->list[i].tried = false;
}

/* -------------------------------------------------------- what is kept */

static struct ts_kept_use keep_use(
        const struct ts_use *use, const struct ts_rec_use *recorded)
{
	struct ts_kept_use kept = {.serial = use->serial,
	        .address = use->address,
	        .bytes = use->bytes,
	        .block = recorded->block,
	        .slot = TS_PROOF_NO_SLOT};
	const struct ts_proof_known *known = ts_proof_find_known(use->serial);

	if (known) {
		kept.sum_address = known->address;
		kept.sum_bytes = known->bytes;
		kept.slot = known->slot;
	}
	return kept;
}

/* Is that what the profile's op uses there? Words left over from other calls
 * may lead to its blocks first, in another order. */
static bool is_that(const struct ts_recording *step,
        const struct ts_rec_use *known, const struct ts_use *use)
{
	return known->param == use->param && known->offset == use->offset &&
	       known->fresh == use->fresh &&
	       step->blocks[known->block].bytes == use->bytes;
}

int ts_closures_keep(
        struct ts_closures *closures, const struct ts_op *op, uint32_t at)
{
	const struct ts_recording *step = &closures->step->step;
	const struct ts_rec_op *rec = &step->ops[at];
	struct ts_kept_op *kept = &closures->kept[at];
	uint32_t count = 0;

	kept->uses = calloc(rec->use_count + 1, sizeof(*kept->uses));
	if (!kept->uses)
		return -ENOMEM;
	for (size_t i = 0; i < op->count && count <= rec->use_count; i++) {
		const struct ts_rec_use *known =
		        ts_recording_use(step, rec, count);

		if (op->uses[i].doubtful)
			continue;
		if (count < rec->use_count &&
		        !is_that(step, known, &op->uses[i]))
			break;
		if (count < rec->use_count)
			kept->uses[count] = keep_use(&op->uses[i], known);
		count++;
	}
	/* Blocks that this step's op has and the profile's had not. */
	if (count != rec->use_count || ts_replay_keep(op, &kept->launch)) {
		free(kept->uses);
		kept->uses = NULL;
		return 0;
	}
	kept->there = true;
	return 0;
}

int ts_closures_after(
        struct ts_closures *closures, const struct ts_op *op, uint32_t at)
{
	return closures->wanted[at] ? ts_closures_keep(closures, op, at) : 0;
}

/* --------------------------------------------------------- made again */

static const uint32_t *values_of(
        const uint32_t *by_use, const struct ts_closures *closures, uint32_t op)
{
	const struct ts_recording *step = &closures->step->step;

	return by_use + (step->ops[op].first_use - step->first_use);
}

/* Which use of its writer a value is; UINT32_MAX: of none in the closure. */
static uint32_t use_of(
        const struct ts_closures *closures, uint32_t value, uint32_t op)
{
	const uint32_t *written = values_of(
	        closures->step->devices[0].values.use_write, closures, op);

	for (uint32_t i = 0; i < closures->step->step.ops[op].use_count; i++)
		if (written[i] == value)
			return i;
	return UINT32_MAX;
}

bool ts_kept_is_alive(const struct ts_kept_use *use)
{
	struct ts_block *block;
	bool alive;

	ts_mutex_lock(&ts_agent.blocks.lock);
	block = ts_blocks_find_locked(&ts_agent.blocks, use->address);
	alive = block && block->serial == use->serial;
	ts_mutex_unlock(&ts_agent.blocks.lock);
	return alive;
}

static enum ts_verdict add_leaf(
        struct ts_making *making, const struct ts_kept_use *use)
{
	for (unsigned int i = 0; i < making->leaf_count; i++)
		if (making->leaves[i]->serial == use->serial &&
		        making->leaves[i]->slot == use->slot)
			return TS_VERDICT_OPEN;
	if (making->leaf_count == TS_CLOSURE_LEAVES)
		return TS_VERDICT_NO_ROOM;
	if (!ts_kept_is_alive(use))
		return TS_VERDICT_LEAF_CHANGED;
	making->leaves[making->leaf_count++] = use;
	return TS_VERDICT_OPEN;
}

static int get(struct ts_making *making, uint64_t bytes, uint64_t *ret_address)
{
	return ts_scratch_get(
	        &ts_proof.scratch, bytes, making->stream, ret_address);
}

/* Does the op read what the op that made @value wrote in this step too? */
static bool is_made_here(const struct ts_closures *closures, uint32_t value,
        const struct ts_kept_use *use)
{
	uint32_t writer = closures->graph.writer[value], made;

	if (writer == TS_NONE || !closures->kept[writer].there)
		return false;
	made = use_of(closures, value, writer);
	return made != UINT32_MAX &&
	       closures->kept[writer].uses[made].serial == use->serial;
}

/* What op @op reads, and where the value itself is. */
static enum ts_verdict plan_op(struct ts_making *making, uint32_t op)
{
	struct ts_closures *closures = making->closures;
	const struct ts_values *values = &closures->step->devices[0].values;
	const uint32_t *written = values_of(values->use_write, closures, op);
	const uint32_t *read = values_of(values->use_read, closures, op);
	const struct ts_kept_op *kept = &closures->kept[op];

	if (!kept->there)
		return TS_VERDICT_FAILED;
	for (uint32_t i = 0; i < closures->step->step.ops[op].use_count; i++) {
		enum ts_verdict verdict;

		if (written[i] == making->closure->value)
			making->original = &kept->uses[i];
		if (read[i] == TS_NONE)
			continue;
		/* Nor is what it changes in place what it was by then. */
		if (!ts_graph_alive(&closures->graph, read[i],
		            making->closure->to_op)) {
			if (!is_made_here(closures, read[i], &kept->uses[i]))
				return TS_VERDICT_LEAF_CHANGED;
			continue;
		}
		verdict = add_leaf(making, &kept->uses[i]);
		if (verdict != TS_VERDICT_OPEN)
			return verdict;
	}
	return TS_VERDICT_OPEN;
}

/* A place for everything that the ops make and that is not the value. */
static enum ts_verdict find_places(struct ts_making *making)
{
	const struct ts_closure *closure = making->closure;
	struct ts_places *places = &making->places;
	int rc = ts_places_find(&making->closures->profile,
	        &making->closures->op_list[closure->first_op],
	        closure->op_count, &closure->value, 1, places);

	if (!rc)
		making->buffers =
		        calloc(places->count + 1ull, sizeof(*making->buffers));
	if (rc || !making->buffers)
		return TS_VERDICT_FAILED;
	for (uint32_t i = 0; i < places->count; i++)
		if (!places->list[i].home &&
		        get(making, places->list[i].bytes, &making->buffers[i]))
			return TS_VERDICT_NO_ROOM;
	return TS_VERDICT_OPEN;
}

static int fill(const struct ts_making *making, uint64_t address,
        uint64_t bytes, bool second)
{
	return ts_gpu_errno(ts_agent.ops->set_bytes(address,
	        second ? TS_FILL_SECOND : TS_FILL_FIRST, bytes,
	        (CUstream)(uintptr_t)making->stream));
}

/* Where @value is made, which an op of the closure does; 0: none does. */
static uint64_t place_of(
        const struct ts_making *making, uint32_t value, bool second)
{
	const struct ts_place *place = ts_places_get(&making->places, value);

	if (!place)
		return 0;
	return place->home ? making->final[second]
	                   : making->buffers[place - making->places.list];
}

/* Leads one operand of a kept launch to where it is now. */
static int lead(const struct ts_making *making, struct ts_replay_launch *launch,
        uint32_t op, uint32_t use, bool second)
{
	const struct ts_closures *closures = making->closures;
	const struct ts_values *values = &closures->step->devices[0].values;
	uint32_t written = values_of(values->use_write, closures, op)[use];
	uint32_t read = values_of(values->use_read, closures, op)[use];
	const struct ts_kept_use *kept = &closures->kept[op].uses[use];
	uint64_t to;

	if (written == TS_NONE &&
	        (read == TS_NONE || ts_graph_alive(&closures->graph, read,
	                                    making->closure->to_op)))
		return 0;
	to = place_of(making, written != TS_NONE ? written : read, second);
	if (!to)
		return -ENOTSUP;
	return ts_replay_redirect(launch, kept->address, kept->bytes, to)
	               ? 0
	               : -ENOTSUP;
}

/* A launch of its own, since words are led elsewhere. */
static int launch_op(const struct ts_making *making, uint32_t op, bool second)
{
	const struct ts_replay_launch *kept =
	        &making->closures->kept[op].launch;
	struct ts_replay_launch launch = *kept;
	uint32_t uses = making->closures->step->step.ops[op].use_count;
	int rc = 0;

	launch.params = malloc(kept->param_bytes + 1);
	if (!launch.params)
		return -ENOMEM;
	memcpy(launch.params, kept->params, kept->param_bytes);
	for (uint32_t i = 0; i < uses && !rc; i++)
		rc = lead(making, &launch, op, i, second);
	if (!rc)
		rc = ts_replay_issue(&launch, ts_agent.ops, making->stream);
	ts_proof.replays += !rc;
	free(launch.params);
	return rc;
}

static int launch_all(const struct ts_making *making, bool second)
{
	const struct ts_closures *closures = making->closures;
	const struct ts_closure *closure = making->closure;
	int rc = 0;

	for (uint32_t i = 0; i < closure->op_count && !rc; i++)
		rc = launch_op(making, closures->op_list[closure->first_op + i],
		        second);
	return rc;
}

static int run(const struct ts_making *making, bool second)
{
	int rc = fill(
	        making, making->final[second], making->original->bytes, second);

	for (uint32_t i = 0; i < making->places.count && !rc; i++)
		if (making->buffers[i])
			rc = fill(making, making->buffers[i],
			        making->places.list[i].bytes, second);
	return rc ? rc : launch_all(making, second);
}

static int add_pair(struct ts_closures *closures, uint32_t then, uint32_t now)
{
	if (closures->pair_count == closures->pair_room) {
		uint32_t room = 2 * closures->pair_room + 256;
		void *more = realloc(
		        closures->pairs, 2 * room * sizeof(*closures->pairs));

		if (!more)
			return -ENOMEM;
		closures->pairs = more;
		closures->pair_room = room;
	}
	closures->pairs[2 * closures->pair_count] = then;
	closures->pairs[2 * closures->pair_count++ + 1] = now;
	return 0;
}

/* Sums of what is read as it is now, beside what it was. */
static int look_at_leaves(const struct ts_making *making)
{
	struct ts_closure *closure = making->closure;
	int rc = 0;

	closure->first_pair = making->closures->pair_count;
	for (unsigned int i = 0; i < making->leaf_count && !rc; i++) {
		const struct ts_kept_use *leaf = making->leaves[i];
		uint32_t now;

		rc = ts_checks_sum(ts_proof.checks, leaf->sum_address,
		        leaf->sum_bytes, making->stream, &now);
		if (!rc)
			rc = add_pair(making->closures, leaf->slot, now);
	}
	closure->pair_count =
	        making->closures->pair_count - closure->first_pair;
	return rc;
}

static int run_both(const struct ts_making *making)
{
	struct ts_closure *closure = making->closure;
	struct ts_comparison comparison = {
	        /* What it leaves out was settled op by op. */
	        .before = making->original->address,
	        .after = making->original->address,
	        .first = making->final[0],
	        .second = making->final[1],
	        .bytes = making->original->bytes};
	int rc = run(making, false);

	if (!rc)
		rc = run(making, true);
	if (rc) {
		closure->failed = TS_VERDICT_FAILED;
		return 0;
	}
	rc = ts_checks_compare(ts_proof.checks, &comparison, making->stream,
	        &closure->compared);
	return rc ? rc : look_at_leaves(making);
}

static void list_ranges(struct ts_making *making)
{
	int device = making->closures->step->devices[0].device;

	for (unsigned int i = 0; i <= making->leaf_count; i++) {
		bool is_leaf = i < making->leaf_count;
		const struct ts_kept_use *use =
		        is_leaf ? making->leaves[i] : making->original;

		making->ranges[i] = (struct ts_range){.address = use->address,
		        .bytes = use->bytes,
		        .access = TS_ACCESS_READ,
		        .device = device};
	}
}

/* With everything on the device that is read, and the original. */
static int run_resident(struct ts_making *making)
{
	struct ts_pager *pager =
	        ts_agent_pager(making->closures->step->devices[0].device);
	struct ts_shortage shortage;
	uint64_t in = 0, out = 0;
	unsigned int count = making->leaf_count + 1;
	int rc;

	if (!pager)
		return run_both(making);
	list_ranges(making);
	if (ts_pager_begin(pager, making->ranges, count, ts_agent_begin_flags(),
	            making->stream, &in, &out, &shortage)) {
		making->closure->failed = TS_VERDICT_NO_ROOM;
		return 0;
	}
	rc = run_both(making);
	ts_pager_end(pager, making->ranges, count, making->stream, true);
	return rc;
}

static enum ts_verdict plan_ops(struct ts_making *making)
{
	const struct ts_closure *closure = making->closure;
	enum ts_verdict verdict = TS_VERDICT_OPEN;

	for (uint32_t i = 0;
	        i < closure->op_count && verdict == TS_VERDICT_OPEN; i++)
		verdict = plan_op(making,
		        making->closures->op_list[closure->first_op + i]);
	if (verdict == TS_VERDICT_OPEN && !making->original)
		verdict = TS_VERDICT_FAILED;
	return verdict;
}

/* Freed early by the program: there is nothing to make it for. */
static enum ts_verdict is_there(
        const struct ts_making *making, enum ts_verdict verdict)
{
	if (verdict == TS_VERDICT_OPEN && !ts_kept_is_alive(making->original))
		return TS_VERDICT_LEAF_CHANGED;
	return verdict;
}

enum ts_verdict ts_making_leaves(struct ts_making *making)
{
	return is_there(making, plan_ops(making));
}

static void put_buffers(struct ts_making *making)
{
	for (uint32_t i = 0; making->buffers && i < making->places.count; i++)
		if (making->buffers[i])
			ts_scratch_put(&ts_proof.scratch, making->buffers[i],
			        making->stream);
	free(making->buffers);
	making->buffers = NULL;
	ts_places_finish(&making->places);
}

static int make(struct ts_making *making)
{
	struct ts_closure *closure = making->closure;
	enum ts_verdict verdict = ts_making_leaves(making);
	uint64_t held = ts_proof.scratch.held_bytes;
	int rc = 0;

	for (unsigned int i = 0;
	        i < making->leaf_count && verdict == TS_VERDICT_OPEN; i++)
		if (making->leaves[i]->slot == TS_PROOF_NO_SLOT)
			verdict = TS_VERDICT_LEAF_CHANGED;
	if (verdict == TS_VERDICT_OPEN)
		verdict = find_places(making);
	for (int i = 0; i < 2 && verdict == TS_VERDICT_OPEN; i++)
		if (get(making, making->original->bytes, &making->final[i]))
			verdict = TS_VERDICT_NO_ROOM;
	if (ts_proof.scratch.held_bytes != held)
		ts_agent_after_unmanaged();
	closure->tried = true;
	closure->failed = verdict;
	if (verdict == TS_VERDICT_OPEN)
		rc = run_resident(making);
	for (int i = 0; i < 2; i++)
		if (making->final[i])
			ts_scratch_put(&ts_proof.scratch, making->final[i],
			        making->stream);
	put_buffers(making);
	return rc;
}

int ts_closures_before(
        struct ts_closures *closures, const struct ts_op *op, uint32_t at)
{
	int rc = 0;

	while (closures->next < closures->count && !rc &&
	        closures->list[closures->next].to_op <= at) {
		struct ts_making *making = calloc(1, sizeof(*making));

		if (!making)
			return -ENOMEM;
		making->closures = closures;
		making->closure = &closures->list[closures->next++];
		making->stream = op->stream;
		rc = make(making);
		free(making);
	}
	return rc;
}

/* ------------------------------------------------------ what came of it */

static enum ts_verdict judge(
        const struct ts_closures *closures, const struct ts_closure *closure)
{
	struct ts_check_result found;

	if (closure->failed != TS_VERDICT_OPEN)
		return closure->failed;
	for (uint32_t i = 0; i < closure->pair_count; i++) {
		const uint32_t *pair =
		        &closures->pairs[2 * (closure->first_pair + i)];

		if (!ts_check_same(ts_checks_result(ts_proof.checks, pair[0]),
		            ts_checks_result(ts_proof.checks, pair[1])))
			return TS_VERDICT_LEAF_CHANGED;
	}
	found = ts_checks_result(ts_proof.checks, closure->compared);
	if (found.word[0])
		return TS_VERDICT_DIFFERS;
	return found.word[1] ? TS_VERDICT_PROVED : TS_VERDICT_WRITES_NOTHING;
}

/* An op that is no longer proved takes its closures with it. */
static enum ts_verdict worst_of(
        const struct ts_closures *closures, const struct ts_closure *closure)
{
	for (uint32_t i = 0; i < closure->op_count; i++) {
		enum ts_verdict verdict =
		        ts_proof.verdicts[closures->op_list[closure->first_op +
		                                            i]];

		if (verdict != TS_VERDICT_PROVED)
			return verdict;
	}
	return TS_VERDICT_PROVED;
}

static void settle(struct ts_closures *closures, struct ts_closure *closure)
{
	bool was_proved = closure->verdict == TS_VERDICT_PROVED;
	enum ts_verdict verdict = worst_of(closures, closure);

	if (verdict == TS_VERDICT_PROVED)
		verdict = judge(closures, closure);
	/* Of what could not be tried again nothing new is known. */
	if (was_proved && ts_verdict_class(verdict) == TS_NOT_TRIED)
		return;
	if (verdict == TS_VERDICT_PROVED && ++closure->agreed < TS_PROOF_STEPS)
		verdict = TS_VERDICT_OPEN;
	ts_proof.demoted += was_proved && verdict != TS_VERDICT_PROVED;
	closure->verdict = verdict;
}

void ts_closures_judge(struct ts_closures *closures)
{
	for (uint32_t i = 0; i < closures->count; i++) {
		struct ts_closure *closure = &closures->list[i];

		/* One refusal is enough. */
		if (closure->tried && ts_verdict_class(closure->verdict) !=
		                              TS_REFUSED_BY_PROOF)
			settle(closures, closure);
	}
}

void ts_closures_demote(struct ts_closures *closures, uint32_t index)
{
	if (closures->list[index].verdict != TS_VERDICT_PROVED)
		return;
	closures->list[index].verdict = TS_VERDICT_LEAF_CHANGED;
	ts_proof.demoted++;
}

bool ts_closures_refuse(const struct ts_closures *closures, uint32_t value)
{
	for (uint32_t i = 0; i < closures->count; i++)
		if (closures->list[i].value == value &&
		        closures->list[i].verdict != TS_VERDICT_PROVED)
			return true;
	return false;
}

json_t *ts_closures_json(const struct ts_closures *closures)
{
	json_int_t of[TS_VERDICTS] = {0}, bytes = 0;
	json_t *root = json_object(), *others = json_object();

	for (uint32_t i = 0; i < closures->count; i++) {
		const struct ts_closure *closure = &closures->list[i];

		of[closure->verdict]++;
		if (closure->verdict == TS_VERDICT_PROVED)
			bytes += (json_int_t)closure->bytes;
	}
	json_object_set_new(root, "tried", json_integer(closures->count));
	json_object_set_new(
	        root, "proved", json_integer(of[TS_VERDICT_PROVED]));
	json_object_set_new(root, "proved_bytes", json_integer(bytes));
	for (int i = 0; i < TS_VERDICTS; i++)
		if (of[i] && i != TS_VERDICT_PROVED)
			json_object_set_new(others,
			        ts_verdict_reason((enum ts_verdict)i),
			        json_integer(of[i]));
	json_object_set_new(root, "others", others);
	return root;
}
