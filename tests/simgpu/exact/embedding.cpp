/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Gradients of embeddings and of look-ups, where PyTorch sorts the indices
 * first: segments of equal ones, cut into parts that are summed one by one.
 * Sums are made in double, in the order of the sorted indices.
 */
#include "tests/simgpu/exact/layout.h"

namespace sgx
{

/* Rows that a thread adds up (NROWS_PER_THREAD of EmbeddingBackwardKernel.cu).
 */
constexpr int64_t PART = 10;

/* An array of the indices' type. */
struct Indices {
	Type type;
	uint64_t address;

	Indices(const Launch &launch, unsigned param)
	    : type(launch.kernel.pointee(param)),
	      address(launch.param<uint64_t>(param))
	{
	}
	bool known() const
	{
		return type == Type::I64 || type == Type::I32;
	}
	int64_t operator[](int64_t i) const
	{
		return type == Type::I32 ? at_address<const int32_t>(address)[i]
		                         : at_address<const int64_t>(
		                                   address)[i];
	}
	void set(int64_t i, int64_t value) const
	{
		if (type == Type::I32)
			at_address<int32_t>(address)[i] = (int32_t)value;
		else
			at_address<int64_t>(address)[i] = value;
	}
};

/* Where segment i of n, of `all` elements, ends. */
static int64_t segment_end(
        const Indices &starts, int64_t i, int64_t n, int64_t all)
{
	return i + 1 < n ? starts[i + 1] : all;
}

/* (parts of each segment, starts of the segments, their number, elements) */
static bool run_count_parts(const Launch &launch)
{
	Indices parts(launch, 0), starts(launch, 1), number(launch, 2);
	int64_t all = launch.param<int64_t>(3);

	if (!parts.known())
		return false;
	for (int64_t i = 0, n = number[0]; i < n; i++)
		parts.set(i, (segment_end(starts, i, n, all) - starts[i] +
		                     PART - 1) /
		                     PART);
	return true;
}

/* (parts of each segment, sums of those before, segments, all parts) */
static bool run_number_of_parts(const Launch &launch)
{
	Indices parts(launch, 0), before(launch, 1), number(launch, 2);
	Indices sum(launch, 3);
	int64_t last = number[0] - 1;

	if (!parts.known())
		return false;
	sum.set(0, parts[last] + before[last]);
	return true;
}

/* (starts of the parts, parts of each segment, sums of those before, starts
 * of the segments, their number) */
static bool run_part_starts(const Launch &launch)
{
	Indices into(launch, 0), parts(launch, 1), before(launch, 2);
	Indices starts(launch, 3), number(launch, 4);

	if (!into.known())
		return false;
	for (int64_t i = 0; i < number[0]; i++)
		for (int64_t k = 0; k < parts[i]; k++)
			into.set(before[i] + k, starts[i] + k * PART);
	return true;
}

/* (segment of each part, parts of each segment, sums of those before, their
 * number) */
static bool run_part_segments(const Launch &launch)
{
	Indices into(launch, 0), parts(launch, 1), before(launch, 2);
	Indices number(launch, 3);

	if (!into.known())
		return false;
	for (int64_t i = 0; i < number[0]; i++)
		for (int64_t k = 0; k < parts[i]; k++)
			into.set(before[i] + k, i);
	return true;
}

/* The sum of rows from..to of the sorted gradient, into row. */
static void sum_rows(Type type, const Indices &order, uint64_t grad,
        const Indices &counts, int64_t from, int64_t to, int64_t stride,
        std::vector<double> *row)
{
	row->assign((size_t)stride, 0);
	for (int64_t i = from; i < to; i++) {
		double scale =
		        counts.address ? 1 / (double)counts[i] : 1;
		int64_t at = order[i] * stride;

		for (int64_t j = 0; j < stride; j++)
			(*row)[(size_t)j] +=
			        element(type, grad, at + j) * scale;
	}
}

/* (order, gradient, counts, elements, stride, starts of the parts, their
 * number, a sum for each part, ...) */
static bool run_sum_parts(const Launch &launch)
{
	Indices order(launch, 0), counts(launch, 2), starts(launch, 5);
	Indices number(launch, 6);
	Type type = launch.kernel.pointee(1), sums = launch.kernel.pointee(7);
	int64_t all = launch.param<int64_t>(3);
	int64_t stride = launch.param<int64_t>(4);
	std::vector<double> row;

	if (!order.known() || !is_float(type) || !is_float(sums))
		return false;
	for (int64_t i = 0, n = number[0]; i < n; i++) {
		sum_rows(type, order, launch.param<uint64_t>(1), counts,
		        starts[i], segment_end(starts, i, n, all), stride,
		        &row);
		for (int64_t j = 0; j < stride; j++)
			set_element(sums, launch.param<uint64_t>(7),
			        i * stride + j, row[(size_t)j]);
	}
	return true;
}

/* (sorted indices, gradient of the table, stride, starts of the segments,
 * their number, sum of each part, parts before each segment, all parts,
 * padding, ...) */
static bool run_sum_and_scatter(const Launch &launch)
{
	Indices sorted(launch, 0), starts(launch, 3), number(launch, 4);
	Indices before(launch, 6), parts(launch, 7);
	Type type = launch.kernel.pointee(1), sums = launch.kernel.pointee(5);
	int64_t stride = launch.param<int64_t>(2);
	int64_t padding = launch.param<int64_t>(8);

	if (!sorted.known() || !is_float(type) || !is_float(sums))
		return false;
	for (int64_t i = 0, n = number[0]; i < n; i++) {
		int64_t row = sorted[starts[i]];

		for (int64_t j = 0; row != padding && j < stride; j++) {
			double sum = 0;

			for (int64_t k = before[i];
			        k < segment_end(before, i, n, parts[0]); k++)
				sum += element(sums, launch.param<uint64_t>(5),
				        k * stride + j);
			set_element(type, launch.param<uint64_t>(1),
			        row * stride + j, sum);
		}
	}
	return true;
}

/* (order, gradient, counts, elements, stride, starts of the parts, their
 * number, sorted indices, segment of each part, starts of the segments,
 * gradient of the table, padding, ...); adds to what is there */
static bool run_accumulate(const Launch &launch)
{
	Indices order(launch, 0), counts(launch, 2), starts(launch, 5);
	Indices number(launch, 6), sorted(launch, 7), segments(launch, 8);
	Indices segment_starts(launch, 9);
	Type type = launch.kernel.pointee(1), into = launch.kernel.pointee(10);
	int64_t all = launch.param<int64_t>(3);
	int64_t stride = launch.param<int64_t>(4);
	int64_t padding = launch.param<int64_t>(11);
	uint64_t table = launch.param<uint64_t>(10);
	std::vector<double> row;

	if (!order.known() || !is_float(type) || !is_float(into))
		return false;
	for (int64_t i = 0, n = number[0]; i < n; i++) {
		int64_t at = sorted[segment_starts[segments[i]]];

		if (at == padding)
			continue;
		sum_rows(type, order, launch.param<uint64_t>(1), counts,
		        starts[i], segment_end(starts, i, n, all), stride,
		        &row);
		for (int64_t j = 0; j < stride; j++)
			set_element(into, table, at * stride + j,
			        element(into, table, at * stride + j) +
			                row[(size_t)j]);
	}
	return true;
}

/* ------------------------------------------------------------------- bags */

/* <T, index>(indices, offsets, weight, output, bag of each index, indices,
 * bags, features, strides of the weight, mode, sizes of the bags, weights of
 * the samples, their stride, padding, ...); modes: sum, mean */
static bool run_bags(const Launch &launch)
{
	Indices indices(launch, 0), offsets(launch, 1), bag_of(launch, 4);
	Indices sizes(launch, 11);
	Type type = launch.kernel.pointee(2);
	int64_t count = launch.param<int64_t>(5);
	int64_t bags = launch.param<int64_t>(6);
	int64_t features = launch.param<int64_t>(7);
	int64_t stride0 = launch.param<int64_t>(8);
	int64_t stride1 = launch.param<int64_t>(9);
	bool mean = launch.param<int32_t>(10) == 1;
	uint64_t samples = launch.param<uint64_t>(12);
	int64_t sample_stride = launch.param<int64_t>(13);
	int64_t padding = launch.param<int64_t>(14);

	if (!indices.known() || !is_float(type) ||
	        launch.param<int32_t>(10) > 1)
		return false;
	for (int64_t b = 0; b < bags; b++) {
		int64_t from = offsets[b];
		int64_t to = b + 1 < bags ? offsets[b + 1] : count, used = 0;
		std::vector<double> row((size_t)features);

		for (int64_t i = from; i < to; i++) {
			double scale =
			        samples ? element(type, samples,
			                          i * sample_stride)
			                : 1;

			if (bag_of.address)
				bag_of.set(i, b);
			if (indices[i] == padding)
				continue;
			used++;
			for (int64_t j = 0; j < features; j++)
				row[(size_t)j] +=
				        element(type, launch.param<uint64_t>(2),
				                indices[i] * stride0 +
				                        j * stride1) *
				        scale;
		}
		for (int64_t j = 0; j < features; j++)
			set_element(type, launch.param<uint64_t>(3),
			        b * features + j,
			        row[(size_t)j] /
			                (mean && used ? (double)used : 1));
		sizes.set(b, used);
	}
	return true;
}

/* (order, gradient of the bags, bag of each index, counts, elements, stride,
 * mean, sizes of the bags, weights of the samples, their stride, starts of the
 * parts, their number, a sum for each part, ...) */
static bool run_sum_bags(const Launch &launch)
{
	Indices order(launch, 0), bag_of(launch, 2), counts(launch, 3);
	Indices sizes(launch, 7), starts(launch, 10), number(launch, 11);
	Type type = launch.kernel.pointee(1), sums = launch.kernel.pointee(12);
	int64_t all = launch.param<int64_t>(4);
	int64_t stride = launch.param<int64_t>(5);
	bool mean = launch.param<int32_t>(6) != 0;
	uint64_t samples = launch.param<uint64_t>(8);
	int64_t sample_stride = launch.param<int64_t>(9);

	if (!order.known() || !is_float(type) || !is_float(sums))
		return false;
	for (int64_t part = 0, n = number[0]; part < n; part++) {
		std::vector<double> row((size_t)stride);

		for (int64_t i = starts[part];
		        i < segment_end(starts, part, n, all); i++) {
			int64_t bag = bag_of[order[i]];
			double scale =
			        counts.address ? 1 / (double)counts[i] : 1;

			if (samples)
				scale *= element(type, samples,
				        order[i] * sample_stride);
			if (mean)
				scale /= (double)sizes[bag];
			for (int64_t j = 0; j < stride; j++)
				row[(size_t)j] +=
				        element(type, launch.param<uint64_t>(1),
				                bag * stride + j) *
				        scale;
		}
		for (int64_t j = 0; j < stride; j++)
			set_element(sums, launch.param<uint64_t>(12),
			        part * stride + j, row[(size_t)j]);
	}
	return true;
}

/* --------------------------------------------------- gradients of indexing */

/* <T, ...>(sorted indices, order, values, into, number, stride, stride of what
 * lies before, how often that is, accumulate) */
static bool run_indexing(const Launch &launch)
{
	Indices sorted(launch, 0), order(launch, 1);
	Type type = launch.kernel.pointee(2);
	uint64_t values = launch.param<uint64_t>(2);
	uint64_t into = launch.param<uint64_t>(3);
	int64_t n = launch.param<int64_t>(4), stride = launch.param<int64_t>(5);
	int64_t before = launch.param<int64_t>(6);
	int64_t outer = launch.param<int64_t>(7);
	bool accumulate = launch.param<bool>(8);

	if (!sorted.known() || launch.raw.n_params != 9)
		return false;
	return with_type(type, [&](auto t) {
		using T = decltype(t);
		using A = std::conditional_t<std::is_integral_v<T>, int64_t,
		        double>;
		const T *from = at_address<const T>(values);
		T *to = at_address<T>(into);

		for (int64_t z = 0; z < outer; z++)
			for (int64_t i = 0, end; i < n; i = end) {
				T *row = to + sorted[i] * stride + z * before;

				end = i + 1;
				while (end < n && sorted[end] == sorted[i])
					end++;
				for (int64_t j = 0; j < stride; j++) {
					A sum = accumulate ? (A)(Math<T>)row[j]
					                   : A(0);

					/* The last of equals stays. */
					for (int64_t k = accumulate ? i
					                            : end - 1;
					        k < end; k++)
						sum += (A)(Math<T>)
						        from[(order[k] +
						                     z * n) *
						                        stride +
						                j];
					row[j] = convert<T>((Math<T>)sum);
				}
			}
	});
}

const Family embedding_families[] = {
        {"krn_partials_per_segment", run_count_parts},
        {"compute_num_of_partial_segments", run_number_of_parts},
        {"krn_partial_segment_offset", run_part_starts},
        {"krn_partial_to_segment_idx", run_part_segments},
        {"compute_grad_weight", run_sum_parts},
        {"sum_and_scatter", run_sum_and_scatter},
        {"compute_grad_weight_atomic_accumulate", run_accumulate},
        {"EmbeddingBag_updateOutputKernel_sum_mean", run_bags},
        {"compute_grad_weight_bags", run_sum_bags},
        {"indexing_backward_kernel", run_indexing},
        {"indexing_backward_kernel_stride_1", run_indexing},
        {"indexing_backward_kernel_small_stride", run_indexing},
        {nullptr, nullptr},
};

} // namespace sgx
