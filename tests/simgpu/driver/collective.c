/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Collectives; see collective.h. A message of tagged content is a list of parts
 * with tags, which mean the same in every process, or with their bytes; one of
 * exact content is the bytes. What several ranks give is combined in order of
 * rank: as numbers where all of it is real bytes, else into a tag that follows
 * from theirs, the operation and the type.
 */
#include "tests/simgpu/driver/collective.h"
#include "tests/simgpu/driver/code.h"
#include "tests/simgpu/driver/content.h"
#include "tests/simgpu/driver/content_exact.h"
#include "tests/simgpu/nccl/simnccl.h"

#include <stdlib.h>
#include <string.h>

/* A part of a message; its bytes, if it has any, follow all parts. */
struct packed {
	uint64_t at, n; /* at: from the start of what was sent */
	uint64_t defined;
	struct sg_piece piece; /* the pointer in it means nothing */
};

static bool is_send(const struct sg_launch *launch)
{
	return !strcmp(launch->fn->name, SIMNCCL_SEND);
}

/* NULL: another program's kernel of that name. */
static struct simnccl_work *work_of(const struct sg_launch *launch)
{
	struct simnccl_work *work =
	        (struct simnccl_work *)(uintptr_t)sg_param_word(launch, 0, 0);

	return work && work->magic == SIMNCCL_MAGIC ? work : NULL;
}

bool sg_rule_collective(struct sg_sketch *sketch)
{
	const struct simnccl_work *work = work_of(sketch->launch);
	bool send = is_send(sketch->launch);
	struct sg_op *op = sketch->op;

	if (!work)
		return false;
	for (unsigned i = 0; i < work->count; i++) {
		const struct simnccl_part *part = &work->parts[i];

		sg_op_add_access(op, part->va, part->bytes, send, !send, true);
		sketch->bytes += part->bytes;
	}
	/* Its own memory: in here no content of anybody's. */
	sg_op_add_access(op, sg_param_word(sketch->launch, 1, 0),
	        SG_NCCL_BUFFER_BYTES, true, true, true);
	return true;
}

/* Over the link, both ways at once, or at the memory's speed. */
uint64_t sg_collective_ns(const struct sg_launch *launch,
        const struct sg_model *model, uint64_t bytes)
{
	const struct simnccl_work *work = work_of(launch);
	uint64_t local_ns = sg_cost_bytes_ns(model, (double)bytes);
	double link_ns;

	if (!work || !work->wire_bytes)
		return local_ns;
	link_ns = (double)work->wire_bytes / model->h2d_both_bytes_per_s * 1e9;
	link_ns += (double)model->copy_latency_ns;
	return link_ns > (double)local_ns ? (uint64_t)link_ns : local_ns;
}

/* ---------------------------------------------------------------- messages */

static void pack(const struct sg_parts *parts, struct simnccl_message *out)
{
	struct packed *packed;
	char *data;
	uint64_t count, bytes = parts->n * sizeof(*packed);

	for (unsigned i = 0; i < parts->n; i++)
		if (parts->parts[i].defined &&
		        parts->parts[i].piece.kind == SG_PIECE_BYTES)
			bytes += parts->parts[i].n;
	packed = sg_xcalloc(1, bytes + sizeof(*packed));
	data = (char *)(packed + parts->n);
	for (unsigned i = 0; i < parts->n; i++) {
		const struct sg_part *part = &parts->parts[i];

		packed[i] = (struct packed){
		        .at = part->at - parts->parts[0].at,
		        .n = part->n,
		        .defined = part->defined,
		        .piece = part->piece,
		};
		if (!part->defined || part->piece.kind != SG_PIECE_BYTES)
			continue;
		sg_piece_bytes(&part->piece, 0, part->n, data);
		packed[i].piece.from = 0;
		data += part->n;
	}
	/* How many there are stands at the end. */
	count = parts->n;
	memcpy(data, &count, sizeof(count));
	out->data = packed;
	out->bytes = (uint64_t)(data - (char *)packed) + sizeof(count);
}

/* What was sent, as if it began at @va; undefined where nothing is known. */
static void unpack(const struct simnccl_message *message, uint64_t va,
        uint64_t bytes, struct sg_parts *ret_parts)
{
	const struct packed *packed = message->data;
	const char *data;
	uint64_t count;

	if (!packed) {
		sg_parts_add(ret_parts, va, bytes, NULL);
		return;
	}
	memcpy(&count, (const char *)packed + message->bytes - sizeof(count),
	        sizeof(count));
	data = (const char *)(packed + count);
	for (uint64_t i = 0; i < count; i++) {
		struct sg_piece piece = packed[i].piece;

		piece.bytes = NULL;
		if (packed[i].defined && piece.kind == SG_PIECE_BYTES) {
			piece.bytes = sg_bytes_new(data, packed[i].n);
			data += packed[i].n;
		}
		sg_parts_add(ret_parts, va + packed[i].at, packed[i].n,
		        packed[i].defined ? &piece : NULL);
		sg_bytes_unref(piece.bytes);
	}
}

/* --------------------------------------------------------- tagged contents */

