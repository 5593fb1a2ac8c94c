/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Images made larger: by interpolation, by padding with what is there, and
 * from columns for a whole batch.
 */
#include "tests/simgpu/exact/layout.h"

#include <algorithm>
#include <cmath>

namespace sgx
{

/* Adds up what goes to the elements of an array, then stores it. */
struct Sums {
	std::vector<double> sums;

	explicit Sums(int64_t n) : sums((size_t)n)
	{
	}
	double &operator[](int64_t i)
	{
		return sums[(size_t)i];
	}
	void store(Type type, uint64_t address, bool add) const
	{
		for (int64_t i = 0; i < (int64_t)sums.size(); i++)
			set_element(type, address, i,
			        sums[(size_t)i] +
			                (add ? element(type, address, i) : 0));
	}
};

/* ----------------------------------------------------------------- nearest */

/* <T, index of the source>(in, out, planes, height, width, those of the
 * result, scales) */
static bool run_nearest(const Launch &launch)
{
	Type type = launch.kernel.first_float();
	int64_t planes = launch.param<int64_t>(2);
	int64_t h1 = launch.param<int64_t>(3), w1 = launch.param<int64_t>(4);
	int64_t h2 = launch.param<int64_t>(5), w2 = launch.param<int64_t>(6);
	float middle = launch.kernel.has("exact") ? 0.5f : 0;
	auto source = [&](int64_t i, float scale, int64_t size) {
		auto at = (int64_t)std::floor(((float)i + middle) * scale);

		return std::min(at, size - 1);
	};

	if (type == Type::NONE || launch.raw.n_params != 9)
		return false;
	for (int64_t i = 0; i < planes * h2 * w2; i++) {
		int64_t h = source(
		        i / w2 % h2, launch.param<float>(7), h1);
		int64_t w = source(i % w2, launch.param<float>(8), w1);
		int64_t from = (i / w2 / h2 * h1 + h) * w1 + w;

		set_element(type, launch.param<uint64_t>(1), i,
		        element(type, launch.param<uint64_t>(0), from));
	}
	return true;
}

/* <T, acc, first index of the source>(grad, batch, channels, height, width,
 * those of the result, into, scales) */
static bool run_nearest_backward(const Launch &launch)
{
	Type type = launch.kernel.first_float();
	int64_t planes = (int64_t)(launch.param<int64_t>(1) *
	                           launch.param<int64_t>(2));
	int64_t h1 = launch.param<int64_t>(3), w1 = launch.param<int64_t>(4);
	int64_t h2 = launch.param<int64_t>(5), w2 = launch.param<int64_t>(6);
	float middle = launch.kernel.has("exact") ? 0.5f : 0;
	auto first = [&](int64_t i, float scale, int64_t size) {
		auto at = (int64_t)std::ceil((float)i * scale - middle);

		return std::min(at, size);
	};

	if (type == Type::NONE || launch.raw.n_params != 10)
		return false;
	for (int64_t i = 0; i < planes * h2 * w2; i++) {
		int64_t row = i / w2 % h2, column = i % w2;
		float sh = launch.param<float>(8), sw = launch.param<float>(9);
		double sum = 0;

		for (int64_t h = first(row, sh, h1);
		        h < first(row + 1, sh, h1); h++)
			for (int64_t w = first(column, sw, w1);
			        w < first(column + 1, sw, w1); w++)
				sum += element(type, launch.param<uint64_t>(0),
				        (i / w2 / h2 * h1 + h) * w1 + w);
		set_element(type, launch.param<uint64_t>(7), i, sum);
	}
	return true;
}

/* ---------------------------------------------------------------- bilinear */

/* The two elements that a result lies between, and the second's share. */
struct Between {
	int64_t first, second;
	float share;
};

static Between between(int64_t i, float scale, bool corners, int64_t size)
{
	float at = corners ? scale * (float)i
	                   : std::max(scale * ((float)i + 0.5f) - 0.5f, 0.0f);
	auto first = (int64_t)at;

	return {first, first + (first < size - 1), at - (float)first};
}

/* Calls fn(element, share) for the four that a result is made of. */
template <class Fn>
static void corners_of(const Between &h, const Between &w, Fn &&fn)
{
	fn(h.first, w.first, (1 - h.share) * (1 - w.share));
	fn(h.first, w.second, (1 - h.share) * w.share);
	fn(h.second, w.first, h.share * (1 - w.share));
	fn(h.second, w.second, h.share * w.share);
}

/* <T, acc>(n, scales, align corners, in, out): accessors */
static bool run_bilinear(const Launch &launch)
{
	Type type = launch.kernel.first_float();
	auto in = launch.param<Packed<4, int64_t>>(4);
	auto out = launch.param<Packed<4, int64_t>>(5);
	bool corners = launch.param<bool>(3);

	if (type == Type::NONE || launch.param_bytes(4) != sizeof(in))
		return false;
	for (int64_t i = 0; i < out.sizes[0] * out.sizes[1]; i++)
		for (int64_t h = 0; h < out.sizes[2]; h++)
			for (int64_t w = 0; w < out.sizes[3]; w++) {
				int64_t n = i / out.sizes[1];
				int64_t c = i % out.sizes[1];
				double sum = 0;

				corners_of(between(h, launch.param<float>(1),
				                   corners, in.sizes[2]),
				        between(w, launch.param<float>(2),
				                corners, in.sizes[3]),
				        [&](int64_t y, int64_t x, float share) {
					        sum += (double)share *
					               element(type, in.data,
					                       in.at({n, c, y,
					                               x}));
				        });
				set_element(type, out.data, out.at({n, c, h, w}),
				        sum);
			}
	return true;
}

/* <T, acc>(planes, height, width, those of grad, scales, align corners, into,
 * grad); adds */
static bool run_bilinear_backward(const Launch &launch)
{
	Type type = launch.kernel.first_float();
	int64_t planes = launch.param<int64_t>(0);
	int64_t h1 = launch.param<int32_t>(1), w1 = launch.param<int32_t>(2);
	int64_t h2 = launch.param<int32_t>(3), w2 = launch.param<int32_t>(4);
	bool corners = launch.param<bool>(7);

	if (type == Type::NONE || launch.raw.n_params != 10)
		return false;
	Sums sums(planes * h1 * w1);
	for (int64_t i = 0; i < planes * h2 * w2; i++) {
		double g = element(type, launch.param<uint64_t>(9), i);

		corners_of(between(i / w2 % h2, launch.param<float>(5), corners,
		                   h1),
		        between(i % w2, launch.param<float>(6), corners, w1),
		        [&](int64_t y, int64_t x, float share) {
			        sums[(i / w2 / h2 * h1 + y) * w1 + x] +=
			                (double)share * g;
		        });
	}
	sums.store(type, launch.param<uint64_t>(8), true);
	return true;
}

/* ----------------------------------------------------------------- padding */

/* Which element of `size` stands at place i, counted from the first. */
static int64_t reflected(int64_t i, int64_t size)
{
	if (i < 0)
		i = -i;
	return i < size ? i : 2 * (size - 1) - i;
}

/* (in and out, or into and grad; width, height; as int padding above, below,
 * left and right, first y and z of the grid, planes along y) */
static bool reflect(const Launch &launch, bool backward)
{
	Type type = launch.kernel.first_float();
	int64_t width = launch.param<int64_t>(2);
	int64_t height = launch.param<int64_t>(3);
	int64_t top = launch.param<int32_t>(4), left = launch.param<int32_t>(6);
	int64_t out_h = height + top + launch.param<int32_t>(5);
	int64_t out_w = width + left + launch.param<int32_t>(7);
	int64_t planes = launch.param<int32_t>(10);

	if (type == Type::NONE || launch.raw.n_params != 11 || top < 0 ||
	        left < 0 || out_h < height + top || out_w < width + left)
		return false;
	for (unsigned z = 0; z < launch.raw.grid[2]; z++)
		for (unsigned y = 0; y < launch.raw.grid[1]; y++) {
			int64_t plane =
			        y + launch.param<int32_t>(8) +
			        (int64_t)(z + launch.param<uint32_t>(9)) *
			                planes;
			size_t bytes = size_of(type);
			uint64_t inner = launch.param<uint64_t>(0) +
			                 (uint64_t)(plane * width * height) *
			                         bytes;
			uint64_t outer = launch.param<uint64_t>(1) +
			                 (uint64_t)(plane * out_w * out_h) *
			                         bytes;
			Sums sums(backward ? width * height : 0);

			for (int64_t i = 0; i < out_h * out_w; i++) {
				int64_t from =
				        reflected(i / out_w - top, height) *
				                width +
				        reflected(i % out_w - left, width);

				if (backward)
					sums[from] += element(type, outer, i);
				else
					set_element(type, outer, i,
					        element(type, inner, from));
			}
			if (backward)
				sums.store(type, inner, true);
		}
	return true;
}

static bool run_reflect(const Launch &launch)
{
	return reflect(launch, false);
}

static bool run_reflect_backward(const Launch &launch)
{
	return reflect(launch, true);
}

/* (in and out, or into and grad, as accessors; padding above and left, first y
 * and z of the grid) */
static bool replicate(const Launch &launch, bool backward)
{
	Type type = launch.kernel.first_float();
	auto inner = launch.param<Packed<4, int64_t>>(0);
	auto outer = launch.param<Packed<4, int64_t>>(1);
	int64_t top = launch.param<int32_t>(2), left = launch.param<int32_t>(3);

	if (type == Type::NONE || launch.param_bytes(0) != sizeof(inner) ||
	        launch.param_bytes(1) != sizeof(outer) ||
	        launch.param<int32_t>(4) || launch.param<int32_t>(5))
		return false;
	for (int64_t n = 0; n < outer.sizes[0]; n++)
		for (int64_t c = 0; c < outer.sizes[1]; c++)
			for (int64_t i = 0; i < outer.sizes[2] * outer.sizes[3];
			        i++) {
				int64_t h = i / outer.sizes[3];
				int64_t w = i % outer.sizes[3];
				int64_t at = outer.at({n, c, h, w});
				int64_t from = inner.at({n, c,
				        std::clamp<int64_t>(h - top, 0,
				                inner.sizes[2] - 1),
				        std::clamp<int64_t>(w - left, 0,
				                inner.sizes[3] - 1)});

				if (backward)
					set_element(type, inner.data, from,
					        element(type, inner.data,
					                from) +
					                element(type,
					                        outer.data,
					                        at));
				else
					set_element(type, outer.data, at,
					        element(type, inner.data,
					                from));
			}
	return true;
}

static bool run_replicate(const Launch &launch)
{
	return replicate(launch, false);
}

static bool run_replicate_backward(const Launch &launch)
{
	return replicate(launch, true);
}

/* ----------------------------------------------------------------- columns */

/* (elements of an image, columns, their step from image to image, images;
 * height, width, kernel, padding, stride, dilation, height and width of the
 * columns; images, their step) */
static bool run_fold(const Launch &launch)
{
	Type type = launch.kernel.first_float();
	int64_t s[16], n = launch.param<int64_t>(0);

	for (unsigned i = 2; i < 16; i++)
		s[i] = launch.param<int64_t>(i);
	int64_t area = s[14] * s[15], channels = n / (s[4] * s[5]);

	if (type == Type::NONE || launch.raw.n_params != 18)
		return false;
	for (int64_t image = 0; image < s[3]; image++) {
		uint64_t columns = launch.param<uint64_t>(1) +
		                   (uint64_t)(image * s[2]) * size_of(type);
		uint64_t into = launch.param<uint64_t>(16) +
		                (uint64_t)(image * launch.param<int64_t>(17)) *
		                        size_of(type);
		Sums sums(n);

		for (int64_t i = 0; i < channels * s[6] * s[7] * area; i++) {
			int64_t place = i % area;
			int64_t kw = i / area % s[7], kh = i / area / s[7] % s[6];
			int64_t c = i / area / s[7] / s[6];
			int64_t h = place / s[15] * s[10] - s[8] + kh * s[12];
			int64_t w = place % s[15] * s[11] - s[9] + kw * s[13];

			if (h >= 0 && w >= 0 && h < s[4] && w < s[5])
				sums[(c * s[4] + h) * s[5] + w] +=
				        element(type, columns, i);
		}
		sums.store(type, into, false);
	}
	return true;
}

const Family resize_families[] = {
        {"upsample_nearest2d_out_frame", run_nearest},
        {"upsample_nearest2d_backward_out_frame", run_nearest_backward},
        {"upsample_bilinear2d_out_frame", run_bilinear},
        {"upsample_bilinear2d_backward_out_frame", run_bilinear_backward},
        {"reflection_pad2d_out_kernel", run_reflect},
        {"reflection_pad2d_backward_out_kernel", run_reflect_backward},
        {"replication_pad_forward_kernel2d", run_replicate},
        {"replication_pad_backward_kernel", run_replicate_backward},
        {"col2im_batched_kernel", run_fold},
        {nullptr, nullptr},
};

} // namespace sgx
