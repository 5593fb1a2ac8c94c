/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Concatenation, gathers, embeddings, triangles. */
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

/* What becomes of an element that is scattered to one that is there. */
enum class Merge { ADD, MULTIPLY, MAXIMUM, MINIMUM, UNKNOWN };

static Merge merge_of(const std::string &name)
{
	static const struct {
		const char *text;
		Merge merge;
	} names[] = {
	        {"ReduceAdd", Merge::ADD},
	        {"ReduceMultiply", Merge::MULTIPLY},
	        {"ReduceMaximum", Merge::MAXIMUM},
	        {"ReduceMinimum", Merge::MINIMUM},
	};

	for (const auto &entry : names)
		if (name.find(entry.text) != std::string::npos)
			return entry.merge;
	return Merge::UNKNOWN;
}

template <class M> static M merged(Merge merge, M a, M b)
{
	if (merge == Merge::ADD)
		return a + b;
	if (merge == Merge::MULTIPLY)
		return a * b;
	if (a != a || b != b)
		return a != a ? a : b;
	return (merge == Merge::MAXIMUM) == (a > b) ? a : b;
}

/*
 * _scatter_gather_elementwise_kernel<threads, elements, lambda>(n, lambda):
 * gather, scatter and scatter-add. The lambda holds an OffsetCalculator for
 * the tensor, the source and the indices, then the indices' address, the size
 * of the dimension, a functor without state, the tensor's address, the stride
 * of the dimension in elements, the tensor's count and the source's address.
 */
static bool run_scatter_gather(const Launch &launch)
{
	const std::string &lambda = launch.kernel.arguments.back();
	const char *inner = "_cuda_scatter_gather_internal_kernel<";
	size_t open = lambda.find(inner), pointers = 608;

	if (lambda.find("_cuda_scatter_fill_internal_kernel<") !=
	        std::string::npos)
		return run_scatter_fill(launch);
	if (open == std::string::npos || launch.param_bytes(1) != 664)
		return false;
	std::vector<std::string> arguments =
	        split_arguments(bracketed(lambda, open + strlen(inner) - 1));
	if (arguments.size() != 3 || arguments[2] != "long")
		return false;
	bool scatter = arguments[0] == "true";
	bool assigns = lambda.find("TensorAssign") != std::string::npos;
	Merge merge = merge_of(lambda);
	Type type = type_of(arguments[1]);
	size_t bytes = size_of(type);
	if (!arguments[1].compare(0, strlen("at::native::OpaqueType<"),
	            "at::native::OpaqueType<"))
		bytes = (size_t)atoi(arguments[1].c_str() +
		                     strlen("at::native::OpaqueType<"));
	if (!bytes ||
	        (!assigns && (merge == Merge::UNKNOWN || type == Type::NONE)))
		return false;
	const uint8_t *data = launch.param_data(1);
	auto word = [&](size_t i) {
		return read_at<uint64_t>(data + pointers + i * 8);
	};
	const uint8_t *indices = at_address<uint8_t>(word(0));
	uint8_t *self = at_address<uint8_t>(word(3));
	int64_t stride = (int64_t)(word(4) * bytes);
	const uint8_t *source = at_address<uint8_t>(word(6));
	int64_t n = launch.param<int32_t>(0);
	Offsets offsets(3, data);
	static int64_t at[3][512];

	for (int64_t done = 0; done < n;) {
		size_t step = n - done < 512 ? (size_t)(n - done) : 512;

		offsets.next(step, at);
		for (size_t i = 0; i < step; i++) {
			int64_t index = read_at<int64_t>(indices + at[2][i]);
			uint8_t *to = self + at[0][i];
			const uint8_t *from = source + at[1][i];

			if (scatter)
				to += index * stride;
			else
				from += index * stride;
			if (assigns) {
				memcpy(to, from, bytes);
				continue;
			}
			with_type(type, [&](auto t) {
				using T = decltype(t);
				using M = Math<T>;
				T sum = convert<T>(merged(merge,
				        (M)read_at<T>(to), (M)read_at<T>(from)));

				memcpy(to, &sum, sizeof(T));
			});
		}
		done += (int64_t)step;
	}
	return true;
}

/* <T>(in, out, n, dimension, first, size, stride, dimensions): along the
 * dimension each element comes from `first` places further on. */
