/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "agent/cycle.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "agent/hash.h"

/* PyTorch's smaller ones share pages, most of which stay where they are. */
#define LARGE_BYTES (1u << 20)

/* In whatever order: words that are left over from other calls change it. */
static uint64_t with(uint64_t places, uint64_t address)
{
	return places + ts_hash_word(TS_HASH_START, address);
}

uint64_t ts_cycle_place(
        const struct ts_recording *step, const struct ts_rec_op *op)
{
	uint64_t hash = 0;

	for (uint32_t i = 0; i < op->use_count; i++) {
		const struct ts_rec_block *block =
		        &step->blocks[ts_recording_use(step, op, i)->block];

		if (block->bytes > LARGE_BYTES)
			hash = with(hash, block->address);
	}
	return hash;
}

uint64_t ts_cycle_place_of(const struct ts_op *op)
{
	uint64_t hash = 0;

	for (size_t i = 0; i < op->count; i++)
		if (!op->uses[i].doubtful && op->uses[i].bytes > LARGE_BYTES)
			hash = with(hash, op->uses[i].address);
	return hash;
}

uint64_t ts_cycle_layout(
        const struct ts_recording *step, size_t first, size_t count)
{
	uint64_t hash = TS_HASH_START;

	for (size_t i = first; i < first + count; i++)
		hash = ts_hash_word(hash, ts_cycle_place(step, &step->ops[i]));
	return hash;
}

void ts_cycles_forget(struct ts_cycles *cycles)
{
	for (unsigned int i = 0; i < cycles->count; i++)
		ts_recording_finish(&cycles->last[i].step);
	cycles->count = 0;
	cycles->noted = 0;
}

int ts_cycles_note(struct ts_cycles *cycles, const struct ts_recording *step,
        uint64_t shape)
{
	struct ts_cycle_step made = {.step = *step,
	        .shape = shape,
	        .layout = ts_cycle_layout(step, 0, step->op_count)};

	if (cycles->count) {
		const struct ts_recording *before = &cycles->last[0].step;

		made.between =
		        step->first_op - (before->first_op + before->op_count);
	}
	made.step.words = NULL;
	made.step.word_count = 0;
	made.step.ops = ts_recording_copy(
	        step->ops, step->op_count, sizeof(*step->ops));
	made.step.uses = ts_recording_copy(
	        step->uses, step->use_count, sizeof(*step->uses));
	made.step.blocks = ts_recording_copy(
	        step->blocks, step->block_count, sizeof(*step->blocks));
	if (!made.step.ops || !made.step.uses || !made.step.blocks) {
		ts_recording_finish(&made.step);
		ts_cycles_forget(cycles);
		return -ENOMEM;
	}
	if (cycles->count > TS_CYCLE_MAX)
		ts_recording_finish(&cycles->last[--cycles->count].step);
	memmove(&cycles->last[1], &cycles->last[0],
	        cycles->count * sizeof(cycles->last[0]));
	cycles->last[0] = made;
	cycles->count++;
	cycles->noted++;
	return 0;
}

/*
 * How many shapes follow each other in turns, each another than the one before:
 * 1 where the last two steps are alike. Two of them in two rounds are often
 * chance, where sizes are drawn.
 */
static unsigned int shapes_in_turn(const struct ts_cycles *cycles)
{
	const struct ts_cycle_step *last = cycles->last;

	for (unsigned int c = 2; 2 * c <= cycles->count; c++) {
		unsigned int same = 0, wanted = c == 2 ? 2 * c : c;

		while (same < wanted && same + c < cycles->count &&
		        last[same].shape == last[same + c].shape &&
		        last[same].shape != last[same + 1].shape)
			same++;
		if (same == wanted)
			return c;
	}
	return 1;
}

/* The steps until all is as it was, of shapes that take turns. */
static unsigned int steps_in_turn(
        const struct ts_cycles *cycles, unsigned int shapes)
{
	for (unsigned int i = shapes; i < cycles->count; i += shapes)
		if (cycles->last[i].layout == cycles->last[0].layout &&
		        cycles->last[i].shape == cycles->last[0].shape)
			return i;
	return 0;
}

