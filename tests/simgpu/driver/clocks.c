/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Order among operations, as the program asked for it: vector clocks with one
 * component for each stream. An op's clock says how far into every stream what
 * came before it reaches; the host's says what the program has waited for, or
 * seen finished. Virtual time has no part in this.
 *
 * All host threads share one clock: the driver sees the order in which their
 * calls arrive, not the program's own locks between them.
 *
 * A stream that is gone leaves its component to a later one once the host
 * knows that its work is done, so that many short-lived streams cost nothing.
 * Guarded by the lock.
 */
#include "tests/simgpu/driver/races.h"

#include <stdlib.h>
#include <string.h>

struct component {
	uint64_t issued; /* ops so far */
	uint64_t known;  /* of those, how many the host knows to be done */
	const struct sg_device *dev;
	bool gone;
};
static struct component *components;
static unsigned n_components, cap_components;

/* Of an op; ticks beyond n are zero. */
struct clock {
	unsigned n, cap;
	unsigned own; /* component of the op's stream */
	uint64_t ticks[];
};

static const struct clock *clock_of(const struct sg_op *op)
{
	return op->clock;
}

static unsigned component_new(const struct sg_device *dev)
{
	unsigned i = 0;

	while (i < n_components &&
	        !(components[i].gone && components[i].dev == dev &&
	                components[i].known == components[i].issued))
		i++;
	if (i < n_components) {
		components[i].gone = false;
		return i;
	}
	if (n_components == cap_components) {
		cap_components = cap_components ? 2 * cap_components : 16;
		components = sg_xrealloc(
		        components, cap_components * sizeof(*components));
	}
	components[n_components] = (struct component){.dev = dev};
	return n_components++;
}

void sg_clock_stream_gone(struct sg_stream *stream)
{
	if (stream->clock_component)
		components[stream->clock_component - 1].gone = true;
	stream->clock_component = 0;
}

void sg_clock_start(struct sg_op *op)
{
	struct sg_stream *stream = op->stream;
	struct clock *clock = op->clock;

	if (!stream->clock_component)
		stream->clock_component = component_new(op->dev) + 1;
	if (!clock || clock->cap < n_components) {
		clock = sg_xrealloc(clock,
		        sizeof(*clock) +
		                cap_components * sizeof(clock->ticks[0]));
		clock->cap = cap_components;
		op->clock = clock;
	}
	clock->n = n_components;
	clock->own = stream->clock_component - 1;
	for (unsigned i = 0; i < n_components; i++)
		clock->ticks[i] = components[i].known;
	clock->ticks[clock->own] = ++components[clock->own].issued;
}

void sg_clock_join(struct sg_op *op, const struct sg_op *before)
{
	struct clock *to = op->clock;
	const struct clock *from = clock_of(before);

	for (unsigned i = 0; i < from->n; i++) {
		if (to->ticks[i] < from->ticks[i])
			to->ticks[i] = from->ticks[i];
	}
}

bool sg_clock_covers(const struct sg_op *op, struct sg_moment moment)
{
	const struct clock *clock = clock_of(op);

	return moment.component < clock->n &&
	       moment.tick <= clock->ticks[moment.component];
}

bool sg_clock_covers_all(const struct sg_op *op, const struct sg_op *other)
{
	const struct clock *has = clock_of(op), *want = clock_of(other);

	for (unsigned i = 0; i < want->n; i++) {
		if ((i < has->n ? has->ticks[i] : 0) < want->ticks[i])
			return false;
	}
	return true;
}

struct sg_moment sg_clock_moment(const struct sg_op *op)
{
	const struct clock *clock = clock_of(op);

	return (struct sg_moment){clock->own, clock->ticks[clock->own]};
}

bool sg_clock_host_covers(struct sg_moment moment)
{
	return moment.tick <= components[moment.component].known;
}

void sg_clock_host_knows(const struct sg_op *op)
{
	const struct clock *clock = clock_of(op);

	for (unsigned i = 0; clock && i < clock->n; i++) {
		if (components[i].known < clock->ticks[i])
			components[i].known = clock->ticks[i];
	}
}

void sg_clock_host_knows_device(const struct sg_device *dev)
{
	for (unsigned i = 0; i < n_components; i++) {
		if (components[i].dev == dev)
			components[i].known = components[i].issued;
	}
}
