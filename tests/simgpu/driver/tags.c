/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Maps of content: writing, splitting, joining, hashing, and the bytes a host
 * sees. Owns no map; callers hold the lock of theirs.
 */
#include "tests/simgpu/driver/tags.h"
#include "tests/simgpu/driver/sg.h"

#include <stdlib.h>
#include <string.h>

struct node {
	struct sg_range range;
	struct sg_piece piece;
};

/* ----------------------------------------------------------------- hashing */

uint64_t sg_mix(uint64_t hash, uint64_t word)
{
	uint64_t x = hash * 0x9e3779b97f4a7c15u + word;

	x = (x ^ (x >> 32)) * 0xd6e8feb86659fd93u;
	x = (x ^ (x >> 29)) * 0xbf58476d1ce4e5b9u;
	return x ^ (x >> 32);
}

uint64_t sg_hash_bytes(uint64_t hash, const void *data, uint64_t n)
{
	const unsigned char *p = data;
	uint64_t word;

	for (; n >= 8; n -= 8, p += 8) {
		memcpy(&word, p, 8);
		hash = sg_mix(hash, word);
	}
	word = n;
	for (uint64_t i = 0; i < n; i++)
		word = word << 8 | p[i];
	return sg_mix(hash, word);
}

/* ------------------------------------------------------------------ pieces */

struct sg_bytes *sg_bytes_new(const void *data, uint64_t n)
{
	struct sg_bytes *bytes = sg_xcalloc(1, sizeof(*bytes) + n);

	bytes->refs = 1;
	bytes->bytes = n;
	memcpy(bytes->data, data, n);
	return bytes;
}

void sg_bytes_ref(struct sg_bytes *bytes)
{
	bytes->refs++;
}

void sg_bytes_unref(struct sg_bytes *bytes)
{
	if (bytes && --bytes->refs == 0)
		free(bytes);
}

struct sg_piece sg_piece_later(const struct sg_piece *piece, uint64_t skip)
{
	struct sg_piece p = *piece;

	p.from += skip;
	if (p.kind == SG_PIECE_FILL)
		p.from %= 4;
	return p;
}

/* Does next continue piece, which is n bytes long? */
static bool continues(
        const struct sg_piece *piece, uint64_t n, const struct sg_piece *next)
{
	return piece->kind == next->kind && piece->type == next->type &&
	       piece->tag == next->tag && piece->bytes == next->bytes &&
	       piece->series == next->series && piece->bound == next->bound &&
	       piece->count == next->count &&
	       sg_piece_later(piece, n).from == next->from;
}

/* Element i of a tagged value as a number in (0, 1), of 24 bits. */
static double number(uint64_t tag, uint64_t i)
{
	return ((double)(sg_mix(tag, i) >> 41) + 0.5) * 0x1p-23;
}

static unsigned element_bytes(enum sg_piece_type type)
{
	switch (type) {
	case SG_TYPE_F64:
	case SG_TYPE_I64:
		return 8;
	case SG_TYPE_F16:
	case SG_TYPE_BF16:
	case SG_TYPE_I16:
		return 2;
	case SG_TYPE_I8:
		return 1;
	default:
		return 4;
	}
}

/* A number below n that has no divisor in common with it. */
static uint64_t coprime(uint64_t start, uint64_t n)
{
	for (uint64_t a = start % n;; a++) {
		uint64_t x = n, y = a % n;

		while (y) {
			uint64_t rest = x % y;

			x = y;
			y = rest;
		}
		if (x == 1)
			return a % n;
	}
}

/* Element k of a slice of different numbers below n. */
static uint64_t distinct(uint64_t hash, uint64_t k, uint64_t n)
{
	unsigned __int128 product;

	if (n < 2)
		return 0;
	product = (unsigned __int128)coprime(hash, n) * (k % n);
	return (uint64_t)((product + (hash >> 32)) % n);
}

/* Shares lie around their mean, two by two. */
static uint64_t share(const struct sg_piece *piece, uint64_t i)
{
	uint64_t mean = piece->bound / piece->count;
	uint64_t rest = i ? 0 : piece->bound % piece->count;
	uint64_t more = sg_mix(piece->tag, i / 2) % (mean + 1);

	if (i % 2)
		return mean - more;
	return mean + rest + (i + 1 < piece->count ? more : 0);
}

static uint64_t integer(const struct sg_piece *piece, uint64_t i)
{
	switch (piece->series) {
	case SG_SERIES_DISTINCT:
		return distinct(sg_mix(piece->tag, i / piece->count),
		        i % piece->count, piece->bound);
	case SG_SERIES_SHARES:
		return share(piece, i);
	case SG_SERIES_LINEAR:
		return piece->bound + i * piece->count;
	default:
		return piece->count +
		       (piece->bound ? sg_mix(piece->tag, i) % piece->bound
		                     : 0);
	}
}

