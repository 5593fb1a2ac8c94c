/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "tests/simgpu/driver/kernel_proof.h"
#include "tests/simgpu/driver/content.h"

#include <string.h>

#define RESULT_BYTES 16u

/* Parameters of ts_checksum. */
enum { SUM_ADDRESS, SUM_BYTES, SUM_RESULT, SUM_PARAMS };
/* And of ts_compare, which begins with four addresses. */
enum {
	CMP_BEFORE,
	CMP_AFTER,
	CMP_FIRST,
	CMP_SECOND,
	CMP_BYTES,
	CMP_FILL1,
	CMP_FILL2,
	CMP_RESULT,
	CMP_PARAMS
};

static bool is_compare(const struct sg_launch *launch)
{
	return launch->fn->n_params == CMP_PARAMS;
}

/* All of it, whatever blocks lie there: it looks at memory, not at values. */
static void touch(
        struct sg_sketch *sketch, uint64_t va, uint64_t bytes, bool write)
{
	struct sg_op *op = sketch->op;

	if (!bytes)
		return;
	sg_op_add_access(op, va, bytes, true, write, true);
	op->accesses[op->n_accesses - 1].type = SG_TYPE_I64;
	op->accesses[op->n_accesses - 1].element_bytes = 8;
	sketch->bytes += bytes;
}

bool sg_rule_proof(struct sg_sketch *sketch)
{
	const struct sg_launch *launch = sketch->launch;
	unsigned sources = is_compare(launch) ? CMP_BYTES : SUM_BYTES;
	unsigned result = is_compare(launch) ? CMP_RESULT : SUM_RESULT;
	uint64_t bytes = sg_param_word(launch, sources, 0);

	if (launch->fn->n_params != SUM_PARAMS && !is_compare(launch))
		return false;
	for (unsigned i = 0; i < sources; i++)
		touch(sketch, sg_param_word(launch, i, 0), bytes, false);
	touch(sketch, sg_param_word(launch, result, 0), RESULT_BYTES, true);
	sketch->op->action.meaning = SG_MEANS_PROOF;
	return true;
}

/* ---------------------------------------------------------------- tags */

/* The pattern as it is from here on, wherever in it this is. */
static void turn_fill(struct sg_piece *piece)
{
	uint32_t pattern = (uint32_t)piece->tag;
	unsigned turn = piece->from % 4 * 8;

	if (turn)
		pattern = pattern >> turn | pattern << (32 - turn);
	piece->tag = pattern;
	piece->from = 0;
}

/* The part of @parts that @offset of what they tell lies in, cut to begin
 * there; to *ret_left goes how far it reaches. */
static struct sg_part part_at(
        const struct sg_parts *parts, uint64_t offset, uint64_t *ret_left)
{
	uint64_t start = parts->n ? parts->parts[0].at : 0;

	for (unsigned i = 0; i < parts->n; i++) {
		const struct sg_part *part = &parts->parts[i];
		uint64_t at = part->at - start;
		struct sg_part cut = {.defined = part->defined};

		if (offset < at || offset >= at + part->n)
			continue;
		*ret_left = at + part->n - offset;
		if (part->defined)
			cut.piece = sg_piece_later(&part->piece, offset - at);
		if (cut.piece.kind == SG_PIECE_FILL)
			turn_fill(&cut.piece);
		return cut;
	}
	*ret_left = UINT64_MAX;
	return (struct sg_part){0};
}

static bool same_part(
        const struct sg_part *a, const struct sg_part *b, uint64_t bytes)
{
	struct sg_part one = *a, other = *b;
	const struct sg_parts of_one = {.parts = &one, .n = 1};
	const struct sg_parts of_other = {.parts = &other, .n = 1};

	one.n = other.n = bytes;
	return a->defined == b->defined &&
	       sg_parts_hash(&of_one) == sg_parts_hash(&of_other);
}

static bool is_fill(const struct sg_part *part, uint64_t fill)
{
	return part->defined && part->piece.kind == SG_PIECE_FILL &&
	       part->piece.tag == (uint32_t)fill;
}

static void compare_tags(const struct sg_launch *launch,
        const struct sg_parts *parts, uint64_t ret_counts[2])
{
	uint64_t bytes = sg_param_word(launch, CMP_BYTES, 0);
	uint64_t fill1 = sg_param_word(launch, CMP_FILL1, 0);
	uint64_t fill2 = sg_param_word(launch, CMP_FILL2, 0);

	for (uint64_t at = 0, step; at < bytes; at += step) {
		struct sg_part part[4];
		bool agrees;

		step = bytes - at;
		for (unsigned i = 0; i < 4; i++) {
			uint64_t left;

			part[i] = part_at(&parts[i], at, &left);
			if (left < step)
				step = left;
		}
		if (is_fill(&part[CMP_FIRST], fill1) &&
		        is_fill(&part[CMP_SECOND], fill2)) {
			agrees = same_part(
			        &part[CMP_BEFORE], &part[CMP_AFTER], step);
		} else {
			ret_counts[1] += step;
			agrees = same_part(&part[CMP_AFTER], &part[CMP_FIRST],
			                 step) &&
			         same_part(&part[CMP_FIRST], &part[CMP_SECOND],
			                 step);
		}
		ret_counts[0] += !agrees;
	}
}

