/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The simulated GPU's CUDA runtime (libcudart.so.13): what its files share.
 *
 * It stands on the public driver API only, reached by dlopen and
 * cuGetProcAddress_v2, so that an interposed driver sees the traffic a program
 * makes with the vendor's runtime. Handles (streams, events, graphs, kernels,
 * libraries, pools) are the driver's own handles.
 *
 * Files that take a stream are compiled twice: as they are, and with
 * CUDA_API_PER_THREAD_DEFAULT_STREAM, whereupon the public header renames
 * their functions to the _ptsz and _ptds variants and drv() answers with the
 * per-thread table.
 *
 * Callable from any thread. State per thread: struct rt_thread. State of the
 * process: the driver tables (written once), the primary contexts
 * (context.c) and the registry of kernels and variables (registry.c), each
 * under the lock its file names.
 */
#ifndef SIMGPU_RT_H
#define SIMGPU_RT_H

#include <cuda.h>
#include <cudaProfiler.h>
#include <cudaProfilerTypedefs.h>
#include <cudaTypedefs.h>
#include <cuda_runtime_api.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* ---------------------------------------------------------- driver (table) */

struct rt_driver {
#define RT_DRV(name, version, pt_version) PFN_cu##name##_v##version name;
#include "driver.def"
#undef RT_DRV
};
/* [0]: legacy default stream, [1]: per-thread default stream. */
extern struct rt_driver rt_drivers[2];
extern PFN_cuGetProcAddress_v12000 rt_get_proc_address;

/* The table for the default stream this file is compiled for. */
static inline const struct rt_driver *drv(void)
{
#ifdef CUDA_API_PER_THREAD_DEFAULT_STREAM
	return &rt_drivers[1];
#else
	return &rt_drivers[0];
#endif
}

/* Loads the driver and calls cuInit, once in the process; the same answer to
 * every caller. Sets no last error. */
cudaError_t rt_driver_init(void);

/* ------------------------------------------------------------------ errors */

/* The runtime's code for the driver's result. */
cudaError_t rt_error_from(CUresult res);
/* Records err (unless success) as the calling thread's last error; returns
 * it. */
cudaError_t rt_fail(cudaError_t err);
/* The end of an API function: maps, records and returns the driver's result. */
cudaError_t rt_done(CUresult res);
/* Says once on stderr that a function is missing; cudaErrorNotSupported. Each
 * caller owns one flag. */
cudaError_t rt_missing(const char *name, bool *said);

/* ---------------------------------------------------------------- contexts */

/* The beginning of API functions. Both record the error they return.
 * rt_enter_driver: the driver is there. rt_enter: moreover a context is
 * current, the primary one of the thread's device if the program made none. */
cudaError_t rt_enter_driver(void);
cudaError_t rt_enter(void);
/* rt_enter that tells the context. */
cudaError_t rt_enter_context(CUcontext *ret_ctx);
/* The primary context of a device, retained on first use. */
cudaError_t rt_primary(int device, CUcontext *ret_ctx);
/* The calling thread's device: that of its current context, else the one last
 * set. */
cudaError_t rt_current_device(int *ret_device);

/* ---------------------------------------------------------------- registry */

/*
 * A function as the API is given it: the host stub's address, or a handle the
 * runtime gave out (cudaKernel_t, cudaFunction_t). Loads the fat binary that
 * holds it on first use. cudaErrorInvalidDeviceFunction if it is none.
 */
cudaError_t rt_kernel(const void *func, CUkernel *ret_kernel);
/* The same, made usable in ctx, which must be current. */
cudaError_t rt_function(
        const void *func, CUcontext ctx, CUfunction *ret_function);
/* Device address and size of a registered variable, given its host address. */
cudaError_t rt_symbol(
        const void *symbol, CUdeviceptr *ret_ptr, size_t *ret_bytes);
/* Remembers a handle given to the program, so that it is known as a function
 * afterwards. */
cudaError_t rt_kernel_known(CUkernel kernel);
cudaError_t rt_function_known(CUfunction function);
/* Forgets a kernel whose library is unloaded. */
void rt_kernel_forget(CUkernel kernel);
/* Drops the functions cached for contexts: one is going away. */
void rt_functions_forget(void);

/* ---------------------------------------------------------------- pointers */

static inline CUdeviceptr rt_dev(const void *ptr)
{
	return (CUdeviceptr)(uintptr_t)ptr;
}

/* The driver's form of a launch configuration; attributes are shared. */
CUlaunchConfig rt_launch_config(const cudaLaunchConfig_t *config);
/* The driver's form of a 3D copy; pitched pointers and arrays. */
cudaError_t rt_copy3d(
        const struct cudaMemcpy3DParms *parms, CUDA_MEMCPY3D *ret_copy);

#endif
