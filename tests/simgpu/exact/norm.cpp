/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Layer norm and RMS norm, both ways; sums in double. */
#include "tests/simgpu/exact/layout.h"

#include <cmath>

namespace sgx
{

template <class T, class A>
static void normalize(const T *x, int64_t n, A mean, A scale, const T *gamma,
        const T *beta, T *y)
{
	for (int64_t i = 0; i < n; i++) {
		A value = ((A)(Math<T>)x[i] - mean) * scale;

		if (gamma)
			value *= (A)(Math<T>)gamma[i];
		if (beta)
			value += (A)(Math<T>)beta[i];
		y[i] = convert<T>(value);
	}
}

template <class T, class A>
static void moments(const T *x, int64_t n, bool rms, A eps, A *mean, A *scale)
{
	double sum = 0, squares = 0, average;

	for (int64_t i = 0; i < n; i++)
		sum += (double)(Math<T>)x[i];
	average = rms ? 0 : sum / (double)n;
	for (int64_t i = 0; i < n; i++) {
		double d = (double)(Math<T>)x[i] - average;

		squares += d * d;
	}
	*mean = (A)average;
	*scale = (A)(1 / std::sqrt(squares / (double)n + (double)eps));
}

/* <T, acc, rms>(n, eps, x, gamma, beta, mean, rstd, y); one block a row */
static bool run_forward(const Launch &launch)
{
	bool rms = launch.kernel.arguments.back() == "true";
	int n = launch.param<int>(0);

	if (launch.kernel.type(1) != Type::F32)
		return false;
	return with_float(launch.kernel.type(0), [&](auto t) {
		using T = decltype(t);
		float eps = launch.param<float>(1);
		const T *x = at_address<T>(launch.param<uint64_t>(2));
		const T *gamma = at_address<T>(launch.param<uint64_t>(3));
		const T *beta = at_address<T>(launch.param<uint64_t>(4));
		float *means = at_address<float>(launch.param<uint64_t>(5));
		float *scales = at_address<float>(launch.param<uint64_t>(6));
		T *y = at_address<T>(launch.param<uint64_t>(7));

		for (int64_t row = 0; row < launch.raw.grid[0]; row++) {
			float mean, scale;

			moments(x + row * n, n, rms, eps, &mean, &scale);
			normalize(x + row * n, n, mean, scale, gamma,
			        rms ? nullptr : beta, y + row * n);
			if (!rms)
				means[row] = mean;
			scales[row] = scale;
		}
	});
}

/* RowwiseMomentsCUDAKernel<T, acc, rms>(n, eps, x, mean, rstd); newer, the
 * number of rows comes first. */
static bool run_moments(const Launch &launch)
{
	unsigned first = launch.param_bytes(1) == 8 ? 1 : 0;
	int64_t rows = first ? launch.param<int64_t>(0) : launch.raw.grid[0];
	bool rms = launch.kernel.arguments.back() == "true";
	int64_t n = launch.param<int64_t>(first);

	if (launch.kernel.type(1) != Type::F32)
		return false;
	return with_float(launch.kernel.type(0), [&](auto t) {
		using T = decltype(t);
		const T *x = at_address<T>(launch.param<uint64_t>(first + 2));
		float *means =
		        at_address<float>(launch.param<uint64_t>(first + 3));
		float *scales =
		        at_address<float>(launch.param<uint64_t>(first + 4));

		for (int64_t row = 0; row < rows; row++) {
			float mean;

			moments(x + row * n, n, rms,
			        launch.param<float>(first + 1), &mean,
			        &scales[row]);
			if (!rms)
				means[row] = mean;
		}
	});
}

/* LayerNormForwardCUDAKernel<T, acc, rms>(n, x, mean, rstd, gamma, beta, y);
 * newer, the number of rows comes first. */
static bool run_apply(const Launch &launch)
{
	bool rms = launch.kernel.arguments.back() == "true";
	unsigned first = launch.kernel.has("(long, long,") ? 1 : 0;
	int64_t n = launch.param<int64_t>(first);
	int64_t rows = first ? launch.param<int64_t>(0) : launch.raw.grid[0];

	if (launch.kernel.type(1) != Type::F32)
		return false;
	return with_float(launch.kernel.type(0), [&](auto t) {
		using T = decltype(t);
		const T *x = at_address<T>(launch.param<uint64_t>(first + 1));
		float *means =
		        at_address<float>(launch.param<uint64_t>(first + 2));
		float *scales =
		        at_address<float>(launch.param<uint64_t>(first + 3));
		const T *gamma =
		        at_address<T>(launch.param<uint64_t>(first + 4));
		const T *beta =
		        at_address<T>(launch.param<uint64_t>(first + 5));
		T *y = at_address<T>(launch.param<uint64_t>(first + 6));

		for (int64_t row = 0; row < rows; row++)
			normalize(x + row * n, n, rms ? 0.0f : means[row],
			        scales[row], gamma, rms ? nullptr : beta,
			        y + row * n);
	});
}

/* <T, acc, rms>(dy, x, mean, rstd, gamma, dx, n); one block a row */
static bool run_input_gradient(const Launch &launch)
{
	bool rms = launch.kernel.arguments.back() == "true";
	int n = launch.param<int>(6);

	if (launch.kernel.type(1) != Type::F32)
		return false;
	return with_float(launch.kernel.type(0), [&](auto t) {
		using T = decltype(t);
		const T *dy = at_address<T>(launch.param<uint64_t>(0));
		const T *x = at_address<T>(launch.param<uint64_t>(1));
		float *means = at_address<float>(launch.param<uint64_t>(2));
		float *scales = at_address<float>(launch.param<uint64_t>(3));
		const T *gamma = at_address<T>(launch.param<uint64_t>(4));
		T *dx = at_address<T>(launch.param<uint64_t>(5));

		for (int64_t row = 0; row < launch.raw.grid[0]; row++) {
			float mean = rms ? 0 : means[row], scale = scales[row];
			double sum = 0, dot = 0;
			auto at = [&](int64_t i) {
				float g = (float)(Math<T>)dy[row * n + i];

				return gamma ? g * (float)(Math<T>)gamma[i] : g;
			};
			auto normal = [&](int64_t i) {
				return ((float)(Math<T>)x[row * n + i] - mean) *
				       scale;
			};

			for (int64_t i = 0; i < n; i++) {
				sum += (double)at(i);
				dot += (double)at(i) * (double)normal(i);
			}
			float a = rms ? 0.0f : (float)(sum / n);
			float b = (float)(dot / n);
			for (int64_t i = 0; i < n; i++)
				dx[row * n + i] = convert<T>(
				        scale * (at(i) - a - normal(i) * b));
		}
	});
}

/*
 * (rows, n, dy, x, mean, rstd, dgamma, dbeta). With partial reduction each
 * row of threads leaves a row of sums, to be added up by a later kernel: the
 * first row gets all here, the others zeros.
 */
static bool run_weight_gradient(const Launch &launch)
{
	bool rms = launch.kernel.arguments.back() == "true";
	bool templated =
	        launch.kernel.family == "GammaBetaBackwardCUDAKernelTemplate";
	bool partial = templated && launch.kernel.arguments.at(5) == "true";
	int64_t rows = launch.param<int64_t>(0), n = launch.param<int64_t>(1);
	int64_t copies =
	        partial ? (int64_t)launch.raw.grid[1] * launch.raw.block[1] : 1;

	if (launch.kernel.type(1) != Type::F32)
		return false;
	return with_float(launch.kernel.type(0), [&](auto t) {
		using T = decltype(t);
		const T *dy = at_address<T>(launch.param<uint64_t>(2));
		const T *x = at_address<T>(launch.param<uint64_t>(3));
		float *means = at_address<float>(launch.param<uint64_t>(4));
		float *scales = at_address<float>(launch.param<uint64_t>(5));
		T *dgamma = at_address<T>(launch.param<uint64_t>(6));
		T *dbeta = at_address<T>(launch.param<uint64_t>(7));
		std::vector<double> g((size_t)n), b((size_t)n);

		for (int64_t row = 0; row < rows; row++) {
			double mean = rms ? 0 : (double)means[row];
			double scale = (double)scales[row];

			for (int64_t i = 0; i < n; i++) {
				double d = (double)(Math<T>)dy[row * n + i];

				b[(size_t)i] += d;
				g[(size_t)i] +=
				        d *
				        ((double)(Math<T>)x[row * n + i] -
				                mean) *
				        scale;
			}
		}
		for (int64_t copy = 0; copy < copies; copy++)
			for (int64_t i = 0; i < n; i++) {
				size_t at = (size_t)i;

				if (dgamma)
					dgamma[copy * n + i] = convert<T>(
					        (Math<T>)(copy ? 0 : g[at]));
				if (dbeta && !rms)
					dbeta[copy * n + i] = convert<T>(
					        (Math<T>)(copy ? 0 : b[at]));
			}
	});
}

const Family norm_families[] = {
        {"vectorized_layer_norm_kernel", run_forward},
        {"RowwiseMomentsCUDAKernel", run_moments},
        {"LayerNormForwardCUDAKernel", run_apply},
        {"layer_norm_grad_input_kernel", run_input_gradient},
        {"layer_norm_grad_input_kernel_vectorized", run_input_gradient},
        {"GammaBetaBackwardCUDAKernelTemplate", run_weight_gradient},
        {"GammaBetaBackwardSimpleCUDAKernel", run_weight_gradient},
        {nullptr, nullptr},
};

} // namespace sgx
