/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "agent/values.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/funcs.h"
#include "agent/kernel.h"
#include "agent/kinds.h"
#include "agent/memline.h"
#include "agent/regions.h"
#include "agent/roles.h"

#define RUNS_MAX 64

struct signature {
	uint64_t hash;
	uint32_t index; /* in the builder */
	struct ts_kernel *kernel;
};

struct work {
	const struct ts_recording *step;
	struct ts_profile_builder *builder;
	struct ts_values *values;
	/* Open addressing by hash. */
	struct signature *signatures;
	size_t signature_slots;
	bool main_device;  /* the first of the step's */
	bool *old;         /* by block */
	uint32_t *current; /* by block: its value now, or TS_NONE */
	/* Of one op. */
	uint8_t *roles;
	uint32_t *reads, *writes;
};

static const char *op_name(const struct ts_rec_op *op)
{
	if (op->func)
		return op->func->name;
	return op->name ? op->name : "?";
}

static bool may_replay(
        const struct ts_rec_op *op, const struct ts_kernel *kernel)
{
	/* Ranks must agree on what is launched: nobody launches it again. */
	if (op->collective)
		return false;
	if (op->kind == TS_REC_GRAPH || op->captured || kernel->adds ||
	        kernel->op_class == TS_CLASS_COLLECTIVE ||
	        kernel->op_class == TS_CLASS_OPTIMIZER || op->updating)
		return false;
	/* What a copy from the host finds there may be gone. */
	return op->kind != TS_REC_COPY || op->use_count > 1;
}

static enum ts_op_class class_of(
        const struct ts_rec_op *op, const struct ts_kernel *kernel)
{
	if (op->collective)
		return TS_CLASS_COLLECTIVE;
	return op->updating ? TS_CLASS_OPTIMIZER : kernel->op_class;
}

static struct signature *find_signature(struct work *work, uint64_t hash)
{
	size_t slot = hash % work->signature_slots;

	while (work->signatures[slot].kernel &&
	        work->signatures[slot].hash != hash)
		slot = (slot + 1) % work->signature_slots;
	return &work->signatures[slot];
}

static int note_signature(struct ts_values *values, uint32_t index,
        const struct signature *signature, uint32_t op)
{
	size_t count = index + 1;
	uint64_t *hashes = realloc(values->hashes, count * sizeof(*hashes));
	uint32_t *example;
	char **labels;

	if (hashes)
		values->hashes = hashes;
	example = realloc(values->example, count * sizeof(*example));
	if (example)
		values->example = example;
	labels = realloc(values->labels, count * sizeof(*labels));
	if (labels)
		values->labels = labels;
	if (!hashes || !example || !labels)
		return -ENOMEM;
	hashes[index] = signature->hash;
	example[index] = op;
	labels[index] = strdup(signature->kernel->label);
	if (!labels[index])
		return -ENOMEM;
	values->signature_count = count;
	return 0;
}

/* The op's signature, made known to the builder on first use. */
static int get_signature(
        struct work *work, uint32_t op_index, struct signature **ret)
{
	const struct ts_rec_op *op = &work->step->ops[op_index];
	struct signature *found = find_signature(work, op->signature);
	char name[512];

	*ret = found;
	if (found->kernel)
		return 0;
	found->kernel = ts_kernel_create(op_name(op));
	if (!found->kernel)
		return -ENOMEM;
	found->hash = op->signature;
	snprintf(name, sizeof(name), "%.256s %u,%u,%u/%u,%u,%u #%016" PRIx64,
	        found->kernel->label, op->grid[0], op->grid[1], op->grid[2],
	        op->block[0], op->block[1], op->block[2], op->signature);
	found->index = ts_builder_signature(work->builder, name,
	        class_of(op, found->kernel), may_replay(op, found->kernel));
	if (work->builder->err)
		return work->builder->err;
	return note_signature(work->values, found->index, found, op_index);
}

