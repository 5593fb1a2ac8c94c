/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "agent/recorder.h"

#include <stdlib.h>
#include <string.h>

#include "agent/recorder_internal.h"
#include "agent/timing.h"
#include "agent/words.h"

/* A program that never completes a step must not fill the host's memory. */
#define OPS_MAX (1u << 18)
/* PyTorch rounds blocks up to multiples of it. */
#define BLOCK_ROUNDING 512
#define REST_BYTES     (1u << 20)
#define FIRST_SLOTS    4096u

struct ts_recorder ts_rec;
atomic_bool ts_recorder_on;

void *ts_recording_copy(const void *items, size_t count, size_t item_bytes)
{
	void *made = malloc(count ? count * item_bytes : 1);

	if (made && count)
		memcpy(made, items, count * item_bytes);
	return made;
}

void ts_recording_finish(struct ts_recording *recording)
{
	free(recording->ops);
	free(recording->uses);
	free(recording->words);
	free(recording->blocks);
	memset(recording, 0, sizeof(*recording));
}

/* Gaps are from start to start: one period of a steady run, shifted. */
uint64_t ts_recording_duration(const struct ts_recording *recording)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < recording->op_count; i++) {
		if (recording->ops[i].gap_ns == TS_UNKNOWN_NS)
			return TS_UNKNOWN_NS;
		sum += recording->ops[i].gap_ns;
	}
	return sum;
}

uint64_t ts_recording_launches(
        const struct ts_recording *recording, size_t count)
{
	uint64_t found = 0;

	for (size_t i = 0; i < count; i++)
		found += recording->ops[i].kind == TS_REC_LAUNCH &&
		         !recording->ops[i].captured;
	return found;
}

void ts_recording_cut(struct ts_recording *recording, size_t count)
{
	recording->first_launch += ts_recording_launches(recording, count);
	recording->op_count -= count;
	memmove(recording->ops, recording->ops + count,
	        recording->op_count * sizeof(*recording->ops));
	recording->first_op += count;
}

void ts_recorder_init(void)
{
	ts_mutex_init(&ts_rec.lock, TS_RANK_RECORD);
	ts_rec.boundary = TS_NO_BOUNDARY;
	ts_rec.last_timer = TS_NO_TIMER;
	atomic_store(&ts_recorder_on, true);
}

bool ts_recorder_is_timing(void)
{
	return atomic_load_explicit(&ts_rec.timing, memory_order_relaxed);
}

void ts_recorder_set_timing(bool on)
{
	atomic_store_explicit(&ts_rec.timing, on, memory_order_relaxed);
}

bool ts_recorder_saw_backward(void)
{
	return atomic_load_explicit(&ts_rec.saw_backward, memory_order_relaxed);
}

/* Makes room for @wanted items; false without memory. */
static bool reserve(
        void **items, size_t *capacity, size_t wanted, size_t item_bytes)
{
	size_t larger = *capacity ? *capacity : 1024;
	void *moved;

	while (larger < wanted)
		larger *= 2;
	if (larger == *capacity)
		return true;
	moved = realloc(*items, larger * item_bytes);
	if (!moved)
		return false;
	*items = moved;
	*capacity = larger;
	return true;
}

/* The number of slots is a power of two. */
static size_t slot_of(uint64_t serial)
{
	size_t mask = ts_rec.slot_count - 1;
	size_t slot = (serial * 0x9fb21c651e98df25ull) >> 20 & mask;

	while (true) {
		uint32_t index = ts_rec.slots[slot];

		if (!index || ts_rec.kept.blocks[index - 1].serial == serial)
			return slot;
		slot = (slot + 1) & mask;
	}
}

bool ts_recorder_fill_slots(size_t count)
{
	uint32_t *slots = calloc(count, sizeof(*slots));

	if (!slots)
		return false;
	free(ts_rec.slots);
	ts_rec.slots = slots;
	ts_rec.slot_count = count;
	for (size_t i = 0; i < ts_rec.kept.block_count; i++)
		ts_rec.slots[slot_of(ts_rec.kept.blocks[i].serial)] =
		        (uint32_t)i + 1;
	return true;
}

