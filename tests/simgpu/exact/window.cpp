/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Pooling beside that of image.cpp: tensors whose channels lie together
 * (channels last), and windows that adapt to the size of the result.
 */
#include "tests/simgpu/exact/layout.h"

#include <algorithm>
#include <cmath>

namespace sgx
{

/* An image with the steps between its elements. */
struct Image {
	Type type;
	uint64_t data;
	int64_t batch, channels, height, width;
	int64_t step_n, step_c, step_h, step_w;

	int64_t at(int64_t n, int64_t c, int64_t h, int64_t w) const
	{
		return n * step_n + c * step_c + h * step_h + w * step_w;
	}
	double get(int64_t n, int64_t c, int64_t h, int64_t w) const
	{
		return element(type, data, at(n, c, h, w));
	}
	void set(int64_t n, int64_t c, int64_t h, int64_t w, double value) const
	{
		set_element(type, data, at(n, c, h, w), value);
	}
};

static Image channels_last(Type type, uint64_t data, int64_t batch,
        int64_t channels, int64_t height, int64_t width)
{
	return {type, data, batch, channels, height, width,
	        height * width * channels, 1, width * channels, channels};
}

/* Planes one after the other; batch and channels are one. */
static Image planes_of(
        Type type, uint64_t data, int64_t planes, int64_t height, int64_t width)
{
	return {type, data, 1, planes, height, width, planes * height * width,
	        height * width, width, 1};
}

/* Where the result's element i of n takes its values from, of `size`. */
struct Span {
	int64_t from, to, step;
};
using Spans = std::vector<Span>;

static Spans fixed_spans(int64_t results, int64_t size, int64_t kernel,
        int64_t stride, int64_t pad, int64_t dilation)
{
	Spans spans;

	for (int64_t i = 0; i < results; i++) {
		int64_t from = i * stride - pad;
		int64_t to = std::min(from + (kernel - 1) * dilation + 1, size);

		while (from < 0)
			from += dilation;
		spans.push_back({from, to, dilation});
	}
	return spans;
}

static Spans adaptive_spans(int64_t results, int64_t size)
{
	Spans spans;

	for (int64_t i = 0; i < results; i++)
		spans.push_back({i * size / results,
		        ((i + 1) * size + results - 1) / results, 1});
	return spans;
}

/* Calls fn(n, c, h, w) for every element of an image. */
template <class Fn> static void each(const Image &image, Fn &&fn)
{
	for (int64_t n = 0; n < image.batch; n++)
		for (int64_t h = 0; h < image.height; h++)
			for (int64_t w = 0; w < image.width; w++)
				for (int64_t c = 0; c < image.channels; c++)
					fn(n, c, h, w);
}

/* Calls fn(h, w) for what a result is made of. */
template <class Fn>
static void window(const Span &rows, const Span &columns, Fn &&fn)
{
	for (int64_t h = rows.from; h < rows.to; h += rows.step)
		for (int64_t w = columns.from; w < columns.to;
		        w += columns.step)
			fn(h, w);
}

/* The greatest of each window and, in mask, where it stands in its plane. */
static void take_maximum(const Image &in, const Image &out, uint64_t mask,
        const Spans &rows, const Spans &columns)
{
	int64_t *places = at_address<int64_t>(mask);

	each(out, [&](int64_t n, int64_t c, int64_t oh, int64_t ow) {
		const Span &row = rows[(size_t)oh];
		const Span &column = columns[(size_t)ow];
		double most = -INFINITY;
		int64_t best = row.from * in.width + column.from;

		window(row, column, [&](int64_t h, int64_t w) {
			double x = in.get(n, c, h, w);

			if (x > most || x != x) {
				most = x;
				best = h * in.width + w;
			}
		});
		out.set(n, c, oh, ow, most);
		places[out.at(n, c, oh, ow)] = best;
	});
}

/* Every gradient to where its maximum was; `adds` to what is there. */
static void give_maximum(
        const Image &grad, uint64_t mask, const Image &into, bool adds)
{
	const int64_t *places = at_address<const int64_t>(mask);
	size_t area = (size_t)(into.height * into.width);
	size_t planes = (size_t)(into.batch * into.channels);
	std::vector<double> sums(planes * area);
	auto plane = [&](int64_t n, int64_t c) {
		return (size_t)(n * into.channels + c) * area;
	};

	each(grad, [&](int64_t n, int64_t c, int64_t h, int64_t w) {
		sums[plane(n, c) + (size_t)places[grad.at(n, c, h, w)]] +=
		        grad.get(n, c, h, w);
	});
	each(into, [&](int64_t n, int64_t c, int64_t h, int64_t w) {
		into.set(n, c, h, w,
		        sums[plane(n, c) + (size_t)(h * into.width + w)] +
		                (adds ? into.get(n, c, h, w) : 0));
	});
}

/* divide(oh, ow) is what a window's sum is divided by. */
template <class Fn>
static void take_average(const Image &in, const Image &out, const Spans &rows,
        const Spans &columns, Fn &&divide)
{
	each(out, [&](int64_t n, int64_t c, int64_t oh, int64_t ow) {
		double sum = 0;

		window(rows[(size_t)oh], columns[(size_t)ow],
		        [&](int64_t h, int64_t w) {
			        sum += in.get(n, c, h, w);
		        });
		out.set(n, c, oh, ow, sum / divide(oh, ow));
	});
}

template <class Fn>
static void give_average(const Image &grad, const Image &into,
        const Spans &rows, const Spans &columns, bool adds, Fn &&divide)
{
	std::vector<double> sums((
	        size_t)(into.batch * into.channels * into.height * into.width));
	auto place = [&](int64_t n, int64_t c, int64_t h, int64_t w) {
		return (size_t)(((n * into.channels + c) * into.height + h) *
		                        into.width +
		                w);
	};

	each(grad, [&](int64_t n, int64_t c, int64_t oh, int64_t ow) {
		double g = grad.get(n, c, oh, ow) / divide(oh, ow);

		window(rows[(size_t)oh], columns[(size_t)ow],
		        [&](int64_t h, int64_t w) {
			        sums[place(n, c, h, w)] += g;
		        });
	});
	each(into, [&](int64_t n, int64_t c, int64_t h, int64_t w) {
		into.set(n, c, h, w,
		        sums[place(n, c, h, w)] +
		                (adds ? into.get(n, c, h, w) : 0));
	});
}

static int64_t length(const Span &span)
{
	return span.to - span.from;
}

/* ------------------------------------------------------------ channels last */

/* (in, batch, channels, height, width, pooled height and width, kernel,
 * stride, padding, dilation, steps of in, ..., out, mask) */
static bool run_max_last(const Launch &launch)
{
	int64_t s[19];

	for (unsigned i = 1; i < 19; i++)
		s[i] = launch.param<int32_t>(i);
	Type type = launch.kernel.first_float();
	Image in = {type, launch.param<uint64_t>(0), s[1], s[2], s[3], s[4],
	        s[15], s[16], s[17], s[18]};
	if (launch.raw.n_params != 23 || type == Type::NONE)
		return false;
	take_maximum(in,
	        channels_last(type, launch.param<uint64_t>(21), s[1], s[2],
	                s[5], s[6]),
	        launch.param<uint64_t>(22),
	        fixed_spans(s[5], s[3], s[7], s[9], s[11], s[13]),
	        fixed_spans(s[6], s[4], s[8], s[10], s[12], s[14]));
	return true;
}

/* (grad, mask, batch, channels, height, width, pooled height and width, ...,
 * into) */
static bool run_max_last_backward(const Launch &launch)
{
	Type type = launch.kernel.first_float();
	int64_t batch = launch.param<int32_t>(2);
	int64_t channels = launch.param<int64_t>(3);

	if (launch.raw.n_params != 22 || type == Type::NONE)
		return false;
	give_maximum(
	        channels_last(type, launch.param<uint64_t>(0), batch, channels,
	                launch.param<int32_t>(6), launch.param<int32_t>(7)),
	        launch.param<uint64_t>(1),
	        channels_last(type, launch.param<uint64_t>(21), batch, channels,
	                launch.param<int64_t>(4), launch.param<int64_t>(5)),
	        false);
	return true;
}

/* (n, in or grad, channels, height, width; as int pooled height and width,
 * kernel, stride, padding; out or into, divisor, count padding, use divisor)
 */
static bool average_last(const Launch &launch, bool backward)
{
	Type type = launch.kernel.first_float();
	int64_t channels = launch.param<int64_t>(2);
	int64_t height = launch.param<int64_t>(3);
	int64_t width = launch.param<int64_t>(4);
	int64_t s[13];
	int64_t divisor = launch.param<int32_t>(14);
	bool padded = launch.param<bool>(15);
	bool fixed = launch.param<bool>(16);

	for (unsigned i = 5; i < 13; i++)
		s[i] = launch.param<int32_t>(i);
	int64_t batch = launch.param<int32_t>(0) / channels /
	                (backward ? height * width : s[5] * s[6]);
	Image whole =
	        channels_last(type, launch.param<uint64_t>(backward ? 13 : 1),
	                batch, channels, height, width);
	Image pooled =
	        channels_last(type, launch.param<uint64_t>(backward ? 1 : 13),
	                batch, channels, s[5], s[6]);
	Spans rows = fixed_spans(s[5], height, s[7], s[9], s[11], 1);
	Spans columns = fixed_spans(s[6], width, s[8], s[10], s[12], 1);
	auto divide = [&](int64_t h, int64_t w) -> double {
		int64_t top = h * s[9] - s[11], left = w * s[10] - s[12];

		if (fixed)
			return (double)divisor;
		if (!padded)
			return (double)(length(rows[(size_t)h]) *
			                length(columns[(size_t)w]));
		return (double)((std::min(top + s[7], height + s[11]) - top) *
		                (std::min(left + s[8], width + s[12]) - left));
	};

	if (type == Type::NONE)
		return false;
	if (backward)
		give_average(pooled, whole, rows, columns, false, divide);
	else
		take_average(whole, pooled, rows, columns, divide);
	return true;
}

static bool run_average_last(const Launch &launch)
{
	return average_last(launch, false);
}

static bool run_average_last_backward(const Launch &launch)
{
	return average_last(launch, true);
}

/* ----------------------------------------------------------------- adaptive */

/* What windows that adapt have of the whole image and of the pooled one. */
struct Adaptive {
	int64_t height, width, pooled_h, pooled_w;
	Spans rows, columns;

