/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Ordered map from a 64-bit key to an item that holds the node: a treap, so
 * nothing is allocated and a look-up of the next lower key is cheap. The owner
 * of the map guards it.
 */
#ifndef TS_MAP_H
#define TS_MAP_H

#include <stddef.h>
#include <stdint.h>

struct ts_map_node {
	struct ts_map_node *left, *right;
	uint64_t key;
	uint32_t priority;
};

struct ts_map {
	struct ts_map_node *root;
	size_t count;
	uint32_t seed;
};

void ts_map_init(struct ts_map *map);

/* Adds @node under @key. Returns -EEXIST where the key is taken. */
int ts_map_insert(struct ts_map *map, struct ts_map_node *node, uint64_t key);

/* Takes the node of @key out and returns it, NULL where there is none. */
struct ts_map_node *ts_map_remove(struct ts_map *map, uint64_t key);

/* The node with exactly @key, or NULL. */
struct ts_map_node *ts_map_find(const struct ts_map *map, uint64_t key);

/* The node with the greatest key <= @key, or NULL. */
struct ts_map_node *ts_map_floor(const struct ts_map *map, uint64_t key);

/* The node with the least key >= @key, or NULL. */
struct ts_map_node *ts_map_ceiling(const struct ts_map *map, uint64_t key);

#endif
