/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What the code nvcc generates calls, from static constructors and kernel
 * stubs. The public headers declare these for compiled CUDA code only.
 */
#ifndef SIMGPU_RT_REGISTRY_H
#define SIMGPU_RT_REGISTRY_H

#include <cuda_runtime_api.h>

#include <stddef.h>

void **CUDARTAPI __cudaRegisterFatBinary(void *fat_cubin);
void CUDARTAPI __cudaRegisterFatBinaryEnd(void **handle);
void CUDARTAPI __cudaUnregisterFatBinary(void **handle);
void CUDARTAPI __cudaRegisterFunction(void **handle, const char *host_fun,
        char *device_fun, const char *device_name, int thread_limit, uint3 *tid,
        uint3 *bid, dim3 *block, dim3 *grid, int *warp_size);
void CUDARTAPI __cudaRegisterVar(void **handle, char *host_var,
        char *device_address, const char *device_name, int ext, size_t size,
        int constant, int global);
void CUDARTAPI __cudaRegisterManagedVar(void **handle, void **host_var,
        char *device_address, const char *device_name, int ext, size_t size,
        int constant, int global);
char CUDARTAPI __cudaInitModule(void **handle);

unsigned CUDARTAPI __cudaPushCallConfiguration(
        dim3 grid, dim3 block, size_t shared_bytes, struct CUstream_st *stream);
cudaError_t CUDARTAPI __cudaPopCallConfiguration(
        dim3 *grid, dim3 *block, size_t *shared_bytes, void *stream);
cudaError_t CUDARTAPI __cudaGetKernel(cudaKernel_t *kernel, const void *func);
cudaError_t CUDARTAPI __cudaLaunchKernel(cudaKernel_t kernel, dim3 grid,
        dim3 block, void **args, size_t shared_bytes, cudaStream_t stream);
cudaError_t CUDARTAPI __cudaLaunchKernel_ptsz(cudaKernel_t kernel, dim3 grid,
        dim3 block, void **args, size_t shared_bytes, cudaStream_t stream);

#endif
