/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Negative log likelihood. */
#include "tests/simgpu/exact/layout.h"

namespace sgx
{

/* <scalar, acc, index>(output, total_weight, input, target, weights, average,
 * rows, columns, classes, ignored) */
static bool run_forward(const Launch &launch)
{
	bool average = launch.param<bool>(5);
	int64_t rows = launch.param<int64_t>(6);
	int64_t columns = launch.param<int64_t>(7);
	int64_t classes = launch.param<int64_t>(8);
	int64_t ignored = launch.param<int64_t>(9);
	const int64_t *target = at_address<int64_t>(launch.param<uint64_t>(3));

	if (launch.kernel.type(2) != Type::I64)
		return false;
	return with_float(launch.kernel.type(0), [&](auto t) {
		using T = decltype(t);
		using M = Math<T>;
		T *output = at_address<T>(launch.param<uint64_t>(0));
		T *total = at_address<T>(launch.param<uint64_t>(1));
		T *input = at_address<T>(launch.param<uint64_t>(2));
		T *weights = at_address<T>(launch.param<uint64_t>(4));
		double sum = 0, weight_sum = 0;

		for (int64_t i = 0; i < rows; i++) {
			if (target[i] == ignored || target[i] < 0 ||
			        target[i] >= classes)
				continue;
			double w = weights ? (double)(M)weights[target[i]] : 1;

			sum -= (double)(M)input[i * columns + target[i]] * w;
			weight_sum += w;
		}
		*total = convert<T>((M)weight_sum);
		*output = convert<T>((M)(average ? sum / weight_sum : sum));
	});
}

/* <scalar, index>(grad_input, grad_output, target, weights, total_weight,
 * average, rows, columns, classes, ignored) */
static bool run_backward(const Launch &launch)
{
	bool average = launch.param<bool>(5);
	int rows = launch.param<int>(6), columns = launch.param<int>(7);
	int64_t classes = launch.param<int64_t>(8);
	int64_t ignored = launch.param<int64_t>(9);
	const int64_t *target = at_address<int64_t>(launch.param<uint64_t>(2));

	if (launch.kernel.type(1) != Type::I64)
		return false;
	return with_float(launch.kernel.type(0), [&](auto t) {
		using T = decltype(t);
		using M = Math<T>;
		T *into = at_address<T>(launch.param<uint64_t>(0));
		T *grad = at_address<T>(launch.param<uint64_t>(1));
		T *weights = at_address<T>(launch.param<uint64_t>(3));
		T *total = at_address<T>(launch.param<uint64_t>(4));
		M each = -(M)*grad;

		if (average)
			each /= (M)*total;
		for (int64_t i = 0; i < rows; i++) {
			if (target[i] == ignored || target[i] < 0 ||
			        target[i] >= classes)
				continue;
			M w = weights ? (M)weights[target[i]] : M(1);

			into[i * columns + target[i]] = convert<T>(each * w);
		}
	});
}

/* --------------------------------------------------- without a reduction */

/* (rows, input, target, output, weights, classes, ignored) */
static bool run_each(const Launch &launch)
{
	auto input = launch.param<Packed<2, int64_t>>(1);
	Type type = launch.kernel.first_float();
	const int64_t *target = at_address<int64_t>(launch.param<uint64_t>(2));
	uint64_t weights = launch.param<uint64_t>(4);
	int64_t ignored = launch.param<int64_t>(6);

	if (launch.kernel.type(1) != Type::I64 ||
	        launch.param_bytes(1) != sizeof(input))
		return false;
	for (int64_t i = 0; i < launch.param<int64_t>(0); i++) {
		int64_t t = target[i];
		double w = weights && t != ignored ? element(type, weights, t)
		                                   : 1;

		set_element(type, launch.param<uint64_t>(3), i,
		        t == ignored ? 0
		                     : -element(type, input.data,
		                               input.at({i, t})) *
		                               w);
	}
	return true;
}

/* (rows, target, grad, into, weights, classes, ignored); into was zeros */
static bool run_each_backward(const Launch &launch)
{
	auto grad = launch.param<Packed<1, int64_t>>(2);
	auto into = launch.param<Packed<2, int64_t>>(3);
	Type type = launch.kernel.first_float();
	const int64_t *target = at_address<int64_t>(launch.param<uint64_t>(1));
	uint64_t weights = launch.param<uint64_t>(4);

	if (launch.kernel.type(1) != Type::I64 ||
	        launch.param_bytes(2) != sizeof(grad) ||
	        launch.param_bytes(3) != sizeof(into))
		return false;
	for (int64_t i = 0; i < launch.param<int32_t>(0); i++) {
		int64_t t = target[i];

		if (t == launch.param<int64_t>(6))
			continue;
		set_element(type, into.data, into.at({i, t}),
		        -element(type, grad.data, grad.at({i})) *
		                (weights ? element(type, weights, t) : 1));
	}
	return true;
}

/* ----------------------------------------------------------------- images */

/* Calls fn(place of the target's class, its weight) for what counts. */
template <class Fn>
static void each_pixel(Type type, uint64_t target, uint64_t weights,
        int64_t pixels, int64_t area, int64_t classes, int64_t ignored, Fn &&fn)
{
	for (int64_t i = 0; i < pixels; i++) {
		int64_t t = at_address<const int64_t>(target)[i];

		if (t != ignored)
			fn((i / area * classes + t) * area + i % area,
			        weights ? element(type, weights, t) : 1.0);
	}
}

/* (output, weight of all, input, target, weights, classes, pixels of an image,
 * blocks of one, ignored); adds to both */
static bool run_image(const Launch &launch)
{
	Type type = launch.kernel.type(0);
	int64_t area = launch.param<int32_t>(6);
	int64_t pixels = launch.raw.grid[0] / launch.param<uint32_t>(7) * area;
	double sum = 0, weight = 0;

	if (!is_float(type) || launch.raw.n_params != 9)
		return false;
	each_pixel(type, launch.param<uint64_t>(3), launch.param<uint64_t>(4),
	        pixels, area, launch.param<int32_t>(5),
	        launch.param<int64_t>(8), [&](int64_t at, double w) {
		        sum -= element(type, launch.param<uint64_t>(2), at) * w;
		        weight += w;
	        });
	for (unsigned i = 0; i < 2; i++) {
		uint64_t to = launch.param<uint64_t>(i);

		set_element(type, to, 0,
		        element(type, to, 0) + (i ? weight : sum));
	}
	return true;
}

/* (output, weight of all) */
static bool run_image_average(const Launch &launch)
{
	Type type = launch.kernel.type(0);
	uint64_t output = launch.param<uint64_t>(0);

	if (!is_float(type))
		return false;
	set_element(type, output, 0,
	        element(type, output, 0) /
	                element(type, launch.param<uint64_t>(1), 0));
	return true;
}

/* (into, grad, target, weights, weight of all, average, classes, pixels of an
 * image, blocks of one, ignored); into was zeros */
static bool run_image_backward(const Launch &launch)
{
	Type type = launch.kernel.type(0);
	int64_t area = launch.param<int32_t>(7);
	int64_t pixels = launch.raw.grid[0] / launch.param<uint32_t>(8) * area;
	double grad = element(type, launch.param<uint64_t>(1), 0);

	if (!is_float(type) || launch.raw.n_params != 10)
		return false;
	if (launch.param<bool>(5))
		grad /= element(type, launch.param<uint64_t>(4), 0);
	each_pixel(type, launch.param<uint64_t>(2), launch.param<uint64_t>(3),
	        pixels, area, launch.param<int32_t>(6),
	        launch.param<int64_t>(9), [&](int64_t at, double w) {
		        set_element(type, launch.param<uint64_t>(0), at,
		                -grad * w);
	        });
	return true;
}

const Family loss_families[] = {
        {"nll_loss_forward_no_reduce_cuda_kernel", run_each},
        {"nll_loss_backward_no_reduce_cuda_kernel", run_each_backward},
        {"nll_loss2d_forward_kernel", run_image},
        {"nll_loss2d_forward_size_average_kernel", run_image_average},
        {"nll_loss2d_backward_kernel", run_image_backward},
        {"nll_loss_forward_reduce_cuda_kernel_2d", run_forward},
        {"nll_loss_backward_reduce_cuda_kernel_2d", run_backward},
        {nullptr, nullptr},
};

} // namespace sgx
