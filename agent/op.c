/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "agent/op.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "agent/declared.h"
#include "agent/hash.h"
#include "agent/layout.h"
#include "agent/recorder.h"
#include "agent/timing.h"
#include "agent/turn.h"

#define SCAN_FOUND_MAX 64

#define INITIAL_EXEC __attribute__((tls_model("initial-exec")))
/* A thread takes so many stamps at a time: a shared counter is dear. */
#define STAMPS 65536u

static uint64_t next_stamp(void)
{
	static _Atomic uint64_t next = 1;
	static __thread uint64_t own INITIAL_EXEC;
	static __thread uint32_t left INITIAL_EXEC;

	if (!left--) {
		own = atomic_fetch_add_explicit(
		        &next, STAMPS, memory_order_relaxed);
		left = STAMPS - 1;
	}
	return own++;
}

void ts_op_init(struct ts_op *op, enum ts_op_kind kind, const char *name)
{
	/* Not the inline arrays: they are large and written before read. */
	memset(op, 0, offsetof(struct ts_op, inline_uses));
	op->kind = kind;
	op->name = name;
	op->uses = op->inline_uses;
	op->ranges = op->inline_ranges;
	op->capacity = TS_OP_INLINE_USES;
	op->backward = ts_turn_in_backward();
	op->recorded = ts_recorder_is_recording();
	op->timer = TS_NO_TIMER;
	op->stamp = next_stamp();
}

void ts_op_free_uses(struct ts_op *op)
{
	free(op->uses);
	free(op->ranges);
}

static bool grow(struct ts_op *op)
{
	size_t capacity = op->capacity * 4;
	struct ts_use *uses = malloc(capacity * sizeof(*uses));
	struct ts_range *ranges = malloc(capacity * sizeof(*ranges));

	if (!uses || !ranges) {
		free(uses);
		free(ranges);
		return false;
	}
	memcpy(uses, op->uses, op->count * sizeof(*uses));
	memcpy(ranges, op->ranges, op->count * sizeof(*ranges));
	ts_op_finish(op);
	op->uses = uses;
	op->ranges = ranges;
	op->capacity = capacity;
	return true;
}

/* Where in the parameters the word stands that is looked at. */
struct word_place {
	uint16_t param;
	uint32_t offset;
	bool doubtful; /* no operand, as far as the layout is known */
	bool unused;   /* for certain */
};

static const struct word_place no_place = {.param = TS_NO_PARAM};

/* What a use knows of the block; the block knows the op now. */
static void tell_use(struct ts_op *op, struct ts_use *use,
        struct ts_block *block, const struct word_place *place)
{
	use->param = place->param;
	use->offset = place->offset;
	use->doubtful = place->doubtful;
	use->unused = place->unused;
	if (place->doubtful)
		return;
	use->fresh = !block->touched;
	if (use->fresh)
		block->from_backward = op->backward;
	block->touched = true;
	use->from_backward = block->from_backward;
}

/* A second touch of a block by the same op. */
static void widen(struct ts_op *op, struct ts_block *block,
        const struct ts_range *range, const struct word_place *place)
{
	for (size_t i = 0; i < op->count; i++) {
		struct ts_range *old = &op->ranges[i];
		uint64_t end = range->address + range->bytes;

		if (op->uses[i].serial != block->serial)
			continue;
		if (old->address + old->bytes > end)
			end = old->address + old->bytes;
		if (range->address < old->address)
			old->address = range->address;
		old->bytes = end - old->address;
		/* Of what two touches write together nothing is certain. */
		if (old->access != range->access ||
		        range->access == TS_ACCESS_WRITE)
			old->access = TS_ACCESS_READWRITE;
		op->uses[i].access = old->access;
		if ((op->uses[i].unused && !place->unused) ||
		        (op->uses[i].doubtful && !place->doubtful))
			tell_use(op, &op->uses[i], block, place);
		return;
	}
}

static void note(struct ts_op *op, struct ts_block *block, uint64_t address,
        uint64_t bytes, enum ts_access access, const struct word_place *place)
{
	struct ts_range range = {.address = address,
	        .bytes = bytes,
	        .access = access,
	        .device = block->managed ? block->device : -1};
	struct ts_use *use;

	if (block->stamp == op->stamp) {
		widen(op, block, &range, place);
		return;
	}
	if (op->count == op->capacity && !grow(op)) {
		op->incomplete = true;
		return;
	}
	block->stamp = op->stamp;
	op->ranges[op->count] = range;
	use = &op->uses[op->count++];
	/* One by one: a whole struct would be put together elsewhere first. */
	use->serial = block->serial;
	use->address = block->address;
	use->bytes = block->bytes;
	use->access = access;
	use->device = block->device;
	use->reported = block->reported;
	use->fresh = false;
	use->from_backward = false;
	tell_use(op, use, block, place);
}