/* NULL where @serial is not known. */
static struct ts_rec_block *find_block(uint64_t serial)
{
	uint32_t index;

	if (!ts_rec.kept.block_count)
		return NULL;
	index = ts_rec.slots[slot_of(serial)];
	return index ? &ts_rec.kept.blocks[index - 1] : NULL;
}

/* Index of the new block, or UINT32_MAX without memory. */
static uint32_t add_block(const struct ts_rec_block *block)
{
	size_t index = ts_rec.kept.block_count;

	if (!reserve((void **)&ts_rec.kept.blocks, &ts_rec.block_capacity,
	            index + 1, sizeof(*ts_rec.kept.blocks)))
		return UINT32_MAX;
	if (2 * (index + 1) > ts_rec.slot_count &&
	        !ts_recorder_fill_slots(ts_rec.slot_count
	                                        ? 2 * ts_rec.slot_count
	                                        : FIRST_SLOTS))
		return UINT32_MAX;
	ts_rec.kept.blocks[index] = *block;
	ts_rec.kept.block_count++;
	ts_rec.slots[slot_of(block->serial)] = (uint32_t)index + 1;
	return (uint32_t)index;
}

void ts_recorder_count(int64_t bytes, int device)
{
	uint64_t live, peak;

	if (device < 0 || device >= TS_RECORDER_DEVICES)
		return;
	live = (uint64_t)bytes +
	       atomic_fetch_add_explicit(&ts_rec.live_bytes[device],
	               (uint64_t)bytes, memory_order_relaxed);
	if (bytes < 0)
		return;
	peak = atomic_load_explicit(
	        &ts_rec.peak_bytes[device], memory_order_relaxed);
	while (live > peak &&
	        !atomic_compare_exchange_weak_explicit(
	                &ts_rec.peak_bytes[device], &peak, live,
	                memory_order_relaxed, memory_order_relaxed))
		;
}

static struct ts_rec_block block_as_known(const struct ts_block *block)
{
	return (struct ts_rec_block){.serial = block->serial,
	        .address = block->address,
	        .bytes = block->bytes,
	        .died = TS_NEVER,
	        .died_event = TS_NEVER,
	        .device = block->device,
	        .reported = block->reported,
	        .from_backward = block->from_backward,
	        .scratch = block->scratch};
}

void ts_recorder_born(const struct ts_block *block)
{
	struct ts_rec_block made = block_as_known(block);

	if (block->reported)
		ts_recorder_count((int64_t)block->bytes, block->device);
	ts_mutex_lock(&ts_rec.lock);
	if (ts_recorder_is_recording() && !find_block(block->serial)) {
		made.born = ts_recorder_next_op();
		made.born_event = ++ts_rec.events;
		add_block(&made);
	}
	ts_mutex_unlock(&ts_rec.lock);
}

void ts_recorder_died(const struct ts_block *block)
{
	struct ts_rec_block *known;

	if (block->reported)
		ts_recorder_count(-(int64_t)block->bytes, block->device);
	ts_mutex_lock(&ts_rec.lock);
	known = find_block(block->serial);
	if (known && known->died == TS_NEVER) {
		known->died = ts_recorder_next_op();
		known->died_event = ++ts_rec.events;
	}
	ts_mutex_unlock(&ts_rec.lock);
}

void ts_recorder_knows(const struct ts_block *block)
{
	struct ts_rec_block made = block_as_known(block);

	ts_mutex_lock(&ts_rec.lock);
	if (!find_block(block->serial))
		add_block(&made);
	ts_mutex_unlock(&ts_rec.lock);
}

void ts_recorder_scratch(uint64_t serial)
{
	struct ts_rec_block *block;

	ts_mutex_lock(&ts_rec.lock);
	block = find_block(serial);
	if (block)
		block->scratch = true;
	ts_mutex_unlock(&ts_rec.lock);
}

