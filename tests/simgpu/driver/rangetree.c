/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Balanced tree of address ranges. Owns no memory; the caller guards the tree.
 */
#include "tests/simgpu/driver/rangetree.h"

#include <stdbool.h>

static uint64_t priority(const struct sg_range *range)
{
	uint64_t x = range->start;

	x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
	x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
	return x ^ (x >> 31);
}

static void update(struct sg_range *range)
{
	uint64_t most = range->bytes;

	if (range->left && range->left->max_bytes > most)
		most = range->left->max_bytes;
	if (range->right && range->right->max_bytes > most)
		most = range->right->max_bytes;
	range->max_bytes = most;
}

/* Splits into ranges that start before and at or after address. */
static void split(struct sg_range *range, uint64_t address,
        struct sg_range **ret_before, struct sg_range **ret_after)
{
	if (!range) {
		*ret_before = NULL;
		*ret_after = NULL;
		return;
	}
	if (range->start < address) {
		split(range->right, address, &range->right, ret_after);
		*ret_before = range;
	} else {
		split(range->left, address, ret_before, &range->left);
		*ret_after = range;
	}
	update(range);
}

static struct sg_range *join(struct sg_range *before, struct sg_range *after)
{
	if (!before)
		return after;
	if (!after)
		return before;
	if (priority(before) > priority(after)) {
		before->right = join(before->right, after);
		update(before);
		return before;
	}
	after->left = join(before, after->left);
	update(after);
	return after;
}

void sg_ranges_insert(struct sg_ranges *tree, struct sg_range *range)
{
	struct sg_range *before, *after;

	split(tree->root, range->start, &before, &after);
	range->left = NULL;
	range->right = NULL;
	update(range);
	tree->root = join(join(before, range), after);
}

void sg_ranges_remove(struct sg_ranges *tree, struct sg_range *range)
{
	struct sg_range *before, *rest, *self, *after;

	split(tree->root, range->start, &before, &rest);
	split(rest, range->start + 1, &self, &after);
	tree->root = join(before, after);
	range->left = NULL;
	range->right = NULL;
}

struct sg_range *sg_ranges_floor(const struct sg_ranges *tree, uint64_t address)
{
	struct sg_range *at = tree->root, *best = NULL;

	while (at) {
		if (at->start <= address) {
			best = at;
			at = at->right;
		} else {
			at = at->left;
		}
	}
	return best;
}

struct sg_range *sg_ranges_ceil(const struct sg_ranges *tree, uint64_t address)
{
	struct sg_range *at = tree->root, *best = NULL;

	while (at) {
		if (at->start >= address) {
			best = at;
			at = at->left;
		} else {
			at = at->right;
		}
	}
	return best;
}

struct sg_range *sg_ranges_at(const struct sg_ranges *tree, uint64_t address)
{
	struct sg_range *range = sg_ranges_floor(tree, address);

	return range && address - range->start < range->bytes ? range : NULL;
}

struct sg_range *sg_ranges_overlap(
        const struct sg_ranges *tree, uint64_t address, uint64_t bytes)
{
	struct sg_range *range = sg_ranges_at(tree, address);

	if (range)
		return range;
	range = sg_ranges_ceil(tree, address);
	return range && range->start - address < bytes ? range : NULL;
}

static struct sg_range *fit(struct sg_range *range, uint64_t bytes,
        uint64_t align, uint64_t *ret_start)
{
	struct sg_range *found;
	uint64_t start;

	if (!range || range->max_bytes < bytes)
		return NULL;
	found = fit(range->left, bytes, align, ret_start);
	if (found)
		return found;
	start = (range->start + align - 1) & ~(align - 1);
	if (range->bytes >= bytes && start >= range->start &&
	        start - range->start <= range->bytes - bytes) {
		*ret_start = start;
		return range;
	}
	return fit(range->right, bytes, align, ret_start);
}

struct sg_range *sg_ranges_fit(const struct sg_ranges *tree, uint64_t bytes,
        uint64_t align, uint64_t *ret_start)
{
	return fit(tree->root, bytes, align, ret_start);
}
