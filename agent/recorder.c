/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "agent/recorder.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "agent/base/lock.h"
#include "agent/timing.h"

/* A program that never completes a step must not fill the host's memory. */
#define OPS_MAX     (1u << 18)
#define NO_BOUNDARY UINT64_MAX
/* PyTorch rounds blocks up to multiples of it. */
#define BLOCK_ROUNDING 512
#define REST_BYTES     (1u << 20)
#define DEVICES        16
#define FIRST_SLOTS    4096u
#define SETTLE_CHUNK   1024u

static struct {
	struct ts_mutex lock;
	atomic_bool timing;
	atomic_bool saw_backward;
	atomic_bool settling;

	/* Guarded by lock. */
	struct ts_recording kept; /* what belongs to no finished step yet */
	size_t op_capacity, use_capacity, block_capacity;
	/* Open addressing from a block's serial to its index + 1; 0: empty. */
	uint32_t *slots;
	size_t slot_count;
	uint64_t boundary;   /* a step is complete before this op */
	bool in_update;      /* the op before was one of an update */
	bool saw_gradient;   /* since the backward */
	uint64_t update_end; /* one past its last op; 0: none */
	uint64_t settled;    /* ops before this one have their times */
	int32_t last_timer;  /* of the op before it */
	uint64_t live_bytes[DEVICES], peak_bytes;
	uint64_t events; /* births and deaths so far */
} rec;

void ts_recording_finish(struct ts_recording *recording)
{
	free(recording->ops);
	free(recording->uses);
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

static uint64_t launches(const struct ts_recording *recording, size_t count)
{
	uint64_t found = 0;

	for (size_t i = 0; i < count; i++)
		found += recording->ops[i].kind == TS_REC_LAUNCH &&
		         !recording->ops[i].captured;
	return found;
}

void ts_recording_cut(struct ts_recording *recording, size_t count)
{
	recording->first_launch += launches(recording, count);
	recording->op_count -= count;
	memmove(recording->ops, recording->ops + count,
	        recording->op_count * sizeof(*recording->ops));
	recording->first_op += count;
}

void ts_recorder_init(void)
{
	ts_mutex_init(&rec.lock, TS_RANK_RECORD);
	rec.boundary = NO_BOUNDARY;
	rec.last_timer = TS_NO_TIMER;
}

bool ts_recorder_is_timing(void)
{
	return atomic_load_explicit(&rec.timing, memory_order_relaxed);
}

void ts_recorder_set_timing(bool on)
{
	atomic_store_explicit(&rec.timing, on, memory_order_relaxed);
}

bool ts_recorder_saw_backward(void)
{
	return atomic_load_explicit(&rec.saw_backward, memory_order_relaxed);
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
	size_t mask = rec.slot_count - 1;
	size_t slot = (serial * 0x9fb21c651e98df25ull) >> 20 & mask;

	while (true) {
		uint32_t index = rec.slots[slot];

		if (!index || rec.kept.blocks[index - 1].serial == serial)
			return slot;
		slot = (slot + 1) & mask;
	}
}

static bool fill_slots(size_t count)
{
	uint32_t *slots = calloc(count, sizeof(*slots));

	if (!slots)
		return false;
	free(rec.slots);
	rec.slots = slots;
	rec.slot_count = count;
	for (size_t i = 0; i < rec.kept.block_count; i++)
		rec.slots[slot_of(rec.kept.blocks[i].serial)] = (uint32_t)i + 1;
	return true;
}

/* NULL where @serial is not known. */
static struct ts_rec_block *find_block(uint64_t serial)
{
	uint32_t index;

	if (!rec.slot_count)
		return NULL;
	index = rec.slots[slot_of(serial)];
	return index ? &rec.kept.blocks[index - 1] : NULL;
}

static uint64_t next_op(void)
{
	return rec.kept.first_op + rec.kept.op_count;
}

/* Index of the new block, or UINT32_MAX without memory. */
static uint32_t add_block(const struct ts_rec_block *block)
{
	size_t index = rec.kept.block_count;

	if (!reserve((void **)&rec.kept.blocks, &rec.block_capacity, index + 1,
	            sizeof(*rec.kept.blocks)))
		return UINT32_MAX;
	if (2 * (index + 1) > rec.slot_count &&
	        !fill_slots(rec.slot_count ? 2 * rec.slot_count : FIRST_SLOTS))
		return UINT32_MAX;
	rec.kept.blocks[index] = *block;
	rec.kept.block_count++;
	rec.slots[slot_of(block->serial)] = (uint32_t)index + 1;
	return (uint32_t)index;
}

static uint64_t *live_bytes_of(const struct ts_rec_block *block)
{
	bool counts = block->reported && block->device >= 0 &&
	              block->device < DEVICES;

	return counts ? &rec.live_bytes[block->device] : NULL;
}

void ts_recorder_born(uint64_t serial, uint64_t address, uint64_t bytes,
        int device, bool reported)
{
	struct ts_rec_block block = {.serial = serial,
	        .address = address,
	        .bytes = bytes,
	        .died = TS_NEVER,
	        .died_event = TS_NEVER,
	        .device = device,
	        .reported = reported};
	uint64_t *live = live_bytes_of(&block);

	ts_mutex_lock(&rec.lock);
	block.born = next_op();
	block.born_event = ++rec.events;
	if (live) {
		*live += bytes;
		if (*live > rec.peak_bytes)
			rec.peak_bytes = *live;
	}
	if (!find_block(serial))
		add_block(&block);
	ts_mutex_unlock(&rec.lock);
}

void ts_recorder_died(uint64_t serial)
{
	struct ts_rec_block *block;
	uint64_t *live;

	ts_mutex_lock(&rec.lock);
	block = find_block(serial);
	if (block && block->died == TS_NEVER) {
		block->died = next_op();
		block->died_event = ++rec.events;
		live = live_bytes_of(block);
		if (live)
			*live -= block->bytes;
	}
	ts_mutex_unlock(&rec.lock);
}

void ts_recorder_scratch(uint64_t serial)
{
	struct ts_rec_block *block;

	ts_mutex_lock(&rec.lock);
	block = find_block(serial);
	if (block)
		block->scratch = true;
	ts_mutex_unlock(&rec.lock);
}

uint64_t ts_recorder_peak_bytes(void)
{
	uint64_t bytes;

	ts_mutex_lock(&rec.lock);
	bytes = rec.peak_bytes;
	ts_mutex_unlock(&rec.lock);
	return bytes;
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
		known = &rec.kept.blocks[index];
	}
	known->from_backward = use->from_backward;
	return (uint32_t)(known - rec.kept.blocks);
}

