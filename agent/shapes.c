/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "agent/shapes.h"

#include <stdlib.h>
#include <string.h>

#include "agent/funcs.h"
#include "agent/hash.h"
#include "agent/layout.h"
#include "agent/words.h"

static void clear(struct ts_shape *shape)
{
	free(shape->signatures);
	free(shape->best_ns);
	free(shape->words);
	free(shape->word_class);
	memset(shape, 0, sizeof(*shape));
}

void ts_shapes_finish(struct ts_shapes *shapes)
{
	for (size_t i = 0; i < shapes->count; i++)
		clear(&shapes->shapes[i]);
	shapes->count = 0;
}

/* What comes before it may be an evaluation pass, but no backward. */
static bool ends_as(
        const struct ts_recording *step, const struct ts_shape *shape)
{
	size_t skip = step->op_count - shape->op_count;

	if (shape->op_count > step->op_count)
		return false;
	for (size_t i = shape->op_count; i > 0; i--)
		if (step->ops[skip + i - 1].signature !=
		        shape->signatures[i - 1])
			return false;
	for (size_t i = 0; i < skip; i++)
		if (step->ops[i].backward)
			return false;
	return true;
}

/* The shortest that fits: the others are the same after other work. */
static struct ts_shape *find(
        struct ts_shapes *shapes, const struct ts_recording *step)
{
	struct ts_shape *found = NULL;

	for (size_t i = 0; i < shapes->count; i++) {
		struct ts_shape *shape = &shapes->shapes[i];

		if (ends_as(step, shape) &&
		        (!found || shape->op_count < found->op_count))
			found = shape;
	}
	return found;
}

/* The one that was not seen for longest gives way. */
static struct ts_shape *free_place(struct ts_shapes *shapes)
{
	struct ts_shape *oldest = &shapes->shapes[0];

	if (shapes->count < TS_SHAPES_MAX)
		return &shapes->shapes[shapes->count++];
	for (size_t i = 1; i < shapes->count; i++)
		if (shapes->shapes[i].last < oldest->last)
			oldest = &shapes->shapes[i];
	clear(oldest);
	return oldest;
}

static size_t words_of(const struct ts_recording *step)
{
	size_t count = 0;

	for (size_t i = 0; i < step->op_count; i++)
		count += step->ops[i].word_count;
	return count;
}

static struct ts_shape *add(
        struct ts_shapes *shapes, const struct ts_recording *step)
{
	struct ts_shape *shape = free_place(shapes);
	size_t ops = step->op_count;

	shape->op_count = ops;
	shape->step_ns = TS_UNKNOWN_NS;
	shape->hash = TS_HASH_START;
	shape->signatures = malloc((ops + 1) * sizeof(uint64_t));
	shape->best_ns = malloc((ops + 1) * sizeof(uint64_t));
	shape->word_count = words_of(step);
	shape->words = malloc((shape->word_count + 1) * sizeof(uint64_t));
	shape->word_class = malloc(shape->word_count + 1);
	if (!shape->signatures || !shape->best_ns || !shape->words ||
	        !shape->word_class) {
		clear(shape);
		*shape = shapes->shapes[--shapes->count];
		memset(&shapes->shapes[shapes->count], 0, sizeof(*shape));
		return NULL;
	}
	for (size_t i = 0; i < ops; i++) {
		shape->signatures[i] = step->ops[i].signature;
		shape->best_ns[i] = TS_UNKNOWN_NS;
		shape->hash = ts_hash_word(shape->hash, shape->signatures[i]);
	}
	return shape;
}

/* The use whose block @address lies in, or op->use_count. */
static uint32_t use_around(const struct ts_recording *step,
        const struct ts_rec_op *op, uint64_t address)
{
	for (uint32_t i = 0; i < op->use_count; i++) {
		const struct ts_rec_block *block =
		        &step->blocks[ts_recording_use(step, op, i)->block];

		if (address - block->address < block->bytes)
			return i;
	}
	return op->use_count;
}

/* Where the step's blocks lie. */
struct window {
	uint64_t lowest, end;
};

static struct window window_of(const struct ts_recording *step)
{
	struct window window = {.lowest = UINT64_MAX};

	for (size_t i = 0; i < step->block_count; i++) {
		const struct ts_rec_block *block = &step->blocks[i];

		if (block->address < window.lowest)
			window.lowest = block->address;
		if (block->address + block->bytes > window.end)
			window.end = block->address + block->bytes;
	}
	return window;
}

/*
 * What the word is in this step; a pointer becomes use and offset. Addresses
 * that lead to no operand are left over from other calls.
 */
static enum ts_word_class classify(const struct ts_recording *step,
        const struct ts_rec_op *op, const struct ts_word *place,
        const struct window *window, uint64_t *word)
{
	uint32_t use;

	if (place->bytes != 8 || *word < window->lowest || *word >= window->end)
		return TS_WORD_CONSTANT;
	use = use_around(step, op, *word);
	if (use == op->use_count ||
	        !ts_layout_keeps(op->func->layout, op->layout_used,
	                place->param, place->offset))
		return TS_WORD_VARYING;
	*word = ts_word_pointer(use,
	        *word - step->blocks[ts_recording_use(step, op, use)->block]
	                        .address);
	return TS_WORD_POINTER;
}

