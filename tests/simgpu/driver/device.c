/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The devices: their creation at start, identity and attributes. The devices
 * never go away. Guarded by the lock.
 */
#include "tests/simgpu/driver/engine.h"
#include "tests/simgpu/driver/sg.h"
#include "tests/simgpu/driver/simgpu_private.h"
#include "tests/simgpu/driver/start.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FIRST_BUS 0x07 /* device i is at 0000:(7+i):00.0 */

struct sg_device *sg_devices;
unsigned sg_device_count;

/* Of the names in the list each is for one device, the last for the rest. */
static int read_models(struct sg_device *devices)
{
	const char *at = sg_settings.device;

	for (unsigned i = 0; i < sg_settings.device_count; i++) {
		char name[PATH_MAX];
		size_t length = strcspn(at, ",");
		int err;

		if (i && !*at) {
			devices[i].model = devices[i - 1].model;
			continue;
		}
		snprintf(name, sizeof(name), "%.*s", (int)length, at);
		at += length + (at[length] == ',');
		err = sg_model_read(name, &devices[i].model);
		if (err)
			return err;
	}
	return 0;
}

int sg_devices_create(void)
{
	struct sg_device *devices =
	        sg_xcalloc(sg_settings.device_count, sizeof(*devices));
	int err = read_models(devices);

	if (err) {
		free(devices);
		return err;
	}
	for (unsigned i = 0; i < sg_settings.device_count; i++) {
		struct sg_device *dev = &devices[i];
		const char *name = dev->model.name;

		dev->physical = (int)i;
		memcpy(dev->uuid, "simgpu", 6);
		for (unsigned c = 0; name[c]; c++)
			dev->uuid[6 + c % 8] ^= (unsigned char)name[c];
		dev->uuid[15] = (unsigned char)(i + 1);
	}
	sg_device_count = sg_devices_visible(devices, sg_settings.device_count);
	for (unsigned i = 0; i < sg_settings.device_count; i++) {
		devices[i].ordinal = (int)i;
		devices[i].engines = sg_engines_create(&devices[i]);
	}
	sg_devices = devices;
	return 0;
}

struct sg_device *sg_device_get(CUdevice ordinal)
{
	if (ordinal < 0 || (unsigned)ordinal >= sg_device_count)
		return NULL;
	return &sg_devices[ordinal];
}

/* ----------------------------------------------------------------- listing */

CUresult cuDeviceGetCount(int *count)
{
	SG_API(cuDeviceGetCount, SG_COST_NONE, SG_NEED_INIT);
	if (!count)
		return CUDA_ERROR_INVALID_VALUE;
	*count = (int)sg_device_count;
	return CUDA_SUCCESS;
}

CUresult cuDeviceGet(CUdevice *device, int ordinal)
{
	SG_API(cuDeviceGet, SG_COST_NONE, SG_NEED_INIT);
	if (!device)
		return CUDA_ERROR_INVALID_VALUE;
	if (!sg_device_get(ordinal))
		return CUDA_ERROR_INVALID_DEVICE;
	*device = ordinal;
	return CUDA_SUCCESS;
}

CUresult cuDeviceGetName(char *name, int bytes, CUdevice device)
{
	const struct sg_device *dev;
	SG_API(cuDeviceGetName, SG_COST_NONE, SG_NEED_INIT);
	dev = sg_device_get(device);
	if (!dev)
		return CUDA_ERROR_INVALID_DEVICE;
	if (!name || bytes < 1)
		return CUDA_ERROR_INVALID_VALUE;
	snprintf(name, (size_t)bytes, "%s", dev->model.device_name);
	return CUDA_SUCCESS;
}

static CUresult get_uuid(CUuuid *uuid, CUdevice device)
{
	const struct sg_device *dev = sg_device_get(device);

	if (!dev)
		return CUDA_ERROR_INVALID_DEVICE;
	if (!uuid)
		return CUDA_ERROR_INVALID_VALUE;
	memcpy(uuid->bytes, dev->uuid, sizeof(dev->uuid));
	return CUDA_SUCCESS;
}

CUresult cuDeviceGetUuid(CUuuid *uuid, CUdevice device)
{
	SG_API(cuDeviceGetUuid, SG_COST_NONE, SG_NEED_INIT);
	return get_uuid(uuid, device);
}

CUresult cuDeviceGetUuid_v2(CUuuid *uuid, CUdevice device)
{
	SG_API(cuDeviceGetUuid_v2, SG_COST_NONE, SG_NEED_INIT);
	return get_uuid(uuid, device);
}

CUresult cuDeviceGetLuid(char *luid, unsigned *mask, CUdevice device)
{
	SG_API(cuDeviceGetLuid, SG_COST_NONE, SG_NEED_INIT);
	if (!sg_device_get(device))
		return CUDA_ERROR_INVALID_DEVICE;
	if (!luid || !mask)
		return CUDA_ERROR_INVALID_VALUE;
	/* A locally unique identifier is a Windows matter. */
	return sg_not_supported("cuDeviceGetLuid");
}

