/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What the conformance tests share. They use nothing but the driver API, found
 * at run time, so that the same programs run on a real device, on the simulated
 * one, and say so (exit status 77) where there is none. Check runs every test
 * in a process of its own, before which nobody has touched CUDA.
 */
#ifndef GPU_H
#define GPU_H

#include <cuda.h>

#include <check.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define MIB                ((size_t)1 << 20)
#define OK(call)           ck_assert_int_eq((int)(call), CUDA_SUCCESS)
#define FAILS(call, error) ck_assert_int_eq((int)(call), (int)(error))

/* Every function the tests call. cuda.h renames some of them (cuMemAlloc is
 * cuMemAlloc_v2): each name stands for whatever it is renamed to. */
#define GPU_FUNCTIONS(X)                                                       \
	X(cuCtxSetCurrent)                                                     \
	X(cuCtxSynchronize)                                                    \
	X(cuDeviceGet)                                                         \
	X(cuDeviceGetAttribute)                                                \
	X(cuDeviceGetCount)                                                    \
	X(cuDevicePrimaryCtxRetain)                                            \
	X(cuDeviceTotalMem)                                                    \
	X(cuDriverGetVersion)                                                  \
	X(cuEventCreate)                                                       \
	X(cuEventElapsedTime)                                                  \
	X(cuEventQuery)                                                        \
	X(cuEventRecord)                                                       \
	X(cuEventSynchronize)                                                  \
	X(cuFuncGetAttribute)                                                  \
	X(cuFuncGetParamInfo)                                                  \
	X(cuInit)                                                              \
	X(cuLaunchCooperativeKernel)                                           \
	X(cuLaunchKernel)                                                      \
	X(cuLaunchKernelEx)                                                    \
	X(cuMemAddressFree)                                                    \
	X(cuMemAddressReserve)                                                 \
	X(cuMemAlloc)                                                          \
	X(cuMemCreate)                                                         \
	X(cuMemFree)                                                           \
	X(cuMemFreeHost)                                                       \
	X(cuMemGetAddressRange)                                                \
	X(cuMemGetAllocationGranularity)                                       \
	X(cuMemGetInfo)                                                        \
	X(cuMemHostAlloc)                                                      \
	X(cuMemMap)                                                            \
	X(cuMemRelease)                                                        \
	X(cuMemSetAccess)                                                      \
	X(cuMemUnmap)                                                          \
	X(cuMemcpyDtoDAsync)                                                   \
	X(cuMemcpyDtoH)                                                        \
	X(cuMemcpyDtoHAsync)                                                   \
	X(cuMemcpyHtoD)                                                        \
	X(cuMemcpyHtoDAsync)                                                   \
	X(cuMemsetD32Async)                                                    \
	X(cuMemsetD8)                                                          \
	X(cuMemsetD8Async)                                                     \
	X(cuModuleGetFunction)                                                 \
	X(cuModuleLoadData)                                                    \
	X(cuModuleUnload)                                                      \
	X(cuOccupancyMaxActiveBlocksPerMultiprocessor)                         \
	X(cuPointerGetAttribute)                                               \
	X(cuStreamCreate)                                                      \
	X(cuStreamDestroy)                                                     \
	X(cuStreamQuery)                                                       \
	X(cuStreamSynchronize)                                                 \
	X(cuStreamWaitEvent)

#define GPU_MEMBER(name) __typeof__(&name) name;
struct gpu {
	GPU_FUNCTIONS(GPU_MEMBER)
};
extern struct gpu gpu;

/* Loads the driver and makes the first device's context current. */
void gpu_start(void);
/* Kernels, by name: "fill" (pointer, 32-bit value, 32-bit count) writes,
 * "mixed" (8-bit, 64-bit, 16-bit, 24-byte struct) and "nothing" do not. */
CUfunction gpu_kernel(const char *name);
CUdeviceptr gpu_alloc(size_t bytes);
void *gpu_pinned(size_t bytes);
CUstream gpu_stream(unsigned flags);
CUevent gpu_mark(CUstream stream);
/* Are all bytes of device memory that value? Waits for them. */
bool gpu_holds(CUdeviceptr p, size_t bytes, unsigned char value);
/* Runs the tests; 77 where there is no device. For main(). */
int gpu_run(TCase *tests, const char *name);

#endif