/* What is at the result already; sets leave a fill there. */
static void read_result(const struct sg_parts *parts, uint64_t ret_words[2])
{
	unsigned char *to = (unsigned char *)ret_words;

	memset(ret_words, 0, RESULT_BYTES);
	for (unsigned i = 0; i < parts->n; i++) {
		const struct sg_part *part = &parts->parts[i];

		if (part->defined)
			sg_piece_bytes(&part->piece, 0, part->n,
			        to + (part->at - parts->parts[0].at));
	}
}

void sg_proof_piece(const struct sg_launch *launch, const struct sg_op *op,
        const struct sg_parts *parts, struct sg_piece *piece)
{
	uint64_t words[2], added[2] = {0};

	read_result(&parts[op->n_accesses - 1], words);
	if (is_compare(launch)) {
		compare_tags(launch, parts, added);
	} else if (op->n_accesses > 1) {
		added[0] = sg_parts_hash(&parts[0]);
		added[1] = sg_mix(added[0], sg_parts_hash(&parts[0]));
	}
	words[0] += added[0];
	words[1] += added[1];
	piece->kind = SG_PIECE_BYTES;
	piece->bytes = sg_bytes_new(words, sizeof(words));
}

/* --------------------------------------------------------------- exact */

/* Word @index of @bytes at @address, what is missing of it from @rest. */
static uint64_t word_at(
        uint64_t address, uint64_t bytes, uint64_t index, uint64_t rest)
{
	uint64_t left = bytes - index * 8;

	memcpy(&rest, (const void *)(uintptr_t)(address + index * 8),
	        left < 8 ? left : 8);
	return rest;
}

static void run_checksum(const struct sg_launch *launch, uint64_t *result)
{
	uint64_t address = sg_param_word(launch, SUM_ADDRESS, 0);
	uint64_t bytes = sg_param_word(launch, SUM_BYTES, 0);

	for (uint64_t i = 0; i < (bytes + 7) / 8; i++) {
		uint64_t word = word_at(address, bytes, i, 0);
		uint64_t x = word + (i + 1) * 0x9e3779b97f4a7c15u;
		uint64_t y = word ^ (i + 1) * 0xc2b2ae3d27d4eb4fu;

		x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
		x = (x ^ x >> 27) * 0x94d049bb133111ebu;
		result[0] += x ^ x >> 31;
		y = (y ^ y >> 32) * 0xd6e8feb86659fd93u;
		y = (y ^ y >> 32) * 0xd6e8feb86659fd93u;
		result[1] += y ^ y >> 32;
	}
}

static void run_compare(const struct sg_launch *launch, uint64_t *result)
{
	uint64_t bytes = sg_param_word(launch, CMP_BYTES, 0);
	uint64_t fills[4] = {0, 0, sg_param_word(launch, CMP_FILL1, 0),
	        sg_param_word(launch, CMP_FILL2, 0)};

	for (uint64_t i = 0; i < (bytes + 7) / 8; i++) {
		unsigned char byte[4][8];
		bool bad = false;

		for (unsigned k = 0; k < 4; k++) {
			uint64_t word = word_at(sg_param_word(launch, k, 0),
			        bytes, i, fills[k]);

			memcpy(byte[k], &word, 8);
		}
		for (unsigned b = 0; b < 8; b++) {
			unsigned char first = byte[CMP_FIRST][b];

			if (first == (unsigned char)fills[2] &&
			        byte[CMP_SECOND][b] ==
			                (unsigned char)fills[3]) {
				bad |= byte[CMP_BEFORE][b] !=
				       byte[CMP_AFTER][b];
				continue;
			}
			result[1]++;
			bad |= first != byte[CMP_SECOND][b] ||
			       first != byte[CMP_AFTER][b];
		}
		result[0] += bad;
	}
}

bool sg_proof_run(const struct sg_launch *launch)
{
	const struct sg_kernel_row *row = sg_kernel_find(launch->fn);
	uint64_t at;

	if (!row || row->rule != SG_RULE_PROOF)
		return false;
	at = sg_param_word(
	        launch, is_compare(launch) ? CMP_RESULT : SUM_RESULT, 0);
	if (is_compare(launch))
		run_compare(launch, (uint64_t *)(uintptr_t)at);
	else
		run_checksum(launch, (uint64_t *)(uintptr_t)at);
	return true;
}
