/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "tests/simgpu/exact/layout.h"

#include <algorithm>

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
		/* Nothing is launched over no elements. */
		sizes_[d] = std::max(1u, read_at<uint32_t>(sizes + d * 12));
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
	if (!dims_) /* one element */
		for (unsigned k = 0; k < operands_; k++)
			std::fill_n(offsets[k], n, at_[k]);
	for (size_t done = 0; dims_ && done < n;) {
		int64_t left = sizes_[0] - index_[0];
		size_t run =
		        (uint64_t)left < n - done ? (size_t)left : n - done;

		/* Along the first dimension in one go. */
		for (unsigned k = 0; k < operands_; k++) {
			int64_t *to = offsets[k] + done;
			int64_t at = at_[k], stride = strides_[k][0];

			for (size_t i = 0; i < run; i++)
				to[i] = at + (int64_t)i * stride;
			at_[k] = at + (int64_t)run * stride;
		}
		done += run;
		index_[0] += (int64_t)run;
		for (unsigned d = 0; index_[d] == sizes_[d]; d++) {
			for (unsigned k = 0; k < operands_; k++)
				at_[k] -= strides_[k][d] * sizes_[d];
			index_[d] = 0;
			if (d + 1 == dims_)
				break;
			for (unsigned k = 0; k < operands_; k++)
				at_[k] += strides_[k][d + 1];
			index_[d + 1]++;
		}
	}
}

} // namespace sgx