/* Of one shape, whatever comes between. */
static unsigned int steps_of_shape(const struct ts_cycles *cycles)
{
	const struct ts_cycle_step *last = &cycles->last[0];
	unsigned int before = 1;

	while (before < cycles->count && last[before].shape != last->shape)
		before++;
	if (before >= cycles->count)
		return 0;
	if (last[before].layout == last->layout)
		return 1;
	for (unsigned int i = 1; i < cycles->count; i++) {
		if (last[i].shape != last->shape)
			return 0;
		if (last[i].layout == last->layout)
			return i;
	}
	return 0;
}

struct ts_cycle_found ts_cycles_find(const struct ts_cycles *cycles)
{
	struct ts_cycle_found found = {.shapes = shapes_in_turn(cycles)};

	for (unsigned int i = 0; i < found.shapes && cycles->count; i++) {
		found.id += cycles->last[i].shape;
		found.torn |= i + 1 < found.shapes && cycles->last[i].between;
	}
	found.steps = found.shapes > 1 ? steps_in_turn(cycles, found.shapes)
	                               : steps_of_shape(cycles);
	return found;
}

/* The lowest address of a large block that an op touches; 0: there is none. */
static uint64_t lowest_of(
        const struct ts_recording *step, const struct ts_rec_op *op)
{
	uint64_t lowest = 0;

	for (uint32_t i = 0; i < op->use_count; i++) {
		const struct ts_rec_block *block =
		        &step->blocks[ts_recording_use(step, op, i)->block];

		if (block->bytes > LARGE_BYTES &&
		        (!lowest || block->address < lowest))
			lowest = block->address;
	}
	return lowest;
}

/* Below 0 where blocks of @a lie lower than those of @b, at the first op where
 * they differ. */
static int compare_places(
        const struct ts_recording *a, const struct ts_recording *b)
{
	for (size_t i = 0; i < a->op_count && i < b->op_count; i++) {
		uint64_t x = lowest_of(a, &a->ops[i]);
		uint64_t y = lowest_of(b, &b->ops[i]);

		if (x != y)
			return x < y ? -1 : 1;
	}
	return 0;
}

bool ts_cycles_begins(
        const struct ts_cycles *cycles, const struct ts_cycle_found *found)
{
	/* Which of several shapes begins is told by these. */
	if (!found->steps || found->shapes > 1)
		return true;
	for (unsigned int i = 0; i + 1 < found->steps; i++)
		if (compare_places(&cycles->last[i].step,
		            &cycles->last[found->steps - 1].step) < 0)
			return false;
	return true;
}

/* ----------------------------------------------------------------- joining */

struct join {
	const struct ts_cycle_step *steps; /* the newest first */
	unsigned int count, shapes;
	struct ts_recording *to;
};

static const struct ts_recording *step_at(
        const struct join *join, unsigned int index)
{
	return &join->steps[join->count - 1 - index].step;
}

/* What op has the number in the joined steps; work between has none. */
static uint64_t number_of(const struct join *join, uint64_t number)
{
	uint64_t at = step_at(join, 0)->first_op;

	if (number == TS_NEVER || number <= at)
		return number;
	for (unsigned int i = 0; i < join->count; i++) {
		const struct ts_recording *step = step_at(join, i);

		if (number < step->first_op)
			break;
		if (number - step->first_op < step->op_count)
			return at + (number - step->first_op);
		at += step->op_count;
	}
	return at;
}

static int by_serial(const void *a, const void *b)
{
	const struct ts_rec_block *x = a, *y = b;

	return x->serial < y->serial ? -1 : x->serial > y->serial;
}

/* What later steps know of a block that earlier ones knew as well. */
static void merge_block(
        struct ts_rec_block *known, const struct ts_rec_block *later)
{
	struct ts_rec_block merged = *later;

	merged.born = known->born;
	merged.born_event = known->born_event;
	merged.from_backward |= known->from_backward;
	merged.updated |= known->updated;
	merged.scratch |= known->scratch;
	*known = merged;
}

