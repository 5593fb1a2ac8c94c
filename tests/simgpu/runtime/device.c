/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Devices: choice, attributes, limits, peers, their pools. */
#include "context.h"
#include "rt.h"

cudaError_t CUDARTAPI cudaGetDeviceCount(int *count)
{
	cudaError_t err = rt_enter_driver();

	if (err)
		return err;
	if (!count)
		return rt_fail(cudaErrorInvalidValue);
	err = rt_done(drv()->DeviceGetCount(count));
	if (!err && !*count)
		return rt_fail(cudaErrorNoDevice);
	return err;
}

cudaError_t CUDARTAPI cudaSetDevice(int device)
{
	cudaError_t err = rt_enter_driver();

	return err ? err : rt_fail(rt_set_device(device));
}

cudaError_t CUDARTAPI cudaInitDevice(
        int device, unsigned device_flags, unsigned flags)
{
	CUcontext ctx;
	cudaError_t err = rt_enter_driver();

	if (err)
		return err;
	if (flags & cudaInitDeviceFlagsAreValid) {
		err = rt_done(
		        drv()->DevicePrimaryCtxSetFlags(device, device_flags));
		if (err)
			return err;
	}
	return rt_fail(rt_primary(device, &ctx));
}

cudaError_t CUDARTAPI cudaGetDevice(int *device)
{
	cudaError_t err = rt_enter_driver();

	if (err)
		return err;
	if (!device)
		return rt_fail(cudaErrorInvalidValue);
	return rt_fail(rt_current_device(device));
}

cudaError_t CUDARTAPI cudaDeviceReset(void)
{
	int device;
	cudaError_t err = rt_enter_driver();

	if (err)
		return err;
	err = rt_current_device(&device);
	return rt_fail(err ? err : rt_reset_device(device));
}

cudaError_t CUDARTAPI cudaDeviceSynchronize(void)
{
	cudaError_t err = rt_enter();

	if (err)
		return err;
	return rt_done(drv()->CtxSynchronize());
}

cudaError_t CUDARTAPI cudaSetDeviceFlags(unsigned flags)
{
	int device;
	cudaError_t err = rt_enter_driver();

	if (err)
		return err;
	err = rt_current_device(&device);
	if (err)
		return rt_fail(err);
	return rt_done(drv()->DevicePrimaryCtxSetFlags(device, flags));
}

cudaError_t CUDARTAPI cudaGetDeviceFlags(unsigned *flags)
{
	unsigned primary_flags;
	int device, active;
	cudaError_t err = rt_enter_driver();

	if (err)
		return err;
	if (!flags)
		return rt_fail(cudaErrorInvalidValue);
	err = rt_current_device(&device);
	if (err)
		return rt_fail(err);
	err = rt_done(drv()->DevicePrimaryCtxGetState(
	        device, &primary_flags, &active));
	if (!err)
		*flags = primary_flags;
	return err;
}

cudaError_t CUDARTAPI cudaDeviceGetAttribute(
        int *value, enum cudaDeviceAttr attr, int device)
{
	cudaError_t err = rt_enter_driver();

	if (err)
		return err;
	/* The two enumerations agree. */
	return rt_done(drv()->DeviceGetAttribute(
	        value, (CUdevice_attribute)attr, device));
}

cudaError_t CUDARTAPI cudaDeviceGetPCIBusId(char *id, int len, int device)
{
	cudaError_t err = rt_enter_driver();

	if (err)
		return err;
	return rt_done(drv()->DeviceGetPCIBusId(id, len, device));
}

cudaError_t CUDARTAPI cudaDeviceGetByPCIBusId(int *device, const char *id)
{
	cudaError_t err = rt_enter_driver();

	if (err)
		return err;
	return rt_done(drv()->DeviceGetByPCIBusId(device, id));
}

/* ------------------------------------------------------------------- limits */

cudaError_t CUDARTAPI cudaDeviceSetLimit(enum cudaLimit limit, size_t value)
{
	cudaError_t err = rt_enter();

	if (err)
		return err;
	return rt_done(drv()->CtxSetLimit((CUlimit)limit, value));
}

cudaError_t CUDARTAPI cudaDeviceGetLimit(size_t *value, enum cudaLimit limit)
{
	cudaError_t err = rt_enter();

	if (err)
		return err;
	return rt_done(drv()->CtxGetLimit(value, (CUlimit)limit));
}