static enum sg_piece_type piece_type(int type)
{
	static const enum sg_piece_type types[ncclNumTypes] = {
	        [ncclInt8] = SG_TYPE_I8,
	        [ncclUint8] = SG_TYPE_I8,
	        [ncclInt32] = SG_TYPE_I32,
	        [ncclUint32] = SG_TYPE_I32,
	        [ncclInt64] = SG_TYPE_I64,
	        [ncclUint64] = SG_TYPE_I64,
	        [ncclFloat16] = SG_TYPE_F16,
	        [ncclFloat32] = SG_TYPE_F32,
	        [ncclFloat64] = SG_TYPE_F64,
	        [ncclBfloat16] = SG_TYPE_BF16,
	};

	return types[type];
}

/* Is all of it known byte by byte? */
static bool is_real(const struct sg_parts *parts)
{
	for (unsigned i = 0; i < parts->n; i++)
		if (!parts->parts[i].defined ||
		        parts->parts[i].piece.kind == SG_PIECE_TAG)
			return false;
	return true;
}

static void *bytes_of(const struct sg_parts *parts, uint64_t bytes)
{
	char *data = sg_xcalloc(1, bytes);

	for (unsigned i = 0; i < parts->n; i++) {
		const struct sg_part *part = &parts->parts[i];

		sg_piece_bytes(&part->piece, 0, part->n,
		        data + (part->at - parts->parts[0].at));
	}
	return data;
}

static void combine_bytes(const struct simnccl_part *part,
        const struct sg_parts *given, struct sg_piece *ret_piece)
{
	uint64_t count = part->bytes / simnccl_type_bytes(part->type);
	void *sources[SG_NCCL_RANKS], *out = sg_xcalloc(1, part->bytes);

	for (unsigned i = 0; i < part->sources; i++)
		sources[i] = bytes_of(&given[i], part->bytes);
	sg_collective_reduce(part->operation, part->type,
	        (const void *const *)sources, part->sources, count, out);
	ret_piece->kind = SG_PIECE_BYTES;
	ret_piece->bytes = sg_bytes_new(out, part->bytes);
	for (unsigned i = 0; i < part->sources; i++)
		free(sources[i]);
	free(out);
}

static void combine_tags(const struct simnccl_part *part)
{
	struct sg_parts given[SG_NCCL_RANKS] = {{0}}, made = {0};
	struct sg_piece piece = {.type = piece_type(part->type)};
	bool real = part->bytes <= SG_BYTES_MAX;

	piece.tag = sg_mix(sg_hash_bytes(0, "collective", 10),
	        (uint64_t)part->operation << 32 | (uint64_t)part->type);
	for (unsigned i = 0; i < part->sources; i++) {
		unpack(&part->messages[i], part->va, part->bytes, &given[i]);
		piece.tag = sg_mix(piece.tag, sg_parts_hash(&given[i]));
		real = real && is_real(&given[i]);
	}
	if (real)
		combine_bytes(part, given, &piece);
	sg_parts_add(&made, part->va, part->bytes, &piece);
	sg_content_write(part->va, &made);
	sg_bytes_unref(piece.bytes);
	sg_parts_free(&made);
	for (unsigned i = 0; i < part->sources; i++)
		sg_parts_free(&given[i]);
}

static void run_tags(const struct simnccl_part *part, bool send)
{
	struct sg_parts parts = {0};

	if (!send && part->sources > 1) {
		combine_tags(part);
		return;
	}
	if (send) {
		sg_content_read(part->va, part->bytes, &parts);
		pack(&parts, part->messages);
	} else {
		unpack(part->messages, part->va, part->bytes, &parts);
		sg_content_write(part->va, &parts);
	}
	sg_parts_free(&parts);
}

/* ---------------------------------------------------------- exact contents */

static void run_exact(const struct simnccl_part *part, bool send)
{
	void *memory = (void *)(uintptr_t)part->va;
	const void *sources[SG_NCCL_RANKS];

	if (send) {
		part->messages[0].data = sg_xcalloc(1, part->bytes);
		part->messages[0].bytes = part->bytes;
		memcpy(part->messages[0].data, memory, part->bytes);
		return;
	}
	for (unsigned i = 0; i < part->sources; i++) {
		if (part->messages[i].bytes != part->bytes)
			return; /* another rank's launch failed */
		sources[i] = part->messages[i].data;
	}
	if (part->sources == 1)
		memcpy(memory, sources[0], part->bytes);
	else
		sg_collective_reduce(part->operation, part->type, sources,
		        part->sources,
		        part->bytes / simnccl_type_bytes(part->type), memory);
}

bool sg_collective_run(const struct sg_launch *launch)
{
	const struct sg_kernel_row *row = sg_kernel_find(launch->fn);
	struct simnccl_work *work;

	if (!row || row->rule != SG_RULE_COLLECTIVE)
		return false;
	work = work_of(launch);
	if (work && work->before)
		work->before(work);
	for (unsigned i = 0; work && i < work->count; i++) {
		if (sg_content_exact())
			run_exact(&work->parts[i], is_send(launch));
		else
			run_tags(&work->parts[i], is_send(launch));
	}
	if (work && work->after)
		work->after(work);
	return work != NULL;
}
