/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * libnvidia-ml.so.1 of the simulated GPU: what the simulated devices really
 * hold, whatever an interposer tells programs through the CUDA API. It asks
 * the driver's private entry points, which need neither cuInit nor a context.
 * Callable from any thread; nvml_lock guards the state below.
 */
#include "nvml.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "tests/simgpu/driver/simgpu_private.h"

/* A handle is the address of its device's entry. */
struct nvml_device {
	uint64_t last_busy_ns, last_virtual_ns; /* guarded by nvml_lock */
};

static pthread_mutex_t nvml_lock = PTHREAD_MUTEX_INITIALIZER;
/* Guarded by nvml_lock. */
static struct nvml_device devices[NVML_MAX_DEVICES];
static unsigned users;

/* Written under nvml_lock before users first becomes positive. */
static int (*device_count)(void);
static int (*device_get_info)(int device, struct simgpu_device_info *ret_info);
static int (*driver_get_version)(int *version);

/* ----------------------------------------------------------- initialisation */

static nvmlReturn_t bind_driver(void)
{
	void *lib = dlopen("libcuda.so.1", RTLD_NOW);

	if (!lib)
		return NVML_ERROR_DRIVER_NOT_LOADED;
	*(void **)&device_count = dlsym(lib, "simgpu_device_count");
	*(void **)&device_get_info = dlsym(lib, "simgpu_device_get_info");
	*(void **)&driver_get_version = dlsym(lib, "cuDriverGetVersion");
	/* Some other driver: this library knows the simulated one only. */
	if (!device_count || !device_get_info || !driver_get_version)
		return NVML_ERROR_DRIVER_NOT_LOADED;
	return NVML_SUCCESS;
}

nvmlReturn_t nvmlInitWithFlags(unsigned flags)
{
	nvmlReturn_t ret = NVML_SUCCESS;

	pthread_mutex_lock(&nvml_lock);
	if (!device_get_info)
		ret = bind_driver();
	if (ret == NVML_SUCCESS)
		users++;
	pthread_mutex_unlock(&nvml_lock);
	return ret;
}

nvmlReturn_t nvmlInit_v2(void)
{
	return nvmlInitWithFlags(0);
}

nvmlReturn_t nvmlInit(void)
{
	return nvmlInitWithFlags(0);
}

nvmlReturn_t nvmlShutdown(void)
{
	nvmlReturn_t ret = NVML_SUCCESS;

	pthread_mutex_lock(&nvml_lock);
	if (users)
		users--;
	else
		ret = NVML_ERROR_UNINITIALIZED;
	pthread_mutex_unlock(&nvml_lock);
	return ret;
}

static nvmlReturn_t check(void)
{
	unsigned now;

	pthread_mutex_lock(&nvml_lock);
	now = users;
	pthread_mutex_unlock(&nvml_lock);
	return now ? NVML_SUCCESS : NVML_ERROR_UNINITIALIZED;
}

static nvmlReturn_t info_of(
        nvmlDevice_t device, struct simgpu_device_info *ret_info)
{
	nvmlReturn_t ret = check();

	if (ret != NVML_SUCCESS)
		return ret;
	if (device < devices || device >= devices + NVML_MAX_DEVICES)
		return NVML_ERROR_INVALID_ARGUMENT;
	if (device_get_info((int)(device - devices), ret_info))
		return NVML_ERROR_INVALID_ARGUMENT;
	return NVML_SUCCESS;
}

const char *nvmlErrorString(nvmlReturn_t result)
{
	switch (result) {
	case NVML_SUCCESS:
		return "Success";
	case NVML_ERROR_UNINITIALIZED:
		return "Uninitialized";
	case NVML_ERROR_INVALID_ARGUMENT:
		return "Invalid Argument";
	case NVML_ERROR_NOT_SUPPORTED:
		return "Not Supported";
	case NVML_ERROR_NOT_FOUND:
		return "Not Found";
	case NVML_ERROR_INSUFFICIENT_SIZE:
		return "Insufficient Size";
	case NVML_ERROR_DRIVER_NOT_LOADED:
		return "Driver Not Loaded";
	default:
		return "Unknown Error";
	}
}

/* ------------------------------------------------------------------- system */

static nvmlReturn_t copy_text(char *to, unsigned length, const char *text)
{
	if (!to)
		return NVML_ERROR_INVALID_ARGUMENT;
	if (strlen(text) >= length)
		return NVML_ERROR_INSUFFICIENT_SIZE;
	strcpy(to, text);
	return NVML_SUCCESS;
}

