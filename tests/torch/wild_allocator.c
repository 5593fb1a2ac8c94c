/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * An allocator as programs bring their own into PyTorch: cudaMalloc and
 * cudaFree each time. Counts its calls; any thread. PyTorch has no tracker for
 * such allocators: the simulated GPU, where it runs, hears of the blocks here.
 */
#include <dlfcn.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

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

static void report(int device, void *address, int64_t bytes)
{
	void *driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
	void (*block)(int device, uint64_t address, int64_t bytes) = NULL;

	if (!driver)
		return;
	block = (void (*)(int, uint64_t, int64_t))dlsym(driver, "simgpu_block");
	if (block)
		block(device, (uint64_t)(uintptr_t)address, bytes);
	dlclose(driver);
}

void *wild_malloc(ptrdiff_t bytes, int device, void *stream)
{
	int (*allocate)(void **address, size_t bytes) =
	        (int (*)(void **, size_t))cudart("cudaMalloc");
	void *address = NULL;

	(void)stream;
	atomic_fetch_add(&calls, 1);
	if (!allocate || allocate(&address, (size_t)bytes))
		return NULL;
	report(device, address, bytes);
	return address;
}

void wild_free(void *address, ptrdiff_t bytes, int device, void *stream)
{
	int (*release)(void *address) = (int (*)(void *))cudart("cudaFree");

	(void)stream;
	report(device, address, -bytes);
	if (release)
		release(address);
}

int wild_calls(void)
{
	return atomic_load(&calls);
}
