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

const Family loss_families[] = {
        {"nll_loss_forward_reduce_cuda_kernel_2d", run_forward},
        {"nll_loss_backward_reduce_cuda_kernel_2d", run_backward},
        {nullptr, nullptr},
};

} // namespace sgx
