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
constexpr unsigned MAX_OPERANDS = 8; /* of an OffsetCalculator */

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
	int64_t strides_[MAX_OPERANDS][MAX_DIMS];
	int64_t at_[MAX_OPERANDS];
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

/* unrolled_elementwise_kernel_for_multi_outputs of prelu's gradients. */
bool run_prelu_backward(const Launch &launch);
/* _scatter_gather_elementwise_kernel with one value for all indices. */
bool run_scatter_fill(const Launch &launch);

template <class T> T *at_address(uint64_t address)
{
	return reinterpret_cast<T *>((uintptr_t)address);
}

/* The i-th element of an array of that type. Where speed matters little. */
inline double element(Type type, uint64_t array, int64_t i)
{
	double value = 0;

	with_type(type, [&](auto t) {
		using T = decltype(t);

		value = (double)(Math<T>)at_address<const T>(array)[i];
	});
	return value;
}
inline void set_element(Type type, uint64_t array, int64_t i, double value)
{
	with_type(type, [&](auto t) {
		using T = decltype(t);

		at_address<T>(array)[i] = convert<T>((Math<T>)value);
	});
}

/* GenericPackedTensorAccessor<T, N, traits, I>. */
template <int N, class I> struct Packed {
	uint64_t data;
	I sizes[N], strides[N];

	int64_t at(const int64_t (&index)[N]) const
	{
		int64_t offset = 0;

		for (int i = 0; i < N; i++)
			offset += index[i] * (int64_t)strides[i];
		return offset;
	}
};

} // namespace sgx

#endif
