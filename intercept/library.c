/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "intercept/library.h"

#include <dlfcn.h>
#include <stdatomic.h>
#include <string.h>

#include "intercept/real_dlsym.h"

/* Of any type: only the address counts here. */
#define TS_LIBRARY(symbol) extern char ts_hook_##symbol[] __asm__(#symbol);
#include "intercept/library.def"

static const struct {
	const char *symbol;
	void *wrapper;
} rows[] = {
#define TS_LIBRARY(symbol) {#symbol, ts_hook_##symbol},
#include "intercept/library.def"
};

static _Atomic(void *) known[TS_LIBRARY_COUNT];

enum ts_library_id ts_library_find(const char *symbol)
{
	int id = 0;

	while (id < TS_LIBRARY_COUNT && strcmp(rows[id].symbol, symbol))
		id++;
	return (enum ts_library_id)id;
}

void *ts_library_wrapper(enum ts_library_id id, void *function)
{
	void *none = NULL;

	if (function == rows[id].wrapper)
		return function;
	if (atomic_compare_exchange_strong(&known[id], &none, function) ||
	        none == function)
		return rows[id].wrapper;
	return function;
}

/* Two threads that race find the same. */
void *ts_library_real(enum ts_library_id id, const void *caller)
{
	void *found = atomic_load_explicit(&known[id], memory_order_relaxed);

	if (found)
		return found;
	found = ts_next_for(caller, rows[id].symbol);
	atomic_store_explicit(&known[id], found, memory_order_relaxed);
	return found;
}

static bool is_in(const void *caller, const char *library)
{
	const char *name;
	Dl_info in;

	if (!dladdr(caller, &in) || !in.dli_fname)
		return false;
	name = strrchr(in.dli_fname, '/');
	name = name ? name + 1 : in.dli_fname;
	return !strncmp(name, library, strlen(library));
}

bool ts_library_is_nccl(const void *caller)
{
	return is_in(caller, "libnccl");
}

bool ts_library_is_allocator(const void *caller)
{
	return is_in(caller, "libc10_cuda");
}
