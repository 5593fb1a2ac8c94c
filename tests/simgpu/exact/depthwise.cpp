/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Depthwise convolution without cuDNN, and convolution of volumes to columns
 * and back. */
#include "tests/simgpu/exact/layout.h"

namespace sgx
{

using Accessor4 = Packed<4, int32_t>;

/* Width first, as these kernels give their sizes. */
struct Shape {
	int64_t in_w, in_h, out_w, out_h, kernel_w, kernel_h, stride_w,
	        stride_h, pad_w, pad_h, dilation_w, dilation_h;

	Shape(const Launch &launch, unsigned first)
	{
		int64_t *sizes = &in_w;

		for (unsigned i = 0; i < 12; i++)
			sizes[i] = launch.param<int32_t>(first + i);
	}
	/* Calls fn(place in the kernel, in the image) for what the result at
	 * (h, w) is made of. */
	template <class Fn> void window(int64_t h, int64_t w, Fn &&fn) const
	{
		for (int64_t kh = 0; kh < kernel_h; kh++)
			for (int64_t kw = 0; kw < kernel_w; kw++) {
				int64_t y = h * stride_h - pad_h +
				            kh * dilation_h;
				int64_t x = w * stride_w - pad_w +
				            kw * dilation_w;

				if (y >= 0 && x >= 0 && y < in_h && x < in_w)
					fn(kh * kernel_w + kw, y * in_w + x);
			}
	}
};

/* What the three kernels have in common: three tensors to begin with, a count
 * of channels with that of out for one of in behind it, the sizes. No type:
 * one of the tensors is none. */
struct Depthwise {
	Type type;
	Accessor4 tensors[3];
	int64_t channels, multiplier;
	Shape shape;
	int64_t area; /* of the kernel */

	Depthwise(const Launch &launch, unsigned channels_at, unsigned sizes_at)
	    : type(launch.kernel.first_float()),
	      channels(launch.param<int32_t>(channels_at)),
	      multiplier(launch.param<int32_t>(channels_at + 1)),
	      shape(launch, sizes_at), area(shape.kernel_h * shape.kernel_w)
	{
		for (unsigned i = 0; i < 3; i++) {
			if (launch.param_bytes(i) != sizeof(Accessor4))
				type = Type::NONE;
			else
				tensors[i] = launch.param<Accessor4>(i);
		}
	}
};

/* (in, out, weight, bias, whether there is one, elements, channels of out,
 * those of out for one of in, sizes) */
static bool run_forward(const Launch &launch)
{
	Depthwise d(launch, 6, 8);
	const auto &in = d.tensors[0], &out = d.tensors[1];
	const auto &weight = d.tensors[2];
	uint64_t bias = launch.param<bool>(4) ? launch.param<uint64_t>(3) : 0;
	const Shape &s = d.shape;

	if (d.type == Type::NONE)
		return false;
	for (int64_t i = 0; i < (int64_t)out.sizes[0] * d.channels; i++) {
		int64_t n = i / d.channels, c = i % d.channels;

		for (int64_t at = 0; at < s.out_h * s.out_w; at++) {
			double sum = bias ? element(d.type, bias, c) : 0;

			s.window(at / s.out_w, at % s.out_w,
			        [&](int64_t k, int64_t place) {
				        sum += element(d.type, in.data,
				                       in.at({n,
				                               c / d.multiplier,
				                               place / s.in_w,
				                               place % s.in_w})) *
				               element(d.type, weight.data,
				                       c * d.area + k);
			        });
			set_element(d.type, out.data,
			        out.at({n, c, at / s.out_w, at % s.out_w}),
			        sum);
		}
	}
	return true;
}

/* (grad, into, weight, elements, channels of in, those of out for one of in,
 * channels of out, sizes) */
static bool run_backward(const Launch &launch)
{
	Depthwise d(launch, 4, 7);
	const auto &grad = d.tensors[0], &into = d.tensors[1];
	const auto &weight = d.tensors[2];
	const Shape &s = d.shape;

	if (d.type == Type::NONE)
		return false;
	for (int64_t i = 0; i < (int64_t)into.sizes[0] * d.channels; i++) {
		std::vector<double> sums((size_t)(s.in_h * s.in_w));
		int64_t n = i / d.channels, c = i % d.channels;

		for (int64_t out = c * d.multiplier;
		        out < (c + 1) * d.multiplier; out++)
			for (int64_t at = 0; at < s.out_h * s.out_w; at++) {
				double g = element(d.type, grad.data,
				        grad.at({n, out, at / s.out_w,
				                at % s.out_w}));

				s.window(at / s.out_w, at % s.out_w,
				        [&](int64_t k, int64_t place) {
					        sums[(size_t)place] +=
					                g *
					                element(d.type,
					                        weight.data,
					                        out * d.area +
					                                k);
				        });
			}
		for (int64_t at = 0; at < s.in_h * s.in_w; at++)
			set_element(d.type, into.data,
			        into.at({n, c, at / s.in_w, at % s.in_w}),
			        sums[(size_t)at]);
	}
	return true;
}

/* (grad, in, gradient of the weight, batch, channels of in, of the weight,
 * those of out for one of in, sizes) */
static bool run_weight(const Launch &launch)
{
	Depthwise d(launch, 5, 7);
	const auto &grad = d.tensors[0], &in = d.tensors[1];
	const auto &into = d.tensors[2];
	int64_t batch = launch.param<int32_t>(3);
	const Shape &s = d.shape;

	if (d.type == Type::NONE)
		return false;
	for (int64_t c = 0; c < d.channels; c++) {
		std::vector<double> sums((size_t)d.area);

		for (int64_t i = 0; i < batch * s.out_h * s.out_w; i++) {
			int64_t w = i % s.out_w, h = i / s.out_w % s.out_h;
			int64_t n = i / s.out_w / s.out_h;
			double g = element(
			        d.type, grad.data, grad.at({n, c, h, w}));

			s.window(h, w, [&](int64_t k, int64_t place) {
				sums[(size_t)k] +=
				        g * element(d.type, in.data,
				                    in.at({n, c / d.multiplier,
				                            place / s.in_w,
				                            place % s.in_w}));
			});
		}
		for (int64_t k = 0; k < d.area; k++)
			set_element(d.type, into.data, c * d.area + k,
			        sums[(size_t)k]);
	}
	return true;
}

/* ----------------------------------------------------------------- volumes */

/* Depth, height and width of: the volume, kernel, padding, stride, dilation,
 * columns. */
struct Volume {
	int64_t size[3], kernel[3], pad[3], stride[3], dilation[3], columns[3];

