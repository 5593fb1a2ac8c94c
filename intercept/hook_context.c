/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Wrappers of contexts that come, and of what they may reach. A context takes
 * memory of its device; placed memory makes room for it.
 */
#include "agent/agent.h"
#include "intercept/driver.h"
#include "intercept/guard.h"
#include "intercept/hooks.h"

CUresult ts_hook_cuCtxCreate(
        CUcontext *ret_context, unsigned int flags, CUdevice device)
{
	CUresult rc;

	if (!ts_enter())
		return ts_driver.fn_cuCtxCreate(ret_context, flags, device);
	rc = ts_driver.fn_cuCtxCreate(ret_context, flags, device);
	if (rc == CUDA_SUCCESS)
		ts_agent_after_unmanaged();
	ts_leave();
	return rc;
}

CUresult ts_hook_cuCtxCreate_v2(
        CUcontext *ret_context, unsigned int flags, CUdevice device)
{
	CUresult rc;

	if (!ts_enter())
		return ts_driver.fn_cuCtxCreate_v2(ret_context, flags, device);
	rc = ts_driver.fn_cuCtxCreate_v2(ret_context, flags, device);
	if (rc == CUDA_SUCCESS)
		ts_agent_after_unmanaged();
	ts_leave();
	return rc;
}

CUresult ts_hook_cuCtxCreate_v3(CUcontext *ret_context,
        CUexecAffinityParam *affinity, int count, unsigned int flags,
        CUdevice device)
{
	CUresult rc;

	if (!ts_enter())
		return ts_driver.fn_cuCtxCreate_v3(
		        ret_context, affinity, count, flags, device);
	rc = ts_driver.fn_cuCtxCreate_v3(
	        ret_context, affinity, count, flags, device);
	if (rc == CUDA_SUCCESS)
		ts_agent_after_unmanaged();
	ts_leave();
	return rc;
}

CUresult ts_hook_cuCtxCreate_v4(CUcontext *ret_context,
        CUctxCreateParams *params, unsigned int flags, CUdevice device)
{
	CUresult rc;

	if (!ts_enter())
		return ts_driver.fn_cuCtxCreate_v4(
		        ret_context, params, flags, device);
	rc = ts_driver.fn_cuCtxCreate_v4(ret_context, params, flags, device);
	if (rc == CUDA_SUCCESS)
		ts_agent_after_unmanaged();
	ts_leave();
	return rc;
}

/* Of the stack and the heap of kernels, which the context holds. */
CUresult ts_hook_cuCtxSetLimit(CUlimit limit, size_t value)
{
	CUresult rc;

	if (!ts_enter())
		return ts_driver.fn_cuCtxSetLimit(limit, value);
	rc = ts_driver.fn_cuCtxSetLimit(limit, value);
	if (rc == CUDA_SUCCESS)
		ts_agent_after_unmanaged();
	ts_leave();
	return rc;
}

CUresult ts_hook_cuDevicePrimaryCtxRetain(
        CUcontext *ret_context, CUdevice device)
{
	CUresult rc;

	if (!ts_enter())
		return ts_driver.fn_cuDevicePrimaryCtxRetain(
		        ret_context, device);
	rc = ts_driver.fn_cuDevicePrimaryCtxRetain(ret_context, device);
	if (rc == CUDA_SUCCESS)
		ts_agent_primary_retained(device, *ret_context);
	ts_leave();
	return rc;
}

CUresult ts_hook_cuCtxEnablePeerAccess(CUcontext peer, unsigned int flags)
{
	CUresult rc;

	if (!ts_enter())
		return ts_driver.fn_cuCtxEnablePeerAccess(peer, flags);
	rc = ts_driver.fn_cuCtxEnablePeerAccess(peer, flags);
	if (rc == CUDA_SUCCESS)
		ts_agent_peer_access(peer, true);
	ts_leave();
	return rc;
}

CUresult ts_hook_cuCtxDisablePeerAccess(CUcontext peer)
{
	CUresult rc;

	if (!ts_enter())
		return ts_driver.fn_cuCtxDisablePeerAccess(peer);
	rc = ts_driver.fn_cuCtxDisablePeerAccess(peer);
	if (rc == CUDA_SUCCESS)
		ts_agent_peer_access(peer, false);
	ts_leave();
	return rc;
}
