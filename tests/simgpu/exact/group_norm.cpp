/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Group norm without cuDNN: moments of a group, and the factors that it turns
 * into for each channel; the elements themselves are element-wise kernels.
 */
#include "tests/simgpu/exact/layout.h"

#include <cmath>

namespace sgx
{

/* An array of the type that the signature gives it. */
struct Reals {
	Type type;
	uint64_t address;

	Reals(const Launch &launch, unsigned param)
	    : type(launch.kernel.pointee(param)),
	      address(launch.param<uint64_t>(param))
	{
	}
	bool known() const
	{
		return is_float(type);
	}
	double operator[](int64_t i) const
	{
		return element(type, address, i);
	}
	void set(int64_t i, double value) const
	{
		set_element(type, address, i, value);
	}
};

/* (elements of a group, eps, x, mean, 1 / deviation, and both in the type
 * computed in); a block a group */
static bool run_moments(const Launch &launch)
{
	int64_t n = launch.param<int64_t>(0);
	bool narrow = launch.param_bytes(1) == 2;
	Reals x(launch, 2), mean(launch, 3), scale(launch, 4);
	Reals wide_mean(launch, 5), wide_scale(launch, 6);

	double eps = (double)launch.param<float>(1);

	if (narrow && x.type == Type::BF16)
		eps = (double)(float)launch.param<BFloat16>(1);
	else if (narrow && x.type == Type::F16)
		eps = (double)(float)launch.param<Half>(1);
	else if (launch.param_bytes(1) != 4)
		return false;
	if (!x.known() || !mean.known() || !wide_mean.known())
		return false;
	for (int64_t g = 0; g < launch.raw.grid[0]; g++) {
		double sum = 0, squares = 0;

		for (int64_t i = 0; i < n; i++)
			sum += x[g * n + i];
		sum /= (double)n;
		for (int64_t i = 0; i < n; i++) {
			double d = x[g * n + i] - sum;

			squares += d * d;
		}
		squares = 1 / std::sqrt(squares / (double)n + eps);
		wide_mean.set(g, sum);
		wide_scale.set(g, squares);
		mean.set(g, sum);
		scale.set(g, squares);
	}
	return true;
}

/* (batch, channels, groups, mean, 1 / deviation, gamma, beta, a, b): y is
 * a x + b */
static bool run_factors(const Launch &launch)
{
	int64_t batch = launch.param<int64_t>(0);
	int64_t channels = launch.param<int64_t>(1);
	int64_t groups = launch.param<int64_t>(2);
	Reals mean(launch, 3), scale(launch, 4), gamma(launch, 5);
	Reals beta(launch, 6), a(launch, 7), b(launch, 8);

	if (!mean.known() || !gamma.known() || !a.known())
		return false;
	for (int64_t i = 0; i < batch * channels; i++) {
		int64_t group = i / (channels / groups), c = i % channels;
		double factor = scale[group];

		if (gamma.address)
			factor *= gamma[c];
		a.set(i, factor);
		b.set(i, (beta.address ? beta[c] : 0) - factor * mean[group]);
	}
	return true;
}

/* (elements of a channel, dy, x, sums of dy x, sums of dy); a block a
 * channel of a sample */
static bool run_sums(const Launch &launch)
{
	int64_t n = launch.param<int64_t>(0);
	Reals dy(launch, 1), x(launch, 2), dots(launch, 3), sums(launch, 4);

	if (!dy.known() || !dots.known())
		return false;
	for (int64_t c = 0; c < launch.raw.grid[0]; c++) {
		double dot = 0, sum = 0;

		for (int64_t i = c * n; i < (c + 1) * n; i++) {
			dot += dy[i] * x[i];
			sum += dy[i];
		}
		dots.set(c, dot);
		sums.set(c, sum);
	}
	return true;
}

/* (channels, elements of one, groups, mean, 1 / deviation, gamma, sums of
 * dy x, sums of dy, b, c): dx is gamma / deviation dy + b x + c; the grid is
 * samples by groups */
static bool run_backward_factors(const Launch &launch)
{
	int64_t channels = launch.param<int64_t>(0);
	int64_t area = launch.param<int64_t>(1);
	int64_t groups = launch.param<int64_t>(2), each = channels / groups;
	Reals mean(launch, 3), scale(launch, 4), gamma(launch, 5);
	Reals dots(launch, 6), sums(launch, 7), b(launch, 8), c(launch, 9);

	if (!mean.known() || !dots.known() || !b.known())
		return false;
	for (int64_t g = 0; g < (int64_t)launch.raw.grid[0] * groups; g++) {
		double dot = 0, sum = 0, r = scale[g];

		for (int64_t d = 0; d < each; d++) {
			double weight = gamma.address
			                        ? gamma[g % groups * each + d]
			                        : 1;

			dot += dots[g * each + d] * weight;
			sum += sums[g * each + d] * weight;
		}
		double share = 1 / (double)(each * area);
		double slope = (sum * mean[g] - dot) * r * r * r * share;
		b.set(g, slope);
		c.set(g, -slope * mean[g] - sum * r * share);
	}
	return true;
}

/* (batch, channels, groups, mean, 1 / deviation, sums of dy x, sums of dy,
 * gradients of gamma and beta) */
static bool run_weights(const Launch &launch)
{
	int64_t batch = launch.param<int64_t>(0);
	int64_t channels = launch.param<int64_t>(1);
	int64_t groups = launch.param<int64_t>(2), each = channels / groups;
	Reals mean(launch, 3), scale(launch, 4), dots(launch, 5);
	Reals sums(launch, 6), gamma(launch, 7), beta(launch, 8);

	if (!mean.known() || !dots.known() || !gamma.known())
		return false;
	for (int64_t c = 0; c < channels; c++) {
		double dot = 0, sum = 0;

		for (int64_t n = 0; n < batch; n++) {
			int64_t at = n * channels + c;
			int64_t group = n * groups + c / each;

			dot += (dots[at] - sums[at] * mean[group]) *
			       scale[group];
			sum += sums[at];
		}
		if (gamma.address)
			gamma.set(c, dot);
		if (beta.address)
			beta.set(c, sum);
	}
	return true;
}

const Family group_norm_families[] = {
        {"RowwiseMomentsContiguousCUDAKernel", run_moments},
        {"ComputeFusedParamsCUDAKernel", run_factors},
        {"ComputeInternalGradientsContiguousCUDAKernel", run_sums},
        {"ComputeInternalGradientsCUDAKernel", run_sums},
        {"ComputeBackwardFusedParamsCUDAKernel", run_backward_factors},
        {"GammaBetaBackwardCUDAKernel1", run_weights},
        {"GammaBetaBackwardCUDAKernel2", run_weights},
        {nullptr, nullptr},
};

} // namespace sgx
