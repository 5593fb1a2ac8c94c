/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "agent/base/map.h"

#include <errno.h>

void ts_map_init(struct ts_map *map)
{
	map->root = NULL;
	map->count = 0;
	map->seed = 0x9e3779b9u;
}

/* xorshift32: priorities need to be spread, not secret. */
static uint32_t next_priority(struct ts_map *map)
{
	uint32_t x = map->seed;

	x ^= x << 13;
	x ^= x >> 17;
	x ^= x << 5;
	map->seed = x;
	return x;
}

/* Splits @tree into the keys below @key and those at or above it. */
static void split(struct ts_map_node *tree, uint64_t key,
        struct ts_map_node **low, struct ts_map_node **high)
{
	while (tree) {
		if (tree->key < key) {
			*low = tree;
			low = &tree->right;
			tree = tree->right;
		} else {
			*high = tree;
			high = &tree->left;
			tree = tree->left;
		}
	}
	*low = NULL;
	*high = NULL;
}

int ts_map_insert(struct ts_map *map, struct ts_map_node *node, uint64_t key)
{
	struct ts_map_node **link = &map->root, **place = NULL;
	uint32_t seed = map->seed, priority = next_priority(map);

	/* The search for the key passes where the node goes. */
	while (*link) {
		struct ts_map_node *here = *link;

		if (here->key == key) {
			map->seed = seed;
			return -EEXIST;
		}
		if (!place && here->priority < priority)
			place = link;
		link = key < here->key ? &here->left : &here->right;
	}
	if (!place)
		place = link;
	node->key = key;
	node->priority = priority;
	split(*place, key, &node->left, &node->right);
	*place = node;
	map->count++;
	return 0;
}

struct ts_map_node *ts_map_remove(struct ts_map *map, uint64_t key)
{
	struct ts_map_node **link = &map->root;
	struct ts_map_node *node, *low, *high;

	while (*link && (*link)->key != key)
		link = key < (*link)->key ? &(*link)->left : &(*link)->right;
	node = *link;
	if (!node)
		return NULL;
	low = node->left;
	high = node->right;
	while (low && high) {
		if (low->priority >= high->priority) {
			*link = low;
			link = &low->right;
			low = low->right;
		} else {
			*link = high;
			link = &high->left;
			high = high->left;
		}
	}
	*link = low ? low : high;
	map->count--;
	return node;
}

struct ts_map_node *ts_map_find(const struct ts_map *map, uint64_t key)
{
	struct ts_map_node *node = map->root;

	while (node && node->key != key)
		node = key < node->key ? node->left : node->right;
	return node;
}

struct ts_map_node *ts_map_floor(const struct ts_map *map, uint64_t key)
{
	struct ts_map_node *node = map->root, *best = NULL;

	while (node) {
		if (node->key <= key) {
			best = node;
			node = node->right;
		} else {
			node = node->left;
		}
	}
	return best;
}

struct ts_map_node *ts_map_ceiling(const struct ts_map *map, uint64_t key)
{
	struct ts_map_node *node = map->root, *best = NULL;

	while (node) {
		if (node->key >= key) {
			best = node;
			node = node->left;
		} else {
			node = node->right;
		}
	}
	return best;
}
