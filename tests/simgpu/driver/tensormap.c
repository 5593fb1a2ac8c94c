/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Tensor maps: descriptors of tensors that kernels of newer devices follow. As
 * on those they are opaque, so that no word of one is a plain address; what is
 * in them is this driver's own. Tiled ones only. Called under sg_lock.
 */
#include "tests/simgpu/driver/code.h"
#include "tests/simgpu/driver/kernels.h"

#include <string.h>

#define MAGIC          ((uint64_t)0x73676d6170000001)
#define HIDDEN         ((uint64_t)0x5a5a5a5a5a5a5a5a)
#define ADDRESS_ALIGN  16
#define STRIDE_ALIGN   16
#define RANK_MAX       5
#define BOX_MAX        256
#define SM_MAJOR_FIRST 9

struct map {
	uint64_t magic;
	uint64_t hidden; /* the address, not to be taken for one */
	uint64_t bytes;  /* from the first element to past the last */
};
_Static_assert(sizeof(struct map) <= sizeof(CUtensorMap), "");

static const unsigned char element_bytes[] = {
        [CU_TENSOR_MAP_DATA_TYPE_UINT8] = 1,
        [CU_TENSOR_MAP_DATA_TYPE_UINT16] = 2,
        [CU_TENSOR_MAP_DATA_TYPE_UINT32] = 4,
        [CU_TENSOR_MAP_DATA_TYPE_INT32] = 4,
        [CU_TENSOR_MAP_DATA_TYPE_UINT64] = 8,
        [CU_TENSOR_MAP_DATA_TYPE_INT64] = 8,
        [CU_TENSOR_MAP_DATA_TYPE_FLOAT16] = 2,
        [CU_TENSOR_MAP_DATA_TYPE_FLOAT32] = 4,
        [CU_TENSOR_MAP_DATA_TYPE_FLOAT64] = 8,
        [CU_TENSOR_MAP_DATA_TYPE_BFLOAT16] = 2,
        [CU_TENSOR_MAP_DATA_TYPE_FLOAT32_FTZ] = 4,
        [CU_TENSOR_MAP_DATA_TYPE_TFLOAT32] = 4,
        [CU_TENSOR_MAP_DATA_TYPE_TFLOAT32_FTZ] = 4,
};

/* How far a tensor reaches; 0 where it is none. */
static uint64_t span_of(CUtensorMapDataType type, cuuint32_t rank,
        const cuuint64_t *sizes, const cuuint64_t *strides,
        const cuuint32_t *box, const cuuint32_t *steps)
{
	uint64_t bytes;

	if ((unsigned)type >= sizeof(element_bytes) || !element_bytes[type] ||
	        rank < 1 || rank > RANK_MAX || !sizes || !box || !steps ||
	        (rank > 1 && !strides))
		return 0;
	bytes = sizes[0] * element_bytes[type];
	for (cuuint32_t i = 0; i < rank; i++) {
		if (!sizes[i] || sizes[i] > (uint64_t)1 << 32 || !box[i] ||
		        box[i] > BOX_MAX || !steps[i] || steps[i] > 8)
			return 0;
		if (i && strides[i - 1] % STRIDE_ALIGN)
			return 0;
		bytes += i ? (sizes[i] - 1) * strides[i - 1] : 0;
	}
	return bytes;
}

static bool is_supported(void)
{
	return sg_devices[0].model.sm_major >= SM_MAJOR_FIRST;
}

SG_EXPORT CUresult cuTensorMapEncodeTiled(CUtensorMap *map,
        CUtensorMapDataType type, cuuint32_t rank, void *address,
        const cuuint64_t *sizes, const cuuint64_t *strides,
        const cuuint32_t *box, const cuuint32_t *steps,
        CUtensorMapInterleave interleave, CUtensorMapSwizzle swizzle,
        CUtensorMapL2promotion promotion, CUtensorMapFloatOOBfill fill)
{
	struct map made = {.magic = MAGIC};

	SG_API(cuTensorMapEncodeTiled, SG_COST_NONE, SG_NEED_INIT);
	(void)interleave;
	(void)swizzle;
	(void)promotion;
	(void)fill;
	if (!is_supported())
		return CUDA_ERROR_NOT_SUPPORTED;
	made.hidden = (uint64_t)(uintptr_t)address ^ HIDDEN;
	made.bytes = span_of(type, rank, sizes, strides, box, steps);
	if (!map || !address || (uintptr_t)address % ADDRESS_ALIGN ||
	        !made.bytes)
		return CUDA_ERROR_INVALID_VALUE;
	memset(map, 0, sizeof(*map));
	memcpy(map, &made, sizeof(made));
	return CUDA_SUCCESS;
}

SG_EXPORT CUresult cuTensorMapReplaceAddress(CUtensorMap *map, void *address)
{
	struct map old;

	SG_API(cuTensorMapReplaceAddress, SG_COST_NONE, SG_NEED_INIT);
	if (!is_supported())
		return CUDA_ERROR_NOT_SUPPORTED;
	if (!map || !address || (uintptr_t)address % ADDRESS_ALIGN)
		return CUDA_ERROR_INVALID_VALUE;
	memcpy(&old, map, sizeof(old));
	if (old.magic != MAGIC)
		return CUDA_ERROR_INVALID_VALUE;
	old.hidden = (uint64_t)(uintptr_t)address ^ HIDDEN;
	memcpy(map, &old, sizeof(old));
	return CUDA_SUCCESS;
}

uint64_t sg_tensor_map_at(
        const unsigned char *params, uint32_t bytes, uint64_t *ret_va)
{
	struct map map;

	if (bytes < sizeof(CUtensorMap))
		return 0;
	memcpy(&map, params, sizeof(map));
	if (map.magic != MAGIC)
		return 0;
	*ret_va = map.hidden ^ HIDDEN;
	return map.bytes;
}
