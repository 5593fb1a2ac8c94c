/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What the host would read of tagged values. Floating-point numbers lie between
 * 0 and 1. Integers follow from what a kernel does: indices and counts stay
 * within their extents, comparisons that the ranges decide are decided, sorted
 * indices are all different, and what is only moved stays what it was. Fills
 * keep their value; comparisons of real bytes, sums with a number and the
 * factor of a gradient scaler are computed.
 */
#include "tests/simgpu/driver/content_values.h"
#include "tests/simgpu/driver/content.h"
#include "tests/simgpu/driver/kernel_proof.h"
#include "tests/simgpu/driver/kernels.h"

#include <stdlib.h>
#include <string.h>

static unsigned integer_bytes(unsigned type)
{
	switch (type) {
	case SG_TYPE_I8:
		return 1;
	case SG_TYPE_I16:
		return 2;
	case SG_TYPE_I32:
		return 4;
	case SG_TYPE_I64:
		return 8;
	default:
		return 0;
	}
}

/* Element i of a part as a signed number. */
static int64_t number_at(
        const struct sg_part *part, unsigned element_bytes, uint64_t i)
{
	int64_t number = 0;
	unsigned bits = 64 - 8 * element_bytes;

	sg_piece_bytes(&part->piece, i * element_bytes, element_bytes, &number);
	return (int64_t)((uint64_t)number << bits) >> bits;
}

/* ------------------------------------------------------------ what is read */

/* A bound of real integers; 0 if some are negative. */
static uint64_t bytes_bound(const struct sg_part *part, unsigned element_bytes)
{
	uint64_t n = part->n / element_bytes;
	int64_t most = 0;

	if (part->piece.kind == SG_PIECE_FILL && n > 2)
		n = 2; /* the pattern repeats */
	for (uint64_t i = 0; i < n; i++) {
		int64_t number = number_at(part, element_bytes, i);

		if (number < 0)
			return 0;
		if (number > most)
			most = number;
	}
	return (uint64_t)most + 1;
}

/* All integers of a part lie below this; 0: not known. */
static uint64_t part_bound(const struct sg_part *part, unsigned type)
{
	const struct sg_piece *piece = &part->piece;
	unsigned size = integer_bytes(type);
	uint64_t last;

	if (!part->defined)
		return 1;
	if (piece->kind != SG_PIECE_TAG)
		return size && part->n >= size ? bytes_bound(part, size) : 0;
	size = integer_bytes(piece->type);
	if (!size)
		return 0;
	switch (piece->series) {
	case SG_SERIES_SHARES:
		return piece->bound + 1;
	case SG_SERIES_LINEAR:
		last = piece->bound +
		       (piece->from + part->n) / size * piece->count;
		return piece->bound > last ? piece->bound + 1 : last;
	case SG_SERIES_DISTINCT:
		return piece->bound ? piece->bound : 1;
	default:
		return (piece->bound ? piece->bound : 1) + piece->count;
	}
}

static uint64_t parts_bound(const struct sg_parts *parts, unsigned type)
{
	uint64_t bound = 0;

	for (unsigned i = 0; i < parts->n; i++) {
		uint64_t of_part = part_bound(&parts->parts[i], type);

		if (of_part > bound)
			bound = of_part;
	}
	return bound;
}

/* All integers that op reads lie below this; 0: it reads none. */
static uint64_t read_bound(const struct sg_op *op, const struct sg_parts *parts)
{
	uint64_t bound = 0;

	for (unsigned i = 0; i < op->n_accesses; i++) {
		uint64_t of_access = 0;

		if (op->accesses[i].read)
			of_access =
			        parts_bound(&parts[i], op->accesses[i].type);
		if (of_access > bound)
			bound = of_access;
	}
	return bound;
}

/* ------------------------------------------------------------- comparisons */

/* at::native's EqOpType and OpType. */
enum { OP_EQUAL, OP_NOT_EQUAL };
enum { OP_GREATER_EQUAL, OP_GREATER, OP_LESS_EQUAL, OP_LESS };

static bool holds(const struct sg_action *action, int64_t a, int64_t b)
{
	int64_t left = action->value_left ? b : a;
	int64_t right = action->value_left ? a : b;

	if (action->meaning == SG_MEANS_EQUAL)
		return (left == right) == (action->operation == OP_EQUAL);
	switch (action->operation) {
	case OP_GREATER_EQUAL:
		return left >= right;
	case OP_GREATER:
		return left > right;
	case OP_LESS_EQUAL:
		return left <= right;
	default:
		return left < right;
	}
}

