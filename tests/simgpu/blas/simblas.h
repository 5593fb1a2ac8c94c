/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What the two cuBLAS libraries of the simulated GPU share: the handle, the
 * table of driver functions, kernel launches and the way from a GEMM call to
 * its launches. Compiled once into a static library that both link.
 *
 * A handle is used by one thread at a time, as cuBLAS asks of its callers; it
 * has no lock. The driver table is filled once. Modules are guarded by a lock
 * in launch.c that is never held across a driver call.
 *
 * Functions return 0 or a negative errno; sg_blas_status() makes a
 * cublasStatus_t of it at the edge: -EINVAL INVALID_VALUE, -ENOTSUP
 * NOT_SUPPORTED, -ENOMEM ALLOC_FAILED, -ENODEV NOT_INITIALIZED, else
 * EXECUTION_FAILED.
 */
#ifndef SG_SIMBLAS_H
#define SG_SIMBLAS_H

#include <cublas_v2.h>
#include <cuda.h>
#include <stddef.h>
#include <stdint.h>

#include "simblas_params.h"

#define SG_BLAS_EXPORT __attribute__((visibility("default")))

/* "simblash": what a live handle begins with. */
#define SG_BLAS_MAGIC 0x6873616c626d6973ull

/* Workspace a handle allocates when a call needs one and none was lent. */
#define SG_BLAS_WORKSPACE_BYTES        ((size_t)4 << 20)
#define SG_BLAS_WORKSPACE_HOPPER_BYTES ((size_t)32 << 20)

/*
 * A cublasHandle_t or a cublasLtHandle_t: callers may use the one as the
 * other, so both libraries know this one layout. own_workspace is cuMemAlloc'd
 * at first need and freed with the handle; workspace belongs to the caller.
 */
struct sg_blas_handle {
	uint64_t magic;
	CUcontext context; /* current when the handle was made */
	CUstream stream;
	CUdeviceptr workspace;
	size_t workspace_bytes;
	bool workspace_lent; /* the two above were set by the caller */
	CUdeviceptr own_workspace;
	size_t own_workspace_bytes;
	cublasPointerMode_t pointer_mode;
	cublasMath_t math_mode;
	cublasAtomicsMode_t atomics_mode;
	int sm_count_target;
};

/* ------------------------------------------------------------ driver table */

/* Driver functions used: name, version of the ABI asked for, type. */
#define SG_BLAS_DRIVER(X)                                                      \
	X(cuInit, 2000)                                                        \
	X(cuCtxGetCurrent, 4000)                                               \
	X(cuCtxSetCurrent, 4000)                                               \
	X(cuCtxGetDevice, 2000)                                                \
	X(cuCtxGetId, 12000)                                                   \
	X(cuDeviceGetAttribute, 2000)                                          \
	X(cuDevicePrimaryCtxRetain, 7000)                                      \
	X(cuEventCreate, 2000)                                                 \
	X(cuEventDestroy, 4000)                                                \
	X(cuEventRecord, 2000)                                                 \
	X(cuModuleLoadData, 2000)                                              \
	X(cuModuleGetFunction, 2000)                                           \
	X(cuModuleUnload, 2000)                                                \
	X(cuLaunchKernel, 4000)                                                \
	X(cuMemAlloc, 3020)                                                    \
	X(cuMemFree, 3020)                                                     \
	X(cuMemcpyDtoHAsync, 3020)                                             \
	X(cuStreamIsCapturing, 10000)                                          \
	X(cuStreamSynchronize, 2000)                                           \
	X(cuStreamWaitEvent, 3020)                                             \
	X(cuThreadExchangeStreamCaptureMode, 10010)

struct sg_blas_driver {
#define SG_BLAS_MEMBER(name, version) __typeof__(&name) name;
	SG_BLAS_DRIVER(SG_BLAS_MEMBER)
#undef SG_BLAS_MEMBER
};

/*
 * The driver, found by dlopen of libcuda.so.1 and cuGetProcAddress_v2 at the
 * first call and initialised; NULL if there is none, for good.
 */
const struct sg_blas_driver *sg_blas_driver(void);

/* Negative errno of a driver status. */
int sg_blas_errno(CUresult result);

/* ------------------------------------------------------ handle and status */

/* The handle behind a cublasHandle_t or cublasLtHandle_t; NULL if it is none */
struct sg_blas_handle *sg_blas_handle(const void *handle);

/*
 * Makes a handle in the current context, or in the primary context of device
 * 0, made current, if there is none: -ENODEV without a device.
 */
int sg_blas_handle_create(struct sg_blas_handle **ret_handle);

/* Frees the handle and the workspace it allocated. NULL is accepted. */
void sg_blas_handle_destroy(struct sg_blas_handle *handle);

/*
 * The workspace for the next call: the lent one, else the handle's own,
 * allocated now; 0 bytes if there is no memory for it.
 */
