/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * NVML: what it says of the memory of a device under the limit is what
 * cuMemGetInfo says. Devices are told apart by their UUID, since NVML numbers
 * all of the machine and CUDA those the process sees; others are left alone,
 * and so is what single processes hold, which is the truth. Nothing is changed
 * before the program's first CUDA call. NVML's enums are ints here, so that no
 * header of its is needed. Any thread; no lock.
 */
#include <ctype.h>
#include <stdint.h>
#include <string.h>

#include "agent/agent.h"
#include "intercept/driver.h"
#include "intercept/guard.h"
#include "intercept/library.h"
#include "intercept/real_dlsym.h"

/* nvmlReturn_t */
#define STATUS_SUCCESS   0
#define STATUS_NOT_FOUND 13 /* NVML_ERROR_FUNCTION_NOT_FOUND */

#define UUID_BYTES      16
#define UUID_TEXT_BYTES 96 /* NVML_DEVICE_UUID_V2_BUFFER_SIZE */

struct memory {
	unsigned long long total, free, used;
};

struct memory_v2 {
	unsigned int version;
	unsigned long long total, reserved, free, used;
};

typedef int get_uuid(void *device, char *uuid, unsigned int length);
typedef int get_memory(void *device, struct memory *memory);
typedef int get_memory_v2(void *device, struct memory_v2 *memory);

extern get_memory ts_hook_nvml_memory __asm__("nvmlDeviceGetMemoryInfo")
        __attribute__((visibility("default")));
extern get_memory_v2 ts_hook_nvml_memory_v2 __asm__(
        "nvmlDeviceGetMemoryInfo_v2") __attribute__((visibility("default")));

static unsigned int digit(char c)
{
	return isdigit((unsigned char)c) ? (unsigned int)(c - '0')
	                                 : (unsigned int)((c | 32) - 'a' + 10);
}

/* "GPU-" or "MIG-" and 32 digits in groups; false where it is not that. */
static bool read_uuid(const char *text, unsigned char *uuid)
{
	size_t digits = 0;

	text = strchr(text, '-');
	if (!text)
		return false;
	memset(uuid, 0, UUID_BYTES);
	for (; *text; text++) {
		if (*text == '-')
			continue;
		if (!isxdigit((unsigned char)*text) || digits == 2 * UUID_BYTES)
			return false;
		uuid[digits / 2] =
		        (unsigned char)(uuid[digits / 2] * 16 + digit(*text));
		digits++;
	}
	return digits == 2 * UUID_BYTES;
}

/* The number that CUDA has for the device of NVML, -1 for none. */
static int number_of(void *device, const char *nvml)
{
	get_uuid *get = (get_uuid *)ts_next_for(nvml, "nvmlDeviceGetUUID");
	unsigned char wanted[UUID_BYTES];
	char text[UUID_TEXT_BYTES];
	CUuuid uuid;

	if (!get || get(device, text, sizeof(text)) != STATUS_SUCCESS ||
	        !read_uuid(text, wanted))
		return -1;
	for (int i = 0; i < TS_AGENT_DEVICES; i++) {
		if (ts_driver.fn_cuDeviceGetUuid_v2(&uuid, i) != CUDA_SUCCESS)
			return -1;
		if (!memcmp(uuid.bytes, wanted, UUID_BYTES))
			return i;
	}
	return -1;
}

/*
 * Brings NVML's figures in line with the agent's. NVML's total is more than
 * CUDA's by what the driver keeps for itself: without a limit it stays.
 */
static void limit(void *device, const char *nvml, struct memory *memory)
{
	size_t limit_bytes, cuda_bytes, free_bytes, ignored;
	int number = number_of(device, nvml);

	if (number < 0 || ts_driver.fn_cuDeviceTotalMem_v2(
	                          &cuda_bytes, number) != CUDA_SUCCESS)
		return;
	limit_bytes = ts_agent_total_mem(cuda_bytes);
	if (limit_bytes < cuda_bytes)
		memory->total = limit_bytes;
	if (ts_agent_device_mem_info(number, &free_bytes, &ignored))
		memory->free = free_bytes;
	else if (limit_bytes < cuda_bytes)
		memory->free = memory->used < limit_bytes
		                       ? limit_bytes - memory->used
		                       : 0;
	else
		return;
	memory->used = memory->total - memory->free;
}

int ts_hook_nvml_memory(void *device, struct memory *memory)
{
	get_memory *real = (get_memory *)ts_library_real(
	        TS_LIBRARY_nvmlDeviceGetMemoryInfo,
	        __builtin_return_address(0));
	int status;

	if (!real)
		return STATUS_NOT_FOUND;
	if (ts_phase != TS_PHASE_ACTIVE || !ts_enter())
		return real(device, memory);
	status = real(device, memory);
	if (status == STATUS_SUCCESS)
		limit(device, (const char *)real, memory);
	ts_leave();
	return status;
}

int ts_hook_nvml_memory_v2(void *device, struct memory_v2 *memory)
{
	get_memory_v2 *real = (get_memory_v2 *)ts_library_real(
	        TS_LIBRARY_nvmlDeviceGetMemoryInfo_v2,
	        __builtin_return_address(0));
	struct memory plain;
	int status;

	if (!real)
		return STATUS_NOT_FOUND;
	if (ts_phase != TS_PHASE_ACTIVE || !ts_enter())
		return real(device, memory);
	status = real(device, memory);
	if (status == STATUS_SUCCESS) {
		/* What is reserved is in use, to all but this structure. */
		plain = (struct memory){memory->total, memory->free,
		        memory->used + memory->reserved};
		limit(device, (const char *)real, &plain);
		if (memory->reserved > plain.used)
			memory->reserved = plain.used;
		memory->total = plain.total;
		memory->free = plain.free;
		memory->used = plain.used - memory->reserved;
	}
	ts_leave();
	return status;
}