static int64_t signed_value(const struct sg_action *action)
{
	unsigned bits = 64 - 8u * action->bytes;

	return (int64_t)(action->value << bits) >> bits;
}

static void fill(struct sg_piece *piece, uint32_t pattern)
{
	piece->kind = SG_PIECE_FILL;
	piece->tag = pattern;
}

/* Compares real bytes, element by element. */
static void compare_bytes(const struct sg_action *action,
        const struct sg_part *part, unsigned element_bytes,
        struct sg_piece *piece)
{
	uint64_t n = part->n / element_bytes;
	unsigned char *results = sg_xcalloc(1, n + 1);

	for (uint64_t i = 0; i < n; i++)
		results[i] = holds(action, number_at(part, element_bytes, i),
		        signed_value(action));
	piece->kind = SG_PIECE_BYTES;
	piece->bytes = sg_bytes_new(results, n);
	free(results);
}

/* A tensor of integers is compared with a number: what is certain of it. */
static void compare(const struct sg_action *action,
        const struct sg_access *access, const struct sg_parts *parts,
        struct sg_piece *piece)
{
	unsigned size = integer_bytes(access->type);
	uint64_t bound = parts_bound(parts, access->type);
	int64_t value = signed_value(action);
	bool first, last;

	if (parts->n == 1 && parts->parts[0].defined &&
	        parts->parts[0].piece.kind == SG_PIECE_BYTES) {
		compare_bytes(action, &parts->parts[0], size, piece);
		return;
	}
	piece->bound = 2;
	if (!bound)
		return;
	first = holds(action, 0, value);
	last = holds(action, (int64_t)(bound - 1), value);
	if (action->meaning == SG_MEANS_EQUAL && bound > 1 && value >= 0 &&
	        value < (int64_t)bound)
		return;
	if (first == last)
		fill(piece, first ? 0x01010101u : 0);
}

/* False: not a comparison of integers. */
static bool compared(const struct sg_op *op, const struct sg_parts *parts,
        struct sg_piece *piece)
{
	const struct sg_action *action = &op->action;
	unsigned reads = 0, at = 0;

	if (action->meaning != SG_MEANS_EQUAL &&
	        action->meaning != SG_MEANS_ORDER)
		return false;
	for (unsigned i = 0; i < op->n_accesses; i++) {
		if (!op->accesses[i].read)
			continue;
		if (!integer_bytes(op->accesses[i].type))
			return false;
		at = i;
		reads++;
	}
	if (reads == 1 && action->bytes)
		compare(action, &op->accesses[at], &parts[at], piece);
	else
		piece->bound = 2;
	return true;
}

/* ------------------------------------------------------------- other kinds */

/* A number is added to real bytes. False: there are none, or too many. */
static bool added(const struct sg_op *op, unsigned at,
        const struct sg_parts *parts, struct sg_piece *piece)
{
	const struct sg_access *to = &op->accesses[at];
	const struct sg_parts *from = NULL;
	unsigned size = integer_bytes(to->type);
	uint64_t n = size ? to->bytes / size : 0;
	int64_t *sums;

	for (unsigned i = 0; i < op->n_accesses; i++)
		if (op->accesses[i].read)
			from = &parts[i];
	if (op->action.meaning != SG_MEANS_ADD || size != 8 || !from ||
	        op->action.bytes != size || from->n != 1 ||
	        !from->parts[0].defined ||
	        from->parts[0].piece.kind == SG_PIECE_TAG ||
	        from->parts[0].n != to->bytes || to->bytes > SG_BYTES_MAX)
		return false;
	sums = sg_xcalloc(n + 1, sizeof(*sums));
	for (uint64_t i = 0; i < n; i++)
		sums[i] = (int64_t)((uint64_t)number_at(
		                            &from->parts[0], size, i) +
		                    op->action.value);
	piece->kind = SG_PIECE_BYTES;
	piece->bytes = sg_bytes_new(sums, to->bytes);
	free(sums);
	return true;
}

/* Bytes that repeat a value of eight, where no pattern of four does. */
static void fill_wide(
        uint64_t value, const struct sg_access *access, struct sg_piece *piece)
{
	uint64_t n = access->bytes / 8;
	uint64_t *words;

	if (access->bytes > SG_BYTES_MAX) {
		piece->bound = value;
		piece->series = SG_SERIES_LINEAR;
		return;
	}
	words = sg_xcalloc(n + 1, sizeof(*words));
	for (uint64_t i = 0; i < n; i++)
		words[i] = value;
	piece->kind = SG_PIECE_BYTES;
	piece->bytes = sg_bytes_new(words, access->bytes);
	free(words);
}