cudaError_t CUDARTAPI cudaDeviceGetCacheConfig(enum cudaFuncCache *config)
{
	cudaError_t err = rt_enter();

	if (err)
		return err;
	return rt_done(drv()->CtxGetCacheConfig((CUfunc_cache *)config));
}

cudaError_t CUDARTAPI cudaDeviceSetCacheConfig(enum cudaFuncCache config)
{
	cudaError_t err = rt_enter();

	if (err)
		return err;
	return rt_done(drv()->CtxSetCacheConfig((CUfunc_cache)config));
}

cudaError_t CUDARTAPI cudaDeviceGetStreamPriorityRange(
        int *least, int *greatest)
{
	cudaError_t err = rt_enter();

	if (err)
		return err;
	return rt_done(drv()->CtxGetStreamPriorityRange(least, greatest));
}

cudaError_t CUDARTAPI cudaCtxResetPersistingL2Cache(void)
{
	cudaError_t err = rt_enter();

	if (err)
		return err;
	return rt_done(drv()->CtxResetPersistingL2Cache());
}

/* -------------------------------------------------------------------- peers */

cudaError_t CUDARTAPI cudaDeviceCanAccessPeer(int *can, int device, int peer)
{
	cudaError_t err = rt_enter_driver();

	if (err)
		return err;
	return rt_done(drv()->DeviceCanAccessPeer(can, device, peer));
}

cudaError_t CUDARTAPI cudaDeviceGetP2PAttribute(
        int *value, enum cudaDeviceP2PAttr attr, int src, int dst)
{
	cudaError_t err = rt_enter_driver();

	if (err)
		return err;
	return rt_done(drv()->DeviceGetP2PAttribute(
	        value, (CUdevice_P2PAttribute)attr, src, dst));
}

cudaError_t CUDARTAPI cudaDeviceEnablePeerAccess(int peer, unsigned flags)
{
	CUcontext ctx;
	cudaError_t err = rt_enter();

	if (err)
		return err;
	err = rt_primary(peer, &ctx);
	if (err)
		return rt_fail(err);
	return rt_done(drv()->CtxEnablePeerAccess(ctx, flags));
}

cudaError_t CUDARTAPI cudaDeviceDisablePeerAccess(int peer)
{
	CUcontext ctx;
	cudaError_t err = rt_enter();

	if (err)
		return err;
	err = rt_primary(peer, &ctx);
	if (err)
		return rt_fail(err);
	return rt_done(drv()->CtxDisablePeerAccess(ctx));
}

/* -------------------------------------------------------------------- pools */

cudaError_t CUDARTAPI cudaDeviceGetDefaultMemPool(
        cudaMemPool_t *pool, int device)
{
	cudaError_t err = rt_enter_driver();

	if (err)
		return err;
	return rt_done(drv()->DeviceGetDefaultMemPool(pool, device));
}

cudaError_t CUDARTAPI cudaDeviceGetMemPool(cudaMemPool_t *pool, int device)
{
	cudaError_t err = rt_enter_driver();

	if (err)
		return err;
	return rt_done(drv()->DeviceGetMemPool(pool, device));
}

cudaError_t CUDARTAPI cudaDeviceSetMemPool(int device, cudaMemPool_t pool)
{
	cudaError_t err = rt_enter_driver();

	if (err)
		return err;
	return rt_done(drv()->DeviceSetMemPool(device, pool));
}

cudaError_t CUDARTAPI cudaDeviceGraphMemTrim(int device)
{
	cudaError_t err = rt_enter_driver();

	if (err)
		return err;
	return rt_done(drv()->DeviceGraphMemTrim(device));
}

cudaError_t CUDARTAPI cudaDeviceGetGraphMemAttribute(
        int device, enum cudaGraphMemAttributeType attr, void *value)
{
	cudaError_t err = rt_enter_driver();

	if (err)
		return err;
	return rt_done(drv()->DeviceGetGraphMemAttribute(
	        device, (CUgraphMem_attribute)attr, value));
}

cudaError_t CUDARTAPI cudaDeviceSetGraphMemAttribute(
        int device, enum cudaGraphMemAttributeType attr, void *value)
{
	cudaError_t err = rt_enter_driver();

	if (err)
		return err;
	return rt_done(drv()->DeviceSetGraphMemAttribute(
	        device, (CUgraphMem_attribute)attr, value));
}
