/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Elements looked up by tensors of indices, filled by them, and flipped. The
 * closures of these kernels are those that kernel_index.c of the driver tells.
 */
#include "tests/simgpu/exact/layout.h"

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

static bool run_index_elementwise(const Launch &launch)
{
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

const Family lookup_families[] = {
        {"index_elementwise_kernel", run_index_elementwise},
        {nullptr, nullptr},
};

} // namespace sgx
