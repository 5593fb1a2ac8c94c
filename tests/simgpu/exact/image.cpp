/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Convolution without cuDNN (im2col and back) and pooling. */
#include "tests/simgpu/exact/layout.h"

#include <cmath>

namespace sgx
{

/* The twelve sizes of im2col and col2im, as their parameters give them. */
struct Columns {
	int64_t height, width, kernel_h, kernel_w, pad_h, pad_w;
	int64_t stride_h, stride_w, dilation_h, dilation_w, height_col,
	        width_col;

	explicit Columns(const Launch &launch)
	{
		int64_t *sizes = &height;

		for (unsigned i = 0; i < 12; i++)
			sizes[i] = launch.param<int64_t>(2 + i);
	}
};

/* (channels * height_col * width_col, image, sizes, columns) */
static bool run_im2col(const Launch &launch)
{
	Columns s(launch);
	int64_t area = s.height_col * s.width_col;
	int64_t channels = launch.param<int64_t>(0) / area;

	return with_float(launch.kernel.type(0), [&](auto t) {
		using T = decltype(t);
		const T *image = at_address<T>(launch.param<uint64_t>(1));
		T *out = at_address<T>(launch.param<uint64_t>(14));

		for (int64_t c = 0; c < channels; c++)
			for (int64_t kh = 0; kh < s.kernel_h; kh++)
				for (int64_t kw = 0; kw < s.kernel_w; kw++)
					for (int64_t i = 0; i < area; i++) {
						int64_t h = i / s.width_col *
						                    s.stride_h -
						            s.pad_h +
						            kh * s.dilation_h;
						int64_t w = i % s.width_col *
						                    s.stride_w -
						            s.pad_w +
						            kw * s.dilation_w;
						bool inside = h >= 0 &&
						              w >= 0 &&
						              h < s.height &&
						              w < s.width;

						*out++ =
						        inside ? image[(c * s.height +
						                               h) *
						                                 s.width +
						                         w]
						               : convert<T>(
						                         0.0f);
					}
	});
}

/* (channels * height * width, columns, sizes, image) */
static bool run_col2im(const Launch &launch)
{
	Columns s(launch);
	int64_t area = s.height_col * s.width_col, n = launch.param<int64_t>(0);
	int64_t channels = n / (s.height * s.width);

	return with_float(launch.kernel.type(0), [&](auto t) {
		using T = decltype(t);
		const T *columns = at_address<T>(launch.param<uint64_t>(1));
		T *image = at_address<T>(launch.param<uint64_t>(14));
		std::vector<double> sums((size_t)n);

		for (int64_t c = 0; c < channels; c++)
			for (int64_t kh = 0; kh < s.kernel_h; kh++)
				for (int64_t kw = 0; kw < s.kernel_w; kw++)
					for (int64_t i = 0; i < area; i++) {
						int64_t h = i / s.width_col *
						                    s.stride_h -
						            s.pad_h +
						            kh * s.dilation_h;
						int64_t w = i % s.width_col *
						                    s.stride_w -
						            s.pad_w +
						            kw * s.dilation_w;
						T value = *columns++;

						if (h >= 0 && w >= 0 &&
						        h < s.height &&
						        w < s.width)
							sums[(size_t)((c * s.height +
							                      h) *
							                      s.width +
							              w)] +=
							        (double)(Math<
							                T>)
							                value;
					}
		for (int64_t i = 0; i < n; i++)
			image[i] = convert<T>((Math<T>)sums[(size_t)i]);
	});
}

/* (n, in, channels, height, width; then as int pooled height and width,
 * kernel, stride, padding, dilation; out, mask) */
static bool run_max_pool(const Launch &launch)
{
	int64_t n = launch.param<int32_t>(0);
	int64_t height = launch.param<int64_t>(3);
	int64_t width = launch.param<int64_t>(4);
	int32_t s[10];

	for (unsigned i = 0; i < 10; i++)
		s[i] = launch.param<int32_t>(5 + i);
	return with_float(launch.kernel.type(0), [&](auto t) {
		using T = decltype(t);
		using M = Math<T>;
		const T *in = at_address<T>(launch.param<uint64_t>(1));
		T *out = at_address<T>(launch.param<uint64_t>(15));
		int64_t *mask = at_address<int64_t>(launch.param<uint64_t>(16));

		for (int64_t i = 0; i < n; i++) {
			int64_t pw = i % s[1], ph = i / s[1] % s[0];
			const T *plane = in + i / s[1] / s[0] * height * width;
			int64_t h0 = ph * s[4] - s[6], w0 = pw * s[5] - s[7];
			int64_t best = -1;
			M most = -INFINITY;

			for (int64_t h = h0;
			        h < h0 + (int64_t)s[2] * s[8] && h < height;
			        h += s[8])
				for (int64_t w = w0;
				        w < w0 + (int64_t)s[3] * s[9] &&
				        w < width;
				        w += s[9]) {
					if (h < 0 || w < 0)
						continue;
					M x = (M)plane[h * width + w];

					if (x > most || x != x || best < 0) {
						most = x;
						best = h * width + w;
					}
				}
			out[i] = convert<T>(most);
			mask[i] = best;
		}
	});
}

/* (grad, mask; as int batch, channels, height, width, pooled height and
 * width, ...; into) */
static bool run_max_pool_backward(const Launch &launch)
{
	int64_t planes =
	        (int64_t)launch.param<int32_t>(2) * launch.param<int32_t>(3);
	int64_t area =
	        (int64_t)launch.param<int32_t>(4) * launch.param<int32_t>(5);
	int64_t pooled =
	        (int64_t)launch.param<int32_t>(6) * launch.param<int32_t>(7);

	return with_float(launch.kernel.type(0), [&](auto t) {
		using T = decltype(t);
		const T *grad = at_address<T>(launch.param<uint64_t>(0));
		const int64_t *mask =
		        at_address<int64_t>(launch.param<uint64_t>(1));
		T *into = at_address<T>(launch.param<uint64_t>(16));
		std::vector<double> sums((size_t)area);

		for (int64_t p = 0; p < planes; p++) {
			sums.assign((size_t)area, 0);
			for (int64_t i = 0; i < pooled; i++)
				sums[(size_t)mask[p * pooled + i]] +=
				        (double)(Math<T>)grad[p * pooled + i];
			for (int64_t i = 0; i < area; i++)
				into[p * area + i] =
				        convert<T>((Math<T>)sums[(size_t)i]);
		}
	});
}

/* Windows of an average: where they lie and what they divide by. */
struct Window {
	int64_t h0, h1, w0, w1;
	float divisor;
};
struct Average {
	int64_t height, width, kernel_h, kernel_w, stride_h, stride_w, pad_h,
	        pad_w;
	int32_t fixed_divisor;
	bool count_padding, use_divisor;

