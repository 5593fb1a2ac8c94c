/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A hash table from non-null pointers to pointers. Not thread-safe: the owner
 * guards it.
 */
#ifndef SIMGPU_RT_TABLE_H
#define SIMGPU_RT_TABLE_H

#include <stddef.h>

struct rt_table {
	struct rt_slot *slots;
	size_t size, used; /* used counts removed slots too */
};

/* The value of key, or NULL. */
void *rt_table_get(const struct rt_table *table, const void *key);
/* Adds or replaces. 0, or -ENOMEM with the table as it was. */
int rt_table_put(struct rt_table *table, const void *key, void *value);
void rt_table_remove(struct rt_table *table, const void *key);
/* Gives every value to drop (unless NULL) and frees the slots; the table is
 * empty and may be used again. */
void rt_table_clear(struct rt_table *table, void (*drop)(void *value));

#endif
