/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The recorder's steps: their times, and cutting them off. */
#include <stdlib.h>
#include <string.h>

#include "agent/recorder_internal.h"
#include "agent/timing.h"

#define SETTLE_CHUNK 1024u

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
	work->first = ts_rec.settled;
	work->count = 0;
	work->before = ts_rec.last_timer;
	while (work->first + work->count < end && work->count < SETTLE_CHUNK) {
		struct ts_rec_op *op =
		        &ts_rec.kept.ops[work->first + work->count -
		                         ts_rec.kept.first_op];

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

		if (number < ts_rec.kept.first_op ||
		        number >= ts_recorder_next_op())
			continue;
		op = &ts_rec.kept.ops[number - ts_rec.kept.first_op];
		if (i >= told) {
			op->timer = work->timers[i];
			continue;
		}
		op->duration_ns = work->durations[i];
		op->gap_ns = work->gaps[i];
	}
	if (!told)
		return;
	ts_rec.settled = work->first + told;
	ts_rec.last_timer = work->timers[told - 1];
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
	ts_mutex_lock(&ts_rec.lock);
	collect(work,
	        limit < ts_recorder_next_op() ? limit : ts_recorder_next_op());
	ts_mutex_unlock(&ts_rec.lock);
	told = read_times(work);
	ts_mutex_lock(&ts_rec.lock);
	store(work, told);
	ts_mutex_unlock(&ts_rec.lock);
	release(work, told);
	more = told == work->count && work->count == SETTLE_CHUNK;
	free(work);
	return more;
}

static void settle(uint64_t limit)
{
	if (atomic_exchange(&ts_rec.settling, true))
		return;
	while (settle_chunk(limit))
		;
	atomic_store(&ts_rec.settling, false);
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

	ts_mutex_lock(&ts_rec.lock);
	for (uint64_t i = end; i > ts_rec.settled && timer == TS_NO_TIMER; i--)
		timer = ts_rec.kept.ops[i - 1 - ts_rec.kept.first_op].timer;
	ts_mutex_unlock(&ts_rec.lock);
	ts_timing_wait(timer);
}

/* Uses and words of the first @ops ops. */
static void uses_before(const struct ts_recording *recording, size_t ops,
        size_t *ret_uses, size_t *ret_words)
{
	const struct ts_rec_op *op = &recording->ops[ops];

	*ret_uses = recording->use_count;
	*ret_words = recording->word_count;
	if (ops >= recording->op_count)
		return;
	*ret_uses = op->first_use - recording->first_use;
	*ret_words = op->first_word - recording->first_word;
}

/* Lock held. Drops the step from what is kept, with blocks that died in it. */
static void drop_before(uint64_t end)
{
	struct ts_recording *kept = &ts_rec.kept;
	size_t ops = end - kept->first_op, uses, words, blocks = 0;
	uint32_t *moved = malloc((kept->block_count + 1) * sizeof(*moved));

	uses_before(kept, ops, &uses, &words);
	for (size_t i = 0; i < ops; i++)
		ts_timing_release(kept->ops[i].timer);
	kept->first_launch += ts_recording_launches(kept, ops);
	kept->op_count -= ops;
	kept->use_count -= uses;
	kept->word_count -= words;
	kept->first_op += ops;
	kept->first_use += uses;
	kept->first_word += words;
	memmove(kept->ops, kept->ops + ops,
	        kept->op_count * sizeof(*kept->ops));
	memmove(kept->uses, kept->uses + uses,
	        kept->use_count * sizeof(*kept->uses));
	memmove(kept->words, kept->words + words,
	        kept->word_count * sizeof(*kept->words));
	if (ts_rec.settled < end)
		ts_rec.settled = end;
	if (ts_rec.update_end <= end)
		ts_rec.update_end = 0;
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
	if (!ts_recorder_fill_slots(ts_rec.slot_count))
		memset(ts_rec.slots, 0,
		        ts_rec.slot_count * sizeof(*ts_rec.slots));
}

/* Lock held. */
static bool copy_before(uint64_t end, struct ts_recording *ret)
{
	const struct ts_recording *kept = &ts_rec.kept;

	*ret = (struct ts_recording){.first_op = kept->first_op,
	        .first_launch = kept->first_launch,
	        .op_count = end - kept->first_op,
	        .first_use = kept->first_use,
	        .first_word = kept->first_word,
	        .block_count = kept->block_count,
	        .partial = kept->partial};
	uses_before(kept, ret->op_count, &ret->use_count, &ret->word_count);
	ret->ops =
	        ts_recording_copy(kept->ops, ret->op_count, sizeof(*ret->ops));
	ret->uses = ts_recording_copy(
	        kept->uses, ret->use_count, sizeof(*ret->uses));
	ret->words = ts_recording_copy(
	        kept->words, ret->word_count, sizeof(*ret->words));
	ret->blocks = ts_recording_copy(
	        kept->blocks, ret->block_count, sizeof(*ret->blocks));
	if (ret->ops && ret->uses && ret->words && ret->blocks)
		return true;
	ts_recording_finish(ret);
	return false;
}

bool ts_recorder_take(bool wait, struct ts_recording *ret_recording)
{
	uint64_t end;
	bool made = false;

	ts_mutex_lock(&ts_rec.lock);
	if (ts_rec.boundary == TS_NO_BOUNDARY && !wait && ts_rec.update_end &&
	        !ts_rec.marked)
		ts_rec.boundary = ts_rec.update_end;
	end = ts_rec.boundary;
	ts_mutex_unlock(&ts_rec.lock);
	if (end == TS_NO_BOUNDARY)
		return false;
	if (wait && ts_recorder_is_timing()) {
		wait_for(end);
		settle(end);
	}
	ts_mutex_lock(&ts_rec.lock);
	/* The record may have been given up meanwhile. */
	if (ts_rec.boundary == end && end > ts_rec.kept.first_op) {
		made = copy_before(end, ret_recording);
		drop_before(end);
		ts_rec.kept.partial = false;
	}
	ts_rec.boundary = TS_NO_BOUNDARY;
	ts_mutex_unlock(&ts_rec.lock);
	if (made)
		ret_recording->duration_ns =
		        ts_recording_duration(ret_recording);
	return made;
}
