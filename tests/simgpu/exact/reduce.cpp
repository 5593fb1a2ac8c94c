/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Reductions over dimensions (Reduce.cuh). How a launch spreads over blocks and
 * threads does not matter here: each result is made in order of its inputs,
 * sums in double, so that equal inputs give equal bits.
 */
#include "tests/simgpu/exact/layout.h"

#include <cmath>
#include <limits>

namespace sgx
{

/* How values come together; x counts from 0 with index i. */
struct Sum {
	double acc = 0;
	void add(double x, int64_t)
	{
		acc += x;
	}
};
struct SumSquares {
	double acc = 0;
	void add(double x, int64_t)
	{
		acc += x * x;
	}
};
struct SumAbs {
	double acc = 0;
	void add(double x, int64_t)
	{
		acc += std::fabs(x);
	}
};
struct Product {
	double acc = 1;
	void add(double x, int64_t)
	{
		acc *= x;
	}
};
struct Greatest {
	double acc = -std::numeric_limits<double>::infinity();
	int64_t index = 0;
	bool any = false;
	void add(double x, int64_t i)
	{
		if (!any || (acc == acc && (x > acc || x != x))) {
			acc = x;
			index = i;
		}
		any = true;
	}
};
struct Least {
	double acc = std::numeric_limits<double>::infinity();
	int64_t index = 0;
	bool any = false;
	void add(double x, int64_t i)
	{
		if (!any || (acc == acc && (x < acc || x != x))) {
			acc = x;
			index = i;
		}
		any = true;
	}
};
struct All {
	double acc = 1;
	void add(double x, int64_t)
	{
		acc = acc != 0 && x != 0;
	}
};
struct Any {
	double acc = 0;
	void add(double x, int64_t)
	{
		acc = acc != 0 || x != 0;
	}
};
struct GreatestSize {
	double acc = 0;
	void add(double x, int64_t)
	{
		x = std::fabs(x);
		if (acc == acc && (x > acc || x != x))
			acc = x;
	}
};
struct LeastSize {
	double acc = std::numeric_limits<double>::infinity();
	void add(double x, int64_t)
	{
		x = std::fabs(x);
		if (acc == acc && (x < acc || x != x))
			acc = x;
	}
};
struct Extremes {
	Least least;
	Greatest greatest;
	void add(double x, int64_t i)
	{
		least.add(x, i);
		greatest.add(x, i);
	}
};
struct Values { /* all of them, for what depends on the launch */
	std::vector<double> all;
	void add(double x, int64_t)
	{
		all.push_back(x);
	}
};
struct Moments { /* Welford's */
	double mean = 0, m2 = 0, n = 0;
	void add(double x, int64_t)
	{
		double delta = x - mean;

		n++;
		mean += delta / n;
		m2 += delta * (x - mean);
	}
};

/* The parts of a ReduceOp that say where elements lie. */
struct Reduction {
	const uint8_t *ops; /* the functor, at the beginning */
	Type in, out;
	const uint8_t *src;
	uint8_t *dst[2];
	uint64_t inputs, outputs;
	std::vector<int64_t> input_at; /* byte offset of each input */
	std::vector<int64_t> output_dst, output_src;
};

constexpr size_t CONFIG_BYTES = 64;
constexpr size_t TAIL_BYTES = 64; /* src to the end */

static void all_offsets(unsigned operands, const uint8_t *calculator,
        uint64_t count, std::vector<int64_t> *first,
        std::vector<int64_t> *second)
{
	int64_t part[2][512];
	Offsets offsets(operands, calculator);

	first->resize(count);
	if (second)
		second->resize(count);
	for (uint64_t done = 0; done < count;) {
		size_t n = count - done < 512 ? count - done : 512;

		offsets.next(n, part);
		memcpy(first->data() + done, part[0], n * sizeof(int64_t));
		if (second)
			memcpy(second->data() + done, part[1],
			        n * sizeof(int64_t));
		done += n;
	}
}

/* ReduceOp<scalar, ops, index, out_scalar, ...>: ops, the identity, the
 * config, two calculators, then the addresses, of which the last fields are
 * counted from the end. */
static bool read_reduction(const Launch &launch,
        const std::vector<std::string> &arguments, Reduction *r)
{
	size_t bytes = launch.param_bytes(0);
	size_t calculators = calculator_bytes(1) + calculator_bytes(2);
	const uint8_t *data = launch.param_data(0);

	if (arguments.size() < 4 || arguments[2] != "unsigned int" ||
	        bytes < calculators + CONFIG_BYTES + TAIL_BYTES)
		return false;
	const uint8_t *tail = data + bytes - TAIL_BYTES;
	/* The calculators end before src, with a word of padding or none. The
	 * shape of the block, at 44, tells which, but for a block of one
	 * thread: then the elements of a vector do, before the calculators. */
	const uint8_t *config = tail - calculators - CONFIG_BYTES;
	auto fits = [&](const uint8_t *at) {
		uint32_t vector = read_at<uint32_t>(at + 60);

		return read_at<uint32_t>(at + 44) == launch.raw.block[0] &&
		       read_at<uint32_t>(at + 48) == launch.raw.block[1] &&
		       (vector == 1 || vector == 2 || vector == 4);
	};

	if (!fits(config))
		config -= 4;
	if (!fits(config))
		return false;
	const uint8_t *input_calc = config + CONFIG_BYTES;
	const uint8_t *output_calc = input_calc + calculator_bytes(1);
	bool accumulate = tail[56] != 0, final_output = tail[57] != 0;

	if (accumulate || !final_output)
		return false;
	r->ops = data;
	r->in = type_of(arguments[0]);
	r->out = type_of(arguments[3]);
	/* ReduceConfig: element size, then inputs and outputs. */
	r->inputs = (uint64_t)read_at<int32_t>(config + 4);
	r->outputs = (uint64_t)read_at<int32_t>(config + 8);
	if (r->in == Type::NONE || r->out == Type::NONE)
		return false;
	r->src = at_address<uint8_t>(read_at<uint64_t>(tail));
	r->dst[0] = at_address<uint8_t>(read_at<uint64_t>(tail + 8));
	r->dst[1] = at_address<uint8_t>(read_at<uint64_t>(tail + 16));
	all_offsets(1, input_calc, r->inputs, &r->input_at, nullptr);
	all_offsets(2, output_calc, r->outputs, &r->output_dst, &r->output_src);
	return true;
}

/* Reduces everything; finish(acc, output) stores. */
template <class Acc, class Finish>
static bool reduce(const Reduction &r, Finish &&finish)
{
	return with_type(r.in, [&](auto in) {
		using T = decltype(in);
		/* The loop over memory that lies together goes inside. */
		bool by_row = r.outputs > 1 && r.inputs > 1 &&
		              std::abs(r.output_src[1] - r.output_src[0]) <
		                      std::abs(r.input_at[1] - r.input_at[0]);

		if (by_row) {
			std::vector<Acc> acc(r.outputs);

			for (uint64_t i = 0; i < r.inputs; i++) {
				const uint8_t *from = r.src + r.input_at[i];

				for (uint64_t o = 0; o < r.outputs; o++)
					acc[o].add(
					        (double)(Math<T>)read_at<T>(
					                from + r.output_src[o]),
					        (int64_t)i);
			}
			for (uint64_t o = 0; o < r.outputs; o++)
				finish(acc[o], o);
			return;
		}
		for (uint64_t o = 0; o < r.outputs; o++) {
			const uint8_t *from = r.src + r.output_src[o];
			Acc acc;

			for (uint64_t i = 0; i < r.inputs; i++)
				acc.add((double)(Math<T>)read_at<T>(
				                from + r.input_at[i]),
				        (int64_t)i);
			finish(acc, o);
		}
	});
}

static void put(Type type, uint8_t *to, double value)
{
	with_type(type, [&](auto t) {
		using T = decltype(t);
		T element;

		if constexpr (std::is_integral_v<T>)
			element = convert<T>(value);
		else
			element = convert<T>((Math<T>)value);
		memcpy(to, &element, sizeof(T));
	});
}

/* Results of one value each, made from acc by project. */
template <class Acc, class Project>
static bool reduce_to(const Reduction &r, Project &&project)
{
	return reduce<Acc>(r, [&](const Acc &acc, uint64_t o) {
		put(r.out, r.dst[0] + r.output_dst[o], project(acc));
	});
}

/* min and max over a dimension: values, and where they stand. */
template <class Acc>
static bool reduce_pair(const Reduction &r, bool index_only)
{
	/* The second result's elements are int64_t, of the same shape; its
	 * offsets are those of the first, scaled. */
	size_t element = size_of(r.out);

	return reduce<Acc>(r, [&](const Acc &acc, uint64_t o) {
		if (index_only) {
			put(r.out, r.dst[0] + r.output_dst[o],
			        (double)acc.index);
			return;
		}
		int64_t at = r.output_dst[o] / (int64_t)element;

		put(r.out, r.dst[0] + r.output_dst[o], acc.acc);
		put(Type::I64, r.dst[1] + at * 8, (double)acc.index);
	});
}

static bool reduce_moments(const Reduction &r, const std::string &ops)
{
	/* WelfordOps<scalar, acc, index, pair>: correction, take_sqrt */
	bool wide = r.in == Type::F64;
	double correction =
	        wide ? read_at<double>(r.ops) : read_at<float>(r.ops);
	bool root = r.ops[wide ? 8 : 4] != 0;
	int64_t element = (int64_t)size_of(r.in);

	return reduce<Moments>(r, [&](const Moments &acc, uint64_t o) {
		double divisor = acc.n > correction ? acc.n - correction : 0;
		double variance = acc.m2 / divisor;
		int64_t at = r.output_dst[o];

		put(r.out, r.dst[0] + at,
		        root ? std::sqrt(variance) : variance);
		if (r.dst[1])
			put(r.out, r.dst[1] + at / element * element, acc.mean);
	});
}

/* The least and the greatest, of one type. */
static bool reduce_extremes(const Reduction &r)
{
	return reduce<Extremes>(r, [&](const Extremes &acc, uint64_t o) {
		put(r.out, r.dst[0] + r.output_dst[o], acc.least.acc);
		put(r.out, r.dst[1] + r.output_dst[o], acc.greatest.acc);
	});
}

/* The functor holds the norm's number. */
static bool reduce_norm(const Reduction &r)
{
	double p = r.in == Type::F64 ? read_at<double>(r.ops)
	                             : (double)read_at<float>(r.ops);

	return reduce_to<Values>(r, [&](const Values &values) {
		double sum = 0;

		for (double x : values.all)
			sum += std::pow(std::fabs(x), p);
		return std::pow(sum, 1 / p);
	});
}

/* <threads, results a thread, ReduceOp<...>>(op) */
static bool run_reduce(const Launch &launch)
{
	Reduction r;

	if (launch.kernel.arguments.size() < 3)
		return false;
	const std::string &op = launch.kernel.arguments[2];
	std::vector<std::string> arguments =
	        split_arguments(bracketed(op, op.find('<')));
	if (!read_reduction(launch, arguments, &r))
		return false;
	const std::string &ops = arguments[1];
	auto is = [&](const char *text) {
		return ops.find(text) != std::string::npos;
	};

	if (is("sum_functor<") || is("mean_kernel_impl"))
		return reduce_to<Sum>(r, [](const Sum &a) { return a.acc; });
	if (is("::MeanOps<")) {
		double factor = r.in == Type::F64 ? read_at<double>(r.ops)
		                                  : read_at<float>(r.ops);

		return reduce_to<Sum>(
		        r, [&](const Sum &a) { return a.acc * factor; });
	}
	if (is("::NormTwoOps<")) {
		bool root = !is(", false>");

		return reduce_to<SumSquares>(r, [&](const SumSquares &a) {
			return root ? std::sqrt(a.acc) : a.acc;
		});
	}
	if (is("::NormOps<"))
		return reduce_norm(r);
	if (is("::AbsMaxOps<"))
		return reduce_to<GreatestSize>(
		        r, [](const GreatestSize &a) { return a.acc; });
	if (is("::AbsMinOps<"))
		return reduce_to<LeastSize>(
		        r, [](const LeastSize &a) { return a.acc; });
	if (is("::MinMaxOps<"))
		return reduce_extremes(r);
	if (is("::NormOneOps<"))
		return reduce_to<SumAbs>(
		        r, [](const SumAbs &a) { return a.acc; });
	if (is("prod_functor<"))
		return reduce_to<Product>(
		        r, [](const Product &a) { return a.acc; });
	if (is("and_kernel_cuda"))
		return reduce_to<All>(r, [](const All &a) { return a.acc; });
	if (is("or_kernel_cuda"))
		return reduce_to<Any>(r, [](const Any &a) { return a.acc; });
	if (is("MaxNanFunctor<") || is("max_values_kernel"))
		return reduce_to<Greatest>(
		        r, [](const Greatest &a) { return a.acc; });
	if (is("MinNanFunctor<") || is("min_values_kernel"))
		return reduce_to<Least>(
		        r, [](const Least &a) { return a.acc; });
	if (is("::ArgMaxOps<"))
		return reduce_pair<Greatest>(r, true);
	if (is("::ArgMinOps<"))
		return reduce_pair<Least>(r, true);
	if (is("::MaxOps<"))
		return reduce_pair<Greatest>(r, false);
	if (is("::MinOps<"))
		return reduce_pair<Least>(r, false);
	if (is("::WelfordOps<"))
		return reduce_moments(r, ops);
	return false;
}

const Family reduce_families[] = {
        {"reduce_kernel", run_reduce},
        {nullptr, nullptr},
};

} // namespace sgx