/* Where each block of step @index is among the joined ones. */
static uint32_t block_at(const struct join *join, uint64_t serial)
{
	struct ts_rec_block key = {.serial = serial};
	const struct ts_rec_block *found = bsearch(&key, join->to->blocks,
	        join->to->block_count, sizeof(key), by_serial);

	return (uint32_t)(found - join->to->blocks);
}

/* The blocks of all steps, each once, by serial: as they came. */
static int join_blocks(struct join *join)
{
	struct ts_recording *to = join->to;
	size_t total = 0, kept = 0;

	for (unsigned int i = 0; i < join->count; i++)
		total += step_at(join, i)->block_count;
	to->blocks = malloc((total + 1) * sizeof(*to->blocks));
	if (!to->blocks)
		return -ENOMEM;
	for (unsigned int i = 0; i < join->count; i++) {
		const struct ts_recording *step = step_at(join, i);
		size_t known = kept;

		to->block_count = known;
		for (size_t b = 0; b < step->block_count; b++) {
			struct ts_rec_block *same =
			        bsearch(&step->blocks[b], to->blocks, known,
			                sizeof(*to->blocks), by_serial);

			if (same)
				merge_block(same, &step->blocks[b]);
			else
				to->blocks[kept++] = step->blocks[b];
		}
		qsort(to->blocks, kept, sizeof(*to->blocks), by_serial);
	}
	to->block_count = kept;
	for (size_t b = 0; b < kept; b++) {
		to->blocks[b].born = number_of(join, to->blocks[b].born);
		to->blocks[b].died = number_of(join, to->blocks[b].died);
	}
	return 0;
}

static void join_step(struct join *join, unsigned int index)
{
	const struct ts_recording *step = step_at(join, index);
	/* The last step of the same shape. */
	const struct ts_recording *last = step_at(
	        join, join->count - join->shapes + index % join->shapes);
	struct ts_recording *to = join->to;

	for (size_t i = 0; i < step->op_count; i++) {
		struct ts_rec_op *op = &to->ops[to->op_count++];
		uint32_t uses;

		*op = step->ops[i];
		op->duration_ns = last->ops[i].duration_ns;
		op->gap_ns = last->ops[i].gap_ns;
		op->first_use = to->use_count;
		op->first_word = 0;
		op->word_count = 0;
		uses = op->use_count + op->doubt_count;
		for (uint32_t k = 0; k < uses; k++) {
			struct ts_rec_use use =
			        *ts_recording_use(step, &step->ops[i], k);

			use.block =
			        block_at(join, step->blocks[use.block].serial);
			to->uses[to->use_count++] = use;
		}
	}
}

/* A step of each shape; or unknown. */
static uint64_t duration_of(const struct join *join)
{
	uint64_t sum = 0;

	for (unsigned int i = 0; i < join->shapes; i++) {
		uint64_t ns = join->steps[i].step.duration_ns;

		if (ns == TS_UNKNOWN_NS)
			return ns;
		sum += ns;
	}
	return sum;
}

int ts_cycles_join(const struct ts_cycles *cycles,
        const struct ts_cycle_found *found, struct ts_recording *ret_joined)
{
	struct join join = {.steps = cycles->last,
	        .count = found->steps,
	        .shapes = found->shapes,
	        .to = ret_joined};
	const struct ts_recording *first = step_at(&join, 0);
	size_t uses = 0, ops = 0;
	int rc;

	for (unsigned int i = 0; i < join.count; i++) {
		uses += step_at(&join, i)->use_count;
		ops += step_at(&join, i)->op_count;
	}
	*ret_joined = (struct ts_recording){.first_op = first->first_op,
	        .first_launch = first->first_launch,
	        .duration_ns = duration_of(&join),
	        .partial = first->partial};
	ret_joined->ops = malloc((ops + 1) * sizeof(*ret_joined->ops));
	ret_joined->uses = malloc((uses + 1) * sizeof(*ret_joined->uses));
	rc = ret_joined->ops && ret_joined->uses ? join_blocks(&join) : -ENOMEM;
	if (rc) {
		ts_recording_finish(ret_joined);
		return rc;
	}
	for (unsigned int i = 0; i < join.count; i++)
		join_step(&join, i);
	return 0;
}