uint64_t ts_recorder_peak_bytes(int device)
{
	uint64_t most = 0;

	for (int i = 0; i < TS_RECORDER_DEVICES; i++) {
		uint64_t bytes = atomic_load(&ts_rec.peak_bytes[i]);

		if ((device < 0 || device == i) && bytes > most)
			most = bytes;
	}
	return most;
}

static uint8_t kind_of(enum ts_op_kind kind)
{
	switch (kind) {
	case TS_OP_COPY:
		return TS_REC_COPY;
	case TS_OP_SET:
		return TS_REC_SET;
	case TS_OP_GRAPH:
		return TS_REC_GRAPH;
	case TS_OP_LAUNCH:
	case TS_OP_KIND_COUNT:
		break;
	}
	return TS_REC_LAUNCH;
}

static uint8_t role_of(enum ts_access access)
{
	switch (access) {
	case TS_ACCESS_READ:
		return TS_ROLE_READ;
	case TS_ACCESS_WRITE:
		return TS_ROLE_WRITE;
	case TS_ACCESS_READWRITE:
		break;
	}
	return TS_ROLE_BOTH;
}

/* The block of @use; one that came before the recorder is made known now. */
static uint32_t block_index(const struct ts_use *use)
{
	struct ts_rec_block *known = find_block(use->serial);
	struct ts_rec_block block = {.serial = use->serial,
	        .address = use->address,
	        .bytes = use->bytes,
	        .died = TS_NEVER,
	        .died_event = TS_NEVER,
	        .device = use->device,
	        .reported = use->reported};
	uint32_t index;

	if (!known) {
		index = add_block(&block);
		if (index == UINT32_MAX)
			return index;
		known = &ts_rec.kept.blocks[index];
	}
	known->from_backward = use->from_backward;
	return (uint32_t)(known - ts_rec.kept.blocks);
}

/* What doubtful words lead to has to be there when the op runs. */
static uint32_t add_doubts(const struct ts_op *op, struct ts_rec_use *at)
{
	uint32_t count = 0;

	for (size_t i = 0; i < op->count; i++) {
		const struct ts_use *use = &op->uses[i];
		const struct ts_rec_block *block;

		if (!use->doubtful || use->unused)
			continue;
		block = find_block(use->serial);
		if (block)
			at[count++] = (struct ts_rec_use){
			        .block = (uint32_t)(block - ts_rec.kept.blocks),
			        .offset = use->offset,
			        .param = use->param,
			        .role = TS_ROLE_READ};
	}
	return count;
}

static bool add_uses(
        const struct ts_op *op, uint32_t *ret_count, uint32_t *ret_doubts)
{
	struct ts_recording *kept = &ts_rec.kept;
	uint32_t count = 0;

	if (!reserve((void **)&kept->uses, &ts_rec.use_capacity,
	            kept->use_count + op->count, sizeof(*kept->uses)))
		return false;
	for (size_t i = 0; i < op->count; i++) {
		const struct ts_use *use = &op->uses[i];
		uint32_t block;

		if (use->doubtful)
			continue;
		block = block_index(use);
		if (block == UINT32_MAX)
			return false;
		kept->uses[kept->use_count + count++] =
		        (struct ts_rec_use){.block = block,
		                .offset = use->offset,
		                .param = use->param,
		                .role = role_of(use->access),
		                .fresh = use->fresh,
		                .whole = op->ranges[i].bytes + BLOCK_ROUNDING >
		                         use->bytes};
	}
	*ret_count = count;
	*ret_doubts = add_doubts(op, &kept->uses[kept->use_count + count]);
	return true;
}

/* Older than the step, or made by its update. */
static bool is_update_block(const struct ts_use *use)
{
	const struct ts_rec_block *block = find_block(use->serial);

	return !use->fresh &&
	       (!block || block->updated || block->born < ts_rec.kept.first_op);
}

/* PyTorch leaves a rest of up to 1 MiB to a block larger than that. */
static bool same_size(uint64_t a, uint64_t b)
{
	uint64_t apart = a > b ? a - b : b - a;

	return !apart ||
	       (apart <= REST_BYTES && a > REST_BYTES && b > REST_BYTES);
}

