/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Concatenation, gathers, embeddings. */
#include "tests/simgpu/exact/layout.h"

namespace sgx
{

/* --------------------------------------------------------- concatenation */

constexpr unsigned CAT_DIMS = 4;

/* TensorSizeStride<unsigned int, 4>. */
struct SizeStride {
	uint32_t size[CAT_DIMS], stride[CAT_DIMS];

	/* Where the i-th element of an input lies whose size along the
	 * concatenated dimension is dim_size. */
	uint64_t offset(unsigned dims, uint32_t dim_size, unsigned dim,
	        uint64_t i) const
	{
		uint64_t at = 0;

		for (unsigned d = dims - 1; d >= 1; d--) {
			uint32_t n = d == dim ? dim_size : size[d];

			at += i % n * stride[d];
			i /= n;
		}
		return at + i * stride[0];
	}
};

/* <T, index, dims, inputs, strides, ...>(out, inputs, shape of the result,
 * dimension, its stride or, vectorized, the elements behind it) */
static bool run_cat(const Launch &launch)
{
	const auto &arguments = launch.kernel.arguments;
	bool vectors = launch.kernel.family == "CatArrayBatchedCopy_vectorized";

	if (arguments.size() < 5 || arguments[1] != "unsigned int")
		return false;
	size_t open = arguments[0].find("OpaqueType<");
	if (open == std::string::npos)
		return false;
	size_t element = (size_t)atoi(
	        arguments[0].c_str() + open + strlen("OpaqueType<"));
	unsigned dims = (unsigned)atoi(arguments[2].c_str());
	unsigned room = (unsigned)atoi(arguments[3].c_str());
	unsigned shapes = (unsigned)atoi(arguments[4].c_str());
	SizeStride result = launch.param<SizeStride>(2);
	unsigned dim = (unsigned)launch.param<int32_t>(3);
	uint32_t behind = launch.param<uint32_t>(4);
	uint8_t *out = at_address<uint8_t>(launch.param<uint64_t>(0));
	/* Addresses; offsets, sizes and counts; whether contiguous; shapes. */
	size_t offsets = room * 8, sizes = offsets + room * 4;
	size_t counts = sizes + room * 4, contiguous = counts + room * 4;
	size_t strides = (contiguous + room + 3) / 4 * 4;
	uint32_t each = 1;

	if ((strides + shapes * sizeof(SizeStride) + 7) / 8 * 8 !=
	        launch.param_bytes(1))
		return false;
	if (dims < 1 || dims > CAT_DIMS)
		return false;
	if (vectors) {
		if (arguments.size() < 7)
			return false;
		each = (uint32_t)atoi(arguments[6].c_str());
	}
	for (unsigned k = 0; k < launch.raw.grid[1]; k++) {
		const uint8_t *in =
		        at_address<uint8_t>(launch.param<uint64_t>(1, k * 8));
		uint64_t offset = launch.param<uint32_t>(1, offsets + k * 4);
		uint32_t size = launch.param<uint32_t>(1, sizes + k * 4);
		uint32_t n = launch.param<uint32_t>(1, counts + k * 4);
		bool plain =
		        vectors || launch.param<uint8_t>(1, contiguous + k);
		SizeStride own = launch.param<SizeStride>(
		        1, strides + (shapes > 1 ? k : 0) * sizeof(SizeStride));
		size_t unit = element * each;

		offset = offset * behind / each;
		if (vectors)
			size = size * behind / each;
		for (uint64_t i = 0; i < n / each; i++) {
			uint64_t from =
			        plain ? i : own.offset(dims, size, dim, i);

			memcpy(out + (offset + result.offset(
			                               dims, size, dim, i)) *
			                        unit,
			        in + from * unit, unit);
		}
	}
	return true;
}

/* --------------------------------------------------------------- gathers */

/* <alignment, index>(out, in, indices, n, bytes of a slice, size of the
 * dimension, strides in bytes, negative indices allowed) */
static bool run_gather_slices(const Launch &launch)
{
	uint8_t *out = at_address<uint8_t>(launch.param<uint64_t>(0));
	const uint8_t *in = at_address<uint8_t>(launch.param<uint64_t>(1));
	int64_t bytes = launch.param<int64_t>(4);
	int64_t size = launch.param<int64_t>(5);
	int64_t in_stride = launch.param<int64_t>(6);
	int64_t out_stride = launch.param<int64_t>(7);

	return with_type(launch.kernel.type(1), [&](auto t) {
		const auto *indices =
		        at_address<decltype(t)>(launch.param<uint64_t>(2));

		for (int64_t i = 0; i < launch.raw.grid[0]; i++) {
			int64_t at = (int64_t)(Math<decltype(t)>)indices[i];

			if (at < 0)
				at += size;
			memcpy(out + i * out_stride, in + at * in_stride,
			        (size_t)bytes);
		}
	});
}

/* ------------------------------------------------------------- embedding */

/* <T, acc, index>(indices, grad, grad_weight, n, stride, padding); adds to
 * what is there */
static bool run_embedding_backward(const Launch &launch)
{
	int n = launch.param<int>(3), padding = launch.param<int>(5);
	int64_t stride = launch.param<int64_t>(4);
	bool known = false;

	with_type(launch.kernel.type(2), [&](auto index) {
		using I = decltype(index);

		if constexpr (std::is_integral_v<I>)
			known = with_float(launch.kernel.type(0), [&](auto t) {
				using T = decltype(t);
				using M = Math<T>;
				const I *indices = at_address<I>(
				        launch.param<uint64_t>(0));
				const T *grad = at_address<T>(
				        launch.param<uint64_t>(1));
				T *into = at_address<T>(
				        launch.param<uint64_t>(2));

				for (int64_t i = 0; i < n; i++) {
					if ((int64_t)indices[i] == padding)
						continue;
					T *row = into +
					         (int64_t)indices[i] * stride;
					for (int64_t j = 0; j < stride; j++)
						row[j] = convert<T>((
						        M)((M)row[j] +
						           (M)grad[i * stride +
						                   j]));
				}
			});
	});
	return known;
}

const Family index_families[] = {
        {"CatArrayBatchedCopy", run_cat},
        {"CatArrayBatchedCopy_contig", run_cat},
        {"CatArrayBatchedCopy_aligned16_contig", run_cat},
        {"CatArrayBatchedCopy_alignedK_contig", run_cat},
        {"CatArrayBatchedCopy_vectorized", run_cat},
        {"vectorized_gather_kernel", run_gather_slices},
        {"embedding_backward_feature_kernel", run_embedding_backward},
        {nullptr, nullptr},
};

} // namespace sgx
