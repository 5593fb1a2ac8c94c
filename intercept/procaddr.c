/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * cuGetProcAddress: the driver is asked first, so that versions, flags and
 * status stay its own; the address it answers is then replaced by the wrapper
 * of exactly that function.
 */
#include <string.h>

#include "agent/base/log.h"
#include "intercept/driver.h"
#include "intercept/guard.h"
#include "intercept/hooks.h"
#include "intercept/lookup.h"

/*
 * Functions that move memory and are newer than the headers this was built
 * with. A program that cannot get them takes the older way, which is seen.
 */
static const char *const hidden[] = {
        "cuMemcpyWithAttributesAsync",
        "cuMemcpy3DWithAttributesAsync",
};

static bool is_hidden(const char *name)
{
	for (size_t i = 0; i < sizeof(hidden) / sizeof(hidden[0]); i++)
		if (!strcmp(name, hidden[i]))
			return true;
	return false;
}

/*
 * NULL where @function is an ABI newer than the headers this was built with,
 * of a function that has to be seen: nobody knows what its arguments are.
 */
static void *wrapper_of(
        const char *name, void *function, int version, cuuint64_t flags)
{
	const struct ts_hook *hook = ts_hook_by_function(function);

	/* A driver may answer with another entry of the same function. */
	if (!hook && version > CUDA_VERSION)
		return ts_hook_by_name(name, CUDA_VERSION, false) ? NULL
		                                                  : function;
	/* From 12.0 on the old name means the function with flags. */
	if (!hook && version >= 12000 && !strcmp(name, "cuGraphInstantiate"))
		name = "cuGraphInstantiateWithFlags";
	if (!hook)
		hook = ts_hook_by_name(name, version,
		        flags & CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM);
	if (!hook)
		return function;
	if (ts_hook_function(hook) != function)
		ts_log(TS_LOG_DEBUG, "%s (version %d) found by name, as %s",
		        name, version, hook->symbol);
	return hook->wrapper;
}

CUresult ts_hook_cuGetProcAddress(
        const char *symbol, void **pfn, int version, cuuint64_t flags)
{
	CUresult rc;

	ts_start();
	rc = ts_driver.fn_cuGetProcAddress(symbol, pfn, version, flags);
	if (rc != CUDA_SUCCESS || !symbol || !pfn || !*pfn)
		return rc;
	if (is_hidden(symbol)) {
		*pfn = NULL;
		return CUDA_ERROR_NOT_FOUND;
	}
	*pfn = wrapper_of(symbol, *pfn, version, flags);
	return *pfn ? rc : CUDA_ERROR_NOT_FOUND;
}

/* Both ABIs of 12.0: @per_thread is what the second one means by itself. */
static CUresult ask_v2(PFN_cuGetProcAddress_v12000 real, bool per_thread,
        const char *symbol, void **pfn, int version, cuuint64_t flags,
        CUdriverProcAddressQueryResult *status)
{
	CUresult rc = real(symbol, pfn, version, flags, status);

	if (rc != CUDA_SUCCESS || !symbol || !pfn || !*pfn)
		return rc;
	if (is_hidden(symbol)) {
		*pfn = NULL;
		if (status)
			*status = CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
		return CUDA_ERROR_NOT_FOUND;
	}
	if (per_thread && !(flags & CU_GET_PROC_ADDRESS_LEGACY_STREAM))
		flags |= CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM;
	*pfn = wrapper_of(symbol, *pfn, version, flags);
	if (*pfn)
		return rc;
	if (status)
		*status = CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT;
	return CUDA_ERROR_NOT_FOUND;
}

CUresult ts_hook_cuGetProcAddress_v2(const char *symbol, void **pfn,
        int version, cuuint64_t flags, CUdriverProcAddressQueryResult *status)
{
	ts_start();
	return ask_v2(ts_driver.fn_cuGetProcAddress_v2, false, symbol, pfn,
	        version, flags, status);
}

CUresult ts_hook_cuGetProcAddress_v2_ptsz(const char *symbol, void **pfn,
        int version, cuuint64_t flags, CUdriverProcAddressQueryResult *status)
{
	ts_start();
	return ask_v2(ts_driver.fn_cuGetProcAddress_v2_ptsz, true, symbol, pfn,
	        version, flags, status);
}
