/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * cuBLAS, by its exported symbols: which operand a product is written to, and
 * that a work space the program gives is scratch, whatever passes through it.
 * Enums are ints here and structs are pointers, so that no header of the
 * library's is needed. Other products (batches of pointers, and levels 1 and
 * 2) go unwrapped: their operands are guessed as those of any launch.
 */
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/agent.h"
#include "agent/declared.h"
#include "intercept/guard.h"
#include "intercept/real_dlsym.h"

/* cublasStatus_t */
#define STATUS_NOT_SUPPORTED 15
#define STATUS_SUCCESS       0

/* The library's function, looked up once; NULL where there is none. */
static void *real_function(
        _Atomic(void *) *known, const void *caller, const char *symbol)
{
	void *found = atomic_load_explicit(known, memory_order_relaxed);

	if (found)
		return found;
	found = ts_next_for(caller, symbol);
	atomic_store_explicit(known, found, memory_order_relaxed);
	return found;
}

static void note_scratch(void *workspace, size_t bytes)
{
	if (!workspace || !bytes || !ts_enter())
		return;
	ts_agent_scratch((CUdeviceptr)(uintptr_t)workspace);
	ts_leave();
}

typedef int set_workspace(void *handle, void *workspace, size_t bytes);

extern set_workspace ts_hook_set_workspace __asm__("cublasSetWorkspace_v2")
        __attribute__((visibility("default")));

int ts_hook_set_workspace(void *handle, void *workspace, size_t bytes)
{
	static _Atomic(void *) known;
	set_workspace *real = (set_workspace *)real_function(
	        &known, __builtin_return_address(0), "cublasSetWorkspace_v2");
	int status =
	        real ? real(handle, workspace, bytes) : STATUS_NOT_SUPPORTED;

	if (status == STATUS_SUCCESS)
		note_scratch(workspace, bytes);
	return status;
}

typedef int gemm(void *handle, int trans_a, int trans_b, int m, int n, int k,
        const void *alpha, const void *a, int lda, const void *b, int ldb,
        const void *beta, void *c, int ldc);

extern gemm ts_hook_Sgemm __asm__("cublasSgemm_v2")
        __attribute__((visibility("default")));

int ts_hook_Sgemm(void *handle, int trans_a, int trans_b, int m, int n, int k,
        const void *alpha, const void *a, int lda, const void *b, int ldb,
        const void *beta, void *c, int ldc)
{
	static _Atomic(void *) known;
	gemm *real = (gemm *)real_function(
	        &known, __builtin_return_address(0), "cublasSgemm_v2");
	int status;

	if (!real)
		return STATUS_NOT_SUPPORTED;
	ts_declared_begin(c);
	status = real(handle, trans_a, trans_b, m, n, k, alpha, a, lda, b, ldb,
	        beta, c, ldc);
	ts_declared_end();
	return status;
}

extern gemm ts_hook_Dgemm __asm__("cublasDgemm_v2")
        __attribute__((visibility("default")));

int ts_hook_Dgemm(void *handle, int trans_a, int trans_b, int m, int n, int k,
        const void *alpha, const void *a, int lda, const void *b, int ldb,
        const void *beta, void *c, int ldc)
{
	static _Atomic(void *) known;
	gemm *real = (gemm *)real_function(
	        &known, __builtin_return_address(0), "cublasDgemm_v2");
	int status;

	if (!real)
		return STATUS_NOT_SUPPORTED;
	ts_declared_begin(c);
	status = real(handle, trans_a, trans_b, m, n, k, alpha, a, lda, b, ldb,
	        beta, c, ldc);
	ts_declared_end();
	return status;
}

extern gemm ts_hook_Cgemm __asm__("cublasCgemm_v2")
        __attribute__((visibility("default")));

int ts_hook_Cgemm(void *handle, int trans_a, int trans_b, int m, int n, int k,
        const void *alpha, const void *a, int lda, const void *b, int ldb,
        const void *beta, void *c, int ldc)
{
	static _Atomic(void *) known;
	gemm *real = (gemm *)real_function(
	        &known, __builtin_return_address(0), "cublasCgemm_v2");
	int status;

	if (!real)
		return STATUS_NOT_SUPPORTED;
	ts_declared_begin(c);
	status = real(handle, trans_a, trans_b, m, n, k, alpha, a, lda, b, ldb,
	        beta, c, ldc);
	ts_declared_end();
	return status;
}

