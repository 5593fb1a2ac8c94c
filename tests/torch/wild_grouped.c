/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A library whose kernel follows a table of addresses. Loaded with its own
 * libraries before all others (RTLD_DEEPBIND) it stands for one that nobody
 * knows: only the kernel's launch can be seen, with the table's address.
 */
#include <cublas_v2.h>

#define EXPORT __attribute__((visibility("default")))

/*
 * c[i] = a[i] * b[i], and what c[i] was where @adds; square matrices, tables on
 * the device. 0, or a status.
 */
EXPORT int wild_grouped(const float *const *a, const float *const *b,
        float *const *c, int size, int count, int adds);

int wild_grouped(const float *const *a, const float *const *b, float *const *c,
        int size, int count, int adds)
{
	static cublasHandle_t handle;
	const float one = 1, beta = adds ? 1 : 0;

	if (!handle && cublasCreate(&handle) != CUBLAS_STATUS_SUCCESS)
		return -1;
	return (int)cublasSgemmBatched(handle, CUBLAS_OP_N, CUBLAS_OP_N, size,
	        size, size, &one, a, size, b, size, &beta, c, size, count);
}