/* First step of the shape: as they are. Later ones: what has stayed. */
static void merge_words(struct ts_shape *shape, const struct ts_recording *step)
{
	struct window window = window_of(step);
	size_t at = 0;

	for (size_t i = 0; i < step->op_count; i++) {
		const struct ts_rec_op *op = &step->ops[i];
		const uint64_t *words = ts_recording_words(step, op);

		for (uint32_t k = 0; k < op->word_count; k++, at++) {
			struct ts_word place = ts_words_at(op->func, k);
			uint64_t word = words[k];
			uint8_t found = (uint8_t)classify(
			        step, op, &place, &window, &word);

			if (!shape->seen) {
				shape->words[at] = word;
				shape->word_class[at] = found;
			} else if (shape->word_class[at] != found ||
			           shape->words[at] != word) {
				shape->word_class[at] = TS_WORD_VARYING;
			}
		}
	}
}

/* The shorter of shape's and step's, into both. True: all were there. */
static bool merge_times(struct ts_shape *shape, struct ts_recording *step)
{
	bool all = true;

	for (size_t i = 0; i < shape->op_count; i++) {
		uint64_t *best = &shape->best_ns[i];

		all &= step->ops[i].duration_ns != TS_UNKNOWN_NS;
		if (step->ops[i].duration_ns < *best)
			*best = step->ops[i].duration_ns;
		step->ops[i].duration_ns = *best;
	}
	shape->timed += all;
	return all;
}

/*
 * How long a step after other work takes is not the period of steps in a row:
 * it stands only as long as that is not known.
 */
static void merge_period(
        struct ts_shape *shape, struct ts_recording *step, bool cut)
{
	bool known = shape->step_ns != TS_UNKNOWN_NS;
	bool better = !known || (shape->period_cut && !cut) ||
	              (shape->period_cut == cut &&
	                      step->duration_ns < shape->step_ns);

	if (better && step->duration_ns != TS_UNKNOWN_NS) {
		shape->step_ns = step->duration_ns;
		shape->period_cut = cut;
	}
	step->duration_ns = shape->step_ns;
}

/* From the start of its first op to the end of its last. */
static uint64_t span_of(const struct ts_recording *step)
{
	uint64_t sum = 0;

	for (size_t i = 1; i < step->op_count; i++) {
		if (step->ops[i].gap_ns == TS_UNKNOWN_NS)
			return TS_UNKNOWN_NS;
		sum += step->ops[i].gap_ns;
	}
	if (!step->op_count ||
	        step->ops[step->op_count - 1].duration_ns == TS_UNKNOWN_NS)
		return TS_UNKNOWN_NS;
	return sum + step->ops[step->op_count - 1].duration_ns;
}

struct ts_shape *ts_shapes_note(
        struct ts_shapes *shapes, struct ts_recording *step)
{
	struct ts_shape *shape = find(shapes, step);
	bool cut = false;

	shapes->steps++;
	if (!shape && !step->partial)
		shape = add(shapes, step);
	if (!shape)
		return NULL;
	if (step->op_count > shape->op_count) {
		size_t more = step->op_count - shape->op_count;

		shapes->other_ops += more;
		ts_recording_cut(step, more);
		step->duration_ns = span_of(step);
		cut = true;
	}
	if (shape->word_count == words_of(step))
		merge_words(shape, step);
	shape->seen++;
	shape->last = shapes->steps;
	merge_period(shape, step, cut);
	shapes->timed += merge_times(shape, step);
	return shape;
}

size_t ts_shapes_recent(const struct ts_shapes *shapes, uint64_t steps)
{
	size_t count = 0;

	for (size_t i = 0; i < shapes->count; i++)
		count += shapes->shapes[i].seen > 1 &&
		         shapes->shapes[i].last + steps > shapes->steps;
	return count;
}

void ts_shapes_unpublish(struct ts_shapes *shapes)
{
	for (size_t i = 0; i < shapes->count; i++)
		shapes->shapes[i].published = false;
}

void ts_shape_tell(struct ts_shape *shape, struct ts_recording *step,
        const uint64_t *ops_ns, uint64_t step_ns)
{
	for (size_t i = 0; i < shape->op_count; i++) {
		shape->best_ns[i] = ops_ns[i];
		step->ops[i].duration_ns = ops_ns[i];
	}
	shape->step_ns = step_ns;
	step->duration_ns = step_ns;
	shape->told = true;
}

void ts_shapes_forget_times(struct ts_shapes *shapes)
{
	for (size_t i = 0; i < shapes->count; i++) {
		struct ts_shape *shape = &shapes->shapes[i];

		for (size_t k = 0; k < shape->op_count; k++)
			shape->best_ns[k] = TS_UNKNOWN_NS;
		shape->step_ns = TS_UNKNOWN_NS;
		shape->timed = 0;
		shape->told = false;
		shape->published = false;
	}
}