/* TS_NONE without memory; the builder holds the error then. */
static uint32_t new_value(struct work *work, uint32_t block)
{
	struct ts_values *values = work->values;
	uint32_t value =
	        ts_builder_value(work->builder, work->step->blocks[block].bytes,
	                (enum ts_value_kind)values->kind[block]);
	uint32_t *block_of;

	if (work->builder->err)
		return TS_NONE;
	if (value >= values->value_room) {
		size_t room = 2 * (size_t)value + 1024;

		block_of = realloc(values->block_of, room * sizeof(*block_of));
		if (!block_of) {
			work->builder->err = -ENOMEM;
			return TS_NONE;
		}
		values->block_of = block_of;
		values->value_room = room;
	}
	values->block_of[value] = block;
	work->builder->profile.values[value].address =
	        work->step->blocks[block].address;
	if (values->kind[block] == TS_KIND_SCRATCH &&
	        (work->step->blocks[block].scratch ||
	                !work->step->blocks[block].reported))
		work->builder->profile.values[value].pinned = true;
	return value;
}

/* The value a block holds as the step begins, or before its first write. */
static uint32_t first_value(struct work *work, uint32_t block)
{
	uint32_t value = new_value(work, block);

	if (value != TS_NONE)
		work->builder->profile.values[value].persistent =
		        ts_kinds_is_persistent(
		                work->step, &work->step->blocks[block]);
	return value;
}

static uint32_t next_version(struct work *work, uint32_t block)
{
	uint32_t older = work->current[block];
	uint32_t value = new_value(work, block);

	if (value != TS_NONE && older != TS_NONE) {
		work->builder->profile.values[value].in_place_of = older;
		work->builder->profile.values[value].no_replay = true;
	}
	return value;
}

/* What touches no block is taken for the first device's. */
static bool is_here(const struct work *work, const struct ts_rec_op *op)
{
	const struct ts_recording *step = work->step;

	for (uint32_t i = 0; i < op->use_count; i++)
		if (step->blocks[ts_recording_use(step, op, i)->block].device ==
		        work->values->device)
			return true;
	return !op->use_count && work->main_device;
}

static uint64_t duration_of(const struct work *work, const struct ts_rec_op *op)
{
	return op->duration_ns == TS_UNKNOWN_NS || !is_here(work, op)
	               ? 0
	               : op->duration_ns;
}

static int add_op(struct work *work, uint32_t index)
{
	const struct ts_rec_op *op = &work->step->ops[index];
	uint64_t first_use = op->first_use - work->step->first_use;
	uint32_t n_reads = 0, n_writes = 0;
	struct signature *signature;
	int rc = get_signature(work, index, &signature);

	if (rc)
		return rc;
	ts_roles_guess(
	        work->step, op, signature->kernel, work->old, work->roles);
	for (uint32_t i = 0; i < op->use_count; i++) {
		const struct ts_rec_use *use =
		        ts_recording_use(work->step, op, i);
		uint32_t *current = &work->current[use->block];

		if (work->step->blocks[use->block].device !=
		        work->values->device)
			continue;
		if (*current == TS_NONE && !use->fresh)
			*current = first_value(work, use->block);
		if (work->roles[i] != TS_ROLE_WRITE && *current != TS_NONE) {
			work->values->use_read[first_use + i] = *current;
			work->reads[n_reads++] = *current;
		}
		if (work->roles[i] == TS_ROLE_READ)
			continue;
		*current = next_version(work, use->block);
		if (work->builder->err)
			return work->builder->err;
		work->values->use_write[first_use + i] = *current;
		work->writes[n_writes++] = *current;
	}
	ts_builder_op(work->builder, signature->index, duration_of(work, op),
	        work->reads, n_reads, work->writes, n_writes);
	return work->builder->err;
}