CUresult cuDeviceTotalMem_v2(size_t *bytes, CUdevice device)
{
	const struct sg_device *dev;
	SG_API(cuDeviceTotalMem_v2, SG_COST_NONE, SG_NEED_INIT);
	dev = sg_device_get(device);
	if (!dev)
		return CUDA_ERROR_INVALID_DEVICE;
	if (!bytes)
		return CUDA_ERROR_INVALID_VALUE;
	*bytes = dev->model.memory_bytes;
	return CUDA_SUCCESS;
}

CUresult cuDeviceTotalMem(unsigned *bytes, CUdevice device)
{
	const struct sg_device *dev;
	SG_API(cuDeviceTotalMem, SG_COST_NONE, SG_NEED_INIT);
	dev = sg_device_get(device);
	if (!dev)
		return CUDA_ERROR_INVALID_DEVICE;
	if (!bytes)
		return CUDA_ERROR_INVALID_VALUE;
	*bytes = dev->model.memory_bytes > UINT_MAX
	                 ? UINT_MAX
	                 : (unsigned)dev->model.memory_bytes;
	return CUDA_SUCCESS;
}

CUresult cuDeviceComputeCapability(int *major, int *minor, CUdevice device)
{
	const struct sg_device *dev;
	SG_API(cuDeviceComputeCapability, SG_COST_NONE, SG_NEED_INIT);
	dev = sg_device_get(device);
	if (!dev)
		return CUDA_ERROR_INVALID_DEVICE;
	if (!major || !minor)
		return CUDA_ERROR_INVALID_VALUE;
	*major = dev->model.sm_major;
	*minor = dev->model.sm_minor;
	return CUDA_SUCCESS;
}

CUresult cuDeviceGetPCIBusId(char *id, int bytes, CUdevice device)
{
	SG_API(cuDeviceGetPCIBusId, SG_COST_NONE, SG_NEED_INIT);
	if (!sg_device_get(device))
		return CUDA_ERROR_INVALID_DEVICE;
	if (!id || bytes < 1)
		return CUDA_ERROR_INVALID_VALUE;
	snprintf(id, (size_t)bytes, "0000:%02X:00.0",
	        FIRST_BUS + (unsigned)sg_devices[device].physical);
	return CUDA_SUCCESS;
}

CUresult cuDeviceGetByPCIBusId(CUdevice *device, const char *id)
{
	unsigned domain, bus, slot, function = 0;
	SG_API(cuDeviceGetByPCIBusId, SG_COST_NONE, SG_NEED_INIT);
	if (!device || !id)
		return CUDA_ERROR_INVALID_VALUE;
	if (sscanf(id, "%x:%x:%x.%x", &domain, &bus, &slot, &function) < 3) {
		domain = 0;
		if (sscanf(id, "%x:%x.%x", &bus, &slot, &function) < 2)
			return CUDA_ERROR_INVALID_VALUE;
	}
	for (unsigned i = 0;
	        !domain && !slot && !function && i < sg_device_count; i++) {
		if (bus != FIRST_BUS + (unsigned)sg_devices[i].physical)
			continue;
		*device = (int)i;
		return CUDA_SUCCESS;
	}
	return CUDA_ERROR_INVALID_DEVICE;
}

CUresult cuDeviceGetExecAffinitySupport(
        int *supported, CUexecAffinityType type, CUdevice device)
{
	SG_API(cuDeviceGetExecAffinitySupport, SG_COST_NONE, SG_NEED_INIT);
	if (!sg_device_get(device))
		return CUDA_ERROR_INVALID_DEVICE;
	if (!supported || type != CU_EXEC_AFFINITY_TYPE_SM_COUNT)
		return CUDA_ERROR_INVALID_VALUE;
	*supported = 0; /* needs MPS */
	return CUDA_SUCCESS;
}

/* -------------------------------------------------------------- attributes */

CUresult cuDeviceGetAttribute(
        int *value, CUdevice_attribute attribute, CUdevice device)
{
	const struct sg_device *dev;
	SG_API(cuDeviceGetAttribute, SG_COST_NONE, SG_NEED_INIT);
	dev = sg_device_get(device);
	if (!dev)
		return CUDA_ERROR_INVALID_DEVICE;
	if (!value)
		return CUDA_ERROR_INVALID_VALUE;
	switch ((int)attribute) {
	case CU_DEVICE_ATTRIBUTE_PCI_BUS_ID:
		*value = FIRST_BUS + dev->physical;
		return CUDA_SUCCESS;
	case CU_DEVICE_ATTRIBUTE_MULTI_GPU_BOARD_GROUP_ID:
		*value = dev->physical;
		return CUDA_SUCCESS;
	}
	return sg_model_attribute(&dev->model, (int)attribute, value);
}