static bool add_uses(const struct ts_op *op, uint32_t *ret_count)
{
	struct ts_recording *kept = &rec.kept;
	uint32_t count = 0;

	if (!reserve((void **)&kept->uses, &rec.use_capacity,
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
	return true;
}

/* Older than the step, or made by its update. */
static bool is_update_block(const struct ts_use *use)
{
	const struct ts_rec_block *block = find_block(use->serial);

	return !use->fresh &&
	       (!block || block->updated || block->born < rec.kept.first_op);
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
		        &rec.saw_backward, true, memory_order_relaxed);
		if (rec.update_end)
			rec.boundary = rec.update_end;
		rec.in_update = true;
		rec.saw_gradient = false;
		rec.update_end = 0;
		return false;
	}
	if (!ts_recorder_saw_backward())
		return false;
	gradient = touches_gradient(op);
	rec.saw_gradient |= gradient;
	rec.in_update = gradient || (rec.in_update && goes_on(op));
	if (rec.in_update) {
		mark_updated(op);
		if (rec.saw_gradient)
			rec.update_end = next_op() + 1;
	}
	return rec.in_update;
}

/* What is kept is given up; the next step begins with the next op. */
static void give_up(void)
{
	for (size_t i = 0; i < rec.kept.op_count; i++)
		ts_timing_release(rec.kept.ops[i].timer);
	rec.kept.first_launch += launches(&rec.kept, rec.kept.op_count);
	rec.kept.first_op = next_op();
	rec.kept.op_count = 0;
	rec.kept.first_use += rec.kept.use_count;
	rec.kept.use_count = 0;
	rec.settled = rec.kept.first_op;
	rec.boundary = NO_BOUNDARY;
	rec.update_end = 0;
}

