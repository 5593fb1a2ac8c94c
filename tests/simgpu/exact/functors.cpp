/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "tests/simgpu/exact/functor_table.h"

#include <algorithm>
#include <cmath>

namespace sgx
{

bool glob(const char *pattern, const char *text)
{
	const char *star = nullptr, *resume = nullptr;

	while (*text) {
		if (*pattern == '*') {
			star = ++pattern;
			resume = text;
		} else if (*pattern == *text) {
			pattern++;
			text++;
		} else if (star) {
			pattern = star;
			text = ++resume;
		} else {
			return false;
		}
	}
	while (*pattern == '*')
		pattern++;
	return !*pattern;
}

/* ------------------------------------------------------------ the functors */

template <class M> struct Identity : Plain {
	using Plain::Plain;
	M operator()(M a) const
	{
		return a;
	}
};
template <class M> struct Neg : Plain {
	using Plain::Plain;
	M operator()(M a) const
	{
		return -a;
	}
};
template <class M> struct Abs : Plain {
	using Plain::Plain;
	M operator()(M a) const
	{
		return a < 0 ? -a : a;
	}
};
template <class M> struct Sign : Plain {
	using Plain::Plain;
	M operator()(M a) const
	{
		return (M)((a > 0) - (a < 0));
	}
};
template <class M> struct Reciprocal : Plain {
	using Plain::Plain;
	M operator()(M a) const
	{
		return a != 0 ? M(1) / a : M(1.0 / 0.0);
	}
};
template <> struct Reciprocal<float> : Plain {
	using Plain::Plain;
	float operator()(float a) const
	{
		return 1.0f / a;
	}
};
template <class M> struct Sqrt : Plain {
	using Plain::Plain;
	M operator()(M a) const
	{
		return (M)std::sqrt(a);
	}
};
template <class M> struct Rsqrt : Plain {
	using Plain::Plain;
	M operator()(M a) const
	{
		return (M)(1 / std::sqrt(a));
	}
};
template <class M> struct Exp : Plain {
	using Plain::Plain;
	M operator()(M a) const
	{
		return (M)std::exp(a);
	}
};
template <class M> struct Log : Plain {
	using Plain::Plain;
	M operator()(M a) const
	{
		return (M)std::log(a);
	}
};
template <class M> struct Sin : Plain {
	using Plain::Plain;
	M operator()(M a) const
	{
		return (M)std::sin(a);
	}
};
template <class M> struct Cos : Plain {
	using Plain::Plain;
	M operator()(M a) const
	{
		return (M)std::cos(a);
	}
};
template <class M> struct Tanh : Plain {
	using Plain::Plain;
	M operator()(M a) const
	{
		return (M)std::tanh(a);
	}
};
template <class M> struct Erf : Plain {
	using Plain::Plain;
	M operator()(M a) const
	{
		return (M)std::erf(a);
	}
};
template <class M> struct Sigmoid : Plain {
	using Plain::Plain;
	M operator()(M a) const
	{
		return (M)(1 / (1 + std::exp(-a)));
	}
};
template <class M> struct Silu : Plain {
	using Plain::Plain;
	M operator()(M a) const
	{
		return (M)(a / (1 + std::exp(-a)));
	}
};
template <class M> struct SiluBackward : Plain {
	using Plain::Plain;
	M operator()(M grad, M x) const
	{
		auto s = 1 / (1 + std::exp(-x));

		return (M)(grad * s * (1 + x * (1 - s)));
	}
};
template <class M> struct GeluErf : Plain {
	using Plain::Plain;
	M operator()(M x) const
	{
		return (M)(x * M(0.5) *
		           (1 + std::erf(x * (M)0.70710678118654752440)));
	}
};
template <class M> struct GeluErfBackward : Plain {
	using Plain::Plain;
	M operator()(M grad, M x) const
	{
		auto cdf =
		        M(0.5) * (1 + std::erf(x * (M)0.70710678118654752440));
		auto pdf = std::exp(M(-0.5) * x * x) *
		           (M)(1.12837916709551257390 * 0.70710678118654752440 *
		                   0.5);

		return (M)(grad * (cdf + x * pdf));
	}
};
constexpr double TANH_BETA = 0.79788456080286535588; /* sqrt(2 / pi) */
constexpr double TANH_KAPPA = 0.044715;
template <class M> struct GeluTanh : Plain {
	using Plain::Plain;
	M operator()(M x) const
	{
		auto inner = (M)TANH_BETA * (x + (M)TANH_KAPPA * x * x * x);

		return (M)(M(0.5) * x * (1 + std::tanh(inner)));
	}
};
template <class M> struct GeluTanhBackward : Plain {
	using Plain::Plain;
	M operator()(M grad, M x) const
	{
		auto inner = (M)TANH_BETA * (x + (M)TANH_KAPPA * x * x * x);
		auto t = std::tanh(inner);
		auto slope = (M)TANH_BETA * (1 + 3 * (M)TANH_KAPPA * x * x);

		return (M)(grad * (M(0.5) * (1 + t) +
		                          M(0.5) * x * (1 - t * t) * slope));
	}
};
template <class M> struct TanhBackward : Plain {
	using Plain::Plain;
	M operator()(M grad, M y) const
	{
		return grad * (1 - y * y);
	}
};
template <class M> struct SigmoidBackward : Plain {
	using Plain::Plain;
	M operator()(M grad, M y) const
	{
		return grad * (1 - y) * y;
	}
};
template <class M> struct Square : Plain {
	using Plain::Plain;
	M operator()(M a) const
	{
		return a * a;
	}
};
template <class M> struct Cube : Plain {
	using Plain::Plain;
	M operator()(M a) const
	{
		return a * a * a;
	}
};
template <class M> struct InverseSquare : Plain {
	using Plain::Plain;
	M operator()(M a) const
	{
		return (M)(1.0 / (double)(a * a));
	}
};
template <class M> struct PowScalar {
	M exponent;
	explicit PowScalar(const Capture &capture)
	{
		size_t at = 0;

		exponent = capture.value<M>(capture.type, at);
	}
	M operator()(M a) const
	{
		return (M)std::pow(a, exponent);
	}
};
template <class M> struct Pow : Plain {
	using Plain::Plain;
	M operator()(M a, M b) const
	{
		return (M)std::pow(a, b);
	}
};
template <class M> struct Not {
	Type type;
	explicit Not(const Capture &capture) : type(capture.type)
	{
	}
	M operator()(M a) const
	{
		if constexpr (std::is_same_v<M, int64_t>) {
			if (type != Type::BOOL)
				return ~a;
		}
		return a == 0;
	}
};
template <class M> struct LogicalNot : Plain {
	using Plain::Plain;
	M operator()(M a) const
	{
		return a == 0;
	}
};
template <class M> struct IsNan : Plain {
	using Plain::Plain;
	M operator()(M a) const
	{
		return a != a;
	}
};
template <class M> struct Mul : Plain {
	using Plain::Plain;
	M operator()(M a, M b) const
	{
		return a * b;
	}
};
template <class M> struct Div : Plain {
	using Plain::Plain;
	M operator()(M a, M b) const
	{
		return a / b;
	}
};
template <> struct Div<int64_t> : Plain {
	using Plain::Plain;
	int64_t operator()(int64_t a, int64_t b) const
	{
		return b ? a / b : 0;
	}
};
template <class M> struct Maximum : Plain {
	using Plain::Plain;
	M operator()(M a, M b) const
	{
		return a != a || a > b ? a : b;
	}
};
template <class M> struct Minimum : Plain {
	using Plain::Plain;
	M operator()(M a, M b) const
	{
		return a != a || a < b ? a : b;
	}
};
template <class M> struct Add {
	static constexpr unsigned VALUES = 1;
	M alpha;
	explicit Add(const Capture &capture)
	{
		size_t at = 0;

		alpha = capture.math_value<M>(at);
	}
	M operator()(M a, M b) const
	{
		return a + alpha * b;
	}
};
template <class M> struct AddScalar {
	M other, alpha;
	explicit AddScalar(const Capture &capture)
	{
		size_t at = 0;

		other = capture.math_value<M>(at);
		alpha = capture.math_value<M>(at);
	}
	M operator()(M a) const
	{
		return a + alpha * other;
	}
};
template <class M> struct AddOfScalar {
	M self, alpha;
	explicit AddOfScalar(const Capture &capture)
	{
		size_t at = 0;

		self = capture.math_value<M>(at);
		alpha = capture.math_value<M>(at);
	}
	M operator()(M b) const
	{
		return self + alpha * b;
	}
};
template <class M> struct Fill {
	M value;
	explicit Fill(const Capture &capture)
	{
		size_t at = 0;

		value = capture.value<M>(capture.type, at);
	}
	M operator()() const
	{
		return value;
	}
};
template <class M> struct MaskedFill {
	M value;
	explicit MaskedFill(const Capture &capture)
	{
		size_t at = 0;

		value = capture.value<M>(capture.type, at);
	}
	M operator()(M self, M mask) const
	{
		return mask != 0 ? value : self;
	}
};
template <class M> struct MaskedScale {
	M scale;
	explicit MaskedScale(const Capture &capture)
	{
		size_t at = 0;

		scale = capture.math_value<M>(at);
	}
	M operator()(M src, M mask) const
	{
		return mask * src * scale;
	}
};
template <class M> struct Threshold {
	M threshold, value;
	explicit Threshold(const Capture &capture)
	{
		size_t at = 0;

		threshold = capture.value<M>(capture.type, at);
		value = capture.value<M>(capture.type, at);
	}
	M operator()(M x, M other) const
	{
		return x <= threshold ? value : other;
	}
};
template <class M> struct Clamp {
	int32_t kind;
	M low, high;
	explicit Clamp(const Capture &capture)
	{
		size_t at = 4;

		kind = read_at<int32_t>(capture.data);
		low = capture.math_value<M>(at);
		high = capture.math_value<M>(at);
	}
	M operator()(M x) const
	{
		if (x != x)
			return x;
		if (kind == 0)
			return x > low ? x : low;
		if (kind == 1)
			return x < low ? x : low;
		return std::min(std::max(x, low), high);
	}
};
template <class M> struct Where : Plain {
	using Plain::Plain;
	M operator()(M condition, M a, M b) const
	{
		return condition != 0 ? a : b;
	}
};
template <class M> struct Compare {
	int32_t op;
	explicit Compare(const Capture &capture)
	    : op(read_at<int32_t>(capture.data))
	{
	}
	M operator()(M a, M b) const
	{
		return compare(op, a, b);
	}
};
template <class M> struct CompareEqual {
	int32_t op;
	explicit CompareEqual(const Capture &capture)
	    : op(read_at<int32_t>(capture.data))
	{
	}
	M operator()(M a, M b) const
	{
		return op == 0 ? a == b : a != b;
	}
};
template <class M> struct And : Plain {
	using Plain::Plain;
	M operator()(M a, M b) const
	{
		return (M)((int64_t)a & (int64_t)b);
	}
};
template <class M> struct Or : Plain {
	using Plain::Plain;
	M operator()(M a, M b) const
	{
		return (M)((int64_t)a | (int64_t)b);
	}
};
template <class M> struct LogicalAnd : Plain {
	using Plain::Plain;
	M operator()(M a, M b) const
	{
		return a != 0 && b != 0;
	}
};
template <class M> struct LogicalOr : Plain {
	using Plain::Plain;
	M operator()(M a, M b) const
	{
		return a != 0 || b != 0;
	}
};
/* a + alpha * (b * c), and with a quotient. */
template <class M> struct Addcmul {
	M alpha;
	explicit Addcmul(const Capture &capture)
	{
		size_t at = 0;

		alpha = capture.math_value<M>(at);
	}
	M operator()(M a, M b, M c) const
	{
		return a + alpha * b * c;
	}
};
template <class M> struct Addcdiv {
	M alpha;
	explicit Addcdiv(const Capture &capture)
	{
		size_t at = 0;

		alpha = capture.math_value<M>(at);
	}
	M operator()(M a, M b, M c) const
	{
		return a + alpha * (b / c);
	}
};
template <class M> struct Lerp {
	M weight;
	explicit Lerp(const Capture &capture)
	{
		size_t at = 0;

		weight = capture.math_value<M>(at);
	}
	M operator()(M a, M b) const
	{
		M size = weight < 0 ? -weight : weight;

		if (size < M(0.5))
			return a + weight * (b - a);
		return b - (b - a) * (1 - weight);
	}
};

/* --------------------------------------------------------------- the table */

static const Functor functors[] = {
        row<Identity, 1>("*direct_copy_kernel_cuda(*"),
        row<Identity, 1>("*bfloat16tofloat32_copy_kernel_cuda(*", Type::F32),
        row<Identity, 1>("*float16tofloat32_copy_kernel_cuda(*", Type::F32),
        row<Identity, 1>("*bfloat16_copy_kernel_cuda(*", Type::BF16),
        row<Identity, 1>("*float16_copy_kernel_cuda(*", Type::F16),
        row<Identity, 1>("*converting_copy_kernel_cuda<*"),
        row<Fill, 0>("at::native::FillFunctor<*"),
        row<Add, 2>("at::native::CUDAFunctor_add<*"),
        row<AddScalar, 1>("at::native::CUDAFunctorOnSelf_add<*"),
        row<AddOfScalar, 1>("at::native::CUDAFunctorOnOther_add<*"),
        row<Mul, 2>("at::native::binary_internal::MulFunctor<*"),
        real<Div, 2>("at::native::binary_internal::DivFunctor<*"),
        row<Compare, 2>("*::CompareFunctor<*", Type::BOOL),
        row<CompareEqual, 2>("*::CompareEqFunctor<*", Type::BOOL),
        row<And, 2>("at::native::BitwiseAndFunctor<*"),
        row<Or, 2>("at::native::BitwiseOrFunctor<*"),
        row<LogicalAnd, 2>("*logical_and_kernel_cuda(*"),
        row<LogicalOr, 2>("*logical_or_kernel_cuda(*"),
        row<LogicalNot, 1>("*logical_not_kernel_cuda(*", Type::BOOL),
        row<Not, 1>("*bitwise_not_kernel_cuda(*"),
        row<IsNan, 1>("*isnan_kernel*", Type::BOOL),
        row<Neg, 1>("*neg_kernel_cuda(*"),
        row<Abs, 1>("at::native::AbsFunctor<*"),
        row<Sign, 1>("*sign_kernel_cuda(*"),
        real<Reciprocal, 1>("*reciprocal_kernel_cuda(*"),
        real<Sqrt, 1>("*::sqrt_kernel_cuda(*"),
        real<Rsqrt, 1>("*rsqrt_kernel_cuda(*"),
        real<Exp, 1>("*::exp_kernel_cuda(*"),
        real<Log, 1>("*::log_kernel_cuda(*"),
        real<Sin, 1>("*::sin_kernel_cuda(*"),
        real<Cos, 1>("*::cos_kernel_cuda(*"),
        real<Tanh, 1>("*::tanh_kernel_cuda(*"),
        real<Erf, 1>("*::erf_kernel_cuda(*"),
        real<Sigmoid, 1>("*::sigmoid_kernel_cuda(*"),
        real<TanhBackward, 2>("*tanh_backward_kernel_cuda(*"),
        real<SigmoidBackward, 2>("*sigmoid_backward_kernel_cuda(*"),
        real<Silu, 1>("*::silu_kernel(*"),
        real<SiluBackward, 2>("*::silu_backward_kernel(*"),
        real<GeluTanh, 1>("*GeluCUDAKernelImpl(*)::{lambda()#1}*"),
        real<GeluErf, 1>("*GeluCUDAKernelImpl(*)::{lambda()#2}*"),
        real<GeluTanhBackward, 2>(
                "*GeluBackwardCUDAKernelImpl(*)::{lambda()#1}::operator()*"),
        real<GeluErfBackward, 2>(
                "*GeluBackwardCUDAKernelImpl(*)::{lambda()#2}::operator()*"),
        row<Threshold, 2>("*threshold_kernel_impl<*"),
        row<Clamp, 1>("*launch_clamp_scalar(*"),
        row<MaskedFill, 2>("*masked_fill_kernel(*"),
        real<MaskedScale, 2>("*masked_scale_kernel<bool,*"),
        row<Where, 3>("*where_kernel_impl(*"),
        row<Maximum, 2>("*maximum_kernel_cuda(*"),
        row<Minimum, 2>("*minimum_kernel_cuda(*"),
        row<Square, 1>("*pow_tensor_scalar_kernel_impl<*>*::{lambda(*)#1}"),
        row<Cube, 1>("*pow_tensor_scalar_kernel_impl<*>*::{lambda(*)#2}"),
        real<InverseSquare, 1>(
                "*pow_tensor_scalar_kernel_impl<*>*::{lambda(*)#3}"),
        real<PowScalar, 1>("*pow_tensor_scalar_kernel_impl<*>*::{lambda(*)#4}"),
        holds_address(real<Pow, 2>("*pow_tensor_tensor_kernel*")),
        real<Addcmul, 3>("*addcmul_cuda_kernel(*"),
        real<Addcdiv, 3>("*addcdiv_cuda_kernel(*"),
        real<Lerp, 2>("*lerp_scalar_kernel(*"),
};

/* A type that stands for all of its size, where values are only moved. */
static Type opaque_type(const std::string &name)
{
	if (name == "unsigned int")
		return Type::I32;
	if (name == "unsigned short")
		return Type::I16;
	if (name == "unsigned long")
		return Type::I64;
	return type_of(name);
}

/* Argument types of the lambda that ends the name. */
static std::vector<Type> lambda_types(const std::string &name, bool opaque)
{
	size_t at = name.rfind("{lambda(");
	std::vector<Type> types;

	if (at == std::string::npos)
		return types;
	for (const std::string &argument :
	        split_arguments(bracketed(name, at + strlen("{lambda"))))
		types.push_back(
		        opaque ? opaque_type(argument) : type_of(argument));
	return types;
}

static const Functor *lookup(const std::string &name)
{
	for (const Functor &functor : functors)
		if (glob(functor.pattern, name.c_str()))
			return &functor;
	for (const Functor *table : {number_functors, activation_functors})
		for (; table->pattern; table++)
			if (glob(table->pattern, name.c_str()))
				return table;
	return nullptr;
}

static Type template_type(const std::string &name, size_t i)
{
	size_t open = name.find('<');

	if (open == std::string::npos)
		return Type::NONE;
	std::vector<std::string> arguments =
	        split_arguments(bracketed(name, open));
	return i < arguments.size() ? type_of(arguments[i]) : Type::NONE;
}

/* AUnaryFunctor and the like: types of a, b and the result, then the functor
 * they bind. */
static bool find_wrapped(const std::string &name, ElementOp *op)
{
	static const struct {
		const char *prefix;
		int bound;
	} wrappers[] = {
	        {"at::native::AUnaryFunctor<", 0},
	        {"at::native::BUnaryFunctor<", 1},
	        {"at::native::BinaryFunctor<", -1},
	};

	for (const auto &wrapper : wrappers) {
		if (name.compare(0, strlen(wrapper.prefix), wrapper.prefix))
			continue;
		std::vector<std::string> arguments =
		        split_arguments(bracketed(name, name.find('<')));
		if (arguments.size() != 4)
			return false;
		op->functor = lookup(arguments[3]);
		op->bound = wrapper.bound;
		op->result = type_of(arguments[2]);
		if (wrapper.bound >= 0) {
			std::vector<Type> types =
			        lambda_types(arguments[3], false);

			/* As the functor takes it, whatever is loaded. */
			op->scalar = types.size() == 2
			                     ? types[(size_t)wrapper.bound]
			                     : template_type(arguments[3], 0);
			if (op->scalar == Type::NONE)
				return false;
		}
		for (int i = 0; i < 2; i++)
			if (i != wrapper.bound)
				op->inputs.push_back(type_of(arguments[i]));
		return op->functor && op->functor->arity == 2;
	}
	return false;
}

bool find_functor(const std::string &name, ElementOp *ret)
{
	ElementOp op;

	if (name.find("UnaryFunctor<") == strlen("at::native::A") ||
	        !name.compare(0, strlen("at::native::BinaryFunctor<"),
	                "at::native::BinaryFunctor<")) {
		if (!find_wrapped(name, &op))
			return false;
	} else {
		op.functor = lookup(name);
		if (!op.functor)
			return false;
		bool opaque = glob("*where_kernel_impl(*", name.c_str());
		op.inputs = lambda_types(name, opaque);
		if (name.find("{lambda(") == std::string::npos) {
			/* A struct over one type. */
			op.result = template_type(name, 0);
			op.inputs.assign(op.functor->arity, op.result);
		} else if (opaque) {
			op.result = op.inputs.size() > 1 ? op.inputs[1]
			                                 : Type::NONE;
		} else if (!op.inputs.empty()) {
			op.result = op.inputs[0];
		}
		if (glob("*converting_copy_kernel_cuda<*", name.c_str()))
			op.result = template_type(name, 1);
		if (op.inputs.size() != op.functor->arity)
			return false;
	}
	if (op.functor->result != Type::NONE)
		op.result = op.functor->result;
	if (op.result == Type::NONE)
		return false;
	for (Type type : op.inputs)
		if (type == Type::NONE)
			return false;
	*ret = op;
	return true;
}

} // namespace sgx