static void note_word(struct ts_op *op, struct ts_blocks *blocks, uint64_t word,
        const struct word_place *place)
{
	struct ts_block *block = ts_blocks_find_locked(blocks, word);
	const struct ts_declaration *said = ts_declared();
	struct word_place here = *place;
	enum ts_access ignored;

	if (!block)
		return;
	/* The library's own, or what was left on its stack. */
	if (said && said->complete &&
	        !ts_declared_access(
	                said, block->address, block->bytes, &ignored))
		here.doubtful = true;
	note(op, block, block->address, block->bytes, TS_ACCESS_READWRITE,
	        &here);
}

void ts_op_touch(struct ts_op *op, struct ts_blocks *blocks, uint64_t address,
        uint64_t bytes, enum ts_access access)
{
	uint64_t end = address + bytes;

	ts_mutex_lock(&blocks->lock);
	if (!bytes) {
		note_word(op, blocks, address, &no_place);
	} else {
		struct ts_block *block = ts_blocks_find_locked(blocks, address);

		/* A copy of a whole segment spans blocks and gaps. */
		if (!block)
			block = ts_blocks_next_locked(blocks, address);
		while (block && block->address < end) {
			uint64_t from = block->address, to = from;

			to += block->bytes;
			if (from < address)
				from = address;
			if (to > end)
				to = end;
			note(op, block, from, to - from, access, &no_place);
			block = ts_blocks_next_locked(blocks, block->address);
		}
	}
	ts_mutex_unlock(&blocks->lock);
}

/* @offset: of @data in the parameter buffer, for the alignment of words. */
static void scan_param(struct ts_op *op, struct ts_blocks *blocks,
        uint16_t param, const char *data, size_t offset, size_t bytes)
{
	const struct ts_layout *layout = op->func ? op->func->layout : NULL;
	const uint64_t low = blocks->lowest, span = blocks->highest - low;
	size_t at = (8 - offset % 8) % 8;

	for (; at + 8 <= bytes; at += 8) {
		struct word_place place = {
		        .param = param, .offset = (uint32_t)at};
		uint32_t used = op->layout_used;
		uint64_t word;

		/* By far the most words of a large struct lead nowhere. */
		memcpy(&word, data + at, sizeof(word));
		if (word - low >= span)
			continue;
		place.doubtful =
		        !ts_layout_keeps(layout, used, param, place.offset);
		place.unused =
		        ts_layout_is_unused(layout, used, param, place.offset);
		note_word(op, blocks, word, &place);
	}
}

static void scan_extra(struct ts_op *op, struct ts_blocks *blocks)
{
	const char *buffer = NULL;
	size_t bytes = 0;

	for (void **at = op->extra; *at != CU_LAUNCH_PARAM_END; at += 2) {
		if (*at == CU_LAUNCH_PARAM_BUFFER_POINTER)
			buffer = at[1];
		else if (*at == CU_LAUNCH_PARAM_BUFFER_SIZE)
			memcpy(&bytes, at[1], sizeof(bytes));
	}
	if (buffer)
		scan_param(op, blocks, TS_NO_PARAM, buffer, 0, bytes);
}

static void note_all(struct ts_op *op, struct ts_blocks *blocks)
{
	struct ts_block *block = ts_blocks_next_locked(blocks, 0);

	while (block) {
		note(op, block, block->address, block->bytes,
		        TS_ACCESS_READWRITE, &no_place);
		block = ts_blocks_next_locked(blocks, block->address);
	}
}

static void apply_declaration(struct ts_op *op, struct ts_blocks *blocks,
        const struct ts_declaration *said)
{
	op->declared = said->tells_roles;
	op->collective = said->collective;
	for (size_t i = 0; said->unseen && i < said->count; i++)
		ts_op_touch(op, blocks, said->operands[i].address,
		        said->operands[i].bytes, TS_ACCESS_READWRITE);
	if (!said->tells_roles)
		return;
	/* For the tape only: what moves memory does not rely on it. */
	for (size_t i = 0; i < op->count; i++) {
		struct ts_use *use = &op->uses[i];

		if (!ts_declared_access(
		            said, use->address, use->bytes, &use->access))
			use->access = TS_ACCESS_READ;
	}
}

