/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Structs of PyTorch's kernels that say where elements lie, as their headers
 * lay them out: OffsetCalculator, TensorInfo.
 */
#ifndef SGX_LAYOUT_H
#define SGX_LAYOUT_H

#include "tests/simgpu/exact/kernel.h"

namespace sgx
{

constexpr unsigned MAX_DIMS = 25;

/* Bytes of an OffsetCalculator for so many operands: dims; a size with its
 * reciprocal for each dimension; a stride for each dimension and operand. */
constexpr size_t calculator_bytes(unsigned operands)
{
	return 4 + MAX_DIMS * 12 + MAX_DIMS * 4 * operands;
}

/* Walks the elements of operands in order, first dimension fastest. */
class Offsets
{
      public:
	/* All elements of each operand lie next to each other. */
	Offsets(unsigned operands, const size_t *element_bytes);
	/* From the bytes of an OffsetCalculator, strides times `unit`. */
	Offsets(unsigned operands, const uint8_t *calculator, int64_t unit = 1);
	/* The offsets of the next n elements: offsets[operand][i]. */
	void next(size_t n, int64_t (*offsets)[512]);
	bool contiguous() const
	{
		return contiguous_;
	}

      private:
	bool contiguous_;
	unsigned operands_, dims_;
	int64_t sizes_[MAX_DIMS], index_[MAX_DIMS];
	int64_t strides_[4][MAX_DIMS];
	int64_t at_[4];
};

/* at::cuda::detail::TensorInfo<T, unsigned int>. */
struct TensorInfo {
	uint64_t data;
	uint32_t sizes[MAX_DIMS], strides[MAX_DIMS];
	int32_t dims;

	/* In elements, of the i-th element in order. */
	int64_t offset(uint64_t i) const
	{
		int64_t offset = 0;

		for (int d = dims - 1; d > 0; d--) {
			offset += (int64_t)(i % sizes[d]) * strides[d];
			i /= sizes[d];
		}
		return offset + (int64_t)i * strides[0];
	}
};

/* _scatter_gather_elementwise_kernel with one value for all indices. */
bool run_scatter_fill(const Launch &launch);

template <class T> T *at_address(uint64_t address)
{
	return reinterpret_cast<T *>((uintptr_t)address);
}

} // namespace sgx

#endif
