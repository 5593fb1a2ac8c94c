/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "agent/kinds.h"

#include <errno.h>
#include <stdlib.h>

enum {
	USED_FORWARD = 1,
	USED_BACKWARD = 2,
	USED_UPDATE = 4,
	FIRST_BACKWARD = 8,
	FIRST_UPDATE = 16,
	FIRST_UPLOAD = 32,
	BEFORE_PARAMETERS = 64,
};

bool ts_kinds_is_persistent(
        const struct ts_recording *recording, const struct ts_rec_block *block)
{
	return block->born < recording->first_op &&
	       block->died > recording->first_op + recording->op_count;
}

static uint8_t part_of(const struct ts_rec_op *op)
{
	if (op->backward)
		return USED_BACKWARD;
	return op->updating ? USED_UPDATE : USED_FORWARD;
}

static uint8_t first_part_of(const struct ts_rec_op *op)
{
	if (op->backward)
		return FIRST_BACKWARD;
	if (op->updating)
		return FIRST_UPDATE;
	/* From the host: nothing else is told of where it comes from. */
	return op->kind == TS_REC_COPY && op->use_count == 1 ? FIRST_UPLOAD : 0;
}

static void mark_uses(const struct ts_recording *recording, uint8_t *marks)
{
	for (size_t i = 0; i < recording->op_count; i++) {
		const struct ts_rec_op *op = &recording->ops[i];

		for (uint32_t k = 0; k < op->use_count; k++) {
			const struct ts_rec_use *use =
			        ts_recording_use(recording, op, k);

			marks[use->block] |= part_of(op);
			if (use->fresh)
				marks[use->block] |= first_part_of(op);
		}
	}
}

static bool meets_activation(
        const struct ts_recording *recording, const struct ts_rec_op *op)
{
	for (uint32_t k = 0; k < op->use_count; k++) {
		const struct ts_rec_use *use =
		        ts_recording_use(recording, op, k);

		if (!use->fresh && recording->blocks[use->block].born >=
		                           recording->first_op)
			return true;
	}
	return false;
}

/* It reads no more than one block: a copy, or a cast. */
static bool reads_one(
        const struct ts_recording *recording, const struct ts_rec_op *op)
{
	uint32_t count = 0;

	for (uint32_t k = 0; k < op->use_count; k++)
		count += !ts_recording_use(recording, op, k)->fresh;
	return count == 1;
}

/*
 * A batch that stays in place from step to step looks like a parameter that
 * is frozen; but it is read before the first parameter is, or along with it,
 * and with nothing that the step has made. A parameter alone that is copied,
 * as a convolution's bias to where its output comes, is not read yet.
 */
static void mark_inputs(const struct ts_recording *recording, uint8_t *marks)
{
	for (size_t i = 0; i < recording->op_count; i++) {
		const struct ts_rec_op *op = &recording->ops[i];
		bool trained = false;

		if (op->backward)
			return;
		for (uint32_t k = 0; k < op->use_count; k++) {
			uint32_t block =
			        ts_recording_use(recording, op, k)->block;

			trained |= marks[block] & USED_UPDATE &&
			           !recording->blocks[block].from_backward;
			if (!meets_activation(recording, op))
				marks[block] |= BEFORE_PARAMETERS;
		}
		if (trained && !op->updating && !reads_one(recording, op))
			return;
	}
}

static enum ts_value_kind persistent_kind(
        const struct ts_rec_block *block, uint8_t marks)
{
	if (!block->reported)
		return TS_KIND_SCRATCH;
	if (marks & USED_UPDATE) {
		if (block->from_backward)
			return TS_KIND_GRADIENT;
		return marks & (USED_FORWARD | USED_BACKWARD)
		               ? TS_KIND_PARAMETER
		               : TS_KIND_OPTIMIZER;
	}
	if (marks & BEFORE_PARAMETERS)
		return TS_KIND_INPUT;
	/* Frozen, or a constant: used as parameters are. */
	return marks ? TS_KIND_PARAMETER : TS_KIND_OTHER;
}

static enum ts_value_kind passing_kind(
        const struct ts_rec_block *block, uint8_t marks, bool old)
{
	/* What a backward left to the optimizer, this step's or the last's. */
	if (block->from_backward && (old || (marks & USED_UPDATE)))
		return TS_KIND_GRADIENT;
	if (old)
		return TS_KIND_INPUT;
	if (marks & FIRST_UPLOAD)
		return TS_KIND_INPUT;
	if (marks & (FIRST_BACKWARD | FIRST_UPDATE))
		return TS_KIND_SCRATCH;
	return marks & (USED_FORWARD | USED_BACKWARD) ? TS_KIND_ACTIVATION
	                                              : TS_KIND_OTHER;
}

int ts_kinds_decide(
        const struct ts_recording *recording, uint8_t *ret_kinds, bool *ret_old)
{
	uint8_t *marks = calloc(recording->block_count + 1, sizeof(*marks));

	if (!marks)
		return -ENOMEM;
	mark_uses(recording, marks);
	mark_inputs(recording, marks);
	for (size_t i = 0; i < recording->block_count; i++) {
		const struct ts_rec_block *block = &recording->blocks[i];
		bool old = block->born < recording->first_op;
		enum ts_value_kind kind;

		if (block->scratch)
			kind = TS_KIND_SCRATCH;
		else if (ts_kinds_is_persistent(recording, block))
			kind = persistent_kind(block, marks[i]);
		else
			kind = passing_kind(block, marks[i], old);
		ret_kinds[i] = (uint8_t)kind;
		if (ret_old)
			ret_old[i] = old;
	}
	free(marks);
	return 0;
}
