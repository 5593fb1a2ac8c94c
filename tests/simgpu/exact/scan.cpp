/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Running sums, products and extremes, PyTorch's and CUB's; floating ones
 * accumulate in double.
 */
#include "tests/simgpu/exact/layout.h"

#include <algorithm>
#include <cmath>

namespace sgx
{

enum class Scan { SUM, PRODUCT, LOG_SUM_EXP, UNKNOWN };

static Scan scan_of(const Kernel &kernel)
{
	if (kernel.has("logcumsumexp"))
		return Scan::LOG_SUM_EXP;
	if (kernel.has("std::plus<") || kernel.has("SumOp<") || kernel.has("cuda::std::__4::plus<"))
		return Scan::SUM;
	if (kernel.has("std::multiplies<"))
		return Scan::PRODUCT;
	return Scan::UNKNOWN;
}

template <class A> static A combine(Scan scan, A a, A b)
{
	if (scan == Scan::SUM)
		return a + b;
	if (scan == Scan::PRODUCT)
		return a * b;
	if constexpr (std::is_same_v<A, double>) {
		double most = std::max(a, b), least = std::min(a, b);

		if (std::isinf(most) && most == least)
			return most;
		return most + std::log1p(std::exp(least - most));
	}
	return a;
}

/* n elements, `step` apart. */
template <class T>
static void scan_row(
        Scan scan, const T *in, T *out, int64_t n, int64_t step, bool inclusive)
{
	using A = std::conditional_t<std::is_integral_v<T>, int64_t, double>;
	A acc = scan == Scan::PRODUCT ? A(1) : A(0);

	if constexpr (!std::is_integral_v<T>) {
		if (scan == Scan::LOG_SUM_EXP)
			acc = -(A)INFINITY;
	}
	for (int64_t i = 0; i < n; i++) {
		A x = (A)(Math<T>)in[i * step];

		if (!inclusive)
			out[i * step] = convert<T>((Math<T>)acc);
		acc = combine(scan, acc, x);
		if (inclusive)
			out[i * step] = convert<T>((Math<T>)acc);
	}
}

/* <T, op>(out, in, rows, length, ...) */
static bool run_inner(const Launch &launch)
{
	Scan scan = scan_of(launch.kernel);
	int64_t rows = launch.param<uint32_t>(2), n = launch.param<uint32_t>(3);

	if (scan == Scan::UNKNOWN)
		return false;
	return with_type(launch.kernel.type(0), [&](auto t) {
		using T = decltype(t);
		T *out = at_address<T>(launch.param<uint64_t>(0));
		const T *in = at_address<T>(launch.param<uint64_t>(1));

		for (int64_t r = 0; r < rows; r++)
			scan_row(scan, in + r * n, out + r * n, n, 1, true);
	});
}

/* <T, index, op>(out, in, outer rows, inner rows, length, ...) */
static bool run_outer(const Launch &launch)
{
	Scan scan = scan_of(launch.kernel);
	int64_t outer = launch.param<uint32_t>(2);
	int64_t inner = launch.param<uint32_t>(3);
	int64_t n = launch.param<uint32_t>(4);

	if (scan == Scan::UNKNOWN)
		return false;
	return with_type(launch.kernel.type(0), [&](auto t) {
		using T = decltype(t);
		T *out = at_address<T>(launch.param<uint64_t>(0));
		const T *in = at_address<T>(launch.param<uint64_t>(1));

		for (int64_t o = 0; o < outer; o++)
			for (int64_t i = 0; i < inner; i++) {
				int64_t at = o * n * inner + i;

				scan_row(scan, in + at, out + at, n, inner,
				        true);
			}
	});
}

/* The greatest or least so far, and where it stands; the last of equals. */
template <class T>
static void extremes(const T *in, T *values, int64_t *indices, int64_t n,
        int64_t step, bool greatest)
{
	int64_t best = 0;

	for (int64_t i = 0; i < n; i++) {
		auto x = (Math<T>)in[i * step],
		     so_far = (Math<T>)in[best * step];

		if (x != x || (so_far == so_far &&
		                      (greatest ? x >= so_far : x <= so_far)))
			best = i;
		values[i * step] = in[best * step];
		indices[i * step] = best;
	}
}

/* <T, op>(in, values, indices, then rows and length, or outer and inner rows
 * and length) */
static bool run_extremes(const Launch &launch)
{
	bool outermost = launch.kernel.family ==
	                 "tensor_kernel_scan_outer_dim_with_indices";
	bool greatest = launch.kernel.has("greater_equal<");
	int64_t outer = launch.param<uint32_t>(3);
	int64_t inner = outermost ? launch.param<uint32_t>(4) : 1;
	int64_t n = launch.param<uint32_t>(outermost ? 5 : 4);

	if (!greatest && !launch.kernel.has("less_equal<"))
		return false;
	return with_type(launch.kernel.type(0), [&](auto t) {
		using T = decltype(t);
		const T *in = at_address<T>(launch.param<uint64_t>(0));
		T *values = at_address<T>(launch.param<uint64_t>(1));
		int64_t *indices =
		        at_address<int64_t>(launch.param<uint64_t>(2));

		for (int64_t o = 0; o < outer; o++)
			for (int64_t i = 0; i < inner; i++) {
				int64_t at = o * n * inner + i;

				extremes(in + at, values + at, indices + at, n,
				        inner, greatest);
			}
	});
}

/* ---------------------------------------------------------------------- CUB */

/* What tiles tell each other is not needed here. */
static bool run_scan_init(const Launch &launch)
{
	return launch.kernel.has("ScanTileState<");
}

/* DeviceScanKernel<policy, T const *, T *, tiles, op, first, ...>(in, out,
 * tiles, first tile, op, first value, n), between plain arrays: inclusive, or
 * exclusive from the identity where there is a first value */
static bool run_scan(const Launch &launch)
{
	const auto &arguments = launch.kernel.arguments;
	Scan scan = scan_of(launch.kernel);

	if (arguments.size() < 7 || scan == Scan::UNKNOWN ||
	        arguments[6] != "unsigned int" || launch.param_bytes(6) != 4)
		return false;
	bool inclusive = arguments[5].find("NullType") != std::string::npos;
	/* Whether it is known only on the device, then the value. */
	if (!inclusive && (arguments[5].find("InputValue<") ==
	                                  std::string::npos ||
	                          scan != Scan::SUM || launch.param<bool>(5) ||
	                          launch.param<int64_t>(5, 8)))
		return false;
	std::string in_type = arguments[1], out_type = arguments[2];
	Type type = type_of(out_type.substr(0, out_type.size() - 1));
	if (in_type != out_type.substr(0, out_type.size() - 1) + " const*")
		return false;
	return with_type(type, [&](auto t) {
		using T = decltype(t);

		scan_row(scan, at_address<T>(launch.param<uint64_t>(0)),
		        at_address<T>(launch.param<uint64_t>(1)),
		        launch.param<uint32_t>(6), 1, inclusive);
	});
}

const Family scan_families[] = {
        {"tensor_kernel_scan_innermost_dim", run_inner},
        {"tensor_kernel_scan_outer_dim", run_outer},
        {"tensor_kernel_scan_innermost_dim_with_indices", run_extremes},
        {"tensor_kernel_scan_outer_dim_with_indices", run_extremes},
        {"DeviceScanInitKernel", run_scan_init},
        {"DeviceScanKernel", run_scan},
        {nullptr, nullptr},
};

} // namespace sgx
