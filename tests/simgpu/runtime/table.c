/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Open addressing with linear probing; removed slots keep their key and a
 * NULL value until the next growth. */
#include "table.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>

struct rt_slot {
	const void *key;
	void *value;
};

static size_t start(const struct rt_table *table, const void *key)
{
	uint64_t h = (uint64_t)(uintptr_t)key * 0x9e3779b97f4a7c15u;

	return (size_t)(h >> 20) & (table->size - 1);
}

static struct rt_slot *probe(const struct rt_table *table, const void *key)
{
	size_t i = start(table, key);

	while (table->slots[i].key && table->slots[i].key != key)
		i = (i + 1) & (table->size - 1);
	return &table->slots[i];
}

void *rt_table_get(const struct rt_table *table, const void *key)
{
	return table->size ? probe(table, key)->value : NULL;
}

static int grow(struct rt_table *table)
{
	struct rt_table next = {.size = table->size ? table->size * 2 : 1024};

	next.slots = calloc(next.size, sizeof(*next.slots));
	if (!next.slots)
		return -ENOMEM;
	for (size_t i = 0; i < table->size; i++) {
		if (!table->slots[i].value)
			continue;
		*probe(&next, table->slots[i].key) = table->slots[i];
		next.used++;
	}
	free(table->slots);
	*table = next;
	return 0;
}

int rt_table_put(struct rt_table *table, const void *key, void *value)
{
	struct rt_slot *slot;

	if (table->used * 2 >= table->size) {
		int err = grow(table);

		if (err)
			return err;
	}
	slot = probe(table, key);
	if (!slot->key)
		table->used++;
	slot->key = key;
	slot->value = value;
	return 0;
}

void rt_table_remove(struct rt_table *table, const void *key)
{
	struct rt_slot *slot = table->size ? probe(table, key) : NULL;

	if (slot && slot->key)
		slot->value = NULL;
}

void rt_table_clear(struct rt_table *table, void (*drop)(void *value))
{
	for (size_t i = 0; drop && i < table->size; i++)
		if (table->slots[i].value)
			drop(table->slots[i].value);
	free(table->slots);
	*table = (struct rt_table){0};
}