void sg_blas_handle_workspace(
        struct sg_blas_handle *handle, CUdeviceptr *ret_at, size_t *ret_bytes);

cublasStatus_t sg_blas_status(int err);

/* Names a missing feature on stderr, once a process, and returns -ENOTSUP. */
int sg_blas_unsupported(const char *library, const char *what);

/* "CUBLAS_STATUS_..." and a sentence; never NULL. */
const char *sg_blas_status_name(cublasStatus_t status);
const char *sg_blas_status_string(cublasStatus_t status);

/* ---------------------------------------------------------------- launches */

enum sg_blas_kernel {
#define SG_BLAS_ID(name, family, class) SG_BLAS_K_##name,
	SIMBLAS_KERNELS(SG_BLAS_ID)
#undef SG_BLAS_ID
	        SG_BLAS_KERNEL_COUNT
};

/* Name of a kernel, and its PTX module text (all kernels, NUL-terminated). */
const char *sg_blas_kernel_name(enum sg_blas_kernel kernel);
extern const char sg_blas_ptx[];

/* The GEMM kernel of this family and class. */
enum sg_blas_kernel sg_blas_gemm_kernel(
        enum simblas_family family, enum simblas_class class);

/* A context of the driver with the module loaded into it. Constant. */
struct sg_blas_context {
	struct sg_blas_context *next;
	CUcontext context;
	unsigned long long id; /* no two contexts of a process share one */
	CUmodule module;
	CUfunction functions[SG_BLAS_KERNEL_COUNT];
	int sm_count; /* multiprocessors of its device */
};

/*
 * The calling thread's context, made ready for launches. A thread without one
 * gets the handle's.
 */
int sg_blas_enter(const struct sg_blas_handle *handle,
        const struct sg_blas_context **ret_context);

/*
 * Launches a kernel in the entered context. params holds the kernel's struct
 * of simblas_params.h; grid counts thread blocks.
 */
int sg_blas_launch(const struct sg_blas_context *context,
        enum sg_blas_kernel kernel, CUstream stream, const unsigned grid[3],
        unsigned threads, void *params);

/* -------------------------------------------------------------------- GEMM */

/* alpha or beta as double from a host value of this type; imag may be NULL. */
int sg_blas_read_scalar(
        const void *at, cudaDataType type, double *real, double *imag);

/*
 * The class of a product and the natural type of its scalars; -ENOTSUP for a
 * combination of types that cuBLAS does not offer.
 */
int sg_blas_gemm_class(cudaDataType a, cudaDataType b, cudaDataType d,
        cublasComputeType_t compute, enum simblas_class *ret_class,
        cudaDataType *ret_scale);

/*
 * Into how many parts k is cut for this product if so many bytes of workspace
 * are at hand: 1 for no cut. The rule stands in README.md.
 */
unsigned sg_blas_gemm_splits(const struct simblas_gemm *p,
        enum simblas_class class, int sm_count, size_t workspace_bytes);

/* Workspace that a product cut into so many parts takes. */
size_t sg_blas_split_bytes(const struct simblas_gemm *p,
        enum simblas_class class, unsigned splits);

/*
 * Launches a filled product: one kernel, or with p->splits > 1 the partial
 * kernel and the reduction over p->workspace. family is SIMBLAS_GEMM,
 * _STRIDED or _BATCHED.
 */
int sg_blas_gemm_launch(const struct sg_blas_context *context,
        struct simblas_gemm *p, enum simblas_family family,
        enum simblas_class class, CUstream stream);

/*
 * A classic GEMM call: types, leading dimensions and sizes of p are set, and
 * alpha and beta point to host or device values by the handle's pointer mode.
 * Checks the arguments as cuBLAS documents, chooses class and split, and
 * launches. family as above.
 */
int sg_blas_gemm(struct sg_blas_handle *handle, struct simblas_gemm *p,
        enum simblas_family family, const void *alpha, const void *beta,
        cublasComputeType_t compute);

/*
 * cublas_v2.h declares the calls for half precision to C++ alone, since C has
 * no such type.
 */
cublasStatus_t cublasHgemm(cublasHandle_t handle, cublasOperation_t transa,
        cublasOperation_t transb, int m, int n, int k, const void *alpha,
        const void *A, int lda, const void *B, int ldb, const void *beta,
        void *C, int ldc);
cublasStatus_t cublasHgemmStridedBatched(cublasHandle_t handle,
        cublasOperation_t transa, cublasOperation_t transb, int m, int n, int k,
        const void *alpha, const void *A, int lda, long long int strideA,
        const void *B, int ldb, long long int strideB, const void *beta,
        void *C, int ldc, long long int strideC, int batchCount);
cublasStatus_t cublasHgemmBatched(cublasHandle_t handle,
        cublasOperation_t transa, cublasOperation_t transb, int m, int n, int k,
        const void *alpha, const void *const Aarray[], int lda,
        const void *const Barray[], int ldb, const void *beta,
        void *const Carray[], int ldc, int batchCount);

#endif