extern gemm ts_hook_Zgemm __asm__("cublasZgemm_v2")
        __attribute__((visibility("default")));

int ts_hook_Zgemm(void *handle, int trans_a, int trans_b, int m, int n, int k,
        const void *alpha, const void *a, int lda, const void *b, int ldb,
        const void *beta, void *c, int ldc)
{
	static _Atomic(void *) known;
	gemm *real = (gemm *)real_function(
	        &known, __builtin_return_address(0), "cublasZgemm_v2");
	int status;

	if (!real)
		return STATUS_NOT_SUPPORTED;
	ts_declared_begin(c);
	status = real(handle, trans_a, trans_b, m, n, k, alpha, a, lda, b, ldb,
	        beta, c, ldc);
	ts_declared_end();
	return status;
}

typedef int gemm_ex(void *handle, int trans_a, int trans_b, int m, int n, int k,
        const void *alpha, const void *a, int type_a, int lda, const void *b,
        int type_b, int ldb, const void *beta, void *c, int type_c, int ldc,
        int compute, int algorithm);

extern gemm_ex ts_hook_GemmEx __asm__("cublasGemmEx")
        __attribute__((visibility("default")));

int ts_hook_GemmEx(void *handle, int trans_a, int trans_b, int m, int n, int k,
        const void *alpha, const void *a, int type_a, int lda, const void *b,
        int type_b, int ldb, const void *beta, void *c, int type_c, int ldc,
        int compute, int algorithm)
{
	static _Atomic(void *) known;
	gemm_ex *real = (gemm_ex *)real_function(
	        &known, __builtin_return_address(0), "cublasGemmEx");
	int status;

	if (!real)
		return STATUS_NOT_SUPPORTED;
	ts_declared_begin(c);
	status = real(handle, trans_a, trans_b, m, n, k, alpha, a, type_a, lda,
	        b, type_b, ldb, beta, c, type_c, ldc, compute, algorithm);
	ts_declared_end();
	return status;
}

typedef int strided(void *handle, int trans_a, int trans_b, int m, int n, int k,
        const void *alpha, const void *a, int lda, long long stride_a,
        const void *b, int ldb, long long stride_b, const void *beta, void *c,
        int ldc, long long stride_c, int batch);

extern strided ts_hook_SgemmStridedBatched __asm__("cublasSgemmStridedBatched")
        __attribute__((visibility("default")));

int ts_hook_SgemmStridedBatched(void *handle, int trans_a, int trans_b, int m,
        int n, int k, const void *alpha, const void *a, int lda,
        long long stride_a, const void *b, int ldb, long long stride_b,
        const void *beta, void *c, int ldc, long long stride_c, int batch)
{
	static _Atomic(void *) known;
	strided *real = (strided *)real_function(&known,
	        __builtin_return_address(0), "cublasSgemmStridedBatched");
	int status;

	if (!real)
		return STATUS_NOT_SUPPORTED;
	ts_declared_begin(c);
	status = real(handle, trans_a, trans_b, m, n, k, alpha, a, lda,
	        stride_a, b, ldb, stride_b, beta, c, ldc, stride_c, batch);
	ts_declared_end();
	return status;
}

extern strided ts_hook_DgemmStridedBatched __asm__("cublasDgemmStridedBatched")
        __attribute__((visibility("default")));

int ts_hook_DgemmStridedBatched(void *handle, int trans_a, int trans_b, int m,
        int n, int k, const void *alpha, const void *a, int lda,
        long long stride_a, const void *b, int ldb, long long stride_b,
        const void *beta, void *c, int ldc, long long stride_c, int batch)
{
	static _Atomic(void *) known;
	strided *real = (strided *)real_function(&known,
	        __builtin_return_address(0), "cublasDgemmStridedBatched");
	int status;

	if (!real)
		return STATUS_NOT_SUPPORTED;
	ts_declared_begin(c);
	status = real(handle, trans_a, trans_b, m, n, k, alpha, a, lda,
	        stride_a, b, ldb, stride_b, beta, c, ldc, stride_c, batch);
	ts_declared_end();
	return status;
}

extern strided ts_hook_CgemmStridedBatched __asm__("cublasCgemmStridedBatched")
        __attribute__((visibility("default")));