/* False: not a fill with elements that are what the value is. */
static bool filled(const struct sg_action *action,
        const struct sg_access *access, struct sg_piece *piece)
{
	if (action->meaning != SG_MEANS_FILL ||
	        action->bytes != access->element_bytes)
		return false;
	switch (action->bytes) {
	case 1:
		fill(piece, (uint32_t)action->value * 0x01010101u);
		return true;
	case 2:
		fill(piece, (uint32_t)action->value * 0x00010001u);
		return true;
	case 4:
		fill(piece, (uint32_t)action->value);
		return true;
	case 8:
		if ((uint32_t)action->value == action->value >> 32)
			fill(piece, (uint32_t)action->value);
		else
			fill_wide(action->value, access, piece);
		return true;
	default:
		return false;
	}
}

/* Moved: the type of what is moved; of real bytes the likeliest of that size.
 */
static void moved(const struct sg_op *op, unsigned at,
        const struct sg_parts *parts, struct sg_piece *piece)
{
	static const enum sg_piece_type likely[] = {
	        [1] = SG_TYPE_I8,
	        [2] = SG_TYPE_BF16,
	        [4] = SG_TYPE_F32,
	        [8] = SG_TYPE_I64,
	        [16] = SG_TYPE_F64,
	};
	unsigned size = op->accesses[at].element_bytes;

	for (unsigned i = 0; i < op->n_accesses; i++)
		if (op->accesses[i].read &&
		        op->accesses[i].type == SG_TYPE_MOVED)
			size = op->accesses[i].element_bytes;
	piece->type = size <= 16 && (size & (size - 1)) == 0 ? likely[size]
	                                                     : SG_TYPE_F32;
	piece->bound = op->accesses[at].values.bound;
	for (unsigned i = 0; i < op->n_accesses; i++) {
		if (!op->accesses[i].read ||
		        op->accesses[i].type != SG_TYPE_MOVED)
			continue;
		for (unsigned k = 0; k < parts[i].n; k++) {
			const struct sg_part *part = &parts[i].parts[k];

			if (!part->defined || part->piece.kind != SG_PIECE_TAG)
				continue;
			piece->type = part->piece.type;
			break;
		}
		if (parts_bound(&parts[i], piece->type) > piece->bound)
			piece->bound = parts_bound(&parts[i], piece->type);
	}
}

/* 0, 1, 2 and so on to the end of the part? */
static bool counts_up(const struct sg_part *part, unsigned element_bytes)
{
	for (uint64_t i = 0; i < part->n / element_bytes; i++)
		if (number_at(part, element_bytes, i) != (int64_t)i)
			return false;
	return true;
}

/* Sorted along with keys: the access that holds what is permuted. */
static unsigned permuted_from(const struct sg_op *op, unsigned i)
{
	const struct sg_access *to = &op->accesses[i];

	if (to->read)
		return i;
	if (i + 1 < op->n_accesses && op->accesses[i + 1].read &&
	        op->accesses[i + 1].bytes == to->bytes)
		return i + 1;
	return i ? i - 1 : 0;
}

static void permute(const struct sg_parts *parts, struct sg_piece *piece)
{
	const struct sg_part *part = parts->n ? &parts->parts[0] : NULL;
	unsigned size = integer_bytes(piece->type);
	bool whole = part && part->defined && parts->n == 1 && size;

	piece->bound = parts_bound(parts, piece->type);
	if (!whole)
		return;
	if (part->piece.kind == SG_PIECE_TAG &&
	        part->piece.series == SG_SERIES_DISTINCT) {
		piece->series = SG_SERIES_DISTINCT;
		piece->bound = part->piece.bound;
		piece->count = part->piece.count;
	} else if (counts_up(part, size)) {
		piece->series = SG_SERIES_DISTINCT;
		piece->bound = piece->count = part->n / size;
	}
}

/* Truth values that are all the same come to the same, or to the opposite:
 * and, or, any, all, not. False: they are not. */
