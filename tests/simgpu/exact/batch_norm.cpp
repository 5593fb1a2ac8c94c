/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Batch norm without cuDNN, on tensors of batch, plane and feature that come as
 * packed accessors.
 */
#include "tests/simgpu/exact/layout.h"

#include <cmath>

namespace sgx
{

/* GenericPackedTensorAccessor<T, N, traits, int>. */
template <int N> struct Accessor {
	uint64_t data;
	int32_t sizes[N], strides[N];
};
using Accessor1 = Accessor<1>;
using Accessor3 = Accessor<3>;

template <class T> static T &at(const Accessor1 &a, int64_t i)
{
	return at_address<T>(a.data)[i * a.strides[0]];
}

template <class T>
static T &at(const Accessor3 &a, int64_t batch, int64_t plane, int64_t feature)
{
	return at_address<T>(
	        a.data)[batch * a.strides[0] + plane * a.strides[1] +
	                feature * a.strides[2]];
}

/* Calls fn(batch, feature) for all elements of a plane. */
template <class Fn> static void each(const Accessor3 &a, Fn &&fn)
{
	for (int64_t b = 0; b < a.sizes[0]; b++)
		for (int64_t f = 0; f < a.sizes[2]; f++)
			fn(b, f);
}

static bool accessors_fit(const Launch &launch,
        std::initializer_list<std::pair<unsigned, size_t>> expected)
{
	for (const auto &[param, bytes] : expected)
		if (launch.param_bytes(param) != bytes)
			return false;
	return true;
}

/* <transform, input, stat, acc, index>(input, eps, momentum, mean, variance) */
static bool run_statistics(const Launch &launch)
{
	Accessor3 input = launch.param<Accessor3>(0);
	Accessor1 means = launch.param<Accessor1>(3);
	Accessor1 variances = launch.param<Accessor1>(4);
	bool inverse = launch.kernel.arguments.at(0) == "at::native::InvStd";
	float eps = launch.param<float>(1);

	if (launch.kernel.type(3) != Type::F32 ||
	        !accessors_fit(launch,
	                {{0, sizeof(Accessor3)}, {3, sizeof(Accessor1)}}))
		return false;
	if (!inverse && launch.kernel.arguments[0] != "at::native::Var")
		return false;
	return with_float(launch.kernel.type(1), [&](auto t) {
		using T = decltype(t);

		for (int64_t plane = 0; plane < input.sizes[1]; plane++) {
			double n = (double)input.sizes[0] * input.sizes[2];
			double sum = 0, squares = 0;

			each(input, [&](int64_t b, int64_t f) {
				sum += (double)(Math<T>)at<T>(
				        input, b, plane, f);
			});
			each(input, [&](int64_t b, int64_t f) {
				double d = (double)(Math<T>)at<T>(
				                   input, b, plane, f) -
				           sum / n;

				squares += d * d;
			});
			if (means.data)
				at<float>(means, plane) = (float)(sum / n);
			if (variances.data)
				at<float>(variances, plane) =
				        (float)(inverse ? 1 / std::sqrt(
				                                      squares /
				                                              n +
				                                      (double)eps)
				                        : squares / n);
		}
	});
}

/* unrolled_elementwise_kernel_for_multi_outputs with the functor that updates
 * running statistics: it holds Bessel's factor, momentum and eps; results are
 * running mean, running variance, 1 / deviation; inputs mean, variance and
 * the running ones. */
static bool run_update(const Launch &launch)
{
	int n = launch.param<int>(0);
	float *data[7];

	if (launch.kernel.has("::prelu_backward_kernel("))
		return run_prelu_backward(launch);
	if (!launch.kernel.has("batch_norm_update_stats_and_invert(") ||
	        !launch.kernel.has("{lambda(float, float, float, float)#1}") ||
	        launch.param_bytes(1) < 12 || launch.param_bytes(2) != 56)
		return false;
	float bessel = launch.param<float>(1);
	float momentum = launch.param<float>(1, 4);
	float eps = launch.param<float>(1, 8);
	for (unsigned i = 0; i < 7; i++)
		data[i] = at_address<float>(launch.param<uint64_t>(2, i * 8));
	for (int i = 0; i < n; i++) {
		float mean = data[3][i], variance = data[4][i];
		float running_mean = data[5][i], running_variance = data[6][i];

		data[0][i] = mean * momentum + (1 - momentum) * running_mean;
		data[1][i] = variance * bessel * momentum +
		             (1 - momentum) * running_variance;
		data[2][i] = 1 / std::sqrt(variance + eps);
	}
	return true;
}

/* <input, stat, acc, train, index>(input, output, mean, variance or
 * 1 / deviation, weight, bias, eps) */
static bool run_transform(const Launch &launch)
{
	Accessor3 input = launch.param<Accessor3>(0);
	Accessor3 output = launch.param<Accessor3>(1);
	Accessor1 means = launch.param<Accessor1>(2);
	Accessor1 scales = launch.param<Accessor1>(3);
	Accessor1 weight = launch.param<Accessor1>(4);
	Accessor1 bias = launch.param<Accessor1>(5);
	float eps = launch.param<float>(6);
	bool train = launch.kernel.arguments.at(3) == "true";

	if (launch.kernel.type(1) != Type::F32 ||
	        launch.kernel.type(2) != Type::F32)
		return false;
	return with_float(launch.kernel.type(0), [&](auto t) {
		using T = decltype(t);

		for (int64_t plane = 0; plane < input.sizes[1]; plane++) {
			float mean = at<float>(means, plane);
			float scale = at<float>(scales, plane);
			float gamma =
			        weight.sizes[0] ? at<float>(weight, plane) : 1;
			float beta = bias.sizes[0] ? at<float>(bias, plane) : 0;

			if (!train)
				scale = 1 / std::sqrt(scale + eps);
			each(input, [&](int64_t b, int64_t f) {
				float x = (float)(Math<T>)at<T>(
				        input, b, plane, f);

				at<T>(output, b, plane, f) = convert<T>(
				        gamma * (x - mean) * scale + beta);
			});
		}
	});
}

/* <input, stat, acc, index>(input, grad, grad_input, grad_weight, grad_bias,
 * weight, running mean, running variance, mean, 1 / deviation, train, eps) */
static bool run_backward(const Launch &launch)
{
	Accessor3 input = launch.param<Accessor3>(0);
	Accessor3 grad = launch.param<Accessor3>(1);
	Accessor3 into = launch.param<Accessor3>(2);
	Accessor1 grad_weight = launch.param<Accessor1>(3);
	Accessor1 grad_bias = launch.param<Accessor1>(4);
	Accessor1 weight = launch.param<Accessor1>(5);
	bool train = launch.param<bool>(10);
	Accessor1 means = launch.param<Accessor1>(train ? 8 : 6);
	Accessor1 scales = launch.param<Accessor1>(train ? 9 : 7);
	float eps = launch.param<float>(11);

	if (launch.kernel.type(1) != Type::F32 ||
	        launch.kernel.type(2) != Type::F32)
		return false;
	return with_float(launch.kernel.type(0), [&](auto t) {
		using T = decltype(t);

		for (int64_t plane = 0; plane < input.sizes[1]; plane++) {
			float mean = at<float>(means, plane);
			float scale = at<float>(scales, plane);
			float gamma =
			        weight.sizes[0] ? at<float>(weight, plane) : 1;
			double n = (double)input.sizes[0] * input.sizes[2];
			double sum = 0, dot = 0;

			if (!train)
				scale = 1 / std::sqrt(scale + eps);
			each(input, [&](int64_t b, int64_t f) {
				double g = (double)(Math<T>)at<T>(
				        grad, b, plane, f);

				sum += g;
				dot += g * ((double)(Math<T>)at<T>(
				                    input, b, plane, f) -
				                   (double)mean);
			});
			float average = (float)(sum / n);
			float slope = (float)(dot / n) * scale * scale;
			if (into.data)
				each(input, [&](int64_t b, int64_t f) {
					float g = (float)(Math<T>)at<T>(
					        grad, b, plane, f);
					float x = (float)(Math<T>)at<T>(
					        input, b, plane, f);

					if (train)
						g -= (x - mean) * slope +
						     average;
					at<T>(into, b, plane, f) =
					        convert<T>(g * scale * gamma);
				});
			if (grad_weight.sizes[0])
				at<float>(grad_weight, plane) =
				        (float)(dot * (double)scale);
			if (grad_bias.sizes[0])
				at<float>(grad_bias, plane) = (float)sum;
		}
	});
}

/* <input, stat, acc, index>(input, grad, mean, 1 / deviation, sums of grad and
 * of grad by what is over the mean, gradients of weight and bias) */
static bool run_sums(const Launch &launch)
{
	Accessor3 input = launch.param<Accessor3>(0);
	Accessor3 grad = launch.param<Accessor3>(1);
	Accessor1 vectors[6];
	Type type = launch.kernel.type(0);

	if (launch.kernel.type(1) != Type::F32 ||
	        launch.kernel.type(2) != Type::F32 ||
	        !accessors_fit(launch,
	                {{0, sizeof(Accessor3)}, {2, sizeof(Accessor1)}}))
		return false;
	for (unsigned i = 0; i < 6; i++)
		vectors[i] = launch.param<Accessor1>(2 + i);
	return with_float(type, [&](auto t) {
		using T = decltype(t);

		for (int64_t plane = 0; plane < input.sizes[1]; plane++) {
			double mean = (double)at<float>(vectors[0], plane);
			double scale = (double)at<float>(vectors[1], plane);
			double sum = 0, dot = 0;

			each(input, [&](int64_t b, int64_t f) {
				double g = (double)(Math<T>)at<T>(
				        grad, b, plane, f);

				sum += g;
				dot += g * ((double)(Math<T>)at<T>(
				                    input, b, plane, f) -
				                   mean);
			});
			const double results[] = {sum, dot, dot * scale, sum};
			for (unsigned i = 0; i < 4; i++)
				if (vectors[2 + i].sizes[0])
					at<float>(vectors[2 + i], plane) =
					        (float)results[i];
		}
	});
}

/* <input, stat, acc, index>(input, grad, mean, 1 / deviation, weight, both
 * sums, into, 1 / elements) */
static bool run_elements(const Launch &launch)
{
	Accessor3 input = launch.param<Accessor3>(0);
	Accessor3 grad = launch.param<Accessor3>(1);
	Accessor3 into = launch.param<Accessor3>(7);
	Accessor1 vectors[5];
	float share = launch.param<float>(8);

	if (launch.kernel.type(1) != Type::F32 ||
	        launch.kernel.type(2) != Type::F32 ||
	        !accessors_fit(launch,
	                {{0, sizeof(Accessor3)}, {2, sizeof(Accessor1)},
	                        {7, sizeof(Accessor3)}, {8, 4}}))
		return false;
	for (unsigned i = 0; i < 5; i++)
		vectors[i] = launch.param<Accessor1>(2 + i);
	return with_float(launch.kernel.type(0), [&](auto t) {
		using T = decltype(t);

		for (int64_t plane = 0; plane < input.sizes[1]; plane++) {
			float mean = at<float>(vectors[0], plane);
			float scale = at<float>(vectors[1], plane);
			float gamma = vectors[2].sizes[0]
			                      ? at<float>(vectors[2], plane)
			                      : 1;
			float average = at<float>(vectors[3], plane) * share;
			float slope = scale * scale *
			              at<float>(vectors[4], plane) * share;

			each(input, [&](int64_t b, int64_t f) {
				float g = (float)(Math<T>)at<T>(
				        grad, b, plane, f);
				float x = (float)(Math<T>)at<T>(
				        input, b, plane, f);

				at<T>(into, b, plane, f) = convert<T>(
				        (g - average - (x - mean) * slope) *
				        gamma * scale);
			});
		}
	});
}

/* ------------------------------------------------------------ channels last */

/* An array by a parameter's type in the signature; ones or zeros where there
 * is none. */
struct Rows {
	Type type;
	uint64_t address;
	double otherwise;