	int64_t area() const
	{
		return columns[0] * columns[1] * columns[2];
	}
	int64_t taps() const
	{
		return kernel[0] * kernel[1] * kernel[2];
	}
	/* Where in the volume tap k of column i lies; -1: outside. */
	int64_t place(int64_t k, int64_t i) const
	{
		int64_t at[3], tap[3];

		for (int d = 2; d >= 0; d--) {
			tap[d] = k % kernel[d];
			k /= kernel[d];
			at[d] = i % columns[d] * stride[d] - pad[d] +
			        tap[d] * dilation[d];
			i /= columns[d];
			if (at[d] < 0 || at[d] >= size[d])
				return -1;
		}
		return (at[0] * size[1] + at[1]) * size[2] + at[2];
	}
};

static void read_triples(
        const Launch &launch, unsigned first, unsigned n, int64_t *to)
{
	for (unsigned i = 0; i < 3 * n; i++)
		to[i] = launch.param<int32_t>(first + i);
}

/* (channels * columns, volume, sizes, columns) */
static bool run_to_columns(const Launch &launch)
{
	Type type = launch.kernel.first_float();
	Volume v;

	if (type == Type::NONE || launch.raw.n_params != 21)
		return false;
	read_triples(launch, 2, 6, v.size);
	int64_t area = v.area(), taps = v.taps();
	int64_t plane = v.size[0] * v.size[1] * v.size[2];
	int64_t channels = launch.param<int64_t>(0) / area;
	for (int64_t i = 0; i < channels * taps * area; i++) {
		int64_t from = v.place(i / area % taps, i % area);

		set_element(type, launch.param<uint64_t>(20), i,
		        from < 0 ? 0
		                 : element(type, launch.param<uint64_t>(1),
		                           i / area / taps * plane + from));
	}
	return true;
}

/* (elements, columns, depth, height and width, channels, the other sizes,
 * volume) */
static bool run_from_columns(const Launch &launch)
{
	Type type = launch.kernel.first_float();
	int64_t n = launch.param<int64_t>(0);
	std::vector<double> sums((size_t)n);
	Volume v;

	if (type == Type::NONE || launch.raw.n_params != 22)
		return false;
	read_triples(launch, 2, 1, v.size);
	read_triples(launch, 6, 5, v.kernel);
	int64_t area = v.area(), taps = v.taps();
	int64_t plane = v.size[0] * v.size[1] * v.size[2];
	for (int64_t i = 0; i < n / plane * taps * area; i++) {
		int64_t to = v.place(i / area % taps, i % area);

		if (to >= 0)
			sums[(size_t)(i / area / taps * plane + to)] +=
			        element(type, launch.param<uint64_t>(1), i);
	}
	for (int64_t i = 0; i < n; i++)
		set_element(
		        type, launch.param<uint64_t>(21), i, sums[(size_t)i]);
	return true;
}

const Family depthwise_families[] = {
        {"conv_depthwise2d_forward_kernel", run_forward},
        {"conv_depthwise2d_forward_kernel_generic", run_forward},
        {"conv_depthwise2d_backward_kernel", run_backward},
        {"conv_depthwise2d_grad_weight_kernel", run_weight},
        {"vol2col_kernel", run_to_columns},
        {"vol2im_kernel", run_from_columns},
        {nullptr, nullptr},
};

} // namespace sgx
