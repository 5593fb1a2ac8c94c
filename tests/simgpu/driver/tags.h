/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Content without the bytes: a map of intervals, each a piece of a value. A
 * value is named by a tag, a hash of how it came about, never of where it lies;
 * a piece knows where in the value it begins, so that parts copied apart join
 * to the same whole again. Small uploads keep their bytes, memsets their
 * pattern. What no interval covers is undefined.
 *
 * A map belongs to a chunk, a block or a range of host memory, whose lock
 * guards it.
 */
#ifndef SG_TAGS_H
#define SG_TAGS_H

#include "tests/simgpu/driver/rangetree.h"

#include <stdbool.h>
#include <stdint.h>

enum sg_piece_kind {
	SG_PIECE_TAG,   /* bytes follow from tag and position */
	SG_PIECE_BYTES, /* real bytes */
	SG_PIECE_FILL,  /* a pattern of four bytes, in tag */
};
/* What a tagged value's elements are, for hosts that read them. */
enum sg_piece_type {
	SG_TYPE_F32, /* also where nothing is known */
	SG_TYPE_F64,
	SG_TYPE_F16,
	SG_TYPE_BF16,
	SG_TYPE_ZERO, /* pointers and what else is no number: zeros */
	SG_TYPE_I8,   /* bool too */
	SG_TYPE_I16,
	SG_TYPE_I32,
	SG_TYPE_I64,
	SG_TYPE_MOVED, /* of an access only: what it was where it was read */
};
/* What a tagged value's integers are; bound and count by kind. */
enum sg_series {
	SG_SERIES_FREE,     /* bound numbers from count on; 0: only that */
	SG_SERIES_DISTINCT, /* in each count of them different, below bound */
	SG_SERIES_SHARES,   /* count of them, which add up to bound */
	SG_SERIES_LINEAR,   /* from bound on in steps of count */
	/* Of an access only: */
	SG_SERIES_PERMUTED, /* what it reads in another order */
	SG_SERIES_KEPT,     /* what is there stays */
	SG_SERIES_SET,      /* the four bytes that bound says */
};
struct sg_values {
	enum sg_series series;
	uint64_t bound; /* 0 of free ones: that of what is read, */
	uint64_t count; /* and each may be the sum of so many; 0: of one */
};
/* Shared, counted bytes of one upload; constant. */
struct sg_bytes {
	unsigned refs;
	uint64_t bytes;
	unsigned char data[];
};
struct sg_piece {
	enum sg_piece_kind kind;
	enum sg_piece_type type;
	enum sg_series series;
	uint64_t bound, count;
	uint64_t tag;
	uint64_t from; /* of the first byte, in the value */
	struct sg_bytes *bytes;
};
struct sg_map {
	struct sg_ranges ranges;
};

/* A copy of n bytes, with one reference. */
struct sg_bytes *sg_bytes_new(const void *data, uint64_t n);
void sg_bytes_ref(struct sg_bytes *bytes);
void sg_bytes_unref(struct sg_bytes *bytes); /* NULL is allowed */

/* The same piece, beginning skip bytes later. */
struct sg_piece sg_piece_later(const struct sg_piece *piece, uint64_t skip);

/* Makes [at, at+n) hold piece from its `from` on; NULL: undefined. Takes its
 * own references. */
void sg_map_write(struct sg_map *map, uint64_t at, uint64_t n,
        const struct sg_piece *piece);
void sg_map_clear(struct sg_map *map);
/* Calls fn for every part of [at, at+n) in order; piece NULL: undefined. The
 * map must not change meanwhile. */
typedef void (*sg_piece_fn)(
        void *arg, uint64_t at, uint64_t n, const struct sg_piece *piece);
void sg_map_each(const struct sg_map *map, uint64_t at, uint64_t n,
        sg_piece_fn fn, void *arg);

/* A list of parts, joined where they continue each other. */
struct sg_part {
	uint64_t at, n;
	bool defined;
	struct sg_piece piece;
};
struct sg_parts {
	struct sg_part *parts;
	unsigned n, cap;
};
/* Appends [at, at+n), which follows the last part; an sg_piece_fn. */
void sg_parts_add(
        void *parts, uint64_t at, uint64_t n, const struct sg_piece *piece);
void sg_parts_free(struct sg_parts *parts);
/* A hash of the list: what the parts hold and how far they lie from its start;
 * undefined parts count for nothing. */
uint64_t sg_parts_hash(const struct sg_parts *parts);

/* Writes the bytes of a part; undefined ones are zeros. */
void sg_piece_bytes(
        const struct sg_piece *piece, uint64_t skip, uint64_t n, void *out);

uint64_t sg_mix(uint64_t hash, uint64_t word);
uint64_t sg_hash_bytes(uint64_t hash, const void *data, uint64_t n);

#endif
