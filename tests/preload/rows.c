/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * For each row: two buffers are filled and pushed out, the function is called,
 * and the outcome must be as if they had never been away. Prints how many
 * rows of the group ran; a row that failed is named, and ends it with 1.
 */
#include "rows.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/simgpu/clients/code_images.h"

#define SPARES 4
/* Unlike the buffers, so that their memory is not just lent out but unmapped.
 */
#define SPARE_BYTES (2 * BUFFER_BYTES)

CUdeviceptr a, b;
unsigned char *in_a, *in_b, *host;
CUcontext context;
CUfunction kernel;

static CUdeviceptr spares[SPARES];
static void *library;
static bool disagreed;

void disagree(void)
{
	disagreed = true;
}

void *driver_symbol(const char *symbol)
{
	void *function = dlsym(library, symbol);

	if (!function) {
		printf("no %s\n", symbol);
		exit(1);
	}
	return function;
}

static void must(CUresult result, const char *what)
{
	if (result == CUDA_SUCCESS)
		return;
	printf("%s: %d\n", what, (int)result);
	exit(1);
}

static void start(void)
{
	static const uint32_t params[] = {8, 8};
	struct image_kernel image = {.name = "unheard_of",
	        .param_bytes = params,
	        .n_params = 2,
	        .regs = 32};
	struct buffer cubin = image_cubin(80, &image, 1, NULL, 0);
	CUmodule module;

	library = dlopen("libcuda.so.1", RTLD_NOW);
	if (!library)
		exit(2);
	must(DRIVER(cuInit)(0), "init");
	must(DRIVER(cuDevicePrimaryCtxRetain)(&context, 0), "context");
	must(DRIVER(cuCtxSetCurrent)(context), "context");
	must(DRIVER(cuModuleLoadData)(&module, cubin.data), "module");
	must(DRIVER(cuModuleGetFunction)(&kernel, module, "unheard_of"),
	        "kernel");
	buffer_free(&cubin);
	for (int i = 0; i < SPARES; i++)
		must(DRIVER(cuMemAlloc)(&spares[i], SPARE_BYTES), "spares");
	in_a = malloc(BUFFER_BYTES);
	in_b = malloc(BUFFER_BYTES);
	host = malloc(BUFFER_BYTES);
	if (!in_a || !in_b || !host)
		exit(2);
}

/* Asked of the driver itself: this function is not hooked. */
static bool is_resident(CUdeviceptr buffer)
{
	CUmemLocation device = {.type = CU_MEM_LOCATION_TYPE_DEVICE};

	for (size_t at = 0; at < BUFFER_BYTES; at += 2 * MIB) {
		unsigned long long flags = 0;

		if (DRIVER(cuMemGetAccess)(&flags, &device, buffer + at) !=
		                CUDA_SUCCESS ||
		        flags != CU_MEM_ACCESS_FLAGS_PROT_READWRITE)
			return false;
	}
	return true;
}

/*
 * Uses all that the limit leaves for something else. No two of these ops are
 * equal: in a step that repeats itself what was used last might go first.
 */
static void push_out(void)
{
	static size_t less;

	for (int i = 0; i < SPARES; i++)
		must(DRIVER(cuMemsetD8)(spares[i], 1, SPARE_BYTES - ++less),
		        "spares");
}

static void fill(unsigned int seed)
{
	for (size_t i = 0; i < BUFFER_BYTES; i++) {
		in_a[i] = (unsigned char)(i * 7 + i / 4096 + seed);
		in_b[i] = (unsigned char)(i * 13 + i / 8192 + seed + 1);
		host[i] = (unsigned char)(i * 29 + i / 1024 + seed + 2);
	}
	must(DRIVER(cuMemAlloc)(&a, BUFFER_BYTES), "buffer");
	must(DRIVER(cuMemAlloc)(&b, BUFFER_BYTES), "buffer");
	must(DRIVER(cuMemcpyHtoD)(a, in_a, BUFFER_BYTES), "fill");
	must(DRIVER(cuMemcpyHtoD)(b, in_b, BUFFER_BYTES), "fill");
}

static bool holds(CUdeviceptr buffer, const unsigned char *content)
{
	must(DRIVER(cuMemcpyDtoH)(host, buffer, BUFFER_BYTES), "read");
	return !memcmp(host, content, BUFFER_BYTES);
}

static const char *content_row(void)
{
	must(DRIVER(cuCtxSynchronize)(), "after the call");
	if (disagreed)
		return "the host got other bytes";
	if (!holds(a, in_a) || !holds(b, in_b))
		return "the device got other bytes";
	return NULL;
}

static const char *launch_row(void)
{
	must(DRIVER(cuCtxSynchronize)(), "after the call");
	return is_resident(a) && is_resident(b) ? NULL : "not resident";
}

/* What was pinned stays when something else needs the memory. */
static const char *pin_row(void)
{
	push_out();
	return is_resident(a) ? NULL : "not pinned";
}

static bool run_row(
        const struct row *row, unsigned int seed, const char *(*check)(void))
{
	const char *problem = NULL;
	CUresult result;

	fill(seed);
	push_out();
	if (is_resident(a) || is_resident(b))
		problem = "still there before the call";
	result = row->act(driver_symbol(row->symbol));
	if (!problem && result != CUDA_SUCCESS)
		problem = "refused";
	if (!problem)
		problem = check();
	if (problem)
		printf("%s: %s (%d)\n", row->symbol, problem, (int)result);
	must(DRIVER(cuMemFree)(a), "free");
	must(DRIVER(cuMemFree)(b), "free");
	disagreed = false;
	return !problem;
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		const struct row *rows;
		const char *(*check)(void);
	} groups[] = {
	        {"linear", linear_rows, content_row},
	        {"pitched", pitched_rows, content_row},
	        {"sets", set_rows, content_row},
	        {"launches", launch_rows, launch_row},
	        {"pins", pin_rows, pin_row},
	};
	unsigned int failed = 0, ran = 0;

	start();
	for (size_t i = 0; i < sizeof(groups) / sizeof(groups[0]); i++) {
		if (argc != 2 || strcmp(argv[1], groups[i].name))
			continue;
		for (const struct row *row = groups[i].rows; row->symbol; row++)
			failed += !run_row(row, ran++, groups[i].check);
	}
	printf("%u rows\n", ran);
	return failed || !ran;
}