static void element(const struct sg_piece *piece, uint64_t i, void *out)
{
	uint64_t whole;
	double x = number(piece->tag, i);
	float f = (float)x;
	uint32_t bits;
	uint16_t half;

	switch (piece->type) {
	case SG_TYPE_F64:
		memcpy(out, &x, 8);
		break;
	case SG_TYPE_BF16:
		memcpy(&bits, &f, 4);
		half = (uint16_t)(bits >> 16);
		memcpy(out, &half, 2);
		break;
	case SG_TYPE_F16:
		/* In [2^-10, 1): exponents 5 to 14 are all normal. */
		f = f < 0x1p-10f ? 0x1p-10f : f;
		memcpy(&bits, &f, 4);
		half = (uint16_t)(((bits >> 23) - 112) << 10 |
		                  ((bits >> 13) & 0x3ff));
		memcpy(out, &half, 2);
		break;
	case SG_TYPE_ZERO:
		memset(out, 0, 4);
		break;
	case SG_TYPE_I8:
	case SG_TYPE_I16:
	case SG_TYPE_I32:
	case SG_TYPE_I64:
		whole = integer(piece, i);
		memcpy(out, &whole, element_bytes(piece->type));
		break;
	default:
		memcpy(out, &f, 4);
	}
}

static void tagged_bytes(const struct sg_piece *piece, uint64_t from,
        uint64_t n, unsigned char *out)
{
	unsigned size = element_bytes(piece->type);
	unsigned char whole[8];

	/* Whole elements of the commonest types, fast. */
	if (piece->type == SG_TYPE_BF16 && from % 2 == 0) {
		uint64_t i = from / 2, count = n / 2;

		for (uint64_t k = 0; k < count; k++) {
			float f = (float)number(piece->tag, i + k);
			uint32_t bits;
			uint16_t half;

			memcpy(&bits, &f, 4);
			half = (uint16_t)(bits >> 16);
			memcpy(out + 2 * k, &half, 2);
		}
		from += 2 * count;
		out += 2 * count;
		n -= 2 * count;
	}
	if (piece->type == SG_TYPE_F32 && from % 4 == 0) {
		uint64_t i = from / 4, count = n / 4;

		for (uint64_t k = 0; k < count; k++) {
			float f = (float)number(piece->tag, i + k);

			memcpy(out + 4 * k, &f, 4);
		}
		from += 4 * count;
		out += 4 * count;
		n -= 4 * count;
	}
	while (n) {
		uint64_t skip = from % size;
		uint64_t part = size - skip < n ? size - skip : n;

		element(piece, from / size, whole);
		memcpy(out, whole + skip, part);
		from += part;
		out += part;
		n -= part;
	}
}

void sg_piece_bytes(
        const struct sg_piece *piece, uint64_t skip, uint64_t n, void *out)
{
	unsigned char *p = out;
	uint32_t pattern;

	if (!piece) {
		memset(out, 0, n);
		return;
	}
	switch (piece->kind) {
	case SG_PIECE_BYTES:
		memcpy(out, piece->bytes->data + piece->from + skip, n);
		break;
	case SG_PIECE_FILL:
		pattern = (uint32_t)piece->tag;
		if (pattern == 0) {
			memset(out, 0, n);
			break;
		}
		for (uint64_t i = 0; i < n; i++)
			p[i] = ((unsigned char
			                *)&pattern)[(piece->from + skip + i) %
			                            4];
		break;
	default:
		tagged_bytes(piece, piece->from + skip, n, p);
	}
}

/* -------------------------------------------------------------------- maps */

static struct node *node_of(struct sg_range *range)
{
	return range ? sg_range_entry(range, struct node, range) : NULL;
}

static struct node *node_add(struct sg_map *map, uint64_t at, uint64_t n,
        const struct sg_piece *piece)
{
	struct node *node = sg_xcalloc(1, sizeof(*node));

	node->range.start = at;
	node->range.bytes = n;
	node->piece = *piece;
	if (piece->bytes)
		sg_bytes_ref(piece->bytes);
	sg_ranges_insert(&map->ranges, &node->range);
	return node;
}

static void node_remove(struct sg_map *map, struct node *node)
{
	sg_ranges_remove(&map->ranges, &node->range);
	sg_bytes_unref(node->piece.bytes);
	free(node);
}

/* Changes a node's extent, cutting its piece where it begins later. */
static void node_resize(
        struct sg_map *map, struct node *node, uint64_t at, uint64_t n)
{
	sg_ranges_remove(&map->ranges, &node->range);
	if (at > node->range.start)
		node->piece =
		        sg_piece_later(&node->piece, at - node->range.start);
	node->range.start = at;
	node->range.bytes = n;
	sg_ranges_insert(&map->ranges, &node->range);
}

