/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* cudaGetDeviceProperties and what chooses a device by it. LUIDs exist on
 * Windows only; their fields stay 0. */
#include "rt.h"

#include <string.h>

struct row {
	size_t offset;
	CUdevice_attribute attr;
	bool is_size;
};

static const struct row rows[] = {
#define RT_INT(field, attr)                                                    \
	{offsetof(struct cudaDeviceProp, field), CU_DEVICE_ATTRIBUTE_##attr,   \
	        false},
#define RT_SIZE(field, attr)                                                   \
	{offsetof(struct cudaDeviceProp, field), CU_DEVICE_ATTRIBUTE_##attr,   \
	        true},
#include "properties.def"
#undef RT_INT
#undef RT_SIZE
};

static CUresult fill(struct cudaDeviceProp *prop, CUdevice device)
{
	CUuuid uuid;
	CUresult res;

	res = drv()->DeviceGetName(prop->name, sizeof(prop->name), device);
	if (res != CUDA_SUCCESS)
		return res;
	res = drv()->DeviceGetUuid(&uuid, device);
	if (res != CUDA_SUCCESS)
		return res;
	memcpy(&prop->uuid, &uuid, sizeof(prop->uuid));
	res = drv()->DeviceTotalMem(&prop->totalGlobalMem, device);
	if (res != CUDA_SUCCESS)
		return res;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		char *field = (char *)prop + rows[i].offset;
		size_t size;
		int value;

		res = drv()->DeviceGetAttribute(&value, rows[i].attr, device);
		if (res != CUDA_SUCCESS)
			return res;
		size = (size_t)value;
		if (rows[i].is_size)
			memcpy(field, &size, sizeof(size));
		else
			memcpy(field, &value, sizeof(value));
	}
	return CUDA_SUCCESS;
}

cudaError_t CUDARTAPI cudaGetDeviceProperties(
        struct cudaDeviceProp *prop, int device)
{
	struct cudaDeviceProp out = {0};
	cudaError_t err = rt_enter_driver();

	if (err)
		return err;
	if (!prop)
		return rt_fail(cudaErrorInvalidValue);
	err = rt_done(fill(&out, device));
	if (!err)
		*prop = out;
	return err;
}

cudaError_t CUDARTAPI cudaChooseDevice(
        int *device, const struct cudaDeviceProp *want)
{
	int count, best = 0;
	cudaError_t err = cudaGetDeviceCount(&count);

	if (err)
		return err;
	if (!device || !want)
		return rt_fail(cudaErrorInvalidValue);
	for (int i = count - 1; i >= 0; i--) {
		struct cudaDeviceProp have;

		err = cudaGetDeviceProperties(&have, i);
		if (err)
			return err;
		if (have.major * 10 + have.minor >=
		                want->major * 10 + want->minor &&
		        have.totalGlobalMem >= want->totalGlobalMem)
			best = i;
	}
	*device = best;
	return cudaSuccess;
}

struct cudaChannelFormatDesc CUDARTAPI cudaCreateChannelDesc(
        int x, int y, int z, int w, enum cudaChannelFormatKind kind)
{
	return (struct cudaChannelFormatDesc){x, y, z, w, kind};
}