	Rows(const Launch &launch, unsigned param, double none = 0)
	    : type(launch.kernel.pointee(param)),
	      address(launch.param<uint64_t>(param)), otherwise(none)
	{
	}
	double operator[](int64_t i) const
	{
		return address ? element(type, address, i) : otherwise;
	}
	void set(int64_t i, double value) const
	{
		if (address)
			set_element(type, address, i, value);
	}
};

/* <transform, T, acc, ...>(input, mean, variance, ..., rows, channels, eps) */
static bool run_statistics_last(const Launch &launch)
{
	Rows input(launch, 0), mean(launch, 1), variance(launch, 2);
	bool inverse = launch.kernel.arguments.at(0) == "at::native::InvStd";
	int64_t n = launch.param<int32_t>(5);
	int64_t channels = launch.param<int32_t>(6);
	double eps = (double)launch.param<float>(7);

	if (!is_float(input.type) || launch.param_bytes(7) != 4 ||
	        (!inverse && launch.kernel.arguments[0] != "at::native::Var"))
		return false;
	for (int64_t c = 0; c < channels; c++) {
		double sum = 0, squares = 0;

		for (int64_t i = 0; i < n; i++)
			sum += input[i * channels + c];
		sum /= (double)n;
		for (int64_t i = 0; i < n; i++) {
			double d = input[i * channels + c] - sum;

			squares += d * d;
		}
		squares /= (double)n;
		mean.set(c, sum);
		variance.set(c,
		        inverse ? 1 / std::sqrt(squares + eps) : squares);
	}
	return true;
}

/* (input, what is added, mean, 1 / deviation, weight, bias, out, rows,
 * channels, ReLU) */
static bool run_transform_last(const Launch &launch)
{
	Rows input(launch, 0), added(launch, 1), mean(launch, 2);
	Rows scale(launch, 3), weight(launch, 4, 1), bias(launch, 5);
	Rows out(launch, 6);
	int64_t n = launch.param<int32_t>(7);
	int64_t channels = launch.param<int32_t>(8);
	bool relu = launch.param<bool>(9);

	if (!is_float(input.type) || launch.raw.n_params != 10)
		return false;
	for (int64_t i = 0; i < n * channels; i++) {
		int64_t c = i % channels;
		double y = weight[c] * (input[i] - mean[c]) * scale[c] +
		           bias[c] + added[i];

		out.set(i, relu && y < 0 ? 0 : y);
	}
	return true;
}

/* (input, grad, mean, 1 / deviation, sums of grad and of grad by what is over
 * the mean, gradients of weight and bias, ..., rows, channels) */
static bool run_sums_last(const Launch &launch)
{
	Rows input(launch, 0), grad(launch, 1), mean(launch, 2);
	Rows scale(launch, 3), sums(launch, 4), dots(launch, 5);
	Rows weight(launch, 6), bias(launch, 7);
	int64_t n = launch.param<int32_t>(10);
	int64_t channels = launch.param<int32_t>(11);

	if (!is_float(input.type) || launch.raw.n_params != 12)
		return false;
	for (int64_t c = 0; c < channels; c++) {
		double sum = 0, dot = 0;

		for (int64_t i = c; i < n * channels; i += channels) {
			sum += grad[i];
			dot += grad[i] * (input[i] - mean[c]);
		}
		sums.set(c, sum);
		dots.set(c, dot);
		weight.set(c, dot * scale[c]);
		bias.set(c, sum);
	}
	return true;
}

/* (grad, input, mean, 1 / deviation, weight, both sums, into, 1 / rows, rows,
 * channels) */
static bool run_backward_last(const Launch &launch)
{
	Rows grad(launch, 0), input(launch, 1), mean(launch, 2);
	Rows scale(launch, 3), weight(launch, 4, 1), sums(launch, 5);
	Rows dots(launch, 6), into(launch, 7);
	double share = (double)launch.param<float>(8);
	int64_t n = launch.param<int32_t>(9);
	int64_t channels = launch.param<int32_t>(10);

	if (!is_float(input.type) || launch.param_bytes(8) != 4)
		return false;
	for (int64_t i = 0; i < n * channels; i++) {
		int64_t c = i % channels;
		double slope = scale[c] * scale[c] * dots[c] * share;

		into.set(i, (grad[i] - sums[c] * share -
		                    (input[i] - mean[c]) * slope) *
		                    weight[c] * scale[c]);
	}
	return true;
}

const Family batch_norm_families[] = {
        {"batch_norm_backward_reduce_kernel", run_sums},
        {"batch_norm_backward_elemt_kernel", run_elements},
        {"batch_norm_collect_statistics_channels_last_kernel",
                run_statistics_last},
        {"batch_norm_transform_input_channels_last_kernel", run_transform_last},
        {"batch_norm_backward_reduce_channels_last_kernel", run_sums_last},
        {"batch_norm_backward_elemt_channels_last_kernel", run_backward_last},
        {"batch_norm_collect_statistics_kernel", run_statistics},
        {"unrolled_elementwise_kernel_for_multi_outputs", run_update},
        {"batch_norm_transform_input_kernel", run_transform},
        {"batch_norm_backward_kernel", run_backward},
        {nullptr, nullptr},
};

} // namespace sgx