/* Empties [at, at+n), splitting what reaches over its ends. */
static void carve(struct sg_map *map, uint64_t at, uint64_t n)
{
	struct node *node;
	uint64_t end = at + n;

	while ((node = node_of(sg_ranges_overlap(&map->ranges, at, n)))) {
		uint64_t first = node->range.start;
		uint64_t last = first + node->range.bytes;
		struct sg_piece rest;

		if (first >= at && last <= end) {
			node_remove(map, node);
		} else if (first >= at) {
			node_resize(map, node, end, last - end);
		} else {
			rest = sg_piece_later(&node->piece, end - first);
			node_resize(map, node, first, at - first);
			if (last > end)
				node_add(map, end, last - end, &rest);
		}
	}
}

/* Joins node with its neighbours where they continue each other. */
static void join(struct sg_map *map, struct node *node)
{
	uint64_t start = node->range.start;
	struct node *other;

	other = node_of(sg_ranges_at(&map->ranges, start + node->range.bytes));
	if (other &&
	        continues(&node->piece, node->range.bytes, &other->piece)) {
		uint64_t n = other->range.bytes;

		node_remove(map, other);
		node_resize(map, node, start, node->range.bytes + n);
	}
	other = start ? node_of(sg_ranges_at(&map->ranges, start - 1)) : NULL;
	if (other &&
	        continues(&other->piece, other->range.bytes, &node->piece)) {
		uint64_t n = node->range.bytes;

		node_remove(map, node);
		node_resize(
		        map, other, other->range.start, other->range.bytes + n);
	}
}

void sg_map_write(struct sg_map *map, uint64_t at, uint64_t n,
        const struct sg_piece *piece)
{
	struct node *same;

	if (!n)
		return;
	/* Most writes replace what was there, extent for extent. */
	same = node_of(sg_ranges_at(&map->ranges, at));
	if (same && piece && same->range.start == at &&
	        same->range.bytes == n) {
		if (piece->bytes)
			sg_bytes_ref(piece->bytes);
		sg_bytes_unref(same->piece.bytes);
		same->piece = *piece;
		join(map, same);
		return;
	}
	carve(map, at, n);
	if (piece)
		join(map, node_add(map, at, n, piece));
}

void sg_map_clear(struct sg_map *map)
{
	while (map->ranges.root)
		node_remove(map, node_of(map->ranges.root));
}

void sg_map_each(const struct sg_map *map, uint64_t at, uint64_t n,
        sg_piece_fn fn, void *arg)
{
	uint64_t end = at + n;

	while (at < end) {
		struct node *node =
		        node_of(sg_ranges_overlap(&map->ranges, at, end - at));
		struct sg_piece piece;
		uint64_t last;

		if (!node) {
			fn(arg, at, end - at, NULL);
			return;
		}
		if (node->range.start > at) {
			fn(arg, at, node->range.start - at, NULL);
			at = node->range.start;
		}
		last = node->range.start + node->range.bytes;
		if (last > end)
			last = end;
		piece = sg_piece_later(&node->piece, at - node->range.start);
		fn(arg, at, last - at, &piece);
		at = last;
	}
}

/* ------------------------------------------------------------------- parts */

void sg_parts_add(
        void *list, uint64_t at, uint64_t n, const struct sg_piece *piece)
{
	struct sg_parts *parts = list;
	struct sg_part *last;

	if (parts->n) {
		last = &parts->parts[parts->n - 1];
		if (last->defined == !!piece &&
		        (!piece || continues(&last->piece, last->n, piece))) {
			last->n += n;
			return;
		}
	}
	if (parts->n == parts->cap) {
		parts->cap = parts->cap ? 2 * parts->cap : 8;
		parts->parts = sg_xrealloc(
		        parts->parts, parts->cap * sizeof(*parts->parts));
	}
	last = &parts->parts[parts->n++];
	*last = (struct sg_part){.at = at, .n = n};
	if (!piece)
		return;
	last->defined = true;
	last->piece = *piece;
	if (piece->bytes)
		sg_bytes_ref(piece->bytes);
}

void sg_parts_free(struct sg_parts *parts)
{
	for (unsigned i = 0; i < parts->n; i++) {
		if (parts->parts[i].defined)
			sg_bytes_unref(parts->parts[i].piece.bytes);
	}
	free(parts->parts);
	*parts = (struct sg_parts){0};
}

uint64_t sg_parts_hash(const struct sg_parts *parts)
{
	uint64_t hash = 0;

	for (unsigned i = 0; i < parts->n; i++) {
		const struct sg_part *part = &parts->parts[i];
		const struct sg_piece *piece = &part->piece;

		if (!part->defined)
			continue;
		hash = sg_mix(hash, part->at - parts->parts[0].at);
		hash = sg_mix(hash, part->n);
		hash = sg_mix(hash, piece->kind);
		if (piece->kind == SG_PIECE_BYTES) {
			hash = sg_hash_bytes(hash,
			        piece->bytes->data + piece->from, part->n);
			continue;
		}
		hash = sg_mix(hash, piece->tag);
		hash = sg_mix(hash, piece->from);
	}
	return hash;
}
