/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Finds the driver and makes what the conformance tests work with. */
#include "gpu.h"

#include <dlfcn.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#define NO_DEVICE 77 /* Meson: skipped */

#define TEXT(x) #x
#define NAME(x) TEXT(x)

struct gpu gpu;

static const char ptx[] =
        ".version 7.0\n"
        ".target sm_75\n"
        ".address_size 64\n"
        ".visible .entry fill(.param .u64 p, .param .u32 v, .param .u32 n)\n"
        "{\n"
        "	.reg .pred %q;\n"
        "	.reg .b32 %r<7>;\n"
        "	.reg .b64 %d<4>;\n"
        "	ld.param.u64 %d1, [p];\n"
        "	ld.param.u32 %r1, [v];\n"
        "	ld.param.u32 %r2, [n];\n"
        "	mov.u32 %r3, %ctaid.x;\n"
        "	mov.u32 %r4, %ntid.x;\n"
        "	mov.u32 %r5, %tid.x;\n"
        "	mad.lo.s32 %r6, %r3, %r4, %r5;\n"
        "	setp.ge.u32 %q, %r6, %r2;\n"
        "	@%q bra done;\n"
        "	cvta.to.global.u64 %d2, %d1;\n"
        "	mad.wide.u32 %d3, %r6, 4, %d2;\n"
        "	st.global.u32 [%d3], %r1;\n"
        "done:\n"
        "	ret;\n"
        "}\n"
        ".visible .entry mixed(.param .u8 a, .param .u64 b, .param .u16 c,\n"
        "	.param .align 8 .b8 d[24])\n"
        "{\n"
        "	ret;\n"
        "}\n"
        ".visible .entry nothing()\n"
        "{\n"
        "	ret;\n"
        "}\n";

static bool load(void)
{
	void *driver = dlopen("libcuda.so.1", RTLD_NOW);

	if (!driver)
		return false;
#define GPU_LOAD(name)                                                         \
	*(void **)&gpu.name = dlsym(driver, NAME(name));                       \
	if (!gpu.name)                                                         \
		fprintf(stderr, "gpu: the driver has no %s\n", NAME(name));
	GPU_FUNCTIONS(GPU_LOAD)
#undef GPU_LOAD
	return gpu.cuInit && gpu.cuDeviceGetCount;
}

void gpu_start(void)
{
	CUcontext ctx;
	CUdevice device;

	ck_assert(load());
	OK(gpu.cuInit(0));
	OK(gpu.cuDeviceGet(&device, 0));
	OK(gpu.cuDevicePrimaryCtxRetain(&ctx, device));
	OK(gpu.cuCtxSetCurrent(ctx));
}

CUfunction gpu_kernel(const char *name)
{
	static CUmodule module;
	CUfunction kernel;

	if (!module)
		OK(gpu.cuModuleLoadData(&module, ptx));
	OK(gpu.cuModuleGetFunction(&kernel, module, name));
	return kernel;
}

CUdeviceptr gpu_alloc(size_t bytes)
{
	CUdeviceptr p;

	OK(gpu.cuMemAlloc(&p, bytes));
	return p;
}

void *gpu_pinned(size_t bytes)
{
	void *p;

	OK(gpu.cuMemHostAlloc(&p, bytes, 0));
	return p;
}

CUstream gpu_stream(unsigned flags)
{
	CUstream stream;

	OK(gpu.cuStreamCreate(&stream, flags));
	return stream;
}

CUevent gpu_mark(CUstream stream)
{
	CUevent event;

	OK(gpu.cuEventCreate(&event, CU_EVENT_DEFAULT));
	OK(gpu.cuEventRecord(event, stream));
	return event;
}

bool gpu_holds(CUdeviceptr p, size_t bytes, unsigned char value)
{
	unsigned char *host = malloc(bytes);
	size_t same = 0;

	ck_assert_ptr_nonnull(host);
	memset(host, value + 1, bytes);
	OK(gpu.cuCtxSynchronize());
	OK(gpu.cuMemcpyDtoH(host, p, bytes));
	while (same < bytes && host[same] == value)
		same++;
	free(host);
	return same == bytes;
}

/* In a process of its own, so that the tests start without CUDA. */
static bool device_exists(void)
{
	int status, count = 0;
	pid_t pid = fork();

	if (pid == 0)
		_exit(load() && !gpu.cuInit(0) &&
		                        !gpu.cuDeviceGetCount(&count) &&
		                        count > 0
		                ? 0
		                : NO_DEVICE);
	return pid > 0 && waitpid(pid, &status, 0) == pid && status == 0;
}

int gpu_run(TCase *tests, const char *name)
{
	Suite *suite = suite_create(name);
	SRunner *runner = srunner_create(suite);
	int status = NO_DEVICE;

	tcase_set_timeout(tests, 120);
	suite_add_tcase(suite, tests); /* frees the tests with the runner */
	if (device_exists()) {
		srunner_run_all(runner, CK_NORMAL);
		status = srunner_ntests_failed(runner) ? EXIT_FAILURE
		                                       : EXIT_SUCCESS;
	} else {
		printf("%s: no device\n", name);
	}
	srunner_free(runner);
	return status;
}
