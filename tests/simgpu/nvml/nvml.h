/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The part of the management library's ABI that the simulated GPU has, after
 * its public documentation: result codes, structures, functions. Functions
 * carry the names programs look up; all take an initialised library except
 * nvmlInit* and nvmlErrorString.
 */
#ifndef SIMGPU_NVML_H
#define SIMGPU_NVML_H

#include <stddef.h>

typedef int nvmlReturn_t;
enum {
	NVML_SUCCESS = 0,
	NVML_ERROR_UNINITIALIZED = 1,
	NVML_ERROR_INVALID_ARGUMENT = 2,
	NVML_ERROR_NOT_SUPPORTED = 3,
	NVML_ERROR_NOT_FOUND = 6,
	NVML_ERROR_INSUFFICIENT_SIZE = 7,
	NVML_ERROR_DRIVER_NOT_LOADED = 9,
};

enum { NVML_MAX_DEVICES = 64 };

typedef struct nvml_device *nvmlDevice_t;

typedef struct {
	char busIdLegacy[16];
	unsigned domain, bus, device, pciDeviceId, pciSubSystemId;
	char busId[32];
} nvmlPciInfo_t;

/* Versions 1 and 2. */
typedef struct {
	char busId[16];
	unsigned domain, bus, device, pciDeviceId, pciSubSystemId;
	unsigned reserved[4];
} nvmlPciInfo_v2_t;

typedef struct {
	unsigned long long total, free, used;
} nvmlMemory_t;

typedef struct {
	unsigned version;
	unsigned long long total, reserved, free, used;
} nvmlMemory_v2_t;

typedef struct {
	unsigned gpu, memory; /* percent */
} nvmlUtilization_t;

typedef struct {
	unsigned pid;
	unsigned long long usedGpuMemory;
} nvmlProcessInfo_v1_t;

typedef struct {
	unsigned pid;
	unsigned long long usedGpuMemory;
	unsigned gpuInstanceId, computeInstanceId;
} nvmlProcessInfo_t;

/* The common beginning of all versions: their low 24 bits are the size. */
typedef struct {
	unsigned version;
	unsigned char clusterUuid[16];
	nvmlReturn_t status;
	unsigned cliqueId;
	unsigned char state; /* 0: not supported */
} nvmlGpuFabricInfoV_t;

nvmlReturn_t nvmlInit(void);
nvmlReturn_t nvmlInit_v2(void);
nvmlReturn_t nvmlInitWithFlags(unsigned flags);
nvmlReturn_t nvmlShutdown(void);
const char *nvmlErrorString(nvmlReturn_t result);

nvmlReturn_t nvmlSystemGetDriverVersion(char *version, unsigned length);
nvmlReturn_t nvmlSystemGetNVMLVersion(char *version, unsigned length);
nvmlReturn_t nvmlSystemGetCudaDriverVersion(int *version);
nvmlReturn_t nvmlSystemGetCudaDriverVersion_v2(int *version);

nvmlReturn_t nvmlDeviceGetCount(unsigned *count);
nvmlReturn_t nvmlDeviceGetCount_v2(unsigned *count);
nvmlReturn_t nvmlDeviceGetHandleByIndex(unsigned index, nvmlDevice_t *device);
nvmlReturn_t nvmlDeviceGetHandleByIndex_v2(
        unsigned index, nvmlDevice_t *device);
nvmlReturn_t nvmlDeviceGetHandleByUUID(const char *uuid, nvmlDevice_t *device);
nvmlReturn_t nvmlDeviceGetHandleByPciBusId(
        const char *id, nvmlDevice_t *device);
nvmlReturn_t nvmlDeviceGetHandleByPciBusId_v2(
        const char *id, nvmlDevice_t *device);

nvmlReturn_t nvmlDeviceGetName(
        nvmlDevice_t device, char *name, unsigned length);
nvmlReturn_t nvmlDeviceGetUUID(
        nvmlDevice_t device, char *uuid, unsigned length);
nvmlReturn_t nvmlDeviceGetIndex(nvmlDevice_t device, unsigned *index);
nvmlReturn_t nvmlDeviceGetMinorNumber(nvmlDevice_t device, unsigned *minor);
nvmlReturn_t nvmlDeviceGetPciInfo(nvmlDevice_t device, nvmlPciInfo_v2_t *info);
nvmlReturn_t nvmlDeviceGetPciInfo_v2(
        nvmlDevice_t device, nvmlPciInfo_v2_t *info);
nvmlReturn_t nvmlDeviceGetPciInfo_v3(nvmlDevice_t device, nvmlPciInfo_t *info);
nvmlReturn_t nvmlDeviceGetCudaComputeCapability(
        nvmlDevice_t device, int *major, int *minor);
nvmlReturn_t nvmlDeviceGetComputeMode(nvmlDevice_t device, unsigned *mode);
nvmlReturn_t nvmlDeviceGetVirtualizationMode(
        nvmlDevice_t device, unsigned *mode);

/* No simulated device is part of a fabric: state and status say so. */
nvmlReturn_t nvmlDeviceGetGpuFabricInfoV(
        nvmlDevice_t device, nvmlGpuFabricInfoV_t *info);

nvmlReturn_t nvmlDeviceGetMemoryInfo(nvmlDevice_t device, nvmlMemory_t *memory);
nvmlReturn_t nvmlDeviceGetMemoryInfo_v2(
        nvmlDevice_t device, nvmlMemory_v2_t *memory);
/* Busy share of virtual time since the last call for the device. */
nvmlReturn_t nvmlDeviceGetUtilizationRates(
        nvmlDevice_t device, nvmlUtilization_t *rates);
nvmlReturn_t nvmlDeviceGetComputeRunningProcesses(
        nvmlDevice_t device, unsigned *count, nvmlProcessInfo_v1_t *infos);
nvmlReturn_t nvmlDeviceGetComputeRunningProcesses_v2(
        nvmlDevice_t device, unsigned *count, nvmlProcessInfo_t *infos);
nvmlReturn_t nvmlDeviceGetComputeRunningProcesses_v3(
        nvmlDevice_t device, unsigned *count, nvmlProcessInfo_t *infos);

#endif
