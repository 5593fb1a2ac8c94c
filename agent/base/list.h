/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Circular doubly linked list, links inside the items. Not locked. */
#ifndef TS_LIST_H
#define TS_LIST_H

#include <stdbool.h>
#include <stddef.h>

struct ts_list {
	struct ts_list *prev, *next;
};

#define ts_container_of(pointer, type, member)                                 \
	((type *)(void *)((char *)(pointer)-offsetof(type, member)))

static inline void ts_list_init(struct ts_list *list)
{
	list->prev = list;
	list->next = list;
}

static inline bool ts_list_empty(const struct ts_list *list)
{
	return list->next == list;
}

static inline void ts_list_append(struct ts_list *list, struct ts_list *item)
{
	item->prev = list->prev;
	item->next = list;
	list->prev->next = item;
	list->prev = item;
}

/* Takes @item out of its list; harmless for an item that is in none. */
static inline void ts_list_remove(struct ts_list *item)
{
	item->prev->next = item->next;
	item->next->prev = item->prev;
	ts_list_init(item);
}

#endif
