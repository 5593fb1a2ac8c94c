/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Element-wise kernels in all their layouts: vectorized, unrolled, with casts
 * while loading, strided by an OffsetCalculator, and by index.
 */
#include "tests/simgpu/exact/functors.h"
#include "tests/simgpu/exact/layout.h"

#include <algorithm>
#include <cmath>

namespace sgx
{

static_assert(BATCH == 512, "Offsets works in batches of this size");

/* One operand of a launch: its type in memory and in the functor. */
struct Operand {
	uint8_t *base;
	Type memory, seen;
};

struct ElementPlan : Prepared {
	ElementOp op;
	bool casts = false; /* types in memory come with the launch */
};

/* The values of n elements, as the functor sees them: in memory type T, seen
 * as type S. */
template <class M, class T, class S>
static void load_as(const Operand &from, const int64_t *offsets,
        bool contiguous, size_t n, M *out)
{
	if (contiguous) {
		const T *in =
		        reinterpret_cast<const T *>(from.base + offsets[0]);

		for (size_t i = 0; i < n; i++)
			out[i] = convert<M>(convert<S>(in[i]));
	} else {
		for (size_t i = 0; i < n; i++)
			out[i] = convert<M>(
			        convert<S>(read_at<T>(from.base + offsets[i])));
	}
}

template <class M>
static void load(const Operand &from, const int64_t *offsets, bool contiguous,
        size_t n, M *out)
{
	with_type(from.memory, [&](auto memory) {
		using T = decltype(memory);

		if (from.seen == from.memory)
			load_as<M, T, T>(from, offsets, contiguous, n, out);
		else
			with_type(from.seen, [&](auto seen) {
				load_as<M, T, decltype(seen)>(
				        from, offsets, contiguous, n, out);
			});
	});
}

template <class M, class T, class S>
static void store_as(const Operand &to, const int64_t *offsets, bool contiguous,
        size_t n, const M *in)
{
	if (contiguous) {
		T *out = reinterpret_cast<T *>(to.base + offsets[0]);

		for (size_t i = 0; i < n; i++)
			out[i] = convert<T>(convert<S>(in[i]));
	} else {
		for (size_t i = 0; i < n; i++) {
			T value = convert<T>(convert<S>(in[i]));

			memcpy(to.base + offsets[i], &value, sizeof(T));
		}
	}
}

template <class M>
static void store(const Operand &to, const int64_t *offsets, bool contiguous,
        size_t n, const M *in)
{
	with_type(to.memory, [&](auto memory) {
		using T = decltype(memory);

		if (to.seen == to.memory)
			store_as<M, T, T>(to, offsets, contiguous, n, in);
		else
			with_type(to.seen, [&](auto seen) {
				store_as<M, T, decltype(seen)>(
				        to, offsets, contiguous, n, in);
			});
	});
}

template <class M> static Body<M> body_of(const Functor &functor)
{
	if constexpr (std::is_same_v<M, float>)
		return functor.f32;
	else if constexpr (std::is_same_v<M, double>)
		return functor.f64;
	else
		return functor.i64;
}

/* operands[0] is the result. */
template <class M>
static bool compute(const ElementOp &op, const Capture &capture,
        const Operand *operands, Offsets &offsets, uint64_t count)
{
	static M values[MAX_INPUTS + 1][BATCH];
	static int64_t at[MAX_INPUTS + 1][BATCH];
	Body<M> body = body_of<M>(*op.functor);
	const M *in[MAX_INPUTS] = {};
	unsigned inputs = (unsigned)op.inputs.size(), slot = 0;
	bool contiguous = offsets.contiguous();

	if (!body)
		return false;
	for (unsigned i = 0; i < op.functor->arity; i++) {
		if ((int)i != op.bound) {
			in[i] = values[1 + slot++];
			continue;
		}
		/* The scalar stands behind the functor's own bytes. */
		bool compares = capture.bytes > 4 &&
		                strstr(op.functor->pattern, "Compare");
		size_t offset = compares ? 4 : 1;
		M scalar = capture.value<M>(op.scalar, offset);

		for (size_t j = 0; j < BATCH; j++)
			values[MAX_INPUTS][j] = scalar;
		in[i] = values[MAX_INPUTS];
	}
	for (uint64_t done = 0; done < count;) {
		size_t n = count - done < BATCH ? count - done : BATCH;

		offsets.next(n, at);
		for (unsigned i = 0; i < inputs; i++)
			load(operands[1 + i], at[1 + i], contiguous, n,
			        values[1 + i]);
		body(capture, values[0], in, n);
		store(operands[0], at[0], contiguous, n, values[0]);
		done += n;
	}
	return true;
}

static bool run(const ElementOp &op, const Capture &capture,
        const Operand *operands, Offsets &&offsets, uint64_t count)
{
	bool real = is_float(op.result), wide = op.result == Type::F64;

	for (Type type : op.inputs) {
		real |= is_float(type);
		wide |= type == Type::F64;
	}
	if (wide)
		return compute<double>(op, capture, operands, offsets, count);
	if (real)
		return compute<float>(op, capture, operands, offsets, count);
	return compute<int64_t>(op, capture, operands, offsets, count);
}

static Capture capture_of(
        const ElementOp &op, const uint8_t *data, size_t bytes)
{
	Type type = op.inputs.empty() ? op.result : op.inputs.back();

	if (!op.inputs.empty() && op.inputs[0] != Type::BOOL)
		type = op.inputs[0];
	return {data, bytes, type};
}

/* Types and addresses; dtypes, if not null, are those in memory. */
static void fill_operands(const ElementOp &op, const uint8_t *pointers,
        const int8_t *dtypes, Operand *operands)
{
	for (unsigned i = 0; i <= op.inputs.size(); i++) {
		Operand &operand = operands[i];

		operand.base = at_address<uint8_t>(
		        read_at<uint64_t>(pointers + i * 8));
		operand.seen = i ? op.inputs[i - 1] : op.result;
		operand.memory = dtypes ? (Type)dtypes[i] : operand.seen;
	}
}

/* The plan for a functor that is named by the i-th template argument, or by
 * its first argument if that is a wrapper. */
static const ElementPlan *plan_of(const Launch &launch, const std::string &name)
{
	auto *plan = static_cast<ElementPlan *>(launch.kernel.prepared.get());

	if (plan)
		return plan;
	auto made = std::make_unique<ElementPlan>();
	if (!find_functor(name, &made->op))
		return nullptr;
	plan = made.get();
	launch.kernel.prepared = std::move(made);
	return plan;
}

static bool run_contiguous(
        const Launch &launch, const std::string &functor, const int8_t *dtypes)
{
	const ElementPlan *plan = plan_of(launch, functor);
	Operand operands[MAX_INPUTS + 1];
	size_t bytes[MAX_INPUTS + 1];

	if (!plan)
		return false;
	unsigned n = 1 + (unsigned)plan->op.inputs.size();
	if (launch.param_bytes(2) != n * 8)
		return false;
	fill_operands(plan->op, launch.param_data(2), dtypes, operands);
	for (unsigned i = 0; i < n; i++)
		bytes[i] = size_of(operands[i].memory);
	return run(plan->op,
	        capture_of(
	                plan->op, launch.param_data(1), launch.param_bytes(1)),
	        operands, Offsets(n, bytes),
	        (uint64_t)launch.param<int32_t>(0));
}

/* <vector size, functor, array>(n, functor, pointers) */
static bool run_vectorized(const Launch &launch)
{
	return launch.kernel.arguments.size() >= 3 &&
	       run_contiguous(launch, launch.kernel.arguments[1], nullptr);
}

/* <functor, array, elements, calculators, loader, storer>; loader and storer
 * hold the types in memory and their sizes. */
static bool run_unrolled(const Launch &launch)
{
	const auto &arguments = launch.kernel.arguments;
	int8_t dtypes[MAX_INPUTS + 1];

	if (arguments.size() < 7 || arguments[3].compare(0, 7, "Trivial") ||
	        arguments[4].compare(0, 7, "Trivial"))
		return false;
	bool casts = arguments[5].find("WithCast") != std::string::npos;
	if (casts) {
		size_t inputs = launch.param_bytes(2) / 8 - 1;

		if (inputs > MAX_INPUTS)
			return false;
		dtypes[0] = launch.param<int8_t>(6);
		for (size_t i = 0; i < inputs; i++)
			dtypes[1 + i] = launch.param<int8_t>(5, i);
	}
	return run_contiguous(launch, arguments[0], casts ? dtypes : nullptr);
}

/* Bytes of a functor that holds nothing but values and a bound scalar; 0: of
 * another one. */
static size_t functor_bytes(const ElementOp &op)
{
	Type type = op.inputs.empty() ? op.result : op.inputs[0];
	size_t value =
	        type == Type::BF16 || type == Type::F16 ? 4 : size_of(type);

	if (op.functor->values == UNKNOWN_VALUES)
		return 0;
	if (op.functor->values == ADDRESS_VALUE)
		return 8;
	if (op.bound >= 0)
		return 2 * size_of(op.scalar);
	return op.functor->values ? op.functor->values * value : 1;
}

/*
 * <threads, elements, lambda>(n, lambda): the lambda holds an
 * OffsetCalculator with strides in bytes, the pointers, the functor and,
 * where it casts, the types in memory.
 */
static bool run_strided(const Launch &launch)
{
	const std::string &lambda = launch.kernel.arguments.back();
	bool casts = lambda.find("gpu_kernel_impl<") != std::string::npos;
	size_t open = lambda.find(
	        casts ? "gpu_kernel_impl<" : "gpu_kernel_impl_nocast<");
	Operand operands[MAX_INPUTS + 1];

	if (open == std::string::npos)
		return false;
	std::string inside = bracketed(lambda, lambda.find('<', open));
	const ElementPlan *plan = plan_of(launch, inside);
	if (!plan)
		return false;
	const uint8_t *data = launch.param_data(1);
	unsigned n = 1 + (unsigned)plan->op.inputs.size();
	size_t pointers = (calculator_bytes(n) + 7) / 8 * 8;
	size_t functor = pointers + n * 8, end = launch.param_bytes(1);
	if (functor > end)
		return false;
	const int8_t *dtypes = nullptr;
	if (casts) {
		size_t bytes = functor_bytes(plan->op);

		/* An address that is not needed here ends the lambda. */
		if (!bytes || (functor + bytes + n + 7) / 8 * 8 + 8 != end)
			return false;
		dtypes = reinterpret_cast<const int8_t *>(data) + functor +
		         bytes;
	}
	fill_operands(plan->op, data + pointers, dtypes, operands);
	return run(plan->op,
	        capture_of(plan->op, data + functor, end - functor), operands,
	        Offsets(n, data), (uint64_t)launch.param<int32_t>(0));
}

/* Types in the order in which AT_DISPATCH_ALL_TYPES_AND2(Half, BFloat16) makes
 * its lambdas. */
static Type dispatched_type(const std::string &name)
{
	static const Type order[] = {Type::U8, Type::I8, Type::I32, Type::I64,
	        Type::I16, Type::F64, Type::F32, Type::F16, Type::BF16};
	size_t at = name.rfind("{lambda()#");

	if (at == std::string::npos)
		return Type::NONE;
	int number = atoi(name.c_str() + at + strlen("{lambda()#"));
	return number >= 1 && number <= 9 ? order[number - 1] : Type::NONE;
}

/* linspace of float: the lambda holds start, end, steps, the step and where
 * the second half begins, which is counted from the end. */
static bool run_linspace(const Launch &launch)
{
	const std::string &name = launch.kernel.arguments[1];
	size_t at = name.rfind("{lambda()#");
	float start = launch.param<float>(1), end = launch.param<float>(1, 4);
	int64_t n = launch.param<int64_t>(1, 8);
	float step = launch.param<float>(1, 16);
	int64_t half = launch.param<int64_t>(1, 24);
	float *out = at_address<float>(launch.param<uint64_t>(2));

	if (at == std::string::npos || name.compare(at, 12, "{lambda()#2}") ||
	        name.find("linspace_cuda_out(") == std::string::npos ||
	        name.find("::{lambda()#2}") == std::string::npos)
		return false;
	for (int64_t i = 0; i < launch.param<int32_t>(0); i++)
		out[i] = i < half ? start + step * (float)i
		                  : end - step * (float)(n - i - 1);
	return true;
}

/* arange: <index, lambda>(n, lambda, result); the lambda holds start and
 * step. */
static bool run_with_index(const Launch &launch)
{
	if (launch.kernel.has("linspace_cuda_out("))
		return launch.kernel.arguments.size() == 2 &&
		       run_linspace(launch);
	if (launch.kernel.arguments.size() != 2 ||
	        launch.kernel.arguments[1].find("arange_cuda_out") ==
	                std::string::npos)
		return false;
	Type type = dispatched_type(launch.kernel.arguments[1]);
	int64_t n = launch.kernel.arguments[0] == "int"
	                    ? launch.param<int32_t>(0)
	                    : launch.param<int64_t>(0);
	uint8_t *out = at_address<uint8_t>(launch.param<uint64_t>(2));

	return with_type(type, [&](auto t) {
		using T = decltype(t);
		using M = Math<T>;
		Capture capture = {launch.param_data(1), launch.param_bytes(1),
		        is_float(type) ? type : Type::I64};
		size_t offset = 0;
		M start = capture.math_value<M>(offset);
		M step = capture.math_value<M>(offset);

		for (int64_t i = 0; i < n; i++) {
			T value = convert<T>((M)(start + step * (M)i));

			memcpy(out + i * (int64_t)sizeof(T), &value, sizeof(T));
		}
	});
}

/* <outputs, functor, pointers, ...>(n, functor, pointers to both gradients,
 * input, weight and gradient, calculators of inputs and of outputs, in
 * elements) */
bool run_prelu_backward(const Launch &launch)
{
	int64_t n = launch.param<int32_t>(0);
	uint8_t *data[5];
	static int64_t in[3][BATCH], out[2][BATCH];
	size_t bracket = launch.kernel.name.find("{lambda(float, float, float)");

	if (launch.param_bytes(2) != 40 || bracket == std::string::npos ||
	        launch.param_bytes(3) != calculator_bytes(3) ||
	        launch.param_bytes(4) != calculator_bytes(2))
		return false;
	for (unsigned i = 0; i < 5; i++)
		data[i] = at_address<uint8_t>(launch.param<uint64_t>(2, i * 8));
	Offsets inputs(3, launch.param_data(3), sizeof(float));
	Offsets outputs(2, launch.param_data(4), sizeof(float));
	for (int64_t done = 0; done < n; done += BATCH) {
		size_t count = (size_t)std::min<int64_t>(n - done, BATCH);

		inputs.next(count, in);
		outputs.next(count, out);
		for (size_t i = 0; i < count; i++) {
			float x = read_at<float>(data[2] + in[0][i]);
			float weight = read_at<float>(data[3] + in[1][i]);
			float grad = read_at<float>(data[4] + in[2][i]);
			float first = x > 0 ? grad : weight * grad;
			float second = x > 0 ? 0 : x * grad;

			memcpy(data[0] + out[0][i], &first, sizeof(float));
			memcpy(data[1] + out[1][i], &second, sizeof(float));
		}
	}
	return true;
}

/* <T, calculator>(n, gradients of both halves, input, gradient, calculator in
 * elements, bytes from one half to the other) */
static bool run_glu_backward(const Launch &launch)
{
	int64_t n = launch.param<int32_t>(0);
	uint8_t *into = at_address<uint8_t>(launch.param<uint64_t>(1));
	const uint8_t *in = at_address<uint8_t>(launch.param<uint64_t>(2));
	const uint8_t *grad = at_address<uint8_t>(launch.param<uint64_t>(3));
	int64_t into_half = launch.param<int64_t>(5);
	int64_t in_half = launch.param<int64_t>(6);
	static int64_t at[3][BATCH];

	if (launch.param_bytes(4) != calculator_bytes(3))
		return false;
	Offsets offsets(3, launch.param_data(4),
	        (int64_t)size_of(launch.kernel.type(0)));
	return with_float(launch.kernel.type(0), [&](auto t) {
		using T = decltype(t);
		using M = Math<T>;

		for (int64_t done = 0; done < n; done += BATCH) {
			size_t count = (size_t)std::min<int64_t>(
			        n - done, BATCH);

			offsets.next(count, at);
			for (size_t i = 0; i < count; i++) {
				M a = (M)read_at<T>(in + at[1][i]);
				M b = (M)read_at<T>(in + at[1][i] + in_half);
				M g = (M)read_at<T>(grad + at[2][i]);
				M s = 1 / (1 + std::exp(-b));
				T first = convert<T>(s * g);
				T second = convert<T>((1 - s) * s * g * a);

				memcpy(into + at[0][i], &first, sizeof(T));
				memcpy(into + at[0][i] + into_half, &second,
				        sizeof(T));
			}
		}
	});
}

const Family elementwise_families[] = {
        {"glu_backward_kernel", run_glu_backward},
        {"vectorized_elementwise_kernel", run_vectorized},
        {"unrolled_elementwise_kernel", run_unrolled},
        {"elementwise_kernel", run_strided},
        {"elementwise_kernel_with_index", run_with_index},
        {nullptr, nullptr},
};

} // namespace sgx
