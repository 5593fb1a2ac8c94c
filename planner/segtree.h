/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Bytes by op with range add and "first op above": the memory profile that
 * the passes change. Values may go below zero on the way.
 */
#ifndef TS_PLANNER_SEGTREE_H
#define TS_PLANNER_SEGTREE_H

#include <stdbool.h>
#include <stdint.h>

struct ts_segtree_node {
	int64_t max; /* without what the node's parents add */
	int64_t add;
};

struct ts_segtree {
	uint32_t n;
	uint32_t leaves; /* power of two */
	struct ts_segtree_node *nodes;
};

/* Takes @n starting values. 0 or -ENOMEM. */
int ts_segtree_init(
        struct ts_segtree *tree, const uint64_t *values, uint32_t n);
void ts_segtree_finish(struct ts_segtree *tree);
/* Adds @delta to [from, to); nothing where the range is empty. */
void ts_segtree_add(
        struct ts_segtree *tree, uint32_t from, uint32_t to, int64_t delta);
int64_t ts_segtree_max(const struct ts_segtree *tree);
/* First index >= @from whose value is above @level; n where none is. */
uint32_t ts_segtree_first_above(
        const struct ts_segtree *tree, uint32_t from, int64_t level);
/* Last index < @end whose value is above @level; n where none is. */
uint32_t ts_segtree_last_above(
        const struct ts_segtree *tree, uint32_t end, int64_t level);
/* Highest value in [from, to), INT64_MIN where empty; its first index. */
int64_t ts_segtree_range_max(const struct ts_segtree *tree, uint32_t from,
        uint32_t to, uint32_t *ret_at);
int64_t ts_segtree_get(const struct ts_segtree *tree, uint32_t at);

#endif
