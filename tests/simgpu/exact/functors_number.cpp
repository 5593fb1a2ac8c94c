/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Functors on numbers: rounding, integers and bits, comparisons, functions of
 * two arguments.
 */
#include "tests/simgpu/exact/functor_table.h"

#include <algorithm>
#include <cmath>

namespace sgx
{

constexpr bool is_integer(int64_t)
{
	return true;
}
constexpr bool is_integer(double)
{
	return false;
}

template <class M> struct Log2 : Plain {
	using Plain::Plain;
	M operator()(M a) const
	{
		return (M)(std::log2(a));
	}
};
template <class M> struct Log10 : Plain {
	using Plain::Plain;
	M operator()(M a) const
	{
		return (M)(std::log10(a));
	}
};
template <class M> struct Log1p : Plain {
	using Plain::Plain;
	M operator()(M a) const
	{
		return (M)(std::log1p(a));
	}
};
template <class M> struct Expm1 : Plain {
	using Plain::Plain;
	M operator()(M a) const
	{
		return (M)(std::expm1(a));
	}
};
template <class M> struct Exp2 : Plain {
	using Plain::Plain;
	M operator()(M a) const
	{
		return (M)(std::exp2(a));
	}
};
template <class M> struct Floor : Plain {
	using Plain::Plain;
	M operator()(M a) const
	{
		return (M)(std::floor(a));
	}
};
template <class M> struct Ceil : Plain {
	using Plain::Plain;
	M operator()(M a) const
	{
		return (M)(std::ceil(a));
	}
};
template <class M> struct Round : Plain {
	using Plain::Plain;
	M operator()(M a) const
	{
		return (M)(std::nearbyint(a));
	}
};
template <class M> struct Trunc : Plain {
	using Plain::Plain;
	M operator()(M a) const
	{
		return (M)(std::trunc(a));
	}
};
template <class M> struct Frac : Plain {
	using Plain::Plain;
	M operator()(M a) const
	{
		return (M)(a - std::trunc(a));
	}
};
template <class M> struct Tan : Plain {
	using Plain::Plain;
	M operator()(M a) const
	{
		return (M)(std::tan(a));
	}
};
template <class M> struct IsInfinite : Plain {
	using Plain::Plain;
	M operator()(M a) const
	{
		return (M)(std::isinf(a));
	}
};
template <class M> struct Atan2 : Plain {
	using Plain::Plain;
	M operator()(M a, M b) const
	{
		return (M)(std::atan2(a, b));
	}
};
template <class M> struct Hypot : Plain {
	using Plain::Plain;
	M operator()(M a, M b) const
	{
		return (M)(std::hypot(a, b));
	}
};
template <class M> struct Fmax : Plain {
	using Plain::Plain;
	M operator()(M a, M b) const
	{
		return (M)(std::fmax(a, b));
	}
};
template <class M> struct Fmin : Plain {
	using Plain::Plain;
	M operator()(M a, M b) const
	{
		return (M)(std::fmin(a, b));
	}
};
template <class M> struct Xlogy : Plain {
	using Plain::Plain;
	M operator()(M a, M b) const
	{
		if (b != b)
			return b;
		return a == 0 ? M(0) : (M)(a * std::log(b));
	}
};
/* The sign of the divisor, as in Python. */
template <class M> struct Remainder : Plain {
	using Plain::Plain;
	M operator()(M a, M b) const
	{
		M r;

		if constexpr (is_integer(M()))
			r = b ? a % b : 0;
		else
			r = std::fmod(a, b);
		return r != 0 && (r < 0) != (b < 0) ? r + b : r;
	}
};
template <class M> struct Fmod : Plain {
	using Plain::Plain;
	M operator()(M a, M b) const
	{
		if constexpr (is_integer(M()))
			return b ? a % b : 0;
		else
			return std::fmod(a, b);
	}
};
template <class M> struct DivFloor : Plain {
	using Plain::Plain;
	M operator()(M a, M b) const
	{
		if constexpr (is_integer(M())) {
			if (!b)
				return 0;
			return a / b - (a % b && (a < 0) != (b < 0));
		} else {
			return std::floor(a / b);
		}
	}
};
template <class M> struct DivTrunc : Plain {
	using Plain::Plain;
	M operator()(M a, M b) const
	{
		if constexpr (is_integer(M()))
			return b ? a / b : 0;
		else
			return std::trunc(a / b);
	}
};
template <class M> struct Xor : Plain {
	using Plain::Plain;
	M operator()(M a, M b) const
	{
		return (M)((int64_t)a ^ (int64_t)b);
	}
};
template <class M> struct ShiftLeft : Plain {
	using Plain::Plain;
	M operator()(M a, M b) const
	{
		return (M)(b >= 0 && b < 64 ? (uint64_t)(int64_t)a << (int64_t)b
		                            : 0);
	}
};
template <class M> struct ShiftRight : Plain {
	using Plain::Plain;
	M operator()(M a, M b) const
	{
		return (M)((int64_t)a >> (int64_t)(b < 0 || b > 63 ? 63 : b));
	}
};
template <class M> struct LogicalXor : Plain {
	using Plain::Plain;
	M operator()(M a, M b) const
	{
		return (M)((a != 0) != (b != 0));
	}
};
template <class M> struct CompareScalar {
	int32_t op;
	M other;
	explicit CompareScalar(const Capture &capture)
	    : op(read_at<int32_t>(capture.data))
	{
		size_t at = 4;

		other = capture.value<M>(capture.type, at);
	}
	M operator()(M a) const
	{
		return compare(op, a, other);
	}
};
template <class M> struct NanToNum {
	M nan, most, least;
	explicit NanToNum(const Capture &capture)
	{
		size_t at = 0;

		nan = capture.value<M>(capture.type, at);
		most = capture.value<M>(capture.type, at);
		least = capture.value<M>(capture.type, at);
	}
	M operator()(M a) const
	{
		if (a != a)
			return nan;
		return std::isinf(a) ? (a > 0 ? most : least) : a;
	}
};
template <class M> struct LerpTensor : Plain {
	using Plain::Plain;
	M operator()(M a, M b, M weight) const
	{
		M size = weight < 0 ? -weight : weight;

		if (size < M(0.5))
			return a + weight * (b - a);
		return b - (b - a) * (1 - weight);
	}
};
template <class M> struct ClampTensor : Plain {
	using Plain::Plain;
	M operator()(M a, M low, M high) const
	{
		if (a != a)
			return a;
		if (low != low)
			return low;
		return high != high ? high : std::min(std::max(a, low), high);
	}
};

const Functor number_functors[] = {
        real<Log2, 1>("*::log2_kernel_cuda(*"),
        real<Log10, 1>("*::log10_kernel_cuda(*"),
        real<Log1p, 1>("*::log1p_kernel_cuda(*"),
        real<Expm1, 1>("*::expm1_kernel_cuda(*"),
        real<Exp2, 1>("*::exp2_kernel_cuda(*"),
        real<Floor, 1>("*::floor_kernel_cuda(*"),
        real<Ceil, 1>("*::ceil_kernel_cuda(*"),
        real<Round, 1>("*::round_kernel_cuda(*"),
        real<Trunc, 1>("*::trunc_kernel_cuda(*"),
        real<Frac, 1>("*::frac_kernel_cuda(*"),
        real<Tan, 1>("*::tan_kernel_cuda(*"),
        real<IsInfinite, 1>("*isinf_kernel*", Type::BOOL),
        real<Atan2, 2>("*::atan2_kernel_cuda(*"),
        real<Hypot, 2>("*::hypot_kernel_cuda(*"),
        real<Fmax, 2>("*::fmax_kernel_cuda(*"),
        real<Fmin, 2>("*::fmin_kernel_cuda(*"),
        real<Xlogy, 2>("*::xlogy_kernel_cuda(*"),
        row<Remainder, 2>("*::remainder_kernel_cuda(*"),
        row<Fmod, 2>("*::fmod_kernel_cuda(*"),
        row<DivFloor, 2>("*::div_floor_kernel_cuda(*"),
        row<DivTrunc, 2>("*::div_trunc_kernel_cuda(*"),
        row<Xor, 2>("at::native::BitwiseXorFunctor<*"),
        row<ShiftLeft, 2>("*::lshift_kernel_cuda(*"),
        row<ShiftRight, 2>("*::rshift_kernel_cuda(*"),
        row<LogicalXor, 2>("*logical_xor_kernel_cuda(*"),
        row<CompareScalar, 1>("*::compare_scalar_kernel<*", Type::BOOL),
        real<NanToNum, 1>("*::nan_to_num_kernel_cuda(*"),
        real<LerpTensor, 3>("*lerp_tensor_kernel(*"),
        row<ClampTensor, 3>("*clamp_kernel_impl(*"),
        {},
};

} // namespace sgx