nvmlReturn_t nvmlSystemGetCudaDriverVersion_v2(int *version)
{
	nvmlReturn_t ret = check();

	if (ret != NVML_SUCCESS)
		return ret;
	if (!version || driver_get_version(version))
		return NVML_ERROR_INVALID_ARGUMENT;
	return NVML_SUCCESS;
}

nvmlReturn_t nvmlSystemGetCudaDriverVersion(int *version)
{
	return nvmlSystemGetCudaDriverVersion_v2(version);
}

/* The simulated driver has one version, that of the CUDA API it offers. */
nvmlReturn_t nvmlSystemGetDriverVersion(char *version, unsigned length)
{
	char text[32];
	int cuda;
	nvmlReturn_t ret = nvmlSystemGetCudaDriverVersion_v2(&cuda);

	if (ret != NVML_SUCCESS)
		return ret;
	snprintf(text, sizeof(text), "%d.%d.simgpu", cuda / 1000,
	        cuda % 1000 / 10);
	return copy_text(version, length, text);
}

nvmlReturn_t nvmlSystemGetNVMLVersion(char *version, unsigned length)
{
	return nvmlSystemGetDriverVersion(version, length);
}

/* ------------------------------------------------------------------ handles */

nvmlReturn_t nvmlDeviceGetCount_v2(unsigned *count)
{
	nvmlReturn_t ret = check();

	if (ret != NVML_SUCCESS)
		return ret;
	if (!count)
		return NVML_ERROR_INVALID_ARGUMENT;
	*count = (unsigned)device_count();
	return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetCount(unsigned *count)
{
	return nvmlDeviceGetCount_v2(count);
}

nvmlReturn_t nvmlDeviceGetHandleByIndex_v2(unsigned index, nvmlDevice_t *device)
{
	unsigned count;
	nvmlReturn_t ret = nvmlDeviceGetCount_v2(&count);

	if (ret != NVML_SUCCESS)
		return ret;
	if (!device || index >= count || index >= NVML_MAX_DEVICES)
		return NVML_ERROR_INVALID_ARGUMENT;
	*device = &devices[index];
	return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetHandleByIndex(unsigned index, nvmlDevice_t *device)
{
	return nvmlDeviceGetHandleByIndex_v2(index, device);
}

nvmlReturn_t nvmlDeviceGetHandleByUUID(const char *uuid, nvmlDevice_t *device)
{
	nvmlDevice_t each;

	if (!uuid || !device)
		return NVML_ERROR_INVALID_ARGUMENT;
	for (unsigned i = 0;; i++) {
		char text[64];
		nvmlReturn_t ret = nvmlDeviceGetHandleByIndex_v2(i, &each);

		if (ret == NVML_ERROR_INVALID_ARGUMENT)
			return NVML_ERROR_NOT_FOUND;
		if (ret == NVML_SUCCESS)
			ret = nvmlDeviceGetUUID(each, text, sizeof(text));
		if (ret != NVML_SUCCESS)
			return ret;
		if (!strcmp(text, uuid))
			break;
	}
	*device = each;
	return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetHandleByPciBusId_v2(
        const char *id, nvmlDevice_t *device)
{
	unsigned domain, bus, slot;
	nvmlDevice_t each;

	if (!id || !device)
		return NVML_ERROR_INVALID_ARGUMENT;
	if (sscanf(id, "%x:%x:%x", &domain, &bus, &slot) != 3) {
		domain = 0;
		if (sscanf(id, "%x:%x", &bus, &slot) != 2)
			return NVML_ERROR_INVALID_ARGUMENT;
	}
	for (unsigned i = 0;; i++) {
		struct simgpu_device_info info;
		nvmlReturn_t ret = nvmlDeviceGetHandleByIndex_v2(i, &each);

		if (ret == NVML_ERROR_INVALID_ARGUMENT)
			return NVML_ERROR_NOT_FOUND;
		if (ret == NVML_SUCCESS)
			ret = info_of(each, &info);
		if (ret != NVML_SUCCESS)
			return ret;
		if ((unsigned)info.pci_domain == domain &&
		        (unsigned)info.pci_bus == bus &&
		        (unsigned)info.pci_device == slot)
			break;
	}
	*device = each;
	return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetHandleByPciBusId(const char *id, nvmlDevice_t *device)
{
	return nvmlDeviceGetHandleByPciBusId_v2(id, device);
}

/* ----------------------------------------------------------------- identity */

nvmlReturn_t nvmlDeviceGetName(nvmlDevice_t device, char *name, unsigned length)
{
	struct simgpu_device_info info;
	nvmlReturn_t ret = info_of(device, &info);

	return ret == NVML_SUCCESS ? copy_text(name, length, info.name) : ret;
}

nvmlReturn_t nvmlDeviceGetUUID(nvmlDevice_t device, char *uuid, unsigned length)
{
	struct simgpu_device_info info;
	char text[64] = "GPU-";
	char *to = text + 4;
	nvmlReturn_t ret = info_of(device, &info);

	if (ret != NVML_SUCCESS)
		return ret;
	for (int i = 0; i < 16; i++) {
		if (i == 4 || i == 6 || i == 8 || i == 10)
			*to++ = '-';
		to += sprintf(to, "%02x", info.uuid[i]);
	}
	return copy_text(uuid, length, text);
}

nvmlReturn_t nvmlDeviceGetIndex(nvmlDevice_t device, unsigned *index)
{
	struct simgpu_device_info info;
	nvmlReturn_t ret = info_of(device, &info);

	if (ret != NVML_SUCCESS)
		return ret;
	if (!index)
		return NVML_ERROR_INVALID_ARGUMENT;
	*index = (unsigned)(device - devices);
	return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetMinorNumber(nvmlDevice_t device, unsigned *minor)
{
	return nvmlDeviceGetIndex(device, minor);
}

nvmlReturn_t nvmlDeviceGetPciInfo_v3(nvmlDevice_t device, nvmlPciInfo_t *pci)
{
	struct simgpu_device_info info;
	nvmlReturn_t ret = info_of(device, &info);

	if (ret != NVML_SUCCESS)
		return ret;
	if (!pci)
		return NVML_ERROR_INVALID_ARGUMENT;
	memset(pci, 0, sizeof(*pci));
	pci->domain = (unsigned)info.pci_domain;
	pci->bus = (unsigned)info.pci_bus;
	pci->device = (unsigned)info.pci_device;
	snprintf(pci->busIdLegacy, sizeof(pci->busIdLegacy), "%04x:%02x:%02x.0",
	        pci->domain & 0xffff, pci->bus & 0xff, pci->device & 0xff);
	snprintf(pci->busId, sizeof(pci->busId), "%08x:%02x:%02x.0",
	        pci->domain, pci->bus & 0xff, pci->device & 0xff);
	return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetPciInfo_v2(nvmlDevice_t device, nvmlPciInfo_v2_t *pci)
{
	nvmlPciInfo_t info;
	nvmlReturn_t ret = nvmlDeviceGetPciInfo_v3(device, &info);

	if (ret != NVML_SUCCESS)
		return ret;
	if (!pci)
		return NVML_ERROR_INVALID_ARGUMENT;
	*pci = (nvmlPciInfo_v2_t){
	        .domain = info.domain, .bus = info.bus, .device = info.device};
	memcpy(pci->busId, info.busIdLegacy, sizeof(pci->busId));
	return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetPciInfo(nvmlDevice_t device, nvmlPciInfo_v2_t *pci)
{
	return nvmlDeviceGetPciInfo_v2(device, pci);
}

nvmlReturn_t nvmlDeviceGetCudaComputeCapability(
        nvmlDevice_t device, int *major, int *minor)
{
	struct simgpu_device_info info;
	nvmlReturn_t ret = info_of(device, &info);

	if (ret != NVML_SUCCESS)
		return ret;
	if (!major || !minor)
		return NVML_ERROR_INVALID_ARGUMENT;
	*major = info.sm_major;
	*minor = info.sm_minor;
	return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetComputeMode(nvmlDevice_t device, unsigned *mode)
{
	nvmlReturn_t ret = nvmlDeviceGetIndex(device, mode);

	if (ret == NVML_SUCCESS)
		*mode = 0; /* default: shared by processes */
	return ret;
}

nvmlReturn_t nvmlDeviceGetVirtualizationMode(
        nvmlDevice_t device, unsigned *mode)
{
	nvmlReturn_t ret = nvmlDeviceGetIndex(device, mode);

	if (ret == NVML_SUCCESS)
		*mode = 0; /* none */
	return ret;
}

nvmlReturn_t nvmlDeviceGetGpuFabricInfoV(
        nvmlDevice_t device, nvmlGpuFabricInfoV_t *info)
{
	unsigned version, index;
	nvmlReturn_t ret = nvmlDeviceGetIndex(device, &index);
	size_t bytes;

	if (ret != NVML_SUCCESS)
		return ret;
	if (!info)
		return NVML_ERROR_INVALID_ARGUMENT;
	version = info->version;
	bytes = version & 0xffffff;
	if (bytes < sizeof(*info) || bytes > 256)
		return NVML_ERROR_INVALID_ARGUMENT;
	memset(info, 0, bytes);
	info->version = version;
	info->status = NVML_ERROR_NOT_SUPPORTED;
	return NVML_SUCCESS;
}

/* --------------------------------------------------------- memory and work */

nvmlReturn_t nvmlDeviceGetMemoryInfo_v2(
        nvmlDevice_t device, nvmlMemory_v2_t *memory)
{
	struct simgpu_device_info info;
	nvmlReturn_t ret = info_of(device, &info);

	if (ret != NVML_SUCCESS)
		return ret;
	if (!memory)
		return NVML_ERROR_INVALID_ARGUMENT;
	memory->total = info.total_bytes;
	memory->reserved = 0;
	memory->used = info.used_bytes;
	memory->free = info.total_bytes - info.used_bytes;
	return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetMemoryInfo(nvmlDevice_t device, nvmlMemory_t *memory)
{
	nvmlMemory_v2_t now;
	nvmlReturn_t ret = nvmlDeviceGetMemoryInfo_v2(device, &now);

	if (ret != NVML_SUCCESS)
		return ret;
	if (!memory)
		return NVML_ERROR_INVALID_ARGUMENT;
	*memory = (nvmlMemory_t){now.total, now.free, now.used};
	return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetUtilizationRates(
        nvmlDevice_t device, nvmlUtilization_t *rates)
{
	struct simgpu_device_info info;
	uint64_t busy_ns, span_ns;
	nvmlReturn_t ret = info_of(device, &info);

	if (ret != NVML_SUCCESS)
		return ret;
	if (!rates)
		return NVML_ERROR_INVALID_ARGUMENT;
	pthread_mutex_lock(&nvml_lock);
	busy_ns = info.busy_compute_ns - device->last_busy_ns;
	span_ns = info.virtual_ns - device->last_virtual_ns;
	device->last_busy_ns = info.busy_compute_ns;
	device->last_virtual_ns = info.virtual_ns;
	pthread_mutex_unlock(&nvml_lock);
	/* Work already issued may end later than the host's clock. */
	if (busy_ns > span_ns)
		busy_ns = span_ns;
	rates->gpu = span_ns ? (unsigned)(busy_ns * 100 / span_ns) : 0;
	/* The time in which memory was read or written: what runs does so. */
	rates->memory = rates->gpu;
	return NVML_SUCCESS;
}

/* The one process the simulated device knows of is the calling one. */
static nvmlReturn_t processes(nvmlDevice_t device, unsigned *count,
        bool has_room, uint64_t *ret_used_bytes)
{
	struct simgpu_device_info info;
	nvmlReturn_t ret = info_of(device, &info);
	unsigned room;

	if (ret != NVML_SUCCESS)
		return ret;
	if (!count)
		return NVML_ERROR_INVALID_ARGUMENT;
	room = has_room ? *count : 0;
	*count = info.context_bytes ? 1 : 0;
	*ret_used_bytes = info.used_bytes;
	return *count > room ? NVML_ERROR_INSUFFICIENT_SIZE : NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetComputeRunningProcesses(
        nvmlDevice_t device, unsigned *count, nvmlProcessInfo_v1_t *infos)
{
	uint64_t used_bytes;
	nvmlReturn_t ret = processes(device, count, infos != NULL, &used_bytes);

	if (ret == NVML_SUCCESS && *count)
		infos[0] =
		        (nvmlProcessInfo_v1_t){(unsigned)getpid(), used_bytes};
	return ret;
}

nvmlReturn_t nvmlDeviceGetComputeRunningProcesses_v3(
        nvmlDevice_t device, unsigned *count, nvmlProcessInfo_t *infos)
{
	uint64_t used_bytes;
	nvmlReturn_t ret = processes(device, count, infos != NULL, &used_bytes);

	/* All ones: no partition. */
	if (ret == NVML_SUCCESS && *count)
		infos[0] = (nvmlProcessInfo_t){
		        (unsigned)getpid(), used_bytes, ~0u, ~0u};
	return ret;
}

nvmlReturn_t nvmlDeviceGetComputeRunningProcesses_v2(
        nvmlDevice_t device, unsigned *count, nvmlProcessInfo_t *infos)
{
	return nvmlDeviceGetComputeRunningProcesses_v3(device, count, infos);
}
