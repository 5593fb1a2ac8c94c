/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "agent/memline.h"

#include <errno.h>
#include <stdlib.h>

#define DEVICES 16

struct event {
	uint64_t number; /* order */
	uint64_t op;
	uint64_t bytes;
	bool birth;
};

static int compare(const void *a, const void *b)
{
	const struct event *left = a, *right = b;

	return (left->number > right->number) - (left->number < right->number);
}

static bool counts(const struct ts_rec_block *block, int device)
{
	return block->reported && block->device == device;
}

static size_t collect(const struct ts_recording *recording, int device,
        struct event *events, uint64_t *ret_live)
{
	uint64_t first = recording->first_op;
	uint64_t end = first + recording->op_count;
	size_t count = 0;

	*ret_live = 0;
	for (size_t i = 0; i < recording->block_count; i++) {
		const struct ts_rec_block *block = &recording->blocks[i];

		if (!counts(block, device) || block->born > end ||
		        block->died < first)
			continue;
		if (block->born < first)
			*ret_live += block->bytes;
		else
			events[count++] = (struct event){block->born_event,
			        block->born, block->bytes, true};
		if (block->died <= end)
			events[count++] = (struct event){block->died_event,
			        block->died, block->bytes, false};
	}
	qsort(events, count, sizeof(*events), compare);
	return count;
}

static void raise_to(struct ts_memline *line, uint64_t op, uint64_t live,
        uint64_t event, size_t op_count)
{
	if (op < op_count && live > line->live_bytes[op])
		line->live_bytes[op] = live;
	if (live <= line->peak_bytes)
		return;
	line->peak_bytes = live;
	line->peak_op = op;
	line->peak_event = event;
}

int ts_memline_make(const struct ts_recording *recording, int device,
        struct ts_memline *ret_line)
{
	struct event *events =
	        calloc(2 * recording->block_count + 1, sizeof(*events));
	struct ts_memline line = {.live_bytes = calloc(recording->op_count + 1,
	                                  sizeof(uint64_t))};
	uint64_t live, first = recording->first_op, next = 0;
	size_t count;

	if (!events || !line.live_bytes) {
		free(events);
		free(line.live_bytes);
		return -ENOMEM;
	}
	count = collect(recording, device, events, &live);
	raise_to(&line, 0, live, count ? events[0].number - 1 : TS_NEVER - 1,
	        recording->op_count);
	for (size_t i = 0; i < count; i++) {
		uint64_t op = events[i].op - first;

		while (next <= op && next <= recording->op_count)
			raise_to(&line, next++, live, 0, recording->op_count);
		live += events[i].birth ? events[i].bytes : -events[i].bytes;
		raise_to(
		        &line, op, live, events[i].number, recording->op_count);
	}
	while (next < recording->op_count)
		raise_to(&line, next++, live, 0, recording->op_count);
	free(events);
	*ret_line = line;
	return 0;
}

void ts_memline_finish(struct ts_memline *line)
{
	free(line->live_bytes);
	line->live_bytes = NULL;
}

bool ts_memline_at_peak(
        const struct ts_memline *line, const struct ts_rec_block *block)
{
	return block->born_event <= line->peak_event &&
	       block->died_event > line->peak_event;
}

int ts_memline_device(const struct ts_recording *recording)
{
	uint64_t bytes[DEVICES] = {0};
	int most = 0;

	for (size_t i = 0; i < recording->block_count; i++) {
		const struct ts_rec_block *block = &recording->blocks[i];

		if (block->device >= 0 && block->device < DEVICES)
			bytes[block->device] += block->bytes;
	}
	for (int device = 1; device < DEVICES; device++)
		if (bytes[device] > bytes[most])
			most = device;
	return most;
}

uint64_t ts_memline_peak(const struct ts_recording *recording)
{
	struct ts_memline line;

	if (ts_memline_make(recording, ts_memline_device(recording), &line))
		return 0;
	ts_memline_finish(&line);
	return line.peak_bytes;
}