/* Blocks that no op touched, but that are there all the time. */
static int add_idle(struct work *work)
{
	for (size_t i = 0; i < work->step->block_count; i++) {
		const struct ts_rec_block *block = &work->step->blocks[i];

		if (block->device == work->values->device &&
		        work->current[i] == TS_NONE &&
		        ts_kinds_is_persistent(work->step, block))
			work->current[i] = first_value(work, (uint32_t)i);
	}
	return work->builder->err;
}

/* One past the last op of the forward pass that begins at @first. */
static uint32_t pass_end(const struct ts_recording *step, uint32_t first)
{
	while (first < step->op_count && !step->ops[first].backward &&
	        !step->ops[first].updating)
		first++;
	return first;
}

static uint32_t backward_end(const struct ts_recording *step, uint32_t first)
{
	while (first < step->op_count && step->ops[first].backward)
		first++;
	return first;
}

/*
 * What is alive between two ops of a forward pass to be read again in it, from
 * first to last touch of each block.
 */
static void fill_cuts(const struct work *work, uint32_t first, uint32_t end,
        uint32_t *last_use, uint64_t *cut_bytes)
{
	const struct ts_recording *step = work->step;

	memset(cut_bytes, 0, (step->op_count + 1) * sizeof(*cut_bytes));
	for (uint32_t i = first; i < end; i++)
		for (uint32_t k = 0; k < step->ops[i].use_count; k++)
			last_use[ts_recording_use(step, &step->ops[i], k)
			                 ->block] = i;
	for (uint32_t i = first; i < end; i++) {
		for (uint32_t k = 0; k < step->ops[i].use_count; k++) {
			const struct ts_rec_use *use =
			        ts_recording_use(step, &step->ops[i], k);
			uint64_t bytes = step->blocks[use->block].bytes;

			if (!use->fresh)
				continue;
			cut_bytes[i + 1] += bytes;
			cut_bytes[last_use[use->block] + 1] -= bytes;
		}
	}
	for (uint32_t i = first + 1; i <= end; i++)
		cut_bytes[i] += cut_bytes[i - 1];
}

static void add_run(struct work *work, const uint64_t *signatures,
        const struct ts_run *run, uint32_t type, uint32_t backward_first,
        uint32_t backward_last)
{
	struct ts_run back;
	bool has_back = !ts_regions_find_counted(
	        signatures, backward_first, backward_last, run->count, &back);

	for (uint32_t i = 0; i < run->count; i++) {
		struct ts_region region = {.type = type,
		        .first_op = run->first + i * run->period,
		        .end_op = run->first + (i + 1) * run->period,
		        .backward_first_op = TS_NONE,
		        .backward_end_op = TS_NONE};

		if (has_back) {
			region.backward_first_op =
			        back.first + (run->count - 1 - i) * back.period;
			region.backward_end_op =
			        region.backward_first_op + back.period;
		}
		ts_builder_region(work->builder, &region);
	}
}

struct pass_room {
	uint64_t *signatures, *cut_bytes;
	uint32_t *last_use;
};

/* The regions of one forward pass and of the backward after it. */
static void add_pass(struct work *work, const struct pass_room *room,
        uint32_t first, uint32_t turn, uint32_t *type)
{
	struct ts_run runs[RUNS_MAX];
	size_t count;

	fill_cuts(work, first, turn, room->last_use, room->cut_bytes);
	count = ts_regions_find(
	        room->signatures, room->cut_bytes, first, turn, runs, RUNS_MAX);
	for (size_t i = 0; i < count; i++)
		add_run(work, room->signatures, &runs[i], (*type)++, turn,
		        backward_end(work->step, turn));
}

static void add_structure(struct work *work, const struct pass_room *room)
{
	const struct ts_recording *step = work->step;
	uint32_t type = 0;

	for (uint32_t i = 0; i < step->op_count; i++)
		room->signatures[i] = step->ops[i].signature;
	for (uint32_t i = 0; i < step->op_count;) {
		uint32_t turn = pass_end(step, i);

		if (turn < step->op_count && step->ops[turn].backward) {
			add_pass(work, room, i, turn, &type);
			ts_builder_turn(work->builder, turn);
			i = backward_end(step, turn);
		} else {
			i = turn + 1;
		}
	}
}