	Window window(int64_t ph, int64_t pw) const
	{
		Window x;
		int64_t pool;

		x.h0 = ph * stride_h - pad_h;
		x.w0 = pw * stride_w - pad_w;
		x.h1 = std::min(x.h0 + kernel_h, height + pad_h);
		x.w1 = std::min(x.w0 + kernel_w, width + pad_w);
		pool = (x.h1 - x.h0) * (x.w1 - x.w0);
		x.h0 = std::max<int64_t>(x.h0, 0);
		x.w0 = std::max<int64_t>(x.w0, 0);
		x.h1 = std::min(x.h1, height);
		x.w1 = std::min(x.w1, width);
		if (use_divisor)
			x.divisor = (float)fixed_divisor;
		else if (count_padding)
			x.divisor = (float)pool;
		else
			x.divisor = (float)((x.h1 - x.h0) * (x.w1 - x.w0));
		return x;
	}
};

/* (n, in, channels, height, width, pooled height; as int pooled width,
 * kernel, stride, padding; out, divisor, count padding, use divisor) */
static Average average_of(const Launch &launch)
{
	Average a;

	a.height = launch.param<int64_t>(3);
	a.width = launch.param<int64_t>(4);
	a.kernel_h = launch.param<int32_t>(7);
	a.kernel_w = launch.param<int32_t>(8);
	a.stride_h = launch.param<int32_t>(9);
	a.stride_w = launch.param<int32_t>(10);
	a.pad_h = launch.param<int32_t>(11);
	a.pad_w = launch.param<int32_t>(12);
	a.fixed_divisor = launch.param<int32_t>(14);
	a.count_padding = launch.param<bool>(15);
	a.use_divisor = launch.param<bool>(16);
	return a;
}

static bool run_average_pool(const Launch &launch)
{
	Average a = average_of(launch);
	int64_t n = launch.param<int32_t>(0);
	int64_t pooled_h = launch.param<int64_t>(5);
	int64_t pooled_w = launch.param<int32_t>(6);

	return with_float(launch.kernel.type(0), [&](auto t) {
		using T = decltype(t);
		const T *in = at_address<T>(launch.param<uint64_t>(1));
		T *out = at_address<T>(launch.param<uint64_t>(13));

		for (int64_t i = 0; i < n; i++) {
			int64_t plane = i / pooled_w / pooled_h;
			Window x =
			        a.window(i / pooled_w % pooled_h, i % pooled_w);
			double sum = 0;

			for (int64_t h = x.h0; h < x.h1; h++)
				for (int64_t w = x.w0; w < x.w1; w++)
					sum += (double)(Math<T>)
					        in[(plane * a.height + h) *
					                        a.width +
					                w];
			out[i] = convert<T>((Math<T>)(sum / (double)x.divisor));
		}
	});
}

/* grad_input from all windows; pooled grad comes in param 1. */
static bool average_backward(const Launch &launch, const Average &a, int64_t n,
        int64_t pooled_h, int64_t pooled_w, unsigned into_param)
{
	int64_t area = a.height * a.width;

	return with_float(launch.kernel.type(0), [&](auto t) {
		using T = decltype(t);
		const T *grad = at_address<T>(launch.param<uint64_t>(1));
		T *into = at_address<T>(launch.param<uint64_t>(into_param));
		std::vector<double> sums((size_t)area);

		for (int64_t p = 0; p < n / area; p++) {
			sums.assign((size_t)area, 0);
			for (int64_t i = 0; i < pooled_h * pooled_w; i++) {
				Window x = a.window(i / pooled_w, i % pooled_w);
				double g =
				        (double)(Math<T>)
				                grad[p * pooled_h * pooled_w +
				                        i] /
				        (double)x.divisor;

				for (int64_t h = x.h0; h < x.h1; h++)
					for (int64_t w = x.w0; w < x.w1; w++)
						sums[(size_t)(h * a.width +
						              w)] += g;
			}
			for (int64_t i = 0; i < area; i++)
				into[p * area + i] =
				        convert<T>((Math<T>)sums[(size_t)i]);
		}
	});
}

static bool run_average_backward(const Launch &launch)
{
	return average_backward(launch, average_of(launch),
	        launch.param<int32_t>(0), launch.param<int64_t>(5),
	        launch.param<int32_t>(6), 13);
}

/* Windows side by side, without padding: (n, grad, channels, height, width,
 * pooled height and width; as int the kernel; into, ...) */
static bool run_average_backward_apart(const Launch &launch)
{
	Average a;

	a.height = launch.param<int64_t>(3);
	a.width = launch.param<int64_t>(4);
	a.kernel_h = a.stride_h = launch.param<int32_t>(7);
	a.kernel_w = a.stride_w = launch.param<int32_t>(8);
	a.pad_h = a.pad_w = 0;
	a.fixed_divisor = launch.param<int32_t>(10);
	a.count_padding = launch.param<bool>(11);
	a.use_divisor = launch.param<bool>(12);
	return average_backward(launch, a, launch.param<int32_t>(0),
	        launch.param<int64_t>(5), launch.param<int64_t>(6), 9);
}

const Family image_families[] = {
        {"im2col_kernel", run_im2col},
        {"col2im_kernel", run_col2im},
        {"max_pool_forward_nchw", run_max_pool},
        {"max_pool_backward_nchw", run_max_pool_backward},
        {"avg_pool2d_out_cuda_frame", run_average_pool},
        {"avg_pool2d_backward_out_cuda_frame", run_average_backward},
        {"avg_pool2d_backward_nonoverlap_frame", run_average_backward_apart},
        {nullptr, nullptr},
};

} // namespace sgx
