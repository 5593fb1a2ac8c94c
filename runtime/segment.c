/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "runtime/segment.h"

#include <stdlib.h>
#include <string.h>

#include "agent/base/log.h"

CUresult ts_segment_create(const struct ts_gpu_ops *ops, uint64_t bytes,
        uint64_t page_bytes, bool slab, struct ts_segment **ret_segment)
{
	struct ts_segment *segment = calloc(1, sizeof(*segment));
	CUdeviceptr base;
	CUresult rc = CUDA_ERROR_OUT_OF_MEMORY;

	if (!segment)
		return rc;
	ts_list_init(&segment->slabs);
	segment->page_bytes = page_bytes;
	segment->page_count = (bytes + page_bytes - 1) / page_bytes;
	segment->bytes = segment->page_count * page_bytes;
	segment->pages = calloc(segment->page_count, sizeof(struct ts_page));
	if (!segment->pages)
		goto out_segment;
	if (slab) {
		segment->units = calloc(1, segment->bytes / TS_SLAB_UNIT_BYTES);
		if (!segment->units)
			goto out_pages;
	}
	rc = ops->address_reserve(&base, segment->bytes, page_bytes, 0, 0);
	if (rc != CUDA_SUCCESS)
		goto out_units;
	segment->base = base;
	for (size_t i = 0; i < segment->page_count; i++) {
		segment->pages[i].address = base + i * page_bytes;
		ts_list_init(&segment->pages[i].list);
	}
	*ret_segment = segment;
	return CUDA_SUCCESS;

out_units:
	free(segment->units);
out_pages:
	free(segment->pages);
out_segment:
	free(segment);
	return rc;
}

void ts_segment_destroy(const struct ts_gpu_ops *ops,
        struct ts_segment *segment, bool driver_alive)
{
	if (!segment)
		return;
	if (driver_alive)
		ops->address_free(segment->base, segment->bytes);
	free(segment->units);
	free(segment->pages);
	free(segment);
}

struct ts_segment *ts_segment_of(const struct ts_map *map, uint64_t address)
{
	struct ts_map_node *node = ts_map_floor(map, address);
	struct ts_segment *segment;

	if (!node)
		return NULL;
	segment = ts_container_of(node, struct ts_segment, node);
	return address - segment->base < segment->bytes ? segment : NULL;
}

static size_t unit_count(uint64_t bytes)
{
	return (bytes + TS_SLAB_UNIT_BYTES - 1) / TS_SLAB_UNIT_BYTES;
}

uint64_t ts_slab_take(struct ts_segment *slab, uint64_t bytes)
{
	size_t total = slab->bytes / TS_SLAB_UNIT_BYTES;
	size_t wanted = unit_count(bytes), run = 0;

	if (wanted > total - slab->units_taken)
		return 0;
	for (size_t i = 0; i < total; i++) {
		run = slab->units[i] ? 0 : run + 1;
		if (run < wanted)
			continue;
		memset(slab->units + i + 1 - wanted, 1, wanted);
		slab->units_taken += wanted;
		return slab->base + (i + 1 - wanted) * TS_SLAB_UNIT_BYTES;
	}
	return 0;
}

bool ts_slab_put(struct ts_segment *slab, uint64_t address, uint64_t bytes)
{
	size_t first = (address - slab->base) / TS_SLAB_UNIT_BYTES;
	size_t count = unit_count(bytes);

	ts_assert(slab->units[first]);
	memset(slab->units + first, 0, count);
	slab->units_taken -= count;
	return !slab->units_taken;
}