static int find_structure(struct work *work)
{
	size_t ops = work->step->op_count + 1;
	struct pass_room room = {
	        .signatures = malloc(ops * sizeof(*room.signatures)),
	        .cut_bytes = malloc(ops * sizeof(*room.cut_bytes)),
	        .last_use = malloc((work->step->block_count + 1) *
	                           sizeof(*room.last_use))};
	int rc = -ENOMEM;

	if (room.signatures && room.cut_bytes && room.last_use) {
		add_structure(work, &room);
		rc = work->builder->err;
	}
	free(room.signatures);
	free(room.cut_bytes);
	free(room.last_use);
	return rc;
}

static uint32_t most_uses(const struct ts_recording *step)
{
	uint32_t most = 0;

	for (size_t i = 0; i < step->op_count; i++)
		if (step->ops[i].use_count > most)
			most = step->ops[i].use_count;
	return most;
}

static uint32_t *none(size_t count)
{
	uint32_t *made = malloc((count + 1) * sizeof(*made));

	for (size_t i = 0; made && i < count; i++)
		made[i] = TS_NONE;
	return made;
}

static int init_work(struct work *work)
{
	size_t blocks = work->step->block_count + 1;
	size_t uses = most_uses(work->step) + 1;

	work->signature_slots = 2 * work->step->op_count + 1;
	work->signatures =
	        calloc(work->signature_slots, sizeof(*work->signatures));
	work->old = calloc(blocks, sizeof(*work->old));
	work->current = malloc(blocks * sizeof(*work->current));
	work->roles = malloc(uses * sizeof(*work->roles));
	work->reads = malloc(uses * sizeof(*work->reads));
	work->writes = malloc(uses * sizeof(*work->writes));
	work->values->kind = malloc(blocks * sizeof(*work->values->kind));
	work->values->use_read = none(work->step->use_count);
	work->values->use_write = none(work->step->use_count);
	if (!work->signatures || !work->old || !work->current || !work->roles ||
	        !work->reads || !work->writes || !work->values->kind ||
	        !work->values->use_read || !work->values->use_write)
		return -ENOMEM;
	for (size_t i = 0; i < blocks; i++)
		work->current[i] = TS_NONE;
	return ts_kinds_decide(work->step, work->values->kind, work->old);
}

static void finish_work(struct work *work)
{
	for (size_t i = 0; work->signatures && i < work->signature_slots; i++)
		ts_kernel_destroy(work->signatures[i].kernel);
	free(work->signatures);
	free(work->old);
	free(work->current);
	free(work->roles);
	free(work->reads);
	free(work->writes);
}

int ts_values_build(const struct ts_recording *step, int device,
        struct ts_profile_builder *builder, struct ts_values *ret_values)
{
	struct work work = {
	        .step = step, .builder = builder, .values = ret_values};
	int rc;

	memset(ret_values, 0, sizeof(*ret_values));
	ret_values->device = device;
	work.main_device = device == ts_memline_device(step);
	rc = init_work(&work);
	for (uint32_t i = 0; !rc && i < step->op_count; i++)
		rc = add_op(&work, i);
	if (!rc)
		rc = add_idle(&work);
	if (!rc)
		rc = find_structure(&work);
	finish_work(&work);
	if (rc)
		ts_values_finish(ret_values);
	return rc;
}

void ts_values_finish(struct ts_values *values)
{
	for (size_t i = 0; i < values->signature_count; i++)
		free(values->labels[i]);
	free(values->kind);
	free(values->use_read);
	free(values->use_write);
	free(values->block_of);
	free(values->hashes);
	free(values->example);
	free(values->labels);
	memset(values, 0, sizeof(*values));
}