/* A block as large as @use's, of those that the op did not make; lists are in
 * the same order, so that the search begins after the one found last. */
static bool has_twin(
        const struct ts_op *op, const struct ts_use *use, size_t *cursor)
{
	for (size_t i = 0; i < op->count; i++) {
		size_t at = (*cursor + i) % op->count;
		const struct ts_use *other = &op->uses[at];

		if (other->fresh || other->doubtful ||
		        !same_size(other->bytes, use->bytes))
			continue;
		*cursor = at + 1;
		return true;
	}
	return false;
}

/*
 * Whether an update may be at work in @op: it touches what is older than the
 * step, or what the update made, and makes blocks of the same sizes only.
 */
static bool goes_on(const struct ts_op *op)
{
	size_t known = 0, cursor = 0;

	for (size_t i = 0; i < op->count; i++) {
		const struct ts_use *use = &op->uses[i];

		if (use->doubtful)
			continue;
		if (is_update_block(use))
			known++;
		else if (!use->fresh || !has_twin(op, use, &cursor))
			return false;
	}
	return known;
}

static bool touches_gradient(const struct ts_op *op)
{
	for (size_t i = 0; i < op->count; i++)
		if (op->uses[i].from_backward && !op->uses[i].doubtful)
			return true;
	return false;
}

static void mark_updated(const struct ts_op *op)
{
	for (size_t i = 0; i < op->count; i++) {
		struct ts_rec_block *block = find_block(op->uses[i].serial);

		if (block && !op->uses[i].doubtful)
			block->updated = true;
	}
}

/* Where the op stands between backward and update. True: it updates. */
static bool follow_step(const struct ts_op *op)
{
	bool gradient;

	if (op->backward) {
		atomic_store_explicit(
		        &ts_rec.saw_backward, true, memory_order_relaxed);
		if (ts_rec.update_end && !ts_rec.marked)
			ts_rec.boundary = ts_rec.update_end;
		ts_rec.in_update = true;
		ts_rec.saw_gradient = false;
		ts_rec.update_end = 0;
		return false;
	}
	if (!ts_recorder_saw_backward())
		return false;
	gradient = touches_gradient(op);
	ts_rec.saw_gradient |= gradient;
	ts_rec.in_update = gradient || (ts_rec.in_update && goes_on(op));
	if (ts_rec.in_update) {
		mark_updated(op);
		if (ts_rec.saw_gradient)
			ts_rec.update_end = ts_recorder_next_op() + 1;
	}
	return ts_rec.in_update;
}

/* What is kept is given up; the next step begins with the next op. */
static void give_up(void)
{
	for (size_t i = 0; i < ts_rec.kept.op_count; i++)
		ts_timing_release(ts_rec.kept.ops[i].timer);
	ts_rec.kept.first_launch +=
	        ts_recording_launches(&ts_rec.kept, ts_rec.kept.op_count);
	ts_rec.kept.first_op = ts_recorder_next_op();
	ts_rec.kept.op_count = 0;
	ts_rec.kept.first_use += ts_rec.kept.use_count;
	ts_rec.kept.use_count = 0;
	ts_rec.kept.first_word += ts_rec.kept.word_count;
	ts_rec.kept.word_count = 0;
	ts_rec.settled = ts_rec.kept.first_op;
	ts_rec.boundary = TS_NO_BOUNDARY;
	ts_rec.update_end = 0;
}

/* Words of the parameters, where they are kept. */
static bool add_words(const struct ts_op *op, uint32_t *ret_count)
{
	struct ts_recording *kept = &ts_rec.kept;

	*ret_count = 0;
	if (!op->func || !op->func->word_count || !op->params)
		return true;
	if (!reserve((void **)&kept->words, &ts_rec.word_capacity,
	            kept->word_count + op->func->word_count,
	            sizeof(*kept->words)))
		return false;
	ts_words_read(op->func, op->params, &kept->words[kept->word_count]);
	*ret_count = op->func->word_count;
	return true;
}

