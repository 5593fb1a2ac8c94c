/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Two devices of different compute capability by turns, under a limit: one fat
 * binary has a kernel for each, of one name and with other parameters. Those
 * for the other device lack what this one uses, or are more than there are.
 */
#include <dlfcn.h>

#include "tests/preload/touch.h"

#define MIB     (1ull << 20)
#define BUFFERS 5
#define ROUNDS  4
#define KINDS   2

static const uint32_t sizes[KINDS][2] = {{8}, {8, 8}};
static const int capabilities[KINDS] = {80, 90};

struct place {
	CUcontext context;
	CUfunction kernel;
	CUdeviceptr buffers[BUFFERS];
};

static struct image_wrapper make_code(struct buffer *fatbin)
{
	*fatbin = image_fatbin();
	for (unsigned int i = 0; i < KINDS; i++) {
		struct image_kernel image = {.name = "mix",
		        .param_bytes = sizes[i],
		        .n_params = i + 1,
		        .regs = 32};
		struct buffer cubin =
		        image_cubin(capabilities[i], &image, 1, NULL, 0);

		image_fatbin_add(fatbin, IMAGE_IS_CUBIN, capabilities[i], 0,
		        cubin.data, cubin.bytes, IMAGE_PLAIN);
		buffer_free(&cubin);
	}
	return image_wrap(fatbin);
}

static void start(
        int device, const struct image_wrapper *code, struct place *ret_place)
{
	CUmodule module;

	MUST(cuDevicePrimaryCtxRetain(&ret_place->context, device));
	MUST(cuCtxSetCurrent(ret_place->context));
	MUST(cuModuleLoadFatBinary(&module, code));
	MUST(cuModuleGetFunction(&ret_place->kernel, module, "mix"));
	for (int i = 0; i < BUFFERS; i++)
		MUST(cuMemAlloc(&ret_place->buffers[i], 4 * MIB));
}

int main(void)
{
	struct place places[KINDS];
	struct image_wrapper code;
	struct buffer fatbin;
	unsigned long long number = 12345;

	MUST(cuInit(0));
	code = make_code(&fatbin);
	for (int i = 0; i < KINDS; i++)
		start(i, &code, &places[i]);
	buffer_free(&fatbin);
	for (int i = 0; i < ROUNDS * BUFFERS * KINDS; i++) {
		struct place *place = &places[i % KINDS];
		CUdeviceptr *buffer = &place->buffers[i / KINDS % BUFFERS];
		void *one[] = {buffer, NULL}, *two[] = {&number, buffer, NULL};

		MUST(cuCtxSetCurrent(place->context));
		MUST(cuLaunchKernel(place->kernel, 1, 1, 1, 32, 1, 1, 0, NULL,
		        i % KINDS ? two : one, NULL));
		MUST(cuCtxSynchronize());
	}
	printf("%s\n",
	        dlsym(RTLD_DEFAULT, "cuFuncGetParamInfo") ? "told" : "untold");
	return 0;
}
