/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "tests/simgpu/exact/layout.h"

namespace sgx
{

Offsets::Offsets(unsigned operands, const size_t *element_bytes)
    : contiguous_(true), operands_(operands), dims_(1)
{
	sizes_[0] = INT64_MAX;
	index_[0] = 0;
	for (unsigned k = 0; k < operands; k++) {
		strides_[k][0] = (int64_t)element_bytes[k];
		at_[k] = 0;
	}
}

Offsets::Offsets(unsigned operands, const uint8_t *calculator, int64_t unit)
    : contiguous_(false), operands_(operands)
{
	const uint8_t *sizes = calculator + 4, *strides = sizes + MAX_DIMS * 12;

	dims_ = read_at<uint32_t>(calculator);
	if (dims_ > MAX_DIMS)
		dims_ = MAX_DIMS;
	for (unsigned d = 0; d < dims_; d++) {
		sizes_[d] = read_at<uint32_t>(sizes + d * 12);
		index_[d] = 0;
		for (unsigned k = 0; k < operands; k++)
			strides_[k][d] = unit * (int64_t)read_at<int32_t>(
			                                strides +
			                                (d * operands + k) * 4);
	}
	for (unsigned k = 0; k < operands; k++)
		at_[k] = 0;
}

void Offsets::next(size_t n, int64_t (*offsets)[512])
{
	for (size_t i = 0; i < n; i++) {
		for (unsigned k = 0; k < operands_; k++)
			offsets[k][i] = at_[k];
		for (unsigned d = 0; d < dims_; d++) {
			for (unsigned k = 0; k < operands_; k++)
				at_[k] += strides_[k][d];
			if (++index_[d] < sizes_[d])
				break;
			for (unsigned k = 0; k < operands_; k++)
				at_[k] -= strides_[k][d] * sizes_[d];
			index_[d] = 0;
		}
	}
}

} // namespace sgx