int ts_hook_CgemmStridedBatched(void *handle, int trans_a, int trans_b, int m,
        int n, int k, const void *alpha, const void *a, int lda,
        long long stride_a, const void *b, int ldb, long long stride_b,
        const void *beta, void *c, int ldc, long long stride_c, int batch)
{
	static _Atomic(void *) known;
	strided *real = (strided *)real_function(&known,
	        __builtin_return_address(0), "cublasCgemmStridedBatched");
	int status;

	if (!real)
		return STATUS_NOT_SUPPORTED;
	ts_declared_begin(c);
	status = real(handle, trans_a, trans_b, m, n, k, alpha, a, lda,
	        stride_a, b, ldb, stride_b, beta, c, ldc, stride_c, batch);
	ts_declared_end();
	return status;
}

extern strided ts_hook_ZgemmStridedBatched __asm__("cublasZgemmStridedBatched")
        __attribute__((visibility("default")));

int ts_hook_ZgemmStridedBatched(void *handle, int trans_a, int trans_b, int m,
        int n, int k, const void *alpha, const void *a, int lda,
        long long stride_a, const void *b, int ldb, long long stride_b,
        const void *beta, void *c, int ldc, long long stride_c, int batch)
{
	static _Atomic(void *) known;
	strided *real = (strided *)real_function(&known,
	        __builtin_return_address(0), "cublasZgemmStridedBatched");
	int status;

	if (!real)
		return STATUS_NOT_SUPPORTED;
	ts_declared_begin(c);
	status = real(handle, trans_a, trans_b, m, n, k, alpha, a, lda,
	        stride_a, b, ldb, stride_b, beta, c, ldc, stride_c, batch);
	ts_declared_end();
	return status;
}

typedef int strided_ex(void *handle, int trans_a, int trans_b, int m, int n,
        int k, const void *alpha, const void *a, int type_a, int lda,
        long long stride_a, const void *b, int type_b, int ldb,
        long long stride_b, const void *beta, void *c, int type_c, int ldc,
        long long stride_c, int batch, int compute, int algorithm);

extern strided_ex ts_hook_GemmStridedBatchedEx __asm__(
        "cublasGemmStridedBatchedEx") __attribute__((visibility("default")));

int ts_hook_GemmStridedBatchedEx(void *handle, int trans_a, int trans_b, int m,
        int n, int k, const void *alpha, const void *a, int type_a, int lda,
        long long stride_a, const void *b, int type_b, int ldb,
        long long stride_b, const void *beta, void *c, int type_c, int ldc,
        long long stride_c, int batch, int compute, int algorithm)
{
	static _Atomic(void *) known;
	strided_ex *real = (strided_ex *)real_function(&known,
	        __builtin_return_address(0), "cublasGemmStridedBatchedEx");
	int status;

	if (!real)
		return STATUS_NOT_SUPPORTED;
	ts_declared_begin(c);
	status = real(handle, trans_a, trans_b, m, n, k, alpha, a, type_a, lda,
	        stride_a, b, type_b, ldb, stride_b, beta, c, type_c, ldc,
	        stride_c, batch, compute, algorithm);
	ts_declared_end();
	return status;
}

typedef int lt_matmul(void *handle, const void *product, const void *alpha,
        const void *a, const void *layout_a, const void *b,
        const void *layout_b, const void *beta, const void *c,
        const void *layout_c, void *d, const void *layout_d,
        const void *algorithm, void *workspace, size_t workspace_bytes,
        void *stream);

extern lt_matmul ts_hook_LtMatmul __asm__("cublasLtMatmul")
        __attribute__((visibility("default")));

int ts_hook_LtMatmul(void *handle, const void *product, const void *alpha,
        const void *a, const void *layout_a, const void *b,
        const void *layout_b, const void *beta, const void *c,
        const void *layout_c, void *d, const void *layout_d,
        const void *algorithm, void *workspace, size_t workspace_bytes,
        void *stream)
{
	static _Atomic(void *) known;
	lt_matmul *real = (lt_matmul *)real_function(
	        &known, __builtin_return_address(0), "cublasLtMatmul");
	int status;

	if (!real)
		return STATUS_NOT_SUPPORTED;
	note_scratch(workspace, workspace_bytes);
	ts_declared_begin(d);
	status = real(handle, product, alpha, a, layout_a, b, layout_b, beta, c,
	        layout_c, d, layout_d, algorithm, workspace, workspace_bytes,
	        stream);
	ts_declared_end();
	return status;
}
