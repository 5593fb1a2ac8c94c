/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "planner/segtree.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static int64_t greater(int64_t a, int64_t b)
{
	return a > b ? a : b;
}

int ts_segtree_init(struct ts_segtree *tree, const uint64_t *values, uint32_t n)
{
	tree->n = n;
	tree->leaves = 1;
	while (tree->leaves < n)
		tree->leaves *= 2;
	tree->nodes = calloc(2 * (uint64_t)tree->leaves, sizeof(*tree->nodes));
	if (!tree->nodes) {
		ts_segtree_finish(tree);
		return -ENOMEM;
	}
	for (uint32_t i = 0; i < tree->leaves; i++)
		tree->nodes[tree->leaves + i].max =
		        i < n ? (int64_t)values[i] : INT64_MIN / 4;
	for (uint32_t i = tree->leaves - 1; i > 0; i--)
		tree->nodes[i].max = greater(
		        tree->nodes[2 * i].max, tree->nodes[2 * i + 1].max);
	return 0;
}

void ts_segtree_finish(struct ts_segtree *tree)
{
	free(tree->nodes);
	memset(tree, 0, sizeof(*tree));
}

/* Node @i from its children. False where that changes nothing. */
static bool renew(struct ts_segtree *tree, uint32_t i)
{
	int64_t before = tree->nodes[i].max;

	tree->nodes[i].max =
	        tree->nodes[i].add +
	        greater(tree->nodes[2 * i].max, tree->nodes[2 * i + 1].max);
	return tree->nodes[i].max != before;
}

/* All above the range of leaves [first, last] that was changed. */
static void lift(struct ts_segtree *tree, uint32_t first, uint32_t last)
{
	for (; first != last; first /= 2, last /= 2) {
		if (first < tree->leaves)
			renew(tree, first);
		if (last < tree->leaves)
			renew(tree, last);
	}
	/* The node over both may be changed itself; above nothing else is. */
	if (first < tree->leaves)
		renew(tree, first);
	for (first /= 2; first && renew(tree, first); first /= 2)
		;
}

void ts_segtree_add(
        struct ts_segtree *tree, uint32_t from, uint32_t to, int64_t delta)
{
	uint32_t left = from + tree->leaves, right = to + tree->leaves;
	uint32_t first = left, last = right - 1;

	if (from >= to)
		return;
	for (; left < right; left /= 2, right /= 2) {
		if (left & 1) {
			tree->nodes[left].max += delta;
			tree->nodes[left].add += delta;
			left++;
		}
		if (right & 1) {
			right--;
			tree->nodes[right].max += delta;
			tree->nodes[right].add += delta;
		}
	}
	lift(tree, first, last);
}

int64_t ts_segtree_max(const struct ts_segtree *tree)
{
	return tree->n ? tree->nodes[1].max : 0;
}

int64_t ts_segtree_get(const struct ts_segtree *tree, uint32_t at)
{
	uint32_t i = at + tree->leaves;
	int64_t value = tree->nodes[i].max;

	for (i /= 2; i; i /= 2)
		value += tree->nodes[i].add;
	return value;
}

uint32_t ts_segtree_first_above(
        const struct ts_segtree *tree, uint32_t from, int64_t level)
{
	uint32_t i = from + tree->leaves;
	int64_t above = 0;

	if (from >= tree->n)
		return tree->n;
	for (uint32_t up = i / 2; up; up /= 2)
		above += tree->nodes[up].add;
	/* Up until a subtree to the right holds one, then down its left. */
	while (tree->nodes[i].max + above <= level) {
		while (i & 1) {
			i /= 2;
			if (!i)
				return tree->n;
			above -= tree->nodes[i].add;
		}
		if (!i)
			return tree->n;
		i++;
	}
	while (i < tree->leaves) {
		above += tree->nodes[i].add;
		i *= 2;
		if (tree->nodes[i].max + above <= level)
			i++;
	}
	return i - tree->leaves < tree->n ? i - tree->leaves : tree->n;
}

/* Of the subtree @i over [low, low + width), among indices below @end. */
static uint32_t last_above(const struct ts_segtree *tree, uint32_t i,
        uint32_t low, uint32_t width, uint32_t end, int64_t level)
{
	uint32_t found;

	if (low >= end || tree->nodes[i].max <= level)
		return tree->n;
	if (width == 1)
		return low;
	level -= tree->nodes[i].add;
	width /= 2;
	found = last_above(tree, 2 * i + 1, low + width, width, end, level);
	if (found < tree->n)
		return found;
	return last_above(tree, 2 * i, low, width, end, level);
}

uint32_t ts_segtree_last_above(
        const struct ts_segtree *tree, uint32_t end, int64_t level)
{
	if (!tree->n)
		return 0;
	return last_above(tree, 1, 0, tree->leaves, end, level);
}

/* Highest in [from, to): from both ends up, until they meet. */
static int64_t range_max(
        const struct ts_segtree *tree, uint32_t from, uint32_t to)
{
	uint32_t left = from + tree->leaves, right = to - 1 + tree->leaves;
	const struct ts_segtree_node *nodes = tree->nodes;
	int64_t most = nodes[left].max, right_most = nodes[right].max;

	while (left / 2 < right / 2) {
		if (!(left & 1))
			most = greater(most, nodes[left + 1].max);
		if (right & 1)
			right_most = greater(right_most, nodes[right - 1].max);
		left /= 2;
		right /= 2;
		most += nodes[left].add;
		right_most += nodes[right].add;
	}
	most = greater(most, right_most);
	for (left /= 2; left; left /= 2)
		most += nodes[left].add;
	return most;
}

int64_t ts_segtree_range_max(const struct ts_segtree *tree, uint32_t from,
        uint32_t to, uint32_t *ret_at)
{
	int64_t most;

	if (from >= to)
		return INT64_MIN;
	most = range_max(tree, from, to);
	*ret_at = ts_segtree_first_above(tree, from, most - 1);
	return most;
}
