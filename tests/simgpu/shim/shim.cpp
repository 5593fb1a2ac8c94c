/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * On top of PyTorch, built against the headers of one version of it: switches
 * cuDNN off, which is a stub here, and reports the blocks of PyTorch's caching
 * allocator to the simulated driver. Loaded by choose.c, in the process's first
 * thread that makes a CUDA context; simgpu_torch_attach runs once.
 */
#include <ATen/Context.h>
#include <c10/cuda/CUDACachingAllocator.h>
#include <cuda_runtime_api.h>

#include <cstdint>
#include <cstdio>
#include <exception>

#include "tests/simgpu/driver/simgpu_private.h"

namespace
{

using c10::cuda::CUDACachingAllocator::TraceEntry;
using report_block = void (*)(int device, uint64_t addr, int64_t size_bytes);

void disable_cudnn()
{
	at::globalContext().setUserEnabledCuDNN(false);
	at::globalContext().setSDPUseCuDNN(false);
}

/* Called under the allocator's lock, which is why the report takes no other
 * lock than the simulator's. */
void on_trace(report_block report, const TraceEntry &entry)
{
	const auto bytes = static_cast<int64_t>(entry.size_);

	if (entry.action_ == TraceEntry::ALLOC)
		report(entry.device_, entry.addr_, bytes);
	else if (entry.action_ == TraceEntry::FREE_COMPLETED)
		report(entry.device_, entry.addr_, -bytes);
}

/* False if there is nothing to follow. */
bool follow_blocks(report_block report)
{
	namespace allocator = c10::cuda::CUDACachingAllocator;
	int devices = 0;

	/* A context made before torch.cuda initialised: trackers attach to the
	 * allocators of known devices only, and init() adds what is missing. */
	if (!allocator::get()->initialized()) {
		if (cudaGetDeviceCount(&devices) != cudaSuccess)
			return false;
		allocator::init(devices);
	}
	allocator::attachAllocatorTraceTracker(
	        [report](const TraceEntry &entry) { on_trace(report, entry); });
	return true;
}

} // namespace

/* Whether PyTorch reports its blocks from now on. */
extern "C" __attribute__((visibility("default"))) int simgpu_torch_attach(
        report_block report)
{
	disable_cudnn();
	try {
		return follow_blocks(report);
	} catch (const std::exception &error) {
		/* The cudaMallocAsync back end has no tracker, and each of its
		 * blocks is an allocation of the driver. */
		return false;
	}
}
