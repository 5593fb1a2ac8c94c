/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "runtime/vmm_calls.h"

#include <stdatomic.h>

/* Written once, before any thread makes calls. */
static struct ts_gpu_ops real, counted;
static atomic_uint_fast64_t calls;

static void count(void)
{
	atomic_fetch_add_explicit(&calls, 1, memory_order_relaxed);
}

static CUresult address_reserve(CUdeviceptr *address, size_t bytes,
        size_t alignment, CUdeviceptr hint, unsigned long long flags)
{
	count();
	return real.address_reserve(address, bytes, alignment, hint, flags);
}

static CUresult address_free(CUdeviceptr address, size_t bytes)
{
	count();
	return real.address_free(address, bytes);
}

static CUresult create(CUmemGenericAllocationHandle *handle, size_t bytes,
        const CUmemAllocationProp *prop, unsigned long long flags)
{
	count();
	return real.create(handle, bytes, prop, flags);
}

static CUresult release(CUmemGenericAllocationHandle handle)
{
	count();
	return real.release(handle);
}

static CUresult map(CUdeviceptr address, size_t bytes, size_t offset,
        CUmemGenericAllocationHandle handle, unsigned long long flags)
{
	count();
	return real.map(address, bytes, offset, handle, flags);
}

static CUresult unmap(CUdeviceptr address, size_t bytes)
{
	count();
	return real.unmap(address, bytes);
}

static CUresult set_access(CUdeviceptr address, size_t bytes,
        const CUmemAccessDesc *access, size_t n_access)
{
	count();
	return real.set_access(address, bytes, access, n_access);
}

const struct ts_gpu_ops *ts_vmm_counted(const struct ts_gpu_ops *ops)
{
	real = *ops;
	counted = *ops;
	counted.address_reserve = address_reserve;
	counted.address_free = address_free;
	counted.create = create;
	counted.release = release;
	counted.map = map;
	counted.unmap = unmap;
	counted.set_access = set_access;
	return &counted;
}

uint64_t ts_vmm_calls(void)
{
	return atomic_load_explicit(&calls, memory_order_relaxed);
}
