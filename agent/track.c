/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "agent/track.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "agent/base/lock.h"
#include "agent/observed.h"

/* A step as an automaton: after i matched ops and one that does not match,
 * fall[i] is how many ops may still be matched. */
struct automaton {
	const struct ts_observed *step;
	const uint64_t *signatures;
	uint32_t *fall;
	uint32_t count;
	uint32_t matched;
	bool sure;
};

static struct {
	struct ts_mutex lock;
	/* Guarded by lock. */
	struct automaton shapes[TS_TRACK_SHAPES];
	size_t count;
	size_t current;  /* the shape that is gone through */
	bool just_ended; /* the op before was the last of a step */
	_Atomic uint64_t steps, astray;
} track;

void ts_track_init(void)
{
	ts_mutex_init(&track.lock, TS_RANK_TAPE);
}

static uint32_t *make_fall(const uint64_t *signatures, uint32_t count)
{
	uint32_t *fall = malloc(((size_t)count + 1) * sizeof(*fall));
	uint32_t matched = 0;

	if (!fall)
		return NULL;
	fall[0] = 0;
	if (count)
		fall[1] = 0;
	for (uint32_t i = 1; i < count; i++) {
		while (matched && signatures[matched] != signatures[i])
			matched = fall[matched];
		matched += signatures[matched] == signatures[i];
		fall[i + 1] = matched;
	}
	return fall;
}

static void advance(struct automaton *shape, uint64_t signature)
{
	uint32_t was = shape->matched;

	if (shape->matched == shape->count)
		shape->matched = shape->fall[shape->matched];
	while (shape->matched && shape->signatures[shape->matched] != signature)
		shape->matched = shape->fall[shape->matched];
	shape->matched += shape->signatures[shape->matched] == signature;
	if (shape->matched != was + 1)
		shape->sure = false;
}

int ts_track_add(
        const struct ts_observed *step, const uint64_t *since, size_t count)
{
	struct automaton shape = {.step = step,
	        .signatures = step->signatures,
	        .count = step->op_count};
	size_t place = 0;

	if (!shape.count)
		return -EINVAL;
	shape.fall = make_fall(shape.signatures, shape.count);
	if (!shape.fall)
		return -ENOMEM;
	for (size_t i = 0; i < count; i++)
		advance(&shape, since[i]);
	/* It follows a step if all there was since the last is its first. */
	shape.sure = shape.matched && shape.matched == count;
	ts_mutex_lock(&track.lock);
	while (place < track.count &&
	        track.shapes[place].step->hash != step->hash)
		place++;
	if (place == TS_TRACK_SHAPES) {
		ts_mutex_unlock(&track.lock);
		free(shape.fall);
		return -ENOSPC;
	}
	if (place == track.count)
		track.count++;
	else
		free(track.shapes[place].fall);
	track.shapes[place] = shape;
	if (shape.sure)
		track.current = place;
	if (!count)
		track.just_ended = true;
	ts_mutex_unlock(&track.lock);
	return 0;
}

/* Lock held. The shape that most speaks for; the one before where equal. */
static void choose(void)
{
	const struct automaton *now = &track.shapes[track.current];

	if (now->matched && now->sure)
		return;
	for (size_t i = 0; i < track.count; i++) {
		const struct automaton *other = &track.shapes[i];

		if (other->matched <= now->matched && !other->sure)
			continue;
		track.current = i;
		now = other;
	}
}

static bool is_turn(const struct ts_observed *step, uint32_t op)
{
	for (uint32_t i = 0; i < step->turn_count; i++)
		if (step->turns[i] == op)
			return true;
	return false;
}

/* Lock held. */
static void tell(struct ts_spot *spot)
{
	struct automaton *shape = &track.shapes[track.current];
	bool was_sure = shape->sure;

	track.just_ended = false;
	if (!shape->matched)
		return;
	if (shape->matched >= TS_TRACK_SURE || shape->matched == shape->count)
		shape->sure = true;
	spot->step = shape->step;
	spot->op = shape->matched - 1;
	spot->sure = shape->sure;
	spot->begins = shape->sure && (!was_sure || !spot->op);
	spot->turns = shape->sure && is_turn(shape->step, spot->op);
	spot->ends = shape->sure && shape->matched == shape->count;
	if (!spot->ends)
		return;
	track.just_ended = true;
	atomic_fetch_add_explicit(&track.steps, 1, memory_order_relaxed);
}

void ts_track_op(uint64_t signature, struct ts_spot *ret_spot)
{
	*ret_spot = (struct ts_spot){.step = NULL};
	ts_mutex_lock(&track.lock);
	for (size_t i = 0; i < track.count; i++) {
		struct automaton *shape = &track.shapes[i];

		advance(shape, signature);
		/* Nothing came in between: this is a step's first op. */
		if (track.just_ended && shape->matched == 1)
			shape->sure = true;
	}
	if (track.count) {
		choose();
		tell(ret_spot);
	}
	atomic_store_explicit(&track.astray,
	        ret_spot->sure ? 0 : track.astray + 1, memory_order_relaxed);
	ts_mutex_unlock(&track.lock);
}

static void forget(bool just_ended)
{
	ts_mutex_lock(&track.lock);
	for (size_t i = 0; i < track.count; i++) {
		track.shapes[i].matched = 0;
		track.shapes[i].sure = false;
	}
	track.just_ended = just_ended;
	ts_mutex_unlock(&track.lock);
}

void ts_track_clear(void)
{
	ts_mutex_lock(&track.lock);
	while (track.count)
		free(track.shapes[--track.count].fall);
	track.current = 0;
	ts_mutex_unlock(&track.lock);
}

void ts_track_lose(void)
{
	forget(false);
}

void ts_track_mark(void)
{
	forget(true);
}

uint64_t ts_track_steps(void)
{
	return atomic_load_explicit(&track.steps, memory_order_relaxed);
}

uint64_t ts_track_astray(void)
{
	return atomic_load_explicit(&track.astray, memory_order_relaxed);
}
