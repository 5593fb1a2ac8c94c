/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * An allocator as programs bring their own into PyTorch: cudaMalloc and
 * cudaFree each time. Counts its calls; any thread.
 */
#include <dlfcn.h>
#include <stdatomic.h>
#include <stddef.h>

#define EXPORT __attribute__((visibility("default")))

EXPORT void *wild_malloc(ptrdiff_t bytes, int device, void *stream);
EXPORT void wild_free(void *address, ptrdiff_t bytes, int device, void *stream);
EXPORT int wild_calls(void);

static atomic_int calls;

static void *cudart(const char *symbol)
{
	void *library = dlopen("libcudart.so.13", RTLD_NOW);

	return library ? dlsym(library, symbol) : NULL;
}

void *wild_malloc(ptrdiff_t bytes, int device, void *stream)
{
	int (*allocate)(void **address, size_t bytes) =
	        (int (*)(void **, size_t))cudart("cudaMalloc");
	void *address = NULL;

	(void)device;
	(void)stream;
	atomic_fetch_add(&calls, 1);
	if (!allocate || allocate(&address, (size_t)bytes))
		return NULL;
	return address;
}

void wild_free(void *address, ptrdiff_t bytes, int device, void *stream)
{
	int (*release)(void *address) = (int (*)(void *))cudart("cudaFree");

	(void)bytes;
	(void)device;
	(void)stream;
	if (release)
		release(address);
}

int wild_calls(void)
{
	return atomic_load(&calls);
}