static bool add_op(const struct ts_op *op, bool updating)
{
	struct ts_recording *kept = &rec.kept;
	struct ts_rec_op *made;
	uint32_t count;

	if (kept->op_count == OPS_MAX)
		give_up();
	if (!reserve((void **)&kept->ops, &rec.op_capacity, kept->op_count + 1,
	            sizeof(*kept->ops)) ||
	        !add_uses(op, &count))
		return false;
	made = &kept->ops[kept->op_count];
	*made = (struct ts_rec_op){.signature = ts_op_signature(op),
	        .func = op->func,
	        .name = op->name,
	        .stream = op->stream,
	        .bytes = op->bytes,
	        .first_use = kept->first_use + kept->use_count,
	        .duration_ns = TS_UNKNOWN_NS,
	        .gap_ns = TS_UNKNOWN_NS,
	        .use_count = count,
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
	kept->use_count += count;
	return true;
}

bool ts_recorder_op(const struct ts_op *op, bool ends_step)
{
	bool complete;

	ts_mutex_lock(&rec.lock);
	if (!add_op(op, follow_step(op))) {
		/* A gap in the tape: no step with it can be told. */
		ts_timing_release(op->timer);
		give_up();
	} else if (ends_step && !ts_recorder_saw_backward()) {
		rec.boundary = next_op();
	}
	complete = rec.boundary != NO_BOUNDARY;
	ts_mutex_unlock(&rec.lock);
	return complete;
}

struct settling {
	uint64_t first;
	size_t count;
	int32_t timers[SETTLE_CHUNK];
	uint64_t durations[SETTLE_CHUNK], gaps[SETTLE_CHUNK];
	int32_t before; /* timer of the op before the first */
};

/* Lock held. Takes the timers of ops [settled, @end) out of the record. */
static void collect(struct settling *work, uint64_t end)
{
	work->first = rec.settled;
	work->count = 0;
	work->before = rec.last_timer;
	while (work->first + work->count < end && work->count < SETTLE_CHUNK) {
		struct ts_rec_op *op = &rec.kept.ops[work->first + work->count -
		                                     rec.kept.first_op];

		work->timers[work->count++] = op->timer;
		op->timer = TS_NO_TIMER;
	}
}

/* How many ops could be told; without a timer there is nothing to tell. */
static size_t read_times(struct settling *work)
{
	for (size_t i = 0; i < work->count; i++) {
		int32_t timer = work->timers[i];

		work->durations[i] = TS_UNKNOWN_NS;
		work->gaps[i] = TS_UNKNOWN_NS;
		if (timer == TS_NO_TIMER)
			continue;
		if (!ts_timing_read(timer, &work->durations[i]))
			return i;
		ts_timing_between(i ? work->timers[i - 1] : work->before, timer,
		        &work->gaps[i]);
	}
	return work->count;
}

/* Lock held. */
static void store(const struct settling *work, size_t told)
{
	for (size_t i = 0; i < work->count; i++) {
		uint64_t number = work->first + i;
		struct ts_rec_op *op;

		if (number < rec.kept.first_op || number >= next_op())
			continue;
		op = &rec.kept.ops[number - rec.kept.first_op];
		if (i >= told) {
			op->timer = work->timers[i];
			continue;
		}
		op->duration_ns = work->durations[i];
		op->gap_ns = work->gaps[i];
	}
	if (!told)
		return;
	rec.settled = work->first + told;
	rec.last_timer = work->timers[told - 1];
}

static void release(const struct settling *work, size_t told)
{
	if (told)
		ts_timing_release(work->before);
	for (size_t i = 0; i + 1 < told; i++)
		ts_timing_release(work->timers[i]);
}

/* One thread at a time; true where all of a chunk could be told. */
static bool settle_chunk(uint64_t limit)
{
	struct settling *work = malloc(sizeof(*work));
	size_t told;
	bool more;

	if (!work)
		return false;
	ts_mutex_lock(&rec.lock);
	collect(work, limit < next_op() ? limit : next_op());
	ts_mutex_unlock(&rec.lock);
	told = read_times(work);
	ts_mutex_lock(&rec.lock);
	store(work, told);
	ts_mutex_unlock(&rec.lock);
	release(work, told);
	more = told == work->count && work->count == SETTLE_CHUNK;
	free(work);
	return more;
}

static void settle(uint64_t limit)
{
	if (atomic_exchange(&rec.settling, true))
		return;
	while (settle_chunk(limit))
		;
	atomic_store(&rec.settling, false);
}

void ts_recorder_settle(void)
{
	if (ts_recorder_is_timing())
		settle(UINT64_MAX);
}

/* The device shall have passed the last op of the step. */
static void wait_for(uint64_t end)
{
	int32_t timer = TS_NO_TIMER;

	ts_mutex_lock(&rec.lock);
	for (uint64_t i = end; i > rec.settled && timer == TS_NO_TIMER; i--)
		timer = rec.kept.ops[i - 1 - rec.kept.first_op].timer;
	ts_mutex_unlock(&rec.lock);
	ts_timing_wait(timer);
}

static void *copy(const void *items, size_t count, size_t item_bytes)
{
	void *made = malloc(count ? count * item_bytes : 1);

	if (made && count)
		memcpy(made, items, count * item_bytes);
	return made;
}

/* Lock held. Drops the step from what is kept, with blocks that died in it. */
static void drop_before(uint64_t end)
{
	struct ts_recording *kept = &rec.kept;
	size_t ops = end - kept->first_op, uses, blocks = 0;
	uint32_t *moved = malloc((kept->block_count + 1) * sizeof(*moved));

	uses = ops < kept->op_count ? kept->ops[ops].first_use - kept->first_use
	                            : kept->use_count;
	for (size_t i = 0; i < ops; i++)
		ts_timing_release(kept->ops[i].timer);
	kept->first_launch += launches(kept, ops);
	kept->op_count -= ops;
	kept->use_count -= uses;
	kept->first_op += ops;
	kept->first_use += uses;
	memmove(kept->ops, kept->ops + ops,
	        kept->op_count * sizeof(*kept->ops));
	memmove(kept->uses, kept->uses + uses,
	        kept->use_count * sizeof(*kept->uses));
	if (rec.settled < end)
		rec.settled = end;
	if (rec.update_end <= end)
		rec.update_end = 0;
	/* Without memory to sort them out dead blocks stay a step longer. */
	if (!moved)
		return;
	/* Another thread may free a block that an op of this one still uses. */
	for (size_t i = 0; i < kept->use_count; i++)
		if (kept->blocks[kept->uses[i].block].died <= end)
			kept->blocks[kept->uses[i].block].died = end + 1;
	for (size_t i = 0; i < kept->block_count; i++) {
		struct ts_rec_block *block = &kept->blocks[i];

		block->updated = false;
		moved[i] = (uint32_t)blocks;
		if (block->died > end)
			kept->blocks[blocks++] = *block;
	}
	kept->block_count = blocks;
	for (size_t i = 0; i < kept->use_count; i++)
		kept->uses[i].block = moved[kept->uses[i].block];
	free(moved);
	if (!fill_slots(rec.slot_count))
		memset(rec.slots, 0, rec.slot_count * sizeof(*rec.slots));
}

/* Lock held. */
static bool copy_before(uint64_t end, struct ts_recording *ret)
{
	const struct ts_recording *kept = &rec.kept;

	*ret = (struct ts_recording){.first_op = kept->first_op,
	        .first_launch = kept->first_launch,
	        .op_count = end - kept->first_op,
	        .first_use = kept->first_use,
	        .block_count = kept->block_count};
	ret->use_count =
	        ret->op_count < kept->op_count
	                ? kept->ops[ret->op_count].first_use - kept->first_use
	                : kept->use_count;
	ret->ops = copy(kept->ops, ret->op_count, sizeof(*ret->ops));
	ret->uses = copy(kept->uses, ret->use_count, sizeof(*ret->uses));
	ret->blocks =
	        copy(kept->blocks, ret->block_count, sizeof(*ret->blocks));
	if (ret->ops && ret->uses && ret->blocks)
		return true;
	ts_recording_finish(ret);
	return false;
}

bool ts_recorder_take(bool wait, struct ts_recording *ret_recording)
{
	uint64_t end;
	bool made = false;

	ts_mutex_lock(&rec.lock);
	if (rec.boundary == NO_BOUNDARY && !wait && rec.update_end)
		rec.boundary = rec.update_end;
	end = rec.boundary;
	ts_mutex_unlock(&rec.lock);
	if (end == NO_BOUNDARY)
		return false;
	if (wait && ts_recorder_is_timing()) {
		wait_for(end);
		settle(end);
	}
	ts_mutex_lock(&rec.lock);
	/* The record may have been given up meanwhile. */
	if (rec.boundary == end && end > rec.kept.first_op) {
		made = copy_before(end, ret_recording);
		drop_before(end);
	}
	rec.boundary = NO_BOUNDARY;
	ts_mutex_unlock(&rec.lock);
	if (made)
		ret_recording->duration_ns =
		        ts_recording_duration(ret_recording);
	return made;
}

bool ts_recorder_is_complete(void)
{
	bool complete;

	ts_mutex_lock(&rec.lock);
	complete = rec.boundary != NO_BOUNDARY || rec.update_end;
	ts_mutex_unlock(&rec.lock);
	return complete;
}