CUresult cuDeviceGetProperties(CUdevprop *prop, CUdevice device)
{
	const struct sg_device *dev;
	SG_API(cuDeviceGetProperties, SG_COST_NONE, SG_NEED_INIT);
	dev = sg_device_get(device);
	if (!dev)
		return CUDA_ERROR_INVALID_DEVICE;
	if (!prop)
		return CUDA_ERROR_INVALID_VALUE;
	const struct {
		int attribute, *target;
	} wanted[] = {
	        {CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK,
	                &prop->maxThreadsPerBlock},
	        {CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X, &prop->maxThreadsDim[0]},
	        {CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y, &prop->maxThreadsDim[1]},
	        {CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z, &prop->maxThreadsDim[2]},
	        {CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X, &prop->maxGridSize[0]},
	        {CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y, &prop->maxGridSize[1]},
	        {CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z, &prop->maxGridSize[2]},
	        {CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK,
	                &prop->sharedMemPerBlock},
	        {CU_DEVICE_ATTRIBUTE_TOTAL_CONSTANT_MEMORY,
	                &prop->totalConstantMemory},
	        {CU_DEVICE_ATTRIBUTE_WARP_SIZE, &prop->SIMDWidth},
	        {CU_DEVICE_ATTRIBUTE_MAX_PITCH, &prop->memPitch},
	        {CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK,
	                &prop->regsPerBlock},
	        {CU_DEVICE_ATTRIBUTE_CLOCK_RATE, &prop->clockRate},
	        {CU_DEVICE_ATTRIBUTE_TEXTURE_ALIGNMENT, &prop->textureAlign},
	};
	for (size_t i = 0; i < sizeof(wanted) / sizeof(wanted[0]); i++)
		sg_model_attribute(
		        &dev->model, wanted[i].attribute, wanted[i].target);
	return CUDA_SUCCESS;
}

/* ------------------------------------------------------------------- peers */

static bool peers(CUdevice a, CUdevice b)
{
	return sg_device_get(a) && sg_device_get(b) && a != b;
}

CUresult cuDeviceCanAccessPeer(int *can, CUdevice device, CUdevice peer)
{
	SG_API(cuDeviceCanAccessPeer, SG_COST_NONE, SG_NEED_INIT);
	if (!can)
		return CUDA_ERROR_INVALID_VALUE;
	if (!sg_device_get(device) || !sg_device_get(peer))
		return CUDA_ERROR_INVALID_DEVICE;
	*can = peers(device, peer) && sg_devices[device].model.peer_access;
	return CUDA_SUCCESS;
}

CUresult cuDeviceGetP2PAttribute(int *value, CUdevice_P2PAttribute attribute,
        CUdevice device, CUdevice peer)
{
	SG_API(cuDeviceGetP2PAttribute, SG_COST_NONE, SG_NEED_INIT);
	if (!value)
		return CUDA_ERROR_INVALID_VALUE;
	if (!peers(device, peer))
		return CUDA_ERROR_INVALID_DEVICE;
	switch (attribute) {
	case CU_DEVICE_P2P_ATTRIBUTE_PERFORMANCE_RANK:
	case CU_DEVICE_P2P_ATTRIBUTE_NATIVE_ATOMIC_SUPPORTED:
		*value = 0; /* the same link as the host: PCI express */
		return CUDA_SUCCESS;
	case CU_DEVICE_P2P_ATTRIBUTE_ACCESS_SUPPORTED:
	case CU_DEVICE_P2P_ATTRIBUTE_CUDA_ARRAY_ACCESS_SUPPORTED:
		*value = sg_devices[device].model.peer_access;
		return CUDA_SUCCESS;
	default:
		return CUDA_ERROR_INVALID_VALUE;
	}
}

/* ------------------------------------------------ the simulator's own view */

SG_EXPORT int simgpu_device_count(void)
{
	int count = 0;

	sg_lock();
	if (!sg_start())
		count = (int)sg_settings.device_count;
	sg_unlock();
	return count;
}

/* By the machine's number, whether the process sees the device or not. */
static const struct sg_device *by_place(int physical)
{
	for (unsigned i = 0; i < sg_settings.device_count; i++) {
		if (sg_devices[i].physical == physical)
			return &sg_devices[i];
	}
	return NULL;
}

SG_EXPORT int simgpu_device_get_info(
        int device, struct simgpu_device_info *ret_info)
{
	const struct sg_device *dev = NULL;

	sg_lock();
	if (!sg_start())
		dev = by_place(device);
	if (dev) {
		*ret_info = (struct simgpu_device_info){
		        .total_bytes = dev->model.memory_bytes,
		        .used_bytes = dev->physical_bytes,
		        .context_bytes =
		                dev->contexts * dev->model.context_bytes,
		        .virtual_ns = sg_host_now(),
		        .busy_compute_ns = dev->busy_ns[SG_ENGINE_COMPUTE],
		        .sm_major = dev->model.sm_major,
		        .sm_minor = dev->model.sm_minor,
		        .pci_bus = FIRST_BUS + dev->physical,
		        .launches = dev->count.launches,
		};
		snprintf(ret_info->name, sizeof(ret_info->name), "%s",
		        dev->model.device_name);
		memcpy(ret_info->uuid, dev->uuid, sizeof(dev->uuid));
	}
	sg_unlock();
	return dev ? 0 : -ENODEV;
}
