/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Elements looked up by tensors of indices, filled by them, and flipped. The
 * closures of these kernels are those that kernel_index.c of the driver tells.
 */
#include "tests/simgpu/exact/layout.h"

#include <algorithm>

namespace sgx
{

/* The bytes of type<...OpaqueType<n>...> or of a type by name, which follows
 * `before` in the kernel's name. */
static size_t element_bytes(const Kernel &kernel, const char *before)
{
	size_t open = kernel.name.find(before);

	if (open == std::string::npos)
		return 0;
	std::vector<std::string> arguments = split_arguments(
	        bracketed(kernel.name, open + strlen(before) - 1));
	if (arguments.empty())
		return 0;
	size_t opaque = arguments[0].find("OpaqueType<");
	if (opaque != std::string::npos)
		return (size_t)atoi(
		        arguments[0].c_str() + opaque + strlen("OpaqueType<"));
	return size_of(type_of(arguments[0]));
}

static uint64_t word(const Launch &launch, size_t at)
{
	return launch.param<uint64_t>(1, at);
}

/* Calls fn with the offsets of each element's operands. */
template <unsigned operands, class Fn>
static void each_element(const Launch &launch, int64_t n, Fn &&fn)
{
	static int64_t at[operands][512];
	Offsets offsets(operands, launch.param_data(1));

	for (int64_t done = 0; done < n;) {
		size_t step = n - done < 512 ? (size_t)(n - done) : 512;

		offsets.next(step, at);
		for (size_t i = 0; i < step; i++) {
			int64_t one[operands];

			for (unsigned k = 0; k < operands; k++)
				one[k] = at[k][i];
			fn(one);
		}
		done += (int64_t)step;
	}
}

/* gpu_index_kernel: output, input, the number of indices; of each its address,
 * the size of its dimension and the step there in bytes. */
static bool run_index(const Launch &launch, bool put)
{
	size_t bytes = element_bytes(launch.kernel,
	        put ? "index_put_kernel_impl<" : "index_kernel_impl<");
	size_t from = (calculator_bytes(3) + 7) / 8 * 8, arrays = from + 24;
	uint64_t count = word(launch, from + 16);
	uint8_t *out = at_address<uint8_t>(word(launch, from));
	const uint8_t *in = at_address<uint8_t>(word(launch, from + 8));

	if (!bytes || count > MAX_DIMS ||
	        launch.param_bytes(1) != arrays + 3 * MAX_DIMS * 8 + 8)
		return false;
	each_element<3>(
	        launch, launch.param<int64_t>(0), [&](const int64_t *at) {
		        int64_t offset = 0;

		        for (uint64_t i = 0; i < count; i++) {
			        auto index = read_at<int64_t>(
			                at_address<uint8_t>(
			                        word(launch, arrays + i * 8)) +
			                at[2]);
			        auto size = (int64_t)word(
			                launch, arrays + (MAX_DIMS + i) * 8);
			        auto step = (int64_t)word(launch,
			                arrays + (2 * MAX_DIMS + i) * 8);

			        offset += (index < 0 ? index + size : index) *
			                  step;
		        }
		        memcpy(out + at[0] + (put ? offset : 0),
		                in + at[1] + (put ? 0 : offset), bytes);
	        });
	return true;
}

/* A calculator for output and input; output, input. */
static bool run_flip(const Launch &launch)
{
	size_t bytes = element_bytes(launch.kernel, "flip_kernel_impl<");
	size_t from = (calculator_bytes(2) + 7) / 8 * 8;
	uint8_t *out = at_address<uint8_t>(word(launch, from));
	const uint8_t *in = at_address<uint8_t>(word(launch, from + 8));

	if (!bytes || launch.param_bytes(1) != from + 16)
		return false;
	each_element<2>(
	        launch, launch.param<int64_t>(0), [&](const int64_t *at) {
		        memcpy(out + at[0], in + at[1], bytes);
	        });
	return true;
}

/* A calculator for self, index and source, their addresses, the size of the
 * dimension and the step there in elements; filled: without a source, with a
 * value at the end. */
static bool run_along(const Launch &launch, bool filled)
{
	size_t bytes = element_bytes(launch.kernel,
	        filled ? "index_fill_kernel_impl<" : "index_copy_kernel_impl<");
	unsigned operands = filled ? 2 : 3;
	size_t from = (calculator_bytes(operands) + 7) / 8 * 8;
	uint8_t *self = at_address<uint8_t>(word(launch, from));
	const uint8_t *indices = at_address<uint8_t>(word(launch, from + 8));
	size_t rest = from + operands * 8;
	const uint8_t *source = at_address<uint8_t>(word(launch, from + 16));
	auto size = (int64_t)word(launch, rest);
	int64_t step = (int64_t)(word(launch, rest + 8) * bytes);
	const uint8_t *value = launch.param_data(1) + rest + 16;
	auto place = [&](const uint8_t *at) {
		auto index = read_at<int64_t>(at);

		return (index < 0 ? index + size : index) * step;
	};

	if (!bytes || bytes > 8 ||
	        launch.param_bytes(1) != rest + (filled ? 24 : 16))
		return false;
	if (filled)
		each_element<2>(launch, launch.param<int64_t>(0),
		        [&](const int64_t *at) {
			        memcpy(self + at[0] + place(indices + at[1]),
			                value, bytes);
		        });
	else
		each_element<3>(launch, launch.param<int64_t>(0),
		        [&](const int64_t *at) {
			        memcpy(self + at[0] + place(indices + at[1]),
			                source + at[2], bytes);
		        });
	return true;
}

static bool run_index_elementwise(const Launch &launch)
{
	if (launch.kernel.has("index_fill_kernel_impl<"))
		return run_along(launch, true);
	if (launch.kernel.has("index_copy_kernel_impl<"))
		return run_along(launch, false);
	if (launch.kernel.has("gpu_index_kernel<")) {
		if (launch.kernel.has("index_put_kernel_impl<"))
			return run_index(launch, true);
		return launch.kernel.has("index_kernel_impl<") &&
		       run_index(launch, false);
	}
	return launch.kernel.has("flip_kernel_impl<") && run_flip(launch);
}

bool run_scatter_fill(const Launch &launch)
{
	size_t bytes = element_bytes(
	        launch.kernel, "_cuda_scatter_fill_internal_kernel<");
	size_t from = (calculator_bytes(2) + 7) / 8 * 8;
	const uint8_t *indices = at_address<uint8_t>(word(launch, from));
	uint8_t *self = at_address<uint8_t>(word(launch, from + 24));
	int64_t step = (int64_t)(word(launch, from + 32) * bytes);
	const uint8_t *value = launch.param_data(1) + from + 48;

	if (!bytes || !launch.kernel.has("TensorAssign") ||
	        from + 48 + bytes > launch.param_bytes(1))
		return false;
	each_element<2>(
	        launch, launch.param<int32_t>(0), [&](const int64_t *at) {
		        memcpy(self + at[0] +
		                        read_at<int64_t>(indices + at[1]) *
		                                step,
		                value, bytes);
	        });
	return true;
}

/* ------------------------------------------------ slices along a dimension */

/*
 * indexSelect and indexFunc, for few and for many indices: (self, source,
 * indices, dimension of self and of source, [all elements,] elements of a
 * slice, ...). The infos leave the dimension out: its size is 1.
 */
static bool run_slices(const Launch &launch)
{
	const std::string &family = launch.kernel.family;
	bool adds = family.find("Func") != std::string::npos;
	bool many = family.find("Large") != std::string::npos;
	TensorInfo self = launch.param<TensorInfo>(0);
	TensorInfo source = launch.param<TensorInfo>(1);
	TensorInfo indices = launch.param<TensorInfo>(2);
	uint32_t self_dim = launch.param<uint32_t>(3);
	uint32_t source_dim = launch.param<uint32_t>(4);
	uint64_t slice = launch.param<uint32_t>(many ? 6 : 5);
	int64_t n = indices.dims ? indices.sizes[0] : 1;
	unsigned last = launch.raw.n_params - 1;

	if (launch.param_bytes(0) != sizeof(TensorInfo) ||
	        launch.kernel.type(1) != Type::I64 || self_dim >= MAX_DIMS ||
	        source_dim >= MAX_DIMS)
		return false;
	if (adds && (!launch.kernel.has("ReduceAdd") ||
	                    launch.param_bytes(last) !=
	                            size_of(launch.kernel.type(0))))
		return false;
	return with_type(launch.kernel.type(0), [&](auto t) {
		using T = decltype(t);
		using M = Math<T>;
		T *to = at_address<T>(self.data);
		const T *from = at_address<T>(source.data);
		M alpha = adds ? (M)launch.param<T>(last) : M(1);

		for (int64_t i = 0; i < n; i++) {
			int64_t index = at_address<const int64_t>(
			        indices.data)[indices.offset((uint64_t)i)];
			/* What is looked up is source's place to select
			 * and self's to add. */
			int64_t at = (adds ? index : i) *
			             (int64_t)self.strides[self_dim];
			int64_t at_source = (adds ? i : index) *
			                    (int64_t)source.strides[source_dim];

			for (uint64_t j = 0; j < slice; j++) {
				T &x = to[at + self.offset(j)];
				T y = from[at_source + source.offset(j)];

				x = adds ? convert<T>((M)((M)x +
				                          (M)y * alpha))
				         : y;
			}
		}
	});
}

/* <index>(how often, sums of that, out, n, ...): i, so often */
static bool run_repeat(const Launch &launch)
{
	int64_t n = launch.param<int64_t>(3);

	return with_type(launch.kernel.type(0), [&](auto t) {
		using T = decltype(t);
		const T *often = at_address<T>(launch.param<uint64_t>(0));
		const T *ends = at_address<T>(launch.param<uint64_t>(1));
		T *out = at_address<T>(launch.param<uint64_t>(2));

		for (int64_t i = 0; i < n; i++)
			for (auto j = (int64_t)(ends[i] - often[i]);
			        j < (int64_t)ends[i]; j++)
				out[j] = convert<T>(i);
	});
}

/* TensorInfo<T, long>. */
struct WideInfo {
	uint64_t data;
	int64_t sizes[MAX_DIMS], strides[MAX_DIMS];
	int32_t dims;
};

/* <out, in, index, ...>(counts, parts of them, in, bins, least, greatest, n,
 * what each counts for): integers that count for 1 */
static bool run_histogram(const Launch &launch)
{
	auto counts = launch.param<WideInfo>(0), in = launch.param<WideInfo>(2);
	int64_t bins = launch.param<int64_t>(3);
	int64_t least = launch.param<int64_t>(4);
	int64_t greatest = launch.param<int64_t>(5);

	if (launch.kernel.type(0) != Type::I64 ||
	        launch.kernel.type(1) != Type::I64 ||
	        launch.param_bytes(0) != sizeof(WideInfo) || in.dims != 1 ||
	        !launch.kernel.has("{lambda(long)#2}") || greatest <= least)
		return false;
	for (int64_t i = 0; i < launch.param<int64_t>(6); i++) {
		int64_t x = at_address<const int64_t>(
		        in.data)[i * in.strides[0]];
		int64_t bin = (x - least) * bins / (greatest - least);

		if (x >= least && x <= greatest)
			at_address<int64_t>(counts.data)[std::min(bin,
			                                         bins - 1) *
			                                 counts.strides[0]]++;
	}
	return true;
}

/* <T, out>(out, in, bounds, order of the bounds, length of in's and of the
 * bounds' rows, n, right, one row of bounds for all) */
static bool run_search(const Launch &launch)
{
	int64_t length = launch.param<int64_t>(4);
	int64_t bounds = launch.param<int64_t>(5);
	bool right = launch.param<bool>(7), same = launch.param<bool>(8);
	Type out = launch.kernel.pointee(0);

	if (launch.param<uint64_t>(3) || out == Type::NONE)
		return false;
	return with_type(launch.kernel.type(0), [&](auto t) {
		using T = decltype(t);
		const T *in = at_address<T>(launch.param<uint64_t>(1));
		const T *all = at_address<T>(launch.param<uint64_t>(2));
		auto less = [](const T &a, const T &b) {
			return (Math<T>)a < (Math<T>)b;
		};

		for (int64_t i = 0; i < launch.param<int64_t>(6); i++) {
			const T *from =
			        all + (same ? 0 : i / length * bounds);
			const T *found =
			        right ? std::upper_bound(from, from + bounds,
			                        in[i], less)
			              : std::lower_bound(from, from + bounds,
			                        in[i], less);

			set_element(out, launch.param<uint64_t>(0), i,
			        (double)(found - from));
		}
	});
}

/* (truth, message): a lie would end the program, as a kernel that is not
 * there does. */
static bool run_assert(const Launch &launch)
{
	Type type = launch.kernel.type(0);

	return type != Type::NONE &&
	       element(type, launch.param<uint64_t>(0), 0) != 0;
}

const Family lookup_families[] = {
        {"indexSelectSmallIndex", run_slices},
        {"indexSelectLargeIndex", run_slices},
        {"indexFuncSmallIndex", run_slices},
        {"indexFuncLargeIndex", run_slices},
        {"compute_cuda_kernel", run_repeat},
        {"kernelHistogram1D", run_histogram},
        {"searchsorted_cuda_kernel", run_search},
        {"_assert_async_cuda_kernel", run_assert},
        {"index_elementwise_kernel", run_index_elementwise},
        {nullptr, nullptr},
};

} // namespace sgx
