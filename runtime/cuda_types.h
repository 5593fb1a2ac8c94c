/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * cuda.h, cudaTypedefs.h, and the types of those replaced functions that are
 * hooked: the headers show them only to a driver's own build, in a mode that
 * hides what programs see.
 */
#ifndef TS_CUDA_TYPES_H
#define TS_CUDA_TYPES_H

#include <cuda.h>
#include <cudaTypedefs.h>

typedef unsigned int CUdeviceptr_v1;

typedef CUresult (*PFN_cuMemAlloc_v2000)(
        CUdeviceptr_v1 *address, unsigned int bytes);
typedef CUresult (*PFN_cuMemAllocPitch_v2000)(CUdeviceptr_v1 *address,
        unsigned int *pitch, unsigned int width, unsigned int height,
        unsigned int element_bytes);
typedef CUresult (*PFN_cuMemFree_v2000)(CUdeviceptr_v1 address);
typedef CUresult (*PFN_cuCtxCreate_v2000)(
        CUcontext *context, unsigned int flags, CUdevice device);
typedef CUresult (*PFN_cuCtxDestroy_v2000)(CUcontext context);
typedef CUresult (*PFN_cuDevicePrimaryCtxRelease_v7000)(CUdevice device);
typedef CUresult (*PFN_cuDevicePrimaryCtxReset_v7000)(CUdevice device);
typedef CUresult (*PFN_cuTexRefSetAddress2D_v3020)(CUtexref reference,
        const CUDA_ARRAY_DESCRIPTOR_v2 *desc, CUdeviceptr address,
        size_t pitch);
typedef CUresult (*PFN_cuStreamDestroy_v2000)(CUstream stream);
typedef CUresult (*PFN_cuStreamBeginCapture_v10000)(CUstream stream);
typedef CUresult (*PFN_cuStreamBeginCapture_v10000_ptsz)(CUstream stream);
typedef CUresult (*PFN_cuGraphInstantiate_v10000)(CUgraphExec *instance,
        CUgraph graph, CUgraphNode *bad, char *log, size_t log_bytes);
typedef CUresult (*PFN_cuGraphInstantiate_v11000)(CUgraphExec *instance,
        CUgraph graph, CUgraphNode *bad, char *log, size_t log_bytes);

#endif
