/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Softmax and log-softmax over the last or an inner dimension, both ways. */
#include "tests/simgpu/exact/layout.h"

#include <cmath>

namespace sgx
{

/* One row of n elements, `step` apart. */
template <class In, class Out>
static void forward_row(const In *in, Out *out, int64_t n, int64_t step,
        bool log, const bool *mask = nullptr)
{
	using M = Math<In>;
	static std::vector<M> values, powers;
	M most = -INFINITY;
	double sum = 0;
	auto live = [&](int64_t i) { return !mask || !mask[i]; };

	values.resize((size_t)n);
	powers.resize((size_t)n);
	M *x = values.data(), *power = powers.data();
	for (int64_t i = 0; i < n; i++)
		x[i] = (M)in[i * step];
	for (int64_t i = 0; i < n; i++)
		if (live(i) && x[i] > most)
			most = x[i];
	for (int64_t i = 0; i < n; i++) {
		x[i] -= most;
		power[i] = std::exp(x[i]);
	}
	for (int64_t i = 0; i < n; i++)
		if (live(i))
			sum += (double)power[i];
	M total = (M)sum, log_total = std::log(total);
	for (int64_t i = 0; i < n; i++) {
		M y;

		if (!live(i))
			y = log ? (M)-INFINITY : (M)(sum == 0 ? NAN : 0);
		else if (log)
			y = x[i] - log_total;
		else
			y = power[i] / total;
		out[i * step] = convert<Out>(y);
	}
}

/* Without log the gradient comes multiplied by the output already. */
template <class In, class Out>
static void backward_row(const In *grad, const In *output, Out *out, int64_t n,
        int64_t step, bool log)
{
	using M = Math<In>;
	double sum = 0;

	for (int64_t i = 0; i < n; i++)
		sum += (double)(M)grad[i * step];
	M total = (M)sum;
	if (log)
		for (int64_t i = 0; i < n; i++) {
			M g = (M)grad[i * step], y = (M)output[i * step];

			out[i * step] = convert<Out>(g - std::exp(y) * total);
		}
	else
		for (int64_t i = 0; i < n; i++) {
			M g = (M)grad[i * step], y = (M)output[i * step];

			out[i * step] = convert<Out>(g - y * total);
		}
}

/* <in, out, acc, log2 of the size, is_log, is_masked, ...>(dst, src, batch,
 * stride, n, mask, ...) */
static bool run_warp_forward(const Launch &launch)
{
	bool log = launch.kernel.arguments.at(4) == "true";
	int batch = launch.param<int>(2), stride = launch.param<int>(3);
	int n = launch.param<int>(4);

	if (launch.kernel.arguments.at(5) == "true")
		return false;
	return with_float(launch.kernel.type(0), [&](auto in) {
		with_float(launch.kernel.type(1), [&](auto out) {
			auto *dst = at_address<decltype(out)>(
			        launch.param<uint64_t>(0));
			auto *src = at_address<decltype(in)>(
			        launch.param<uint64_t>(1));

			for (int64_t b = 0; b < batch; b++)
				forward_row(src + b * stride, dst + b * stride,
				        n, 1, log);
		});
	});
}

/* <in, out, acc, ...>(grad_input, grad, output, batch, stride, n, mask) */
static bool run_warp_backward(const Launch &launch)
{
	bool log = launch.kernel.arguments.at(4) == "true";
	int batch = launch.param<int>(3), stride = launch.param<int>(4);
	int n = launch.param<int>(5);

	if (launch.kernel.arguments.at(5) == "true")
		return false;
	return with_float(launch.kernel.type(0), [&](auto in) {
		with_float(launch.kernel.type(1), [&](auto out) {
			auto *dst = at_address<decltype(out)>(
			        launch.param<uint64_t>(0));
			auto *grad = at_address<decltype(in)>(
			        launch.param<uint64_t>(1));
			auto *output = at_address<decltype(in)>(
			        launch.param<uint64_t>(2));

			for (int64_t b = 0; b < batch; b++)
				backward_row(grad + b * stride,
				        output + b * stride, dst + b * stride,
				        n, 1, log);
		});
	});
}

/* The first three element types among the template arguments: of the input,
 * of sums, and of the output. */
static std::vector<Type> element_types(const Kernel &kernel)
{
	std::vector<Type> types;

	for (size_t i = 0; i < kernel.arguments.size() && types.size() < 3;
	        i++) {
		/* The number of elements a thread loads is no type. */
		if (kernel.type(i) != Type::NONE)
			types.push_back(kernel.type(i));
	}
	types.resize(3, Type::NONE);
	return types;
}

/* (dst, src, n); one block a row */
static bool run_block_forward(const Launch &launch)
{
	std::vector<Type> types = element_types(launch.kernel);
	bool log = launch.kernel.has("LogSoftMaxForwardEpilogue");
	int64_t n = launch.param_bytes(2) == 8 ? launch.param<int64_t>(2)
	                                       : launch.param<int32_t>(2);

	if (!log && !launch.kernel.has("SoftMaxForwardEpilogue"))
		return false;
	return with_float(types[0], [&](auto in) {
		with_float(types[2], [&](auto out) {
			auto *dst = at_address<decltype(out)>(
			        launch.param<uint64_t>(0));
			auto *src = at_address<decltype(in)>(
			        launch.param<uint64_t>(1));

			for (int64_t b = 0; b < launch.raw.grid[0]; b++)
				forward_row(
				        src + b * n, dst + b * n, n, 1, log);
		});
	});
}

/* (grad_input, output, grad, n); one block a row */
static bool run_block_backward(const Launch &launch)
{
	std::vector<Type> types = element_types(launch.kernel);
	bool log = launch.kernel.has("LogSoftMaxBackwardEpilogue");
	int64_t n = launch.param_bytes(3) == 8 ? launch.param<int64_t>(3)
	                                       : launch.param<int32_t>(3);

	if (types[0] != types[2])
		return false;
	return with_float(types[0], [&](auto t) {
		using T = decltype(t);
		T *dst = at_address<T>(launch.param<uint64_t>(0));
		T *output = at_address<T>(launch.param<uint64_t>(1));
		T *grad = at_address<T>(launch.param<uint64_t>(2));

		for (int64_t b = 0; b < launch.raw.grid[0]; b++)
			backward_row(grad + b * n, output + b * n, dst + b * n,
			        n, 1, log);
	});
}

/* (dst, src, outer, dim, inner) */
static bool run_spatial_forward(const Launch &launch)
{
	bool log = launch.kernel.has("LogSoftMaxForwardEpilogue");
	bool wide = launch.param_bytes(2) == 8;
	auto size = [&](unsigned i) {
		return wide ? launch.param<int64_t>(i)
		            : (int64_t)launch.param<int32_t>(i);
	};
	int64_t outer = size(2), dim = size(3), inner = size(4);

	return with_float(launch.kernel.type(0), [&](auto t) {
		using T = decltype(t);
		T *dst = at_address<T>(launch.param<uint64_t>(0));
		T *src = at_address<T>(launch.param<uint64_t>(1));

		for (int64_t o = 0; o < outer; o++)
			for (int64_t i = 0; i < inner; i++) {
				int64_t at = o * dim * inner + i;

				forward_row(
				        src + at, dst + at, dim, inner, log);
			}
	});
}

/* (grad_input, output, grad, outer, dim, inner) */
static bool run_spatial_backward(const Launch &launch)
{
	bool log = launch.kernel.has("LogSoftMaxBackwardEpilogue");
	bool wide = launch.param_bytes(3) == 8;
	auto size = [&](unsigned i) {
		return wide ? launch.param<int64_t>(i)
		            : (int64_t)launch.param<int32_t>(i);
	};
	int64_t outer = size(3), dim = size(4), inner = size(5);

	if (launch.kernel.type(0) != launch.kernel.type(2))
		return false;
	return with_float(launch.kernel.type(0), [&](auto t) {
		using T = decltype(t);
		T *dst = at_address<T>(launch.param<uint64_t>(0));
		T *output = at_address<T>(launch.param<uint64_t>(1));
		T *grad = at_address<T>(launch.param<uint64_t>(2));

		for (int64_t o = 0; o < outer; o++)
			for (int64_t i = 0; i < inner; i++) {
				int64_t at = o * dim * inner + i;

				backward_row(grad + at, output + at, dst + at,
				        dim, inner, log);
			}
	});
}

const Family softmax_families[] = {
        {"softmax_warp_forward", run_warp_forward},
        {"softmax_warp_backward", run_warp_backward},
        {"cunn_SoftMaxForward", run_block_forward},
        {"cunn_SoftMaxForwardGmem", run_block_forward},
        {"cunn_SoftMaxForwardSmem", run_block_forward},
        {"cunn_SoftMaxForwardReg", run_block_forward},
        {"cunn_SoftMaxBackward", run_block_backward},
        {"cunn_SoftMaxBackwardSmem", run_block_backward},
        {"cunn_SpatialSoftMaxForward", run_spatial_forward},
        {"cunn_SpatialSoftMaxBackward", run_spatial_backward},
        {nullptr, nullptr},
};

} // namespace sgx
