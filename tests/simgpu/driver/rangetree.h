/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A balanced tree of address ranges that do not overlap, with the node inside
 * the object it describes. Shape depends only on the ranges in it (a treap
 * whose priorities are hashes of the start), so that runs repeat. Whoever owns
 * a tree guards it; the driver's are under sg_lock.
 */
#ifndef SG_RANGETREE_H
#define SG_RANGETREE_H

#include <stddef.h>
#include <stdint.h>

struct sg_range {
	uint64_t start, bytes;
	uint64_t max_bytes; /* longest range of the subtree */
	struct sg_range *left, *right;
};
struct sg_ranges {
	struct sg_range *root;
};

/* Inserts a range that overlaps none in the tree; start and bytes are set. */
void sg_ranges_insert(struct sg_ranges *tree, struct sg_range *range);
void sg_ranges_remove(struct sg_ranges *tree, struct sg_range *range);
/* The range that holds address, or NULL. */
struct sg_range *sg_ranges_at(const struct sg_ranges *tree, uint64_t address);
/* The last range that starts at or before address, or NULL. */
struct sg_range *sg_ranges_floor(
        const struct sg_ranges *tree, uint64_t address);
/* The first range that starts at or after address, or NULL. */
struct sg_range *sg_ranges_ceil(const struct sg_ranges *tree, uint64_t address);
/* The first range that overlaps [address, address + bytes), or NULL. */
struct sg_range *sg_ranges_overlap(
        const struct sg_ranges *tree, uint64_t address, uint64_t bytes);
/* The first range with room for bytes at a multiple of align, a power of two;
 * that address goes to *ret_start. */
struct sg_range *sg_ranges_fit(const struct sg_ranges *tree, uint64_t bytes,
        uint64_t align, uint64_t *ret_start);

/* The object of the given type that holds range as its member. */
#define sg_range_entry(range, type, member)                                    \
	((type *)((char *)(range)-offsetof(type, member)))

#endif
