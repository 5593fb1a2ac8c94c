/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "agent/tape.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define FIRST_OPS  4096u
#define FIRST_USES 16384u

int ts_tape_init(struct ts_tape *tape)
{
	memset(tape, 0, sizeof(*tape));
	ts_mutex_init(&tape->lock, TS_RANK_TAPE);
	return ts_step_init(&tape->step);
}

void ts_tape_finish(struct ts_tape *tape)
{
	ts_step_finish(&tape->step);
	free(tape->ops);
	free(tape->uses);
	ts_mutex_finish(&tape->lock);
}

/*
 * Makes a ring of @*capacity items hold [@oldest, @end): a power of two, so
 * that an item's place follows from its number.
 */
static bool reserve(void **ring, size_t *capacity, size_t item_bytes,
        uint64_t oldest, uint64_t end, size_t first_capacity)
{
	size_t wanted = *capacity ? *capacity : first_capacity;
	char *larger;

	while (wanted < end - oldest)
		wanted *= 2;
	if (wanted == *capacity)
		return true;
	larger = malloc(wanted * item_bytes);
	if (!larger)
		return false;
	for (uint64_t i = oldest; *capacity && i < oldest + *capacity; i++)
		memcpy(larger + (i & (wanted - 1)) * item_bytes,
		        (char *)*ring + (i & (*capacity - 1)) * item_bytes,
		        item_bytes);
	free(*ring);
	*ring = larger;
	*capacity = wanted;
	return true;
}

static void drop_oldest(struct ts_tape *tape, uint64_t keep_from)
{
	if (keep_from <= tape->oldest_op)
		return;
	if (keep_from > tape->op_count)
		keep_from = tape->op_count;
	tape->oldest_op = keep_from;
	tape->oldest_use = keep_from < tape->op_count
	                           ? ts_tape_op(tape, keep_from)->first_use
	                           : tape->use_count;
}

static void trim(struct ts_tape *tape)
{
	uint64_t kept = tape->op_count - tape->oldest_op, needed;

	if (kept < TS_TAPE_KEEP)
		return;
	needed = ts_step_oldest_needed(&tape->step);
	if (needed > tape->op_count - TS_TAPE_KEEP / 2)
		needed = tape->op_count - TS_TAPE_KEEP / 2;
	drop_oldest(tape, needed);
	if (tape->op_count - tape->oldest_op >= TS_TAPE_MAX)
		drop_oldest(tape, tape->op_count - TS_TAPE_MAX / 2);
}

static bool append(struct ts_tape *tape, const struct ts_op *op)
{
	struct ts_tape_op *record;

	trim(tape);
	if (!reserve((void **)&tape->ops, &tape->op_capacity,
	            sizeof(*tape->ops), tape->oldest_op, tape->op_count + 1,
	            FIRST_OPS) ||
	        !reserve((void **)&tape->uses, &tape->use_capacity,
	                sizeof(*tape->uses), tape->oldest_use,
	                tape->use_count + op->count, FIRST_USES))
		return false;
	record = &tape->ops[tape->op_count & (tape->op_capacity - 1)];
	*record = (struct ts_tape_op){
	        .signature = op->signature,
	        .func = op->func,
	        .name = op->name,
	        .stream = op->stream,
	        .bytes = op->bytes,
	        .in_bytes = op->in_bytes,
	        .out_bytes = op->out_bytes,
	        .first_use = tape->use_count,
	        .use_count = (uint32_t)op->count,
	        .kind = (uint8_t)op->kind,
	        .captured = op->capturing,
	        .collective = op->collective,
	};
	memcpy(record->grid, op->grid, sizeof(record->grid));
	memcpy(record->block, op->block, sizeof(record->block));
	for (size_t i = 0; i < op->count; i++)
		tape->uses[(tape->use_count + i) & (tape->use_capacity - 1)] =
		        op->uses[i];
	tape->op_count++;
	tape->use_count += op->count;
	return true;
}

void ts_tape_count(struct ts_tape *tape, const struct ts_op *op)
{
	_Atomic uint64_t *count =
	        op->capturing ? &tape->captured : &tape->totals[op->kind];

	atomic_fetch_add_explicit(count, 1, memory_order_relaxed);
	if (op->collective && !op->capturing)
		atomic_fetch_add_explicit(
		        &tape->collectives, 1, memory_order_relaxed);
}

void ts_tape_record(struct ts_tape *tape, const struct ts_op *op)
{
	ts_tape_count(tape, op);
	ts_mutex_lock(&tape->lock);
	if (append(tape, op)) {
		ts_step_push(&tape->step, op->signature);
		atomic_store_explicit(&tape->pace.count, tape->step.count,
		        memory_order_relaxed);
		atomic_store_explicit(&tape->pace.period,
		        ts_step_going_on(&tape->step), memory_order_relaxed);
	} else {
		tape->lost++;
	}
	ts_mutex_unlock(&tape->lock);
}

const struct ts_tape_op *ts_tape_op(const struct ts_tape *tape, uint64_t number)
{
	return &tape->ops[number & (tape->op_capacity - 1)];
}

const struct ts_use *ts_tape_use(const struct ts_tape *tape, uint64_t number)
{
	return &tape->uses[number & (tape->use_capacity - 1)];
}