static bool run_roll(const Launch &launch)
{
	int64_t n = launch.param<int64_t>(2);
	int64_t first = launch.param<int64_t>(4);
	int64_t size = launch.param<int64_t>(5);
	int64_t stride = launch.param<int64_t>(6);

	return with_type(launch.kernel.type(0), [&](auto t) {
		using T = decltype(t);
		const T *in = at_address<T>(launch.param<uint64_t>(0));
		T *out = at_address<T>(launch.param<uint64_t>(1));

		for (int64_t i = 0; i < n; i++) {
			int64_t at = i % (stride * size) / stride;
			int64_t from =
			        at >= size - first ? first - size : first;

			out[i] = in[i + from * stride];
		}
	});
}

/* <word, elements of one, ..., ?>(in, out, columns, rows, words from row to
 * row, words from column to column): all counts are of words. */
static bool run_transpose(const Launch &launch)
{
	const std::vector<std::string> &arguments = launch.kernel.arguments;

	if (arguments.size() != 5 || arguments[4] != "false")
		return false;
	int64_t elements = strtol(arguments[1].c_str(), nullptr, 10);
	int64_t columns = launch.param<int64_t>(2) * elements;
	int64_t rows = launch.param<int64_t>(3) * elements;
	size_t word = arguments[0] == "unsigned long" ? 8 : 4;

	if (elements < 1 || (int64_t)word % elements ||
	        (word == 4 && arguments[0] != "unsigned int"))
		return false;
	size_t size = word / (size_t)elements;
	size_t in_row = (size_t)launch.param<int64_t>(4) * word;
	size_t out_row = (size_t)launch.param<int64_t>(5) * word;
	const uint8_t *in = at_address<uint8_t>(launch.param<uint64_t>(0));
	uint8_t *out = at_address<uint8_t>(launch.param<uint64_t>(1));

	for (int64_t row = 0; row < rows; row++)
		for (int64_t column = 0; column < columns; column++)
			memcpy(out + (size_t)column * out_row +
			                (size_t)row * size,
			        in + (size_t)row * in_row +
			                (size_t)column * size,
			        size);
	return true;
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

/* ------------------------------------------------------------- triangles */

/* <T, index, upper, ...>(result, input, diagonal, ...) over the last two
 * dimensions */
static bool run_triangle(const Launch &launch)
{
	TensorInfo result = launch.param<TensorInfo>(0);
	TensorInfo input = launch.param<TensorInfo>(1);
	int64_t diagonal = launch.param<int64_t>(2);
	int32_t dims = input.dims;

	if (launch.kernel.arguments.size() < 3 ||
	        launch.param_bytes(0) != sizeof(TensorInfo) ||
	        launch.param_bytes(1) != sizeof(TensorInfo) || dims < 2)
		return false;
	bool upper = launch.kernel.arguments[2] == "true";
	int64_t rows = input.sizes[dims - 2], columns = input.sizes[dims - 1];
	uint64_t n = 1;
	for (int32_t d = 0; d < dims; d++)
		n *= input.sizes[d];

	return with_type(launch.kernel.type(0), [&](auto t) {
		using T = decltype(t);
		T *out = at_address<T>(result.data);
		const T *in = at_address<T>(input.data);

		for (uint64_t i = 0; i < n; i++) {
			int64_t column = (int64_t)i % columns;
			int64_t above = column - (int64_t)i / columns % rows;
			bool kept =
			        upper ? above >= diagonal : above <= diagonal;

			out[result.offset(i)] =
			        kept ? in[input.offset(i)] : T();
		}
	});
}

const Family index_families[] = {
        {"CatArrayBatchedCopy", run_cat},
        {"CatArrayBatchedCopy_contig", run_cat},
        {"CatArrayBatchedCopy_aligned16_contig", run_cat},
        {"CatArrayBatchedCopy_alignedK_contig", run_cat},
        {"CatArrayBatchedCopy_vectorized", run_cat},
        {"vectorized_gather_kernel", run_gather_slices},
        {"roll_cuda_kernel", run_roll},
        {"transpose_copy_tiled_kernel", run_transpose},
        {"_scatter_gather_elementwise_kernel", run_scatter_gather},
        {"embedding_backward_feature_kernel", run_embedding_backward},
        {"triu_tril_kernel", run_triangle},
        {nullptr, nullptr},
};

} // namespace sgx
