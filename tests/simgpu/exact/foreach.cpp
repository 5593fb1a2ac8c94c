/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Kernels over lists of tensors (MultiTensorApply.cuh): element-wise functors,
 * norms, and the fused optimizers. A block of the grid works on one chunk of
 * one tensor.
 */
#include "tests/simgpu/exact/functors.h"
#include "tests/simgpu/exact/layout.h"

#include <cmath>

namespace sgx
{

constexpr int64_t CHUNK = 65536;

/* Room for tensors by depth, and for blocks, as PyTorch is built for CUDA 13;
 * launches of up to 4 KiB of parameters have less. */
struct Rooms {
	int32_t tensors[5], scalar_tensors[5], blocks;
	size_t block_bytes;
};
static const Rooms rooms[] = {
        {{770, 448, 336, 252, 210}, {672, 448, 336, 252, 210}, 2240, 2},
        {{110, 64, 48, 36, 30}, {96, 64, 48, 36, 30}, 320, 1},
};

/* One of the list structs, found by its size. */
struct Lists {
	const uint8_t *data;
	unsigned depth;
	int32_t room;
	size_t sizes, extra, block_tensor, block_chunk, end;
	size_t block_bytes;
	int32_t blocks;

	uint64_t address(unsigned list, unsigned tensor) const
	{
		return read_at<uint64_t>(
		        data + ((size_t)list * room + tensor) * 8);
	}
	int64_t numel(unsigned tensor) const
	{
		return read_at<int64_t>(data + sizes + tensor * 8);
	}
	unsigned tensor_of(unsigned block) const
	{
		const uint8_t *at = data + block_tensor + block * block_bytes;

		return block_bytes == 2 ? read_at<uint16_t>(at) : *at;
	}
	int32_t chunk_of(unsigned block) const
	{
		return read_at<int32_t>(data + block_chunk + block * 4);
	}
};

/* extra_bytes of a tensor stand behind the sizes: scalars, or addresses of
 * steps. */
static bool read_lists(const Launch &launch, unsigned depth, size_t extra_bytes,
        bool scalars, bool starts, Lists *ret)
{
	for (const Rooms &room : rooms) {
		Lists lists = {};

		if (depth < 1 || depth > 5)
			return false;
		lists.data = launch.param_data(0);
		lists.depth = depth;
		lists.room = scalars ? room.scalar_tensors[depth - 1]
		                     : room.tensors[depth - 1];
		lists.blocks = room.blocks;
		lists.block_bytes = room.block_bytes;
		lists.sizes = (size_t)depth * lists.room * 8;
		lists.extra = lists.sizes + (size_t)lists.room * 8;
		lists.block_tensor =
		        lists.extra + (size_t)lists.room * extra_bytes;
		lists.block_chunk =
		        (lists.block_tensor +
		                (size_t)room.blocks * room.block_bytes + 3) /
		        4 * 4;
		lists.end = lists.block_chunk + (size_t)room.blocks * 4 +
		            (starts ? 4 : 0);
		if ((lists.end + 7) / 8 * 8 == launch.param_bytes(0)) {
			*ret = lists;
			return true;
		}
	}
	return false;
}

/* Which part of which tensor a block works on. */
struct Part {
	unsigned tensor;
	int64_t from, n;
};
static Part part_of(const Lists &lists, unsigned block)
{
	Part part;

	part.tensor = lists.tensor_of(block);
	part.from = (int64_t)lists.chunk_of(block) * CHUNK;
	part.n = lists.numel(part.tensor) - part.from;
	if (part.n > CHUNK)
		part.n = CHUNK;
	return part;
}

template <class T>
static T *list_at(const Lists &lists, unsigned list, const Part &part)
{
	return at_address<T>(lists.address(list, part.tensor)) + part.from;
}

/* ----------------------------------------------------------- the functors */

enum class Op {
	ADD,
	SUB,
	MUL,
	DIV,
	MAXIMUM,
	MINIMUM,
	SQRT,
	RECIPROCAL,
	RSQRT,
	NEG,
	ABS,
	EXP,
	LERP,
	POW,
	COPY,
	UNKNOWN,
};

static Op op_of(const std::string &name)
{
	static const struct {
		const char *text;
		Op op;
	} names[] = {
	        {"std::plus<", Op::ADD},
	        {"std::minus<", Op::SUB},
	        {"std::multiplies<", Op::MUL},
	        {"std::divides<", Op::DIV},
	        {"::maximum<", Op::MAXIMUM},
	        {"::minimum<", Op::MINIMUM},
	        {"::Rsqrt<", Op::RSQRT},
	        {"::Sqrt<", Op::SQRT},
	        {"::Reciprocal<", Op::RECIPROCAL},
	        {"std::negate<", Op::NEG},
	        {"::Abs<", Op::ABS},
	        {"::Exp<", Op::EXP},
	        {"::LerpFunctor<", Op::LERP},
	        {"power_functor<", Op::POW},
	        {"::Copy<", Op::COPY},
	};

	for (const auto &entry : names)
		if (name.find(entry.text) != std::string::npos)
			return entry.op;
	return Op::UNKNOWN;
}

template <class M> static M apply(Op op, M a, M b)
{
	switch (op) {
	case Op::ADD:
		return a + b;
	case Op::SUB:
		return a - b;
	case Op::MUL:
		return a * b;
	case Op::DIV:
		return a / b;
	case Op::MAXIMUM:
		return a != a || a > b ? a : b;
	case Op::MINIMUM:
		return a != a || a < b ? a : b;
	case Op::POW:
		return std::pow(a, b);
	case Op::SQRT:
		return std::sqrt(a);
	case Op::RSQRT:
		return 1 / std::sqrt(a);
	case Op::RECIPROCAL:
		return 1 / a;
	case Op::NEG:
		return -a;
	case Op::ABS:
		return std::fabs(a);
	case Op::EXP:
		return std::exp(a);
	default:
		return a;
	}
}

template <class M> static M lerp(M a, M b, M weight)
{
	if (std::fabs(weight) < M(0.5))
		return a + weight * (b - a);
	return b - (b - a) * (1 - weight);
}

/* What a functor does with its lists and arguments. */
enum class Shape {
	UNARY,         /* op(a) */
	SCALAR,        /* op(a, s) */
	SCALAR_LIST,   /* op(a, s of the tensor) */
	SCALAR_TENSOR, /* op(a, alpha * *s) */
	LIST_ALPHA,    /* op(a, alpha * b) */
	POINTWISE,     /* a + s * op(b, c) */
	POINTWISE_LIST,
	TERNARY_SCALAR, /* lerp(a, b, s) */
	TERNARY_LIST,   /* lerp(a, b, c) */
	ZERO,
	LIST, /* op(a, b) */
};

static bool shape_of(const std::string &functor, Shape *ret)
{
	static const struct {
		const char *name;
		Shape shape;
	} names[] = {
	        {"UnaryOpFunctor<", Shape::UNARY},
	        {"BinaryOpScalarFunctor<", Shape::SCALAR},
	        {"BinaryOpScalarListFunctor<", Shape::SCALAR_LIST},
	        {"BinaryOpScalarTensorFunctor<", Shape::SCALAR_TENSOR},
	        {"BinaryOpListAlphaFunctor<", Shape::LIST_ALPHA},
	        {"PointwiseOpScalarFunctor<", Shape::POINTWISE},
	        {"PointwiseOpScalarListFunctor<", Shape::POINTWISE_LIST},
	        {"PointwiseOpListFunctor<", Shape::LIST},
	        {"TernaryOpScalarFunctor<", Shape::TERNARY_SCALAR},
	        {"TernaryOpListFunctor<", Shape::TERNARY_LIST},
	        {"ZeroFunctor<", Shape::ZERO},
	};

	for (const auto &entry : names) {
		size_t at = functor.find(entry.name);

		if (at != std::string::npos &&
		        (!at || functor[at - 1] == ':')) {
			*ret = entry.shape;
			return true;
		}
	}
	return false;
}

template <class T> struct ListOp {
	using M = Math<T>;
	Shape shape;
	Op op;
	unsigned result;
	M scalar; /* or alpha */

	M at(T *const *in, int64_t i, M s) const
	{
		M a = (M)in[0][i];

		switch (shape) {
		case Shape::UNARY:
			return apply(op, a, a);
		case Shape::SCALAR:
		case Shape::SCALAR_LIST:
		case Shape::SCALAR_TENSOR:
			return apply(op, a, s);
		case Shape::LIST_ALPHA:
			return apply(op, a, s * (M)in[1][i]);
		case Shape::LIST:
			return apply(op, a, (M)in[1][i]);
		case Shape::POINTWISE:
		case Shape::POINTWISE_LIST:
			return a + s * apply(op, (M)in[1][i], (M)in[2][i]);
		case Shape::TERNARY_SCALAR:
			return lerp(a, (M)in[1][i], s);
		case Shape::TERNARY_LIST:
			return lerp(a, (M)in[1][i], (M)in[2][i]);
		default:
			return M(0);
		}
	}
};

template <class T>
static bool run_list_op(const Launch &launch, const Lists &lists,
        const std::string &functor, Shape shape)
{
	using M = Math<T>;
	std::vector<std::string> arguments =
	        split_arguments(bracketed(functor, functor.find('<')));
	ListOp<T> list_op = {};

	list_op.shape = shape;
	list_op.op = launch.kernel.arguments.size() > 2
	                     ? op_of(launch.kernel.arguments[2])
	                     : Op::UNKNOWN;
	if (list_op.op == Op::UNKNOWN && shape != Shape::ZERO)
		return false;
	if ((list_op.op == Op::LERP) != (shape == Shape::TERNARY_SCALAR ||
	                                        shape == Shape::TERNARY_LIST))
		return false;
	if (arguments.size() >= 4)
		list_op.result = (unsigned)atoi(arguments[3].c_str());
	else /* the list functor writes its last list */
		list_op.result = lists.depth - 1;
	if (list_op.result >= lists.depth)
		return false;
	/* Arguments: lists, functor, op, then scalars. */
	list_op.scalar = launch.param<M>(3);
	if (shape == Shape::SCALAR_TENSOR)
		list_op.scalar = launch.param<M>(4) *
		                 (M)*at_address<T>(launch.param<uint64_t>(3));
	for (unsigned b = 0; b < launch.raw.grid[0]; b++) {
		Part part = part_of(lists, b);
		T *in[5];
		M s = list_op.scalar;

		for (unsigned k = 0; k < lists.depth; k++)
			in[k] = list_at<T>(lists, k, part);
		if (shape == Shape::SCALAR_LIST ||
		        shape == Shape::POINTWISE_LIST)
			s = read_at<M>(lists.data + lists.extra +
			               part.tensor * sizeof(M));
		for (int64_t i = 0; i < part.n; i++)
			in[list_op.result][i] =
			        convert<T>(list_op.at(in, i, s));
	}
	return true;
}

/* ------------------------------------------------------------------- norms */

enum class Norm { ONE, TWO, INFINITE, UNKNOWN };

/* NormType of a name. PyTorch 2.11, which counts chunks with an int, begins
 * with the 1-norm at 0; where a list tells each tensor's chunks it is 1. */
static Norm norm_of(const std::string &name, bool by_tensor)
{
	const char *type = "NormType)";
	size_t at = name.find(type);

	if (at == std::string::npos)
		return Norm::UNKNOWN;
	int number = atoi(name.c_str() + at + strlen(type)) - by_tensor;
	return number >= 0 && number < (int)Norm::UNKNOWN ? (Norm)number
	                                                  : Norm::UNKNOWN;
}

/*
 * LpNormFunctor<T, NormType, out...>(lists, functor, partial, sizes): the
 * partial result of a chunk stands at tensor * largest number of chunks +
 * chunk, counted from the first tensor of this launch.
 */
template <class T>
static bool run_norm(const Launch &launch, const Lists &lists)
{
	using M = Math<T>;
	/* max_chunks_per_tensor, or, newer, where each tensor's begin. */
	bool by_tensor = launch.param_bytes(3) == 8;
	bool greatest = launch.kernel.has("LpMaxFunctor<");
	Norm norm = greatest ? Norm::INFINITE
	                     : norm_of(launch.kernel.name, by_tensor);
	M *partial = at_address<M>(launch.param<uint64_t>(2));
	int32_t first = read_at<int32_t>(lists.data + lists.end - 4);
	int32_t most = launch.param<int32_t>(3);
	const int64_t *begins = at_address<int64_t>(launch.param<uint64_t>(3));

	if (norm == Norm::UNKNOWN)
		return false;
	for (unsigned b = 0; b < launch.raw.grid[0]; b++) {
		Part part = part_of(lists, b);
		const T *in = list_at<T>(lists, 0, part);
		int64_t tensor = first + (int64_t)part.tensor;
		double sum = greatest ? -INFINITY : 0;

		for (int64_t i = 0; i < part.n; i++) {
			double x = (double)(M)in[i];

			if (!greatest)
				x = std::fabs(x);

			if (norm == Norm::INFINITE)
				sum = x > sum || x != x ? x : sum;
			else
				sum += norm == Norm::TWO ? x * x : x;
		}
		int64_t base = by_tensor ? begins[tensor] : tensor * most;
		partial[base + lists.chunk_of(b)] = (M)sum;
	}
	return true;
}

/* ---------------------------------------------------------- fused optimizer */

/* FusedAdamMathFunctor<T, depth, mode, amsgrad>(lists, functor, lr_ptr, lr,
 * beta1, beta2, weight_decay, eps, maximize, grad_scale, found_inf) */
template <class T>
static bool run_adam(
        const Launch &launch, const Lists &lists, bool decoupled, bool amsgrad)
{
	using M = Math<T>;
	const float *lr_ptr = at_address<float>(launch.param<uint64_t>(2));
	M lr = lr_ptr ? (M)*lr_ptr : (M)launch.param<double>(3);
	M beta1 = (M)launch.param<double>(4),
	  beta2 = (M)launch.param<double>(5);
	M decay = (M)launch.param<double>(6), eps = (M)launch.param<double>(7);
	bool maximize = launch.param<bool>(8);
	const float *scale = at_address<float>(launch.param<uint64_t>(9));
	const float *found = at_address<float>(launch.param<uint64_t>(10));

	if (found && *found == 1)
		return true;
	for (unsigned b = 0; b < launch.raw.grid[0]; b++) {
		Part part = part_of(lists, b);
		T *in[5] = {};
		M step = (M)*at_address<float>(read_at<uint64_t>(
		        lists.data + lists.extra + part.tensor * 8));
		M correction1 = 1 - std::pow(beta1, step);
		M correction2 = std::sqrt(1 - std::pow(beta2, step));

		for (unsigned k = 0; k < lists.depth; k++)
			in[k] = list_at<T>(lists, k, part);
		for (int64_t i = 0; i < part.n; i++) {
			M p = (M)in[0][i], g = (M)in[1][i], most;
			M m = (M)in[2][i], v = (M)in[3][i];

			if (scale) {
				g /= (M)*scale;
				in[1][i] = convert<T>(g);
			}
			if (maximize)
				g = -g;
			if (decay != 0 && decoupled)
				p -= lr * decay * p;
			else if (decay != 0)
				g += p * decay;
			m = std::fma(beta1, m, std::fma(-beta1, g, g));
			v = std::fma(beta2, v, std::fma(-beta2, g * g, g * g));
			most = v;
			if (amsgrad) {
				most = std::max((M)in[4][i], v);
				in[4][i] = convert<T>(most);
			}
			p -= lr / correction1 * m /
			     (std::sqrt(most) / correction2 + eps);
			in[0][i] = convert<T>(p);
			in[2][i] = convert<T>(m);
			in[3][i] = convert<T>(v);
		}
	}
	return true;
}

/* GradScaler's: the gradients times *inv_scale, and whether all are finite;
 * the lambda holds the addresses of found_inf and inv_scale, and behind them
 * its own host part's, as every lambda made for host and device does. */
template <class T>
static bool run_unscale(const Launch &launch, const Lists &lists)
{
	float *found = launch.param<float *>(2);
	const float *inverse = launch.param<float *>(2, 8);
	unsigned into = lists.depth - 1;

	if (launch.param_bytes(2) != 24)
		return false;
	for (unsigned b = 0; b < launch.raw.grid[0]; b++) {
		Part part = part_of(lists, b);
		const T *in = list_at<T>(lists, 0, part);
		T *out = list_at<T>(lists, into, part);

		for (int64_t i = 0; i < part.n; i++) {
			auto x = (Math<T>)in[i];

			if (!std::isfinite(x))
				*found = 1;
			if (*inverse != 1)
				x *= (Math<T>)*inverse;
			out[i] = convert<T>(x);
		}
	}
	return true;
}

/* amp_update_scale_cuda_kernel(scale, tracker, found_inf, growth factor,
 * backoff factor, growth interval) */
static bool run_update_scale(const Launch &launch)
{
	float *scale = launch.param<float *>(0);
	int *tracker = launch.param<int *>(1);
	const float *found = launch.param<float *>(2);

	if (*found != 0) {
		*scale = (float)(*scale * launch.param<double>(4));
		*tracker = 0;
		return true;
	}
	if (++*tracker == launch.param<int>(5)) {
		auto grown = (float)(*scale * launch.param<double>(3));

		if (std::isfinite(grown))
			*scale = grown;
		*tracker = 0;
	}
	return true;
}

/* FusedSgdMathFunctor<T, depth>(lists, functor, weight_decay, momentum,
 * lr_ptr, lr, dampening, nesterov, maximize, first step, grad_scale,
 * found_inf) */
template <class T> static bool run_sgd(const Launch &launch, const Lists &lists)
{
	using M = Math<T>;
	double decay = launch.param<double>(2),
	       momentum = launch.param<double>(3);
	const float *lr_ptr = launch.param<float *>(4);
	double lr = lr_ptr ? (double)*lr_ptr : launch.param<double>(5);
	double dampening = launch.param<double>(6);
	bool nesterov = launch.param<bool>(7), maximize = launch.param<bool>(8);
	bool first = launch.param<bool>(9);
	const float *scale = launch.param<float *>(10);
	const float *found = launch.param<float *>(11);

	if (found && *found == 1)
		return true;
	for (unsigned b = 0; b < launch.raw.grid[0]; b++) {
		Part part = part_of(lists, b);
		T *parameters = list_at<T>(lists, 0, part);
		T *grads = list_at<T>(lists, 1, part);
		T *buffers =
		        lists.depth > 2 ? list_at<T>(lists, 2, part) : nullptr;

		for (int64_t i = 0; i < part.n; i++) {
			M p = (M)parameters[i], g = (M)grads[i];

			if (scale) {
				g /= (M)*scale;
				grads[i] = convert<T>(g);
			}
			if (maximize)
				g = -g;
			if (decay != 0)
				g = (M)(g + decay * p);
			if (buffers) {
				M buffer =
				        first ? g
				              : (M)(momentum * (M)buffers[i] +
				                        (1 - dampening) * g);

				buffers[i] = convert<T>(buffer);
				g = nesterov ? (M)(g + momentum * buffer)
				             : buffer;
			}
			parameters[i] = convert<T>((M)(p - lr * g));
		}
	}
	return true;
}

/* ---------------------------------------------------------------- dispatch */

/* multi_tensor_apply_kernel<lists, functor, op, arguments...> */
static bool run_multi_tensor(const Launch &launch)
{
	if (launch.kernel.arguments.size() < 2)
		return false;
	const std::string &lists_name = launch.kernel.arguments[0];
	const std::string &functor = launch.kernel.arguments[1];
	std::vector<std::string> numbers =
	        split_arguments(bracketed(lists_name, lists_name.find('<')));
	std::vector<std::string> arguments =
	        split_arguments(bracketed(functor, functor.find('<')));
	bool scalars =
	        lists_name.find("ScalarListMetadata") != std::string::npos;
	bool fused = lists_name.find("FusedOptimizer") != std::string::npos;
	Lists lists;
	Shape shape;
	bool done = false;

	if (numbers.empty() || arguments.empty())
		return false;
	Type type = type_of(arguments[0]);
	if (!read_lists(launch, (unsigned)atoi(numbers.back().c_str()),
	            fused     ? 8
	            : scalars ? type_of(numbers[0]) == Type::F64 ? 8 : 4
	                      : 0,
	            scalars, !scalars, &lists))
		return false;
	with_float(type, [&](auto t) {
		using T = decltype(t);

		if (functor.find("FusedAdamMathFunctor<") != std::string::npos)
			done = run_adam<T>(launch, lists,
			        functor.find("ADAM_MODE)1") !=
			                std::string::npos,
			        arguments.back() == "true");
		else if (functor.find("FusedSgdMathFunctor<") !=
		         std::string::npos)
			done = run_sgd<T>(launch, lists);
		else if (launch.kernel.has(
		                 "amp_foreach_non_finite_check_and_unscale"))
			done = run_unscale<T>(launch, lists);
		else if (functor.find("LpNormFunctor<") != std::string::npos ||
		         functor.find("LpMaxFunctor<") != std::string::npos)
			done = run_norm<T>(launch, lists);
		else if (shape_of(functor, &shape))
			done = run_list_op<T>(launch, lists, functor, shape);
	});
	return done;
}

/* lpnorm_cleanup<T, NormType, out, root>(partial, addresses of the results,
 * begins or the number of partial results a tensor); one block a tensor */
static bool run_norm_cleanup(const Launch &launch)
{
	bool by_tensor = launch.param_bytes(2) == 8;
	bool greatest = launch.kernel.family == "lpmax_cleanup";
	Norm norm = greatest ? Norm::INFINITE
	                     : norm_of(launch.kernel.name, by_tensor);
	int32_t most = launch.param<int32_t>(2);
	const int64_t *begins = at_address<int64_t>(launch.param<uint64_t>(2));
	bool root = launch.kernel.arguments.size() < 4 ||
	            launch.kernel.arguments[3] != "false";
	int32_t first = launch.param<int32_t>(3);

	if (norm == Norm::UNKNOWN)
		return false;
	Type out = launch.kernel.type(greatest ? 0 : 2);
	/* The greatest of narrow types is kept in their own. */
	if (greatest && out != Type::F32)
		return false;
	return with_float(out, [&](auto t) {
		using T = decltype(t);
		const float *partial =
		        at_address<float>(launch.param<uint64_t>(0));

		for (unsigned b = 0; b < launch.raw.grid[0]; b++) {
			int64_t tensor = (int64_t)b + first;
			int64_t from =
			        by_tensor ? begins[tensor] : tensor * most;
			int64_t to =
			        by_tensor ? begins[tensor + 1] : from + most;
			double sum = greatest ? -INFINITY : 0;

			for (int64_t i = from; i < to; i++) {
				double x = partial[i];

				if (norm == Norm::INFINITE)
					sum = x > sum || x != x ? x : sum;
				else
					sum += x;
			}
			*at_address<T>(launch.param<uint64_t>(1, b * 8)) =
			        convert<T>((float)(root && norm == Norm::TWO
			                                   ? std::sqrt(sum)
			                                   : sum));
		}
	});
}

const Family foreach_families[] = {
        {"multi_tensor_apply_kernel", run_multi_tensor},
        {"lpnorm_cleanup", run_norm_cleanup},
        {"lpmax_cleanup", run_norm_cleanup},
        {"amp_update_scale_cuda_kernel", run_update_scale},
        {nullptr, nullptr},
};

} // namespace sgx
