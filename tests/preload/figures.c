/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Prints what CUDA and NVML say of the memory of each device of the machine,
 * as JSON, before the first CUDA call and after each step of the program. Its
 * first argument says how NVML is found: "linked" or "loaded".
 */
#include <cuda.h>
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/preload/must.h"
#include "tests/simgpu/nvml/nvml.h"

#define VERSION_2 (sizeof(nvmlMemory_v2_t) | 2u << 24)

static __typeof__(&nvmlDeviceGetMemoryInfo) memory_info;
static __typeof__(&nvmlDeviceGetMemoryInfo_v2) memory_info_v2;

static void find(const char *way)
{
	void *library;

	memory_info = nvmlDeviceGetMemoryInfo;
	memory_info_v2 = nvmlDeviceGetMemoryInfo_v2;
	if (strcmp(way, "loaded"))
		return;
	library = dlopen("libnvidia-ml.so.1", RTLD_NOW);
	must(!library, "dlopen");
	*(void **)&memory_info = dlsym(library, "nvmlDeviceGetMemoryInfo");
	*(void **)&memory_info_v2 =
	        dlsym(library, "nvmlDeviceGetMemoryInfo_v2");
}

static void print_nvml(const char *when)
{
	unsigned int count, processes = 1;

	MUST(nvmlDeviceGetCount_v2(&count));
	printf("{\"when\": \"%s\", \"nvml\": [", when);
	for (unsigned int i = 0; i < count; i++) {
		nvmlMemory_v2_t second = {.version = VERSION_2};
		nvmlProcessInfo_v1_t process = {0};
		nvmlDevice_t device;
		nvmlMemory_t first;

		MUST(nvmlDeviceGetHandleByIndex_v2(i, &device));
		MUST(memory_info(device, &first));
		MUST(memory_info_v2(device, &second));
		MUST(nvmlDeviceGetComputeRunningProcesses(
		        device, &processes, &process));
		printf("%s{\"first\": [%llu, %llu, %llu], "
		       "\"second\": [%llu, %llu, %llu], \"process\": %llu}",
		        i ? ", " : "", first.total, first.free, first.used,
		        second.total, second.free,
		        second.used + second.reserved,
		        processes ? process.usedGpuMemory : 0);
		processes = 1;
	}
	printf("]");
}

static void print_all(const char *when)
{
	size_t free_bytes, total_bytes, device_bytes;

	print_nvml(when);
	MUST(cuDeviceTotalMem(&device_bytes, 0));
	MUST(cuMemGetInfo(&free_bytes, &total_bytes));
	printf(", \"device\": %zu, \"free\": %zu, \"total\": %zu}\n",
	        device_bytes, free_bytes, total_bytes);
}

int main(int argc, char **argv)
{
	CUdeviceptr kept, freed;
	CUcontext context;

	must(argc != 2, "arguments");
	find(argv[1]);
	MUST(nvmlInit_v2());
	print_nvml("before");
	printf("}\n");
	MUST(cuInit(0));
	print_nvml("initialised");
	printf("}\n");
	MUST(cuDevicePrimaryCtxRetain(&context, 0));
	MUST(cuCtxSetCurrent(context));
	print_all("context");
	MUST(cuMemAlloc(&kept, 64u << 20));
	MUST(cuMemsetD8(kept, 1, 64u << 20));
	MUST(cuMemAlloc(&freed, 32u << 20));
	MUST(cuMemsetD8(freed, 1, 32u << 20));
	print_all("two blocks");
	MUST(cuMemFree(freed));
	print_all("one block");
	MUST(nvmlShutdown());
	return 0;
}
