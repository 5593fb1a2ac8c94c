/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * PyTorch's block reports. libc10_cuda calls c10::reportMemoryUsageToProfiler
 * for every block it gives out or takes back, with its allocator's lock held:
 * nothing here waits for a thread that could need that lock.
 */
#include <stdatomic.h>
#include <stdint.h>

#include "agent/agent.h"
#include "intercept/guard.h"
#include "intercept/real_dlsym.h"

#define NEW_NAME "_ZN3c1027reportMemoryUsageToProfilerEPvlmmNS_6DeviceE"
/* Up to PyTorch 1.13 the totals were signed. */
#define OLD_NAME "_ZN3c1027reportMemoryUsageToProfilerEPvlllNS_6DeviceE"

#define C10_DEVICE_CUDA 1

/* The last is c10::Device by value: type in bits 0-7, index in bits 8-15. */
typedef void report_function(void *block, int64_t bytes, uint64_t allocated,
        uint64_t reserved, uint32_t device);

extern report_function ts_hook_c10_report __asm__(NEW_NAME)
        __attribute__((visibility("default")));
extern report_function ts_hook_c10_report_old __asm__(OLD_NAME)
        __attribute__((visibility("default")));

static report_function *real_report(
        const char *name, _Atomic(report_function *) *known, const void *caller)
{
	report_function *found =
	        atomic_load_explicit(known, memory_order_relaxed);

	if (found)
		return found;
	found = (report_function *)ts_next_for(caller, name);
	atomic_store_explicit(known, found, memory_order_relaxed);
	return found;
}

static inline void tell_agent(void *block, int64_t bytes, uint32_t device)
{
	int index = (int8_t)(device >> 8 & 0xff);

	if ((device & 0xff) != C10_DEVICE_CUDA || !bytes || !ts_enter())
		return;
	ts_agent_report_block(
	        (uint64_t)(uintptr_t)block, bytes, index < 0 ? 0 : index);
	ts_leave();
}

void ts_hook_c10_report(void *block, int64_t bytes, uint64_t allocated,
        uint64_t reserved, uint32_t device)
{
	static _Atomic(report_function *) real;
	report_function *next =
	        real_report(NEW_NAME, &real, __builtin_return_address(0));

	tell_agent(block, bytes, device);
	if (next)
		next(block, bytes, allocated, reserved, device);
}

void ts_hook_c10_report_old(void *block, int64_t bytes, uint64_t allocated,
        uint64_t reserved, uint32_t device)
{
	static _Atomic(report_function *) real;
	report_function *next =
	        real_report(OLD_NAME, &real, __builtin_return_address(0));

	tell_agent(block, bytes, device);
	if (next)
		next(block, bytes, allocated, reserved, device);
}