static bool agreed(const struct sg_op *op, const struct sg_access *to,
        const struct sg_parts *parts, struct sg_piece *piece)
{
	uint32_t seen = 0;
	unsigned reads = 0;

	if (to->type != SG_TYPE_I8)
		return false;
	for (unsigned i = 0; i < op->n_accesses; i++) {
		for (unsigned k = 0; op->accesses[i].read && k < parts[i].n;
		        k++) {
			const struct sg_part *part = &parts[i].parts[k];
			uint32_t now = (uint32_t)part->piece.tag;

			if (op->accesses[i].type != SG_TYPE_I8 ||
			        !part->defined ||
			        part->piece.kind != SG_PIECE_FILL ||
			        (now && now != 0x01010101u) ||
			        (reads++ && now != seen))
				return false;
			seen = now;
		}
	}
	if (!reads)
		return false;
	fill(piece,
	        op->action.meaning == SG_MEANS_NOT ? seen ^ 0x01010101u : seen);
	return true;
}

/* Integers of which only the range is known. */
static void free_integers(const struct sg_op *op,
        const struct sg_values *values, const struct sg_parts *parts,
        struct sg_piece *piece)
{
	const struct sg_action *action = &op->action;
	uint64_t bound = values->bound;

	if (bound) {
		piece->count = values->count;
	} else {
		bound = read_bound(op, parts);
		if (bound && values->count)
			bound = (bound - 1) * values->count + 1;
		if (bound && action->bytes && signed_value(action) > 0) {
			if (action->meaning == SG_MEANS_DIVIDE)
				bound = (bound - 1) / action->value + 1;
			if (action->meaning == SG_MEANS_REMAINDER &&
			        bound > action->value)
				bound = action->value;
		}
	}
	piece->bound = bound;
}

/* ----------------------------------------------------- the gradient scaler */

static void scaler_read(const struct sg_parts *parts, void *out, unsigned bytes)
{
	memset(out, 0, bytes);
	if (parts->n && parts->parts[0].defined && parts->parts[0].n >= bytes)
		sg_piece_bytes(&parts->parts[0].piece, 0, bytes, out);
}

/* amp_update_scale: factor and number of good steps (accesses 0 and 1), by
 * whether an infinity was found (2); parameters: growth, backoff, interval. */
static void update_scale(const struct sg_launch *launch, unsigned i,
        const struct sg_parts *parts, struct sg_piece *piece)
{
	float scale, infinity;
	int32_t good, interval = (int32_t)sg_param_int(launch, 5, 0);
	double growth, backoff;

	scaler_read(&parts[0], &scale, sizeof(scale));
	scaler_read(&parts[1], &good, sizeof(good));
	scaler_read(&parts[2], &infinity, sizeof(infinity));
	sg_param_read(launch, 3, 0, &growth, sizeof(growth));
	sg_param_read(launch, 4, 0, &backoff, sizeof(backoff));
	if (infinity != 0) {
		scale = (float)(scale * backoff);
		good = 0;
	} else if (good + 1 == interval) {
		scale = (float)(scale * growth);
		good = 0;
	} else {
		good++;
	}
	piece->kind = SG_PIECE_BYTES;
	piece->bytes = i == 0 ? sg_bytes_new(&scale, sizeof(scale))
	                      : sg_bytes_new(&good, sizeof(good));
}

/* ------------------------------------------------------------------------- all
 */

bool sg_values_piece(const struct sg_launch *launch, const struct sg_op *op,
        unsigned i, const struct sg_parts *parts, struct sg_piece *piece)
{
	const struct sg_access *access = &op->accesses[i];
	const struct sg_values *values = &access->values;

	piece->type = (enum sg_piece_type)access->type;
	if (values->series == SG_SERIES_KEPT)
		return false;
	if (values->series == SG_SERIES_SET) {
		fill(piece, (uint32_t)values->bound);
		return true;
	}
	if (op->action.meaning == SG_MEANS_PROOF) {
		sg_proof_piece(launch, op, parts, piece);
		return true;
	}
	if (op->action.meaning == SG_MEANS_SCALE && i < 2) {
		update_scale(launch, i, parts, piece);
		return true;
	}
	if (filled(&op->action, access, piece) || added(op, i, parts, piece))
		return true;
	if (access->type == SG_TYPE_MOVED) {
		moved(op, i, parts, piece);
		if (values->series == SG_SERIES_PERMUTED)
			permute(&parts[permuted_from(op, i)], piece);
		return true;
	}
	if (!integer_bytes(access->type) || compared(op, parts, piece) ||
	        agreed(op, access, parts, piece))
		return true;
	switch (values->series) {
	case SG_SERIES_FREE:
		free_integers(op, values, parts, piece);
		break;
	case SG_SERIES_PERMUTED:
		permute(&parts[permuted_from(op, i)], piece);
		break;
	default:
		piece->series = values->series;
		piece->bound = values->bound;
		piece->count = values->count;
	}
	return true;
}