static bool add_op(const struct ts_op *op, bool updating)
{
	struct ts_recording *kept = &ts_rec.kept;
	uint32_t count, doubts, word_count;
	struct ts_rec_op *made;

	if (kept->op_count == OPS_MAX)
		give_up();
	if (!reserve((void **)&kept->ops, &ts_rec.op_capacity,
	            kept->op_count + 1, sizeof(*kept->ops)) ||
	        !add_uses(op, &count, &doubts) || !add_words(op, &word_count))
		return false;
	made = &kept->ops[kept->op_count];
	*made = (struct ts_rec_op){.signature = op->signature,
	        .family = op->family,
	        .func = op->func,
	        .name = op->name,
	        .stream = op->stream,
	        .bytes = op->bytes,
	        .first_use = kept->first_use + kept->use_count,
	        .duration_ns = TS_UNKNOWN_NS,
	        .gap_ns = TS_UNKNOWN_NS,
	        .first_word = kept->first_word + kept->word_count,
	        .use_count = count,
	        .doubt_count = doubts,
	        .word_count = word_count,
	        .layout_used = op->layout_used,
	        .shared_bytes = op->shared_bytes,
	        .timer = op->timer,
	        .kind = kind_of(op->kind),
	        .backward = op->backward,
	        .declared = op->declared,
	        .collective = op->collective,
	        .captured = op->capturing,
	        .updating = updating};
	memcpy(made->grid, op->grid, sizeof(made->grid));
	memcpy(made->block, op->block, sizeof(made->block));
	kept->op_count++;
	kept->use_count += count + doubts;
	kept->word_count += word_count;
	return true;
}

bool ts_recorder_op(const struct ts_op *op, bool ends_step)
{
	bool complete;

	ts_mutex_lock(&ts_rec.lock);
	if (!add_op(op, follow_step(op))) {
		/* A gap in the tape: no step with it can be told. */
		ts_timing_release(op->timer);
		give_up();
	} else if (ends_step && !ts_recorder_saw_backward() && !ts_rec.marked) {
		ts_rec.boundary = ts_recorder_next_op();
	}
	complete = ts_rec.boundary != TS_NO_BOUNDARY;
	ts_mutex_unlock(&ts_rec.lock);
	return complete;
}

void ts_recorder_pause(void)
{
	ts_mutex_lock(&ts_rec.lock);
	atomic_store(&ts_recorder_on, false);
	give_up();
	ts_rec.kept.block_count = 0;
	if (ts_rec.slot_count)
		memset(ts_rec.slots, 0,
		        ts_rec.slot_count * sizeof(*ts_rec.slots));
	ts_rec.in_update = false;
	ts_rec.saw_gradient = false;
	ts_mutex_unlock(&ts_rec.lock);
}

void ts_recorder_resume(uint64_t launches)
{
	ts_mutex_lock(&ts_rec.lock);
	ts_rec.kept.first_launch = launches;
	ts_rec.kept.partial = true;
	atomic_store(&ts_recorder_on, true);
	ts_mutex_unlock(&ts_rec.lock);
}

size_t ts_recorder_signatures(uint64_t **ret_signatures)
{
	size_t count;

	ts_mutex_lock(&ts_rec.lock);
	count = ts_rec.kept.op_count;
	*ret_signatures = malloc((count + 1) * sizeof(**ret_signatures));
	for (size_t i = 0; *ret_signatures && i < count; i++)
		(*ret_signatures)[i] = ts_rec.kept.ops[i].signature;
	ts_mutex_unlock(&ts_rec.lock);
	return *ret_signatures ? count : 0;
}

bool ts_recorder_mark(void)
{
	bool complete;

	ts_mutex_lock(&ts_rec.lock);
	/* What was before the first mark is no step. */
	if (!ts_rec.marked)
		give_up();
	ts_rec.marked = true;
	if (ts_recorder_is_recording() && ts_rec.kept.op_count)
		ts_rec.boundary = ts_recorder_next_op();
	complete = ts_rec.boundary != TS_NO_BOUNDARY;
	ts_mutex_unlock(&ts_rec.lock);
	return complete;
}