static bool comes_before(const struct ts_use *a, const struct ts_use *b)
{
	return a->param != b->param ? a->param < b->param
	                            : a->offset < b->offset;
}

/*
 * A word left over may have led to a block before its operand did, in one step
 * and not in another: uses stand as their operands do, so that steps whose ops
 * are the same tell of them in the same order. They hardly ever do not.
 */
static void order_uses(struct ts_op *op)
{
	for (size_t i = 1; i < op->count; i++) {
		struct ts_use use;
		struct ts_range range;
		size_t at = i;

		while (at && comes_before(&op->uses[i], &op->uses[at - 1]))
			at--;
		if (at == i)
			continue;
		use = op->uses[i];
		range = op->ranges[i];
		memmove(&op->uses[at + 1], &op->uses[at],
		        (i - at) * sizeof(use));
		memmove(&op->ranges[at + 1], &op->ranges[at],
		        (i - at) * sizeof(range));
		op->uses[at] = use;
		op->ranges[at] = range;
	}
}

void ts_op_touch_params(struct ts_op *op, struct ts_blocks *blocks)
{
	const struct ts_declaration *said = ts_declared();
	const struct ts_func *func = op->func;

	if (func && !op->extra)
		op->layout_used =
		        ts_layout_used(func->layout, op->params, op->grid);
	ts_mutex_lock(&blocks->lock);
	if (op->extra)
		scan_extra(op, blocks);
	else if (!func || !func->has_layout || op->unknown_params ||
	         (said && said->any))
		note_all(op, blocks);
	else if (op->params)
		for (size_t i = 0; i < func->param_count; i++)
			scan_param(op, blocks, (uint16_t)i, op->params[i],
			        func->params[i].offset, func->params[i].bytes);
	ts_mutex_unlock(&blocks->lock);
	if (said)
		apply_declaration(op, blocks, said);
	order_uses(op);
}

bool ts_op_skip_unused(struct ts_op *op)
{
	bool doubtful = false;

	for (size_t i = 0; i < op->count; i++) {
		if (op->uses[i].unused)
			op->ranges[i].bytes = 0;
		op->ranges[i].doubtful = op->uses[i].doubtful;
		doubtful |= op->uses[i].doubtful && !op->uses[i].unused;
	}
	return doubtful;
}

void ts_scan_words(struct ts_blocks *blocks, const void *words, size_t bytes,
        void (*found)(const struct ts_range *block, void *data), void *data)
{
	struct ts_range hits[SCAN_FOUND_MAX];
	const char *at = words;
	const char *end = at + bytes;
	size_t count = 0;

	while (at + 8 <= end) {
		uint64_t low, span;

		ts_mutex_lock(&blocks->lock);
		low = blocks->lowest;
		span = blocks->highest - low;
		for (count = 0; at + 8 <= end && count < SCAN_FOUND_MAX;
		        at += 8) {
			struct ts_block *block;
			uint64_t word;

			/* By far the most are plain numbers. */
			memcpy(&word, at, sizeof(word));
			if (word - low >= span)
				continue;
			block = ts_blocks_find_locked(blocks, word);
			if (!block || !block->managed)
				continue;
			hits[count++] =
			        (struct ts_range){.address = block->address,
			                .bytes = block->bytes,
			                .access = TS_ACCESS_READ,
			                .device = block->device};
		}
		ts_mutex_unlock(&blocks->lock);
		for (size_t i = 0; i < count; i++)
			found(&hits[i], data);
	}
}

static uint64_t mix(uint64_t hash, uint32_t high, uint32_t low)
{
	return ts_hash_word(hash, (uint64_t)high << 32 | low);
}

void ts_op_sign(struct ts_op *op)
{
	uint64_t hash = ts_hash_word(TS_HASH_START, op->kind);

	if (op->signature)
		return;
	if (op->func)
		hash = ts_hash_word(hash, op->func->name_hash);
	else if (op->name)
		hash = ts_hash(hash, op->name, strlen(op->name));
	op->family = hash | 1;
	for (int i = 0; i < 3; i++)
		hash = mix(hash, op->grid[i], op->block[i]);
	if (op->cluster[0])
		hash = mix(mix(hash, op->cluster[0], op->cluster[1]), 0,
		        op->cluster[2]);
	hash = ts_hash_word(hash, op->shared_bytes);
	op->signature = ts_hash_word(hash, op->bytes) | 1;
}
