/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Functors of activations and losses, both ways. */
#include "tests/simgpu/exact/functor_table.h"

#include <algorithm>
#include <cmath>

namespace sgx
{

template <class M> struct LeakyRelu : Held<M, 1> {
	using Held<M, 1>::Held;
	M operator()(M a) const
	{
		return a > 0 ? a : a * this->held[0];
	}
};
template <class M> struct LeakyReluBackward : Held<M, 1> {
	using Held<M, 1>::Held;
	M operator()(M a, M b) const
	{
		return a > 0 ? b : b * this->held[0];
	}
};
template <class M> struct Elu : Held<M, 3> {
	using Held<M, 3>::Held;
	M operator()(M a) const
	{
		return a <= 0 ? (M)std::expm1(a * this->held[0]) * this->held[1]
		              : a * this->held[2];
	}
};
template <class M> struct EluBackward : Held<M, 3> {
	bool of_result;
	explicit EluBackward(const Capture &capture) : Held<M, 3>(capture)
	{
		of_result = capture.bytes > 3 * sizeof(M) &&
		            capture.data[3 * sizeof(M)];
	}
	M operator()(M grad, M b) const
	{
		M alpha = this->held[0], positive = this->held[1];
		M inner = this->held[2];

		if (b > 0)
			return grad * positive;
		if (of_result)
			return grad * inner * (b + alpha);
		return grad * inner * alpha * (M)std::exp(b * inner);
	}
};
template <class M> struct Softplus : Held<M, 2> {
	using Held<M, 2>::Held;
	M operator()(M a) const
	{
		M x = a * this->held[0];

		return x > this->held[1]
		               ? a
		               : (M)std::log1p(std::exp(x)) / this->held[0];
	}
};
template <class M> struct SoftplusBackward : Held<M, 2> {
	using Held<M, 2>::Held;
	M operator()(M grad, M a) const
	{
		M x = a * this->held[0], z = (M)std::exp(x);

		return x > this->held[1] ? grad : grad * z / (z + 1);
	}
};
template <class M> struct Hardswish : Plain {
	using Plain::Plain;
	M operator()(M a) const
	{
		return (M)(a * std::min(std::max(a + 3, M(0)), M(6)) / 6);
	}
};
template <class M> struct Hardsigmoid : Plain {
	using Plain::Plain;
	M operator()(M a) const
	{
		return (M)(std::min(std::max(a + 3, M(0)), M(6)) / 6);
	}
};
template <class M> struct HardswishBackward : Plain {
	using Plain::Plain;
	M operator()(M grad, M a) const
	{
		if (a <= -3)
			return 0;
		return a < 3 ? grad * (a / 3 + M(0.5)) : grad;
	}
};
template <class M> struct HardsigmoidBackward : Plain {
	using Plain::Plain;
	M operator()(M a, M b) const
	{
		return (M)(b > -3 && b < 3 ? a / 6 : 0);
	}
};
template <class M> struct HardtanhBackward : Held<M, 2> {
	using Held<M, 2>::Held;
	M operator()(M grad, M a) const
	{
		return a <= this->held[0] || a >= this->held[1] ? M(0) : grad;
	}
};
template <class M> struct Mish : Plain {
	using Plain::Plain;
	M operator()(M a) const
	{
		return (M)(a * std::tanh(std::log1p(std::exp(a))));
	}
};
template <class M> struct MishBackward : Plain {
	using Plain::Plain;
	M operator()(M grad, M a) const
	{
		M s = (M)(1 / (1 + std::exp(-a)));
		M t = (M)std::tanh(std::log1p(std::exp(a)));

		return grad * (t + a * s * (1 - t * t));
	}
};
template <class M> struct LogSigmoid : Plain {
	using Plain::Plain;
	M operator()(M a) const
	{
		return (M)(std::min(M(0), a) -
		           std::log1p(std::exp(-std::fabs(a))));
	}
};
template <class M> struct LogSigmoidBackward : Plain {
	using Plain::Plain;
	M operator()(M a, M grad) const
	{
		bool negative = a < 0;
		M z = (M)std::exp(-std::fabs(a));

		return grad *
		       ((negative ? M(1) : M(0)) -
		               (negative ? M(1) : M(-1)) * (z / (1 + z)));
	}
};
template <class M> struct Glu : Plain {
	using Plain::Plain;
	M operator()(M a, M b) const
	{
		return (M)(a / (1 + std::exp(-b)));
	}
};
template <class M> struct Prelu : Plain {
	using Plain::Plain;
	M operator()(M a, M b) const
	{
		return (M)(a > 0 ? a : b * a);
	}
};
template <class M> struct SquaredError : Plain {
	using Plain::Plain;
	M operator()(M a, M b) const
	{
		return (M)((a - b) * (a - b));
	}
};
template <class M> struct SquaredErrorBackward : HeldNarrow<M, 1> {
	using HeldNarrow<M, 1>::HeldNarrow;
	M operator()(M a, M b, M grad) const
	{
		return this->held[0] * (a - b) * grad;
	}
};
template <class M> struct SmoothL1 : HeldNarrow<M, 1> {
	using HeldNarrow<M, 1>::HeldNarrow;
	M operator()(M a, M b) const
	{
		M z = (M)std::fabs(a - b), beta = this->held[0];

		return z < beta ? M(0.5) * z * z / beta : z - M(0.5) * beta;
	}
};
template <class M> struct Huber : HeldNarrow<M, 1> {
	using HeldNarrow<M, 1>::HeldNarrow;
	M operator()(M a, M b) const
	{
		M z = (M)std::fabs(a - b), delta = this->held[0];

		return z < delta ? M(0.5) * z * z
		                 : delta * (z - M(0.5) * delta);
	}
};
template <class M> struct SmoothL1Backward : HeldNarrow<M, 2> {
	using HeldNarrow<M, 2>::HeldNarrow;
	M operator()(M input, M target, M grad) const
	{
		M x = input - target, norm = this->held[0];
		M beta = this->held[1];

		if (x <= -beta)
			return -norm * grad;
		return x >= beta ? norm * grad : norm * x * grad / beta;
	}
};
template <class M> struct HuberBackward : HeldNarrow<M, 2> {
	using HeldNarrow<M, 2>::HeldNarrow;
	M operator()(M input, M target, M grad) const
	{
		M x = input - target, norm = this->held[0];
		M delta = this->held[1];

		if (x <= -delta)
			return -norm * grad * delta;
		return x >= delta ? norm * grad * delta : norm * x * grad;
	}
};
template <class M> struct CrossEntropy : Plain {
	using Plain::Plain;
	M operator()(M a, M target) const
	{
		return (target - 1) * std::max((M)std::log1p(-a), M(-100)) -
		       target * std::max((M)std::log(a), M(-100));
	}
};
template <class M> struct CrossEntropyBackward : Plain {
	using Plain::Plain;
	M operator()(M grad, M a, M target) const
	{
		return grad * (a - target) / std::max((1 - a) * a, M(1e-12));
	}
};
/* Group norm: x or, backward, grad and x by factors of their channel. */
template <class M> struct ScaleAndShift : Plain {
	using Plain::Plain;
	M operator()(M x, M scale, M shift) const
	{
		return x * scale + shift;
	}
};
template <class M> struct Centered : Plain {
	using Plain::Plain;
	M operator()(M x, M mean, M scale) const
	{
		return (x - mean) * scale;
	}
};
template <class M> struct Scale : Plain {
	using Plain::Plain;
	M operator()(M a, M b) const
	{
		return a * b;
	}
};
template <class M> struct TwoScaled : Plain {
	using Plain::Plain;
	M operator()(M grad, M x, M a, M b, M c) const
	{
		return a * grad + b * x + c;
	}
};
/* Batch norm backward, what it is divided by held. */
template <class M> struct Normalized : Held<M, 1> {
	using Held<M, 1>::Held;
	M operator()(M grad, M x, M weight, M mean, M scale, M dot, M sum) const
	{
		M share = this->held[0];
		M slope = scale * scale * dot * share;

		return (grad - sum * share - (x - mean) * slope) * weight *
		       scale;
	}
};
template <class M> struct InverseDeviation : Held<M, 1> {
	using Held<M, 1>::Held;
	M operator()(M a) const
	{
		return (M)(1 / std::sqrt(a + this->held[0]));
	}
};

const Functor activation_functors[] = {
        real<LeakyReluBackward, 2>("*::leaky_relu_backward_kernel(*"),
        real<LeakyRelu, 1>("*::leaky_relu_kernel(*"),
        real<EluBackward, 2>("*::elu_backward_kernel(*"),
        real<Elu, 1>("*::elu_kernel(*"),
        real<SoftplusBackward, 2>("*::softplus_backward_kernel(*"),
        real<Softplus, 1>("*::softplus_kernel(*"),
        real<HardswishBackward, 2>("*::hardswish_backward_kernel(*"),
        real<Hardswish, 1>("*::hardswish_kernel(*"),
        real<HardsigmoidBackward, 2>("*::hardsigmoid_backward_kernel(*"),
        real<Hardsigmoid, 1>("*::hardsigmoid_kernel(*"),
        real<HardtanhBackward, 2>("*::hardtanh_backward_kernel(*"),
        real<MishBackward, 2>("*::mish_backward_kernel(*"),
        real<Mish, 1>("*::mish_kernel(*"),
        real<LogSigmoidBackward, 2>("*::log_sigmoid_backward_kernel(*"),
        real<LogSigmoid, 1>("*::launch_log_sigmoid_forward_kernel(*"),
        real<Glu, 2>("*::glu_kernel(*"),
        real<Prelu, 2>("*::prelu_kernel(*"),
        real<SquaredErrorBackward, 3>("*::mse_backward_cuda_kernel(*"),
        real<SquaredError, 2>("*::mse_kernel_cuda(*"),
        real<SmoothL1Backward, 3>("*::smooth_l1_backward_cuda_kernel(*"),
        real<SmoothL1, 2>("*::smooth_l1_kernel_cuda(*"),
        real<HuberBackward, 3>("*::huber_backward_cuda_kernel(*"),
        real<Huber, 2>("*::huber_kernel_cuda(*"),
        real<CrossEntropyBackward, 3>("*binary_cross_entropy_backward_*"),
        real<CrossEntropy, 2>("*binary_cross_entropy_out_*"),
        real<ScaleAndShift, 3>("*::GroupNormKernelImplInternal<*::{lambda(*)#3}"),
        real<Centered, 3>("*::GroupNormKernelImplInternal<*::{lambda(*)#2}"),
        real<TwoScaled, 5>("*::GroupNormBackwardKernelImplInternal<*::{lambda("
                           "*, *, *, *, *)#*}"),
        /* The factor is of the type computed in. */
        real<Scale, 2>(
                "*::GroupNormBackwardKernelImplInternal<double>*::{lambda(*)#1}"),
        real<Scale, 2>("*::GroupNormBackwardKernelImplInternal<*::{lambda(*)#1}",
                Type::F32),
        real<Normalized, 7>("*::batch_norm_elementwise_backward_train(*"),
        real<InverseDeviation, 1>("*::batch_norm_calc_invstd(*"),
        {},
};

} // namespace sgx