	Adaptive(int64_t whole_h, int64_t whole_w, int64_t h, int64_t w)
	    : height(whole_h), width(whole_w), pooled_h(h), pooled_w(w),
	      rows(adaptive_spans(h, whole_h)),
	      columns(adaptive_spans(w, whole_w))
	{
	}
	/* As the kernels of planes give it: parameters from first on. */
	Adaptive(const Launch &launch, unsigned first)
	    : Adaptive(launch.param<int32_t>(first),
	              launch.param<int32_t>(first + 1),
	              launch.param<int32_t>(first + 2),
	              launch.param<int32_t>(first + 3))
	{
	}
	/* Elements in the window of a result. */
	double area(int64_t h, int64_t w) const
	{
		return (double)(length(rows[(size_t)h]) *
		                length(columns[(size_t)w]));
	}
};

/* (in, out[, indices], height, width, those of the result, steps of in: plane,
 * row, element); gx planes */
static bool adaptive(const Launch &launch, bool maximum)
{
	Type type = launch.kernel.first_float();
	unsigned first = maximum ? 3 : 2;
	Adaptive a(launch, first);
	Image in = {type, launch.param<uint64_t>(0), 1, launch.raw.grid[0],
	        a.height, a.width, 0, launch.param<int64_t>(first + 4),
	        launch.param<int64_t>(first + 5),
	        launch.param<int64_t>(first + 6)};
	Image out = planes_of(type, launch.param<uint64_t>(1),
	        launch.raw.grid[0], a.pooled_h, a.pooled_w);

	if (type == Type::NONE || launch.raw.n_params != first + 7)
		return false;
	if (maximum)
		take_maximum(
		        in, out, launch.param<uint64_t>(2), a.rows, a.columns);
	else
		take_average(in, out, a.rows, a.columns,
		        [&](int64_t h, int64_t w) { return a.area(h, w); });
	return true;
}

static bool run_adaptive_average(const Launch &launch)
{
	return adaptive(launch, false);
}

static bool run_adaptive_maximum(const Launch &launch)
{
	return adaptive(launch, true);
}

/* (into, grad[, indices], height, width, those of grad); adds */
static bool adaptive_backward(const Launch &launch, bool maximum)
{
	Type type = launch.kernel.first_float();
	unsigned first = maximum ? 3 : 2;
	Adaptive a(launch, first);
	Image into = planes_of(type, launch.param<uint64_t>(0),
	        launch.raw.grid[0], a.height, a.width);
	Image grad = planes_of(type, launch.param<uint64_t>(1),
	        launch.raw.grid[0], a.pooled_h, a.pooled_w);

	if (type == Type::NONE || launch.raw.n_params != first + 4)
		return false;
	if (maximum)
		give_maximum(grad, launch.param<uint64_t>(2), into, true);
	else
		give_average(grad, into, a.rows, a.columns, true,
		        [&](int64_t h, int64_t w) { return a.area(h, w); });
	return true;
}

static bool run_adaptive_average_backward(const Launch &launch)
{
	return adaptive_backward(launch, false);
}

static bool run_adaptive_maximum_backward(const Launch &launch)
{
	return adaptive_backward(launch, true);
}

/* (in and out, or into and grad; batch, channels, height, width, pooled height
 * and width, two of the kernel's own, steps of in or grad) */
static bool adaptive_last(const Launch &launch, bool backward)
{
	Type type = launch.kernel.first_float();
	int64_t s[14];

	for (unsigned i = 2; i < 14; i++)
		s[i] = launch.param<int32_t>(i);
	Adaptive a(s[4], s[5], s[6], s[7]);
	auto divide = [&](int64_t h, int64_t w) { return a.area(h, w); };

	if (type == Type::NONE || launch.raw.n_params != 14)
		return false;
	if (backward) {
		Image grad = {type, launch.param<uint64_t>(1), s[2], s[3], s[6],
		        s[7], s[10], s[11], s[12], s[13]};

		give_average(grad,
		        channels_last(type, launch.param<uint64_t>(0), s[2],
		                s[3], s[4], s[5]),
		        a.rows, a.columns, false, divide);
	} else {
		Image in = {type, launch.param<uint64_t>(0), s[2], s[3], s[4],
		        s[5], s[10], s[11], s[12], s[13]};

		take_average(in,
		        channels_last(type, launch.param<uint64_t>(1), s[2],
		                s[3], s[6], s[7]),
		        a.rows, a.columns, divide);
	}
	return true;
}

static bool run_adaptive_last(const Launch &launch)
{
	return adaptive_last(launch, false);
}

static bool run_adaptive_last_backward(const Launch &launch)
{
	return adaptive_last(launch, true);
}

const Family window_families[] = {
        {"max_pool_forward_nhwc", run_max_last},
        {"max_pool_backward_nhwc", run_max_last_backward},
        {"avg_pool2d_out_cuda_frame_nhwc", run_average_last},
        {"avg_pool2d_backward_out_cuda_frame_nhwc", run_average_last_backward},
        {"adaptive_average_pool", run_adaptive_average},
        {"adaptivemaxpool", run_adaptive_maximum},
        {"atomic_adaptive_average_gradinput", run_adaptive_average_backward},
        {"adaptive_average_gradinput", run_adaptive_average_backward},
        {"atomicadaptivemaxgradinput", run_adaptive_maximum_backward},
        {"adaptivemaxgradinput", run_adaptive_maximum_backward},
        {"adaptive_average_pool_nhwc", run_adaptive_last},
        {"adaptive_average_gradinput_nhwc", run_adaptive_last_backward},
        {nullptr, nullptr},
};

} // namespace sgx
