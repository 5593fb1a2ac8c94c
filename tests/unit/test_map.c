/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "agent/base/map.h"
#include "tests/unit/suite.h"

#define KEYS 512

static struct ts_map map;
static struct ts_map_node nodes[KEYS];
static bool there[KEYS];

static uint64_t key_or(const struct ts_map_node *node, uint64_t none)
{
	return node ? node->key : none;
}

START_TEST(look_ups_agree_with_an_array)
{
	uint64_t state = 7, none = UINT64_MAX;

	ts_map_init(&map);
	for (int i = 0; i < 20000; i++) {
		uint64_t key, floor = none, ceiling = none;

		state = state * 6364136223846793005ull + 1442695040888963407ull;
		key = (state >> 40) % KEYS;
		if (there[key]) {
			ck_assert_ptr_eq(ts_map_remove(&map, key), &nodes[key]);
		} else {
			ck_assert_int_eq(
			        ts_map_insert(&map, &nodes[key], key), 0);
			ck_assert_int_eq(
			        ts_map_insert(&map, &nodes[key], key), -EEXIST);
		}
		there[key] = !there[key];
		key = (state >> 20) % KEYS;
		for (uint64_t k = 0; k < KEYS; k++) {
			if (there[k] && k <= key)
				floor = k;
			if (there[k] && k >= key && ceiling == none)
				ceiling = k;
		}
		ck_assert_uint_eq(key_or(ts_map_floor(&map, key), none), floor);
		ck_assert_uint_eq(
		        key_or(ts_map_ceiling(&map, key), none), ceiling);
		ck_assert_uint_eq(key_or(ts_map_find(&map, key), none),
		        there[key] ? key : none);
	}
}
END_TEST

static int depth(const struct ts_map_node *node)
{
	int left, right;

	if (!node)
		return 0;
	left = depth(node->left);
	right = depth(node->right);
	return 1 + (left > right ? left : right);
}

START_TEST(rising_keys_leave_it_shallow)
{
	ts_map_init(&map);
	for (uint64_t key = 0; key < KEYS; key++)
		ck_assert_int_eq(ts_map_insert(&map, &nodes[key], key), 0);
	ck_assert_uint_eq(map.count, KEYS);
	ck_assert_int_lt(depth(map.root), 40);
}
END_TEST

static void add_tests(TCase *tests)
{
	tcase_add_test(tests, look_ups_agree_with_an_array);
	tcase_add_test(tests, rising_keys_leave_it_shallow);
}

int main(void)
{
	return run_suite("map", add_tests);
}
