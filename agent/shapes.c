/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "agent/shapes.h"

#include <stdlib.h>
#include <string.h>

#include "agent/hash.h"

static void clear(struct ts_shape *shape)
{
	free(shape->signatures);
	free(shape->best_ns);
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
	if (!shape->signatures || !shape->best_ns) {
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
	if (step->duration_ns < shape->step_ns)
		shape->step_ns = step->duration_ns;
	step->duration_ns = shape->step_ns;
	shape->timed += all;
	return all;
}

struct ts_shape *ts_shapes_note(
        struct ts_shapes *shapes, struct ts_recording *step)
{
	struct ts_shape *shape = find(shapes, step);

	shapes->steps++;
	if (!shape)
		shape = add(shapes, step);
	if (!shape)
		return NULL;
	if (step->op_count > shape->op_count) {
		size_t more = step->op_count - shape->op_count;

		shapes->other_ops += more;
		ts_recording_cut(step, more);
		/* Its period is not that of steps in a row. */
		step->duration_ns = TS_UNKNOWN_NS;
	}
	shape->seen++;
	shape->last = shapes->steps;
	shapes->timed += merge_times(shape, step);
	return shape;
}

uint64_t ts_shapes_timed(const struct ts_shapes *shapes)
{
	return shapes->timed;
}

size_t ts_shapes_recent(const struct ts_shapes *shapes, uint64_t steps)
{
	size_t count = 0;

	for (size_t i = 0; i < shapes->count; i++)
		count += shapes->shapes[i].seen > 1 &&
		         shapes->shapes[i].last + steps > shapes->steps;
	return count;
}
