/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "intercept/real_dlsym.h"

#include <dlfcn.h>
#include <elf.h>
#include <link.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "intercept/dlsym.h"

struct object {
	uintptr_t base;
	const ElfW(Sym) * symbols;
	const char *strings;
	const uint32_t *gnu_hash;
	const ElfW(Half) * versions;
};

struct search {
	const char *name;
	uintptr_t within; /* 0, or only the object with this address */
	bool past_self;   /* only objects after this library */
	bool seen_self;
	void *found;
};

/* Some loaders leave the addresses in the dynamic section unrelocated. */
static const void *located(uintptr_t base, ElfW(Addr) address)
{
	return (const void *)(address < base ? base + address : address);
}

static bool read_object(const struct dl_phdr_info *info, struct object *object)
{
	const ElfW(Dyn) *dynamic = NULL;

	*object = (struct object){.base = info->dlpi_addr};
	for (int i = 0; i < info->dlpi_phnum; i++)
		if (info->dlpi_phdr[i].p_type == PT_DYNAMIC)
			dynamic = (const void *)(info->dlpi_addr +
			                         info->dlpi_phdr[i].p_vaddr);
	if (!dynamic)
		return false;
	for (; dynamic->d_tag != DT_NULL; dynamic++) {
		const void *at = located(object->base, dynamic->d_un.d_ptr);

		if (dynamic->d_tag == DT_SYMTAB)
			object->symbols = at;
		else if (dynamic->d_tag == DT_STRTAB)
			object->strings = at;
		else if (dynamic->d_tag == DT_GNU_HASH)
			object->gnu_hash = at;
		else if (dynamic->d_tag == DT_VERSYM)
			object->versions = at;
	}
	return object->symbols && object->strings && object->gnu_hash;
}

static uint32_t gnu_hash(const char *name)
{
	uint32_t hash = 5381;

	for (; *name; name++)
		hash = hash * 33 + (unsigned char)*name;
	return hash;
}

/*
 * A definition of @name in @object. Where there are several versions the
 * default one wins; glibc keeps dlsym@GLIBC_2.2.5 beside @@GLIBC_2.34.
 */
static void *find_symbol(const struct object *object, const char *name)
{
	uint32_t bucket_count = object->gnu_hash[0];
	uint32_t first = object->gnu_hash[1];
	uint32_t bloom_words = object->gnu_hash[2];
	const uint32_t *buckets =
	        object->gnu_hash + 4 +
	        bloom_words * (sizeof(ElfW(Addr)) / sizeof(uint32_t));
	const uint32_t *chain = buckets + bucket_count;
	uint32_t hash = gnu_hash(name);
	uint32_t i = bucket_count ? buckets[hash % bucket_count] : 0;
	void *hidden = NULL;

	if (i < first || !i)
		return NULL;
	for (;; i++) {
		const ElfW(Sym) *symbol = &object->symbols[i];

		if ((chain[i - first] | 1) == (hash | 1) && symbol->st_shndx &&
		        !strcmp(object->strings + symbol->st_name, name)) {
			void *at = (void *)(object->base + symbol->st_value);

			if (!object->versions ||
			        !(object->versions[i] & 0x8000))
				return at;
			hidden = at;
		}
		if (chain[i - first] & 1)
			return hidden;
	}
}

static bool contains(const struct dl_phdr_info *info, uintptr_t address)
{
	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *segment = &info->dlpi_phdr[i];
		uintptr_t start = info->dlpi_addr + segment->p_vaddr;

		if (segment->p_type == PT_LOAD && address >= start &&
		        address - start < segment->p_memsz)
			return true;
	}
	return false;
}

static int visit(struct dl_phdr_info *info, size_t size, void *data)
{
	struct search *search = data;
	struct object object;

	(void)size;
	if (contains(info, (uintptr_t)ts_real_dlsym)) {
		search->seen_self = true;
		return 0;
	}
	if (search->past_self && !search->seen_self)
		return 0;
	if (search->within && !contains(info, search->within))
		return 0;
	/* The vDSO has no GNU hash in older kernels and no dlsym in any. */
	if (read_object(info, &object))
		search->found = find_symbol(&object, search->name);
	return search->found != NULL;
}

static void *next_definition(const char *name)
{
	struct search search = {.name = name, .past_self = true};

	dl_iterate_phdr(visit, &search);
	return search.found;
}

/* Found once; two threads that race find the same. */
void *ts_next_dlsym(void)
{
	static _Atomic(void *) found;
	void *function = atomic_load_explicit(&found, memory_order_relaxed);

	if (!function) {
		function = next_definition("dlsym");
		atomic_store_explicit(&found, function, memory_order_relaxed);
	}
	return function;
}

void *ts_next_dlvsym(void)
{
	static _Atomic(void *) found;
	void *function = atomic_load_explicit(&found, memory_order_relaxed);

	if (!function) {
		function = next_definition("dlvsym");
		atomic_store_explicit(&found, function, memory_order_relaxed);
	}
	return function;
}

struct order {
	uintptr_t caller;
	bool caller_seen;
};

static int visit_in_order(struct dl_phdr_info *info, size_t size, void *data)
{
	struct order *order = data;

	(void)size;
	if (contains(info, (uintptr_t)ts_real_dlsym))
		return 1;
	order->caller_seen |= contains(info, order->caller);
	return 0;
}

bool ts_comes_before(const void *caller)
{
	struct order order = {.caller = (uintptr_t)caller};

	dl_iterate_phdr(visit_in_order, &order);
	return order.caller_seen;
}

bool ts_defined_elsewhere(const char *name)
{
	struct search search = {.name = name};

	dl_iterate_phdr(visit, &search);
	return search.found != NULL;
}

/* What the caller's own dependencies define, which may be loaded locally. */
static void *in_scope_of(const void *caller, const char *name)
{
	void *library, *found = NULL;
	Dl_info from, in;

	if (!dladdr(caller, &from) || !from.dli_fname)
		return NULL;
	library = dlopen(from.dli_fname, RTLD_LAZY | RTLD_NOLOAD);
	if (!library)
		return NULL;
	found = ts_real_dlsym(library, name);
	dlclose(library);
	/* For the program itself the search begins in the global scope. */
	if (found && dladdr(found, &in) && dladdr((void *)visit, &from) &&
	        in.dli_fbase == from.dli_fbase)
		return NULL;
	return found;
}

void *ts_next_for(const void *caller, const char *name)
{
	struct search own = {.name = name, .within = (uintptr_t)caller};
	void *found;

	dl_iterate_phdr(visit, &own);
	if (own.found)
		return own.found;
	found = in_scope_of(caller, name);
	return found ? found : next_definition(name);
}

void *ts_real_dlsym(void *handle, const char *name)
{
	void *(*real)(void *, const char *) =
	        (void *(*)(void *, const char *))ts_next_dlsym();

	return real ? real(handle, name) : NULL;
}
