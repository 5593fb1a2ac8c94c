/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Content of memory, in order of arrival. Device memory has none yet: what the
 * host reads of it is zeros. Host memory keeps its real bytes. Under sg_lock.
 */
#include "tests/simgpu/driver/memory.h"

#include <string.h>

void sg_content_copy(uint64_t dst, uint64_t src, uint64_t bytes)
{
	void *to = (void *)(uintptr_t)dst;

	if (sg_is_device_va(dst))
		return;
	if (sg_is_device_va(src))
		sg_host_zero(to, bytes);
	else
		memmove(to, (const void *)(uintptr_t)src, bytes);
}

void sg_content_fill(
        uint64_t dst, unsigned value, unsigned element_bytes, uint64_t count)
{
	unsigned char *to = (unsigned char *)(uintptr_t)dst;

	if (sg_is_device_va(dst))
		return;
	if (element_bytes == 1) {
		memset(to, (int)(value & 0xff), count);
		return;
	}
	for (uint64_t i = 0; i < count; i++)
		memcpy(to + i * element_bytes, &value, element_bytes);
}

void sg_content_launch(const struct sg_launch *launch, struct sg_op *op)
{
}

void sg_content_chunk_gone(struct sg_chunk *chunk)
{
}
