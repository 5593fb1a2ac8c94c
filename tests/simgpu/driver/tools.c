/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What tools ask of a driver: profiler switches, the error log, core dumps. The
 * log is empty, since this driver writes to stderr; nobody records profiles or
 * dumps core. Guarded by the lock.
 */
#include "tests/simgpu/driver/sg.h"

#include <cudaProfiler.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---------------------------------------------------------------- profiler */

SG_EXPORT CUresult cuProfilerInitialize(
        const char *config, const char *output, CUoutput_mode mode)
{
	SG_API(cuProfilerInitialize, SG_COST_NONE, SG_NEED_INIT);
	return sg_not_supported("cuProfilerInitialize");
}

SG_EXPORT CUresult cuProfilerStart(void)
{
	SG_API(cuProfilerStart, SG_COST_NONE, SG_NEED_INIT | SG_NEED_CTX);
	return CUDA_SUCCESS;
}

SG_EXPORT CUresult cuProfilerStop(void)
{
	SG_API(cuProfilerStop, SG_COST_NONE, SG_NEED_INIT | SG_NEED_CTX);
	return CUDA_SUCCESS;
}

/* --------------------------------------------------------------------- log */

struct log_callback {
	CUlogsCallback fn;
	void *data;
	struct log_callback *next;
};
static struct log_callback *log_callbacks;

CUresult cuLogsRegisterCallback(
        CUlogsCallback fn, void *data, CUlogsCallbackHandle *handle)
{
	struct log_callback *callback;
	SG_API(cuLogsRegisterCallback, SG_COST_NONE, 0);
	if (!fn)
		return CUDA_ERROR_INVALID_VALUE;
	callback = sg_xcalloc(1, sizeof(*callback));
	callback->fn = fn;
	callback->data = data;
	callback->next = log_callbacks;
	log_callbacks = callback;
	if (handle)
		*handle = (CUlogsCallbackHandle)callback;
	return CUDA_SUCCESS;
}

CUresult cuLogsUnregisterCallback(CUlogsCallbackHandle handle)
{
	struct log_callback **link = &log_callbacks, *callback;
	SG_API(cuLogsUnregisterCallback, SG_COST_NONE, 0);
	while (*link && *link != (struct log_callback *)handle)
		link = &(*link)->next;
	callback = *link;
	if (!callback)
		return CUDA_ERROR_INVALID_VALUE;
	*link = callback->next;
	free(callback);
	return CUDA_SUCCESS;
}

CUresult cuLogsCurrent(CUlogIterator *iterator, unsigned flags)
{
	SG_API(cuLogsCurrent, SG_COST_NONE, 0);
	if (!iterator || flags)
		return CUDA_ERROR_INVALID_VALUE;
	*iterator = 0;
	return CUDA_SUCCESS;
}

CUresult cuLogsDumpToFile(
        CUlogIterator *iterator, const char *path, unsigned flags)
{
	FILE *file;
	SG_API(cuLogsDumpToFile, SG_COST_NONE, 0);
	if (!path || flags)
		return CUDA_ERROR_INVALID_VALUE;
	file = fopen(path, "w");
	if (!file)
		return CUDA_ERROR_OPERATING_SYSTEM;
	return fclose(file) ? CUDA_ERROR_OPERATING_SYSTEM : CUDA_SUCCESS;
}

CUresult cuLogsDumpToMemory(
        CUlogIterator *iterator, char *buffer, size_t *bytes, unsigned flags)
{
	SG_API(cuLogsDumpToMemory, SG_COST_NONE, 0);
	if (!buffer || !bytes || !*bytes || flags)
		return CUDA_ERROR_INVALID_VALUE;
	buffer[0] = '\0';
	*bytes = 0;
	return CUDA_SUCCESS;
}

/* -------------------------------------------------------------- core dumps */

/* Every switch is off; file and pipe have no name. */
static CUresult coredump_get(
        CUcoredumpSettings setting, void *value, size_t *bytes)
{
	size_t wanted;

	if (!bytes)
		return CUDA_ERROR_INVALID_VALUE;
	switch (setting) {
	case CU_COREDUMP_ENABLE_ON_EXCEPTION:
	case CU_COREDUMP_TRIGGER_HOST:
	case CU_COREDUMP_LIGHTWEIGHT:
	case CU_COREDUMP_ENABLE_USER_TRIGGER:
		wanted = sizeof(bool);
		break;
	case CU_COREDUMP_FILE:
	case CU_COREDUMP_PIPE:
		wanted = 1;
		break;
	case CU_COREDUMP_GENERATION_FLAGS:
		wanted = sizeof(unsigned);
		break;
	default:
		return CUDA_ERROR_INVALID_VALUE;
	}
	if (value && *bytes < wanted)
		return CUDA_ERROR_INVALID_VALUE;
	if (value)
		memset(value, 0, wanted);
	*bytes = wanted;
	return CUDA_SUCCESS;
}

CUresult cuCoredumpGetAttribute(
        CUcoredumpSettings setting, void *value, size_t *bytes)
{
	SG_API(cuCoredumpGetAttribute, SG_COST_NONE,
	        SG_NEED_INIT | SG_NEED_CTX | SG_NO_STICKY);
	return coredump_get(setting, value, bytes);
}

CUresult cuCoredumpGetAttributeGlobal(
        CUcoredumpSettings setting, void *value, size_t *bytes)
{
	SG_API(cuCoredumpGetAttributeGlobal, SG_COST_NONE, 0);
	return coredump_get(setting, value, bytes);
}
