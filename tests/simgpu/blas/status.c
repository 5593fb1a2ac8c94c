/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Statuses: from errno at the edge, as names and sentences, and the naming of
 * what is missing. named_lock guards the list of what was named already.
 */
#include "simblas.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct named {
	struct named *next;
	char what[];
};

static struct named *named; /* Guarded by named_lock. */
static pthread_mutex_t named_lock = PTHREAD_MUTEX_INITIALIZER;

cublasStatus_t sg_blas_status(int err)
{
	switch (err) {
	case 0:
		return CUBLAS_STATUS_SUCCESS;
	case -EINVAL:
		return CUBLAS_STATUS_INVALID_VALUE;
	case -ENOTSUP:
		return CUBLAS_STATUS_NOT_SUPPORTED;
	case -ENOMEM:
		return CUBLAS_STATUS_ALLOC_FAILED;
	case -ENODEV:
		return CUBLAS_STATUS_NOT_INITIALIZED;
	default:
		return CUBLAS_STATUS_EXECUTION_FAILED;
	}
}

int sg_blas_unsupported(const char *library, const char *what)
{
	size_t bytes = strlen(what) + 1;
	struct named *n;

	pthread_mutex_lock(&named_lock);
	for (n = named; n; n = n->next)
		if (!strcmp(n->what, what))
			break;
	if (!n) {
		/* Without memory it is named again the next time. */
		n = malloc(sizeof(*n) + bytes);
		if (n) {
			memcpy(n->what, what, bytes);
			n->next = named;
			named = n;
		}
		fprintf(stderr, "simgpu %s: not supported: %s\n", library,
		        what);
	}
	pthread_mutex_unlock(&named_lock);
	return -ENOTSUP;
}

const char *sg_blas_status_name(cublasStatus_t status)
{
	switch (status) {
#define NAME(code)                                                             \
	case code:                                                             \
		return #code;
		NAME(CUBLAS_STATUS_SUCCESS)
		NAME(CUBLAS_STATUS_NOT_INITIALIZED)
		NAME(CUBLAS_STATUS_ALLOC_FAILED)
		NAME(CUBLAS_STATUS_INVALID_VALUE)
		NAME(CUBLAS_STATUS_ARCH_MISMATCH)
		NAME(CUBLAS_STATUS_MAPPING_ERROR)
		NAME(CUBLAS_STATUS_EXECUTION_FAILED)
		NAME(CUBLAS_STATUS_INTERNAL_ERROR)
		NAME(CUBLAS_STATUS_NOT_SUPPORTED)
		NAME(CUBLAS_STATUS_LICENSE_ERROR)
#undef NAME
	}
	return "CUBLAS_STATUS_UNKNOWN";
}

const char *sg_blas_status_string(cublasStatus_t status)
{
	switch (status) {
	case CUBLAS_STATUS_SUCCESS:
		return "the operation completed successfully";
	case CUBLAS_STATUS_NOT_INITIALIZED:
		return "the library was not initialized";
	case CUBLAS_STATUS_ALLOC_FAILED:
		return "the resource allocation failed";
	case CUBLAS_STATUS_INVALID_VALUE:
		return "an unsupported value or parameter was passed to the "
		       "function";
	case CUBLAS_STATUS_ARCH_MISMATCH:
		return "the function requires a feature absent from the "
		       "device architecture";
	case CUBLAS_STATUS_MAPPING_ERROR:
		return "an access to GPU memory space failed";
	case CUBLAS_STATUS_EXECUTION_FAILED:
		return "the GPU program failed to execute";
	case CUBLAS_STATUS_INTERNAL_ERROR:
		return "an internal operation failed";
	case CUBLAS_STATUS_NOT_SUPPORTED:
		return "the functionality requested is not supported";
	case CUBLAS_STATUS_LICENSE_ERROR:
		return "the functionality requested requires some license";
	}
	return "unknown status";
}
