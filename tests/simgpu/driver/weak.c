/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Weak definitions of what the parts of the driver call in each other, so that
 * each links and runs without the others. Dropped as the real ones land.
 */
#include "tests/simgpu/driver/sg.h"

#include <errno.h>

#define WEAK __attribute__((weak))

WEAK bool sg_is_device_va(uint64_t va)
{
	return false;
}
WEAK bool sg_where(uint64_t va, struct sg_where *ret_where)
{
	return false;
}
WEAK uint64_t sg_first_unmapped(
        struct sg_device *dev, uint64_t va, uint64_t bytes)
{
	return 0;
}
WEAK CUresult sg_op_check(const struct sg_op *op)
{
	return CUDA_SUCCESS;
}
WEAK void sg_memory_ctx_gone(struct sg_ctx *ctx)
{
}
WEAK bool sg_block_at(uint64_t va, uint64_t *ret_va, uint64_t *ret_bytes)
{
	return false;
}
WEAK bool sg_host_is_pinned(const void *p, size_t bytes)
{
	return false;
}
WEAK int sg_static_alloc(
        struct sg_device *dev, uint64_t bytes, uint64_t *ret_va)
{
	return -ENOMEM;
}
WEAK void sg_static_free(struct sg_device *dev, uint64_t va)
{
}
WEAK int sg_physical_take(struct sg_device *dev, uint64_t bytes)
{
	if (bytes > dev->model.memory_bytes - dev->physical_bytes)
		return -ENOMEM;
	dev->physical_bytes += bytes;
	if (dev->physical_peak_bytes < dev->physical_bytes)
		dev->physical_peak_bytes = dev->physical_bytes;
	return 0;
}
WEAK void sg_physical_give(struct sg_device *dev, uint64_t bytes)
{
	dev->physical_bytes -= bytes;
}
WEAK CUresult sg_copy_issue(
        const CUDA_MEMCPY3D *copy, struct sg_stream *stream, bool sync)
{
	return sg_not_supported("copy");
}
WEAK CUresult sg_memset_issue(
        const CUDA_MEMSET_NODE_PARAMS *set, struct sg_stream *stream, bool sync)
{
	return sg_not_supported("memset");
}
WEAK void sg_content_copy(uint64_t dst, uint64_t src, uint64_t bytes)
{
}
WEAK void sg_content_fill(
        uint64_t dst, unsigned value, unsigned element_bytes, uint64_t count)
{
}
WEAK void sg_content_launch(const struct sg_launch *launch, struct sg_op *op)
{
}
WEAK void sg_content_chunk_gone(struct sg_chunk *chunk)
{
}
