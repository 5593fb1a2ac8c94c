/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Sorting: PyTorch's kernels for rows of up to 4,096 elements, CUB's radix
 * sort pass by pass, and the choice of the k largest. All sorts are stable
 * here, also where the device's are not.
 */
#include "tests/simgpu/exact/layout.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace sgx
{

/* a before b, with what is not a number greater than all else. */
template <class M> static bool before(M a, M b, bool descending)
{
	if (descending)
		std::swap(a, b);
	return (b != b && a == a) || a < b;
}

template <class M>
static void sort_order(
        const std::vector<M> &keys, bool descending, std::vector<size_t> *order)
{
	order->resize(keys.size());
	std::iota(order->begin(), order->end(), 0);
	std::stable_sort(order->begin(), order->end(), [&](size_t a, size_t b) {
		return before(keys[a], keys[b], descending);
	});
}

/* Sorts one row of keys and values, given by their strides in elements. */
template <class K>
static void sort_row(K *keys, int64_t key_stride, uint8_t *values,
        size_t value_bytes, int64_t value_stride, int64_t n, bool descending)
{
	std::vector<Math<K>> found((size_t)n);
	std::vector<K> old((size_t)n);
	std::vector<uint8_t> old_values((size_t)n * value_bytes);
	std::vector<size_t> order;

	for (int64_t i = 0; i < n; i++) {
		old[(size_t)i] = keys[i * key_stride];
		found[(size_t)i] = (Math<K>)old[(size_t)i];
		memcpy(&old_values[(size_t)i * value_bytes],
		        values + i * value_stride * (int64_t)value_bytes,
		        value_bytes);
	}
	sort_order(found, descending, &order);
	for (int64_t i = 0; i < n; i++) {
		keys[i * key_stride] = old[order[(size_t)i]];
		memcpy(values + i * value_stride * (int64_t)value_bytes,
		        &old_values[order[(size_t)i] * value_bytes],
		        value_bytes);
	}
}

/* (keys, slices, size, stride, values, their stride, comparator or whether
 * descending, ...): in place */
static bool run_sort_slices(const Launch &launch)
{
	bool radix = launch.kernel.family == "radixSortKVInPlace";
	bool descending =
	        radix ? launch.param<bool>(6) : launch.kernel.has("GTOp<");
	TensorInfo keys = launch.param<TensorInfo>(0);
	TensorInfo values = launch.param<TensorInfo>(4);
	uint32_t slices = launch.param<uint32_t>(1);
	uint32_t n = launch.param<uint32_t>(2);
	int64_t stride = launch.param<uint32_t>(3);
	int64_t value_stride = launch.param<uint32_t>(5);
	size_t type = 0;

	/* Numbers of dimensions and threads come before the types. */
	while (type < launch.kernel.arguments.size() &&
	        launch.kernel.type(type) == Type::NONE)
		type++;
	size_t bytes = size_of(launch.kernel.type(type + 1));
	if (launch.param_bytes(0) != sizeof(TensorInfo) || !bytes)
		return false;
	if (!radix && !descending && !launch.kernel.has("LTOp<"))
		return false;
	return with_type(launch.kernel.type(type), [&](auto k) {
		using K = decltype(k);

		for (uint32_t s = 0; s < slices; s++)
			sort_row(at_address<K>(keys.data) + keys.offset(s),
			        stride,
			        at_address<uint8_t>(values.data) +
			                values.offset(s) * (int64_t)bytes,
			        bytes, value_stride, n, descending);
	});
}

/* --------------------------------------------------------- CUB's radix sort */

/* What CUB calls twiddling: unsigned words in the order of the keys. */
static uint64_t radix_word(const uint8_t *key, Type type, bool descending)
{
	size_t bytes = size_of(type);
	uint64_t word = 0, sign = 1ull << (bytes * 8 - 1);
	uint64_t mask = sign | (sign - 1);

	memcpy(&word, key, bytes);
	if (is_float(type)) {
		if (word == sign)
			word = 0; /* -0 sorts as 0 */
		word ^= word & sign ? mask : sign;
	} else if (type != Type::BOOL && type != Type::U8) {
		word ^= sign;
	}
	return (descending ? ~word : word) & mask;
}

/* Key and value as policy_hub<key, value, offset> and SortOrder name them. */
struct Radix {
	Type key = Type::NONE;
	size_t value_bytes = 0;
	bool descending = false, wide = false;
};

static bool radix_of(const Kernel &kernel, Radix *ret)
{
	Radix r;
	size_t open = kernel.name.find("policy_hub<");

	if (open == std::string::npos)
		return false;
	std::vector<std::string> types = split_arguments(
	        bracketed(kernel.name, open + strlen("policy_hub")));
	if (types.size() != 3)
		return false;
	r.key = type_of(types[0]);
	r.descending = kernel.has("SortOrder)1");
	r.wide = types[2] == "unsigned long long";
	r.value_bytes = size_of(type_of(types[1]));
	size_t opaque = types[1].find("OpaqueType<");
	if (opaque != std::string::npos)
		r.value_bytes = (size_t)atoi(
		        types[1].c_str() + opaque + strlen("OpaqueType<"));
	if (r.key == Type::NONE ||
	        (!r.value_bytes &&
	                types[1].find("NullType") == std::string::npos))
		return false;
	*ret = r;
	return true;
}

/* A stable sort by some bits of the keys. */
static void radix_pass(const Radix &r, const uint8_t *keys_in, uint8_t *keys,
        const uint8_t *values_in, uint8_t *values, uint64_t n, int from,
        int count)
{
	size_t key_bytes = size_of(r.key);
	uint64_t mask = count < 64 ? (1ull << count) - 1 : ~0ull;
	std::vector<uint64_t> digits(n);
	std::vector<size_t> order(n);
	std::vector<uint8_t> old_keys(keys_in, keys_in + n * key_bytes);
	std::vector<uint8_t> old_values;

	if (r.value_bytes)
		old_values.assign(values_in, values_in + n * r.value_bytes);
	for (uint64_t i = 0; i < n; i++)
		digits[i] = radix_word(keys_in + i * key_bytes, r.key,
		                    r.descending) >>
		                    from &
		            mask;
	std::iota(order.begin(), order.end(), 0);
	std::stable_sort(order.begin(), order.end(),
	        [&](size_t a, size_t b) { return digits[a] < digits[b]; });
	for (uint64_t i = 0; i < n; i++) {
		memcpy(keys + i * key_bytes, &old_keys[order[i] * key_bytes],
		        key_bytes);
		if (r.value_bytes)
			memcpy(values + i * r.value_bytes,
			        &old_values[order[i] * r.value_bytes],
			        r.value_bytes);
	}
}

/* (keys in and out, values in and out, n, first bit, end bit, decomposer) */
static bool run_radix_single(const Launch &launch)
{
	Radix r;

	if (!radix_of(launch.kernel, &r))
		return false;
	int from = launch.param<int>(5), to = launch.param<int>(6);
	radix_pass(r, at_address<uint8_t>(launch.param<uint64_t>(0)),
	        at_address<uint8_t>(launch.param<uint64_t>(1)),
	        at_address<uint8_t>(launch.param<uint64_t>(2)),
	        at_address<uint8_t>(launch.param<uint64_t>(3)),
	        r.wide ? launch.param<uint64_t>(4) : launch.param<uint32_t>(4),
	        from, to - from);
	return true;
}

constexpr int RADIX_BITS = 8, RADIX_DIGITS = 1 << RADIX_BITS;

/* (counts by pass and digit, keys, n, first bit, end bit, decomposer) */
static bool run_radix_histogram(const Launch &launch)
{
	Radix r;

	if (!radix_of(launch.kernel, &r) || !r.wide)
		return false;
	uint64_t *counts = at_address<uint64_t>(launch.param<uint64_t>(0));
	const uint8_t *keys = at_address<uint8_t>(launch.param<uint64_t>(1));
	uint64_t n = launch.param<uint64_t>(2);
	int from = launch.param<int>(3), to = launch.param<int>(4);
	for (uint64_t i = 0; i < n; i++) {
		uint64_t word = radix_word(
		        keys + i * size_of(r.key), r.key, r.descending);

		for (int pass = 0; from + pass * RADIX_BITS < to; pass++) {
			int at = from + pass * RADIX_BITS;
			int bits = std::min(RADIX_BITS, to - at);

			counts[pass * RADIX_DIGITS +
			        (int)(word >> at & ((1ull << bits) - 1))]++;
		}
	}
	return true;
}

/* (counts): to sums of those before, a block a pass */
static bool run_radix_sums(const Launch &launch)
{
	uint64_t *counts = at_address<uint64_t>(launch.param<uint64_t>(0));

	if (!launch.kernel.has("unsigned long long"))
		return false;
	for (unsigned pass = 0; pass < launch.raw.grid[0]; pass++) {
		uint64_t sum = 0;

		for (int i = 0; i < RADIX_DIGITS; i++) {
			uint64_t count = counts[pass * RADIX_DIGITS + i];

			counts[pass * RADIX_DIGITS + i] = sum;
			sum += count;
		}
	}
	return true;
}

/* (lookback, counters, sums out, sums in, keys out and in, values out and in,
 * n, first bit, bits, decomposer); all of n in one launch */
static bool run_radix_onesweep(const Launch &launch)
{
	Radix r;

	if (!radix_of(launch.kernel, &r) || launch.param<uint64_t>(2))
		return false;
	radix_pass(r, at_address<uint8_t>(launch.param<uint64_t>(5)),
	        at_address<uint8_t>(launch.param<uint64_t>(4)),
	        at_address<uint8_t>(launch.param<uint64_t>(7)),
	        at_address<uint8_t>(launch.param<uint64_t>(6)),
	        (uint64_t)launch.param<int32_t>(8), launch.param<int>(9),
	        launch.param<int>(10));
	return true;
}

/* ------------------------------------------------- sorts of many long rows */

/* (pairs of row and index, n, divider by the length of a row) */
static bool run_fill_segments(const Launch &launch)
{
	int32_t *pairs = at_address<int32_t>(launch.param<uint64_t>(0));
	int n = launch.param<int>(1);
	uint32_t length = launch.param<uint32_t>(2);

	for (int i = 0; i < n; i++) {
		pairs[2 * i] = i / (int)length;
		pairs[2 * i + 1] = i % (int)length;
	}
	return true;
}

/* (indices, n, divider by the length of a row) */
static bool run_fill_reverse(const Launch &launch)
{
	int64_t *indices = at_address<int64_t>(launch.param<uint64_t>(0));
	int n = launch.param<int>(1);
	uint32_t length = launch.param<uint32_t>(2);

	for (int i = 0; i < n; i++)
		indices[i] = i % (int)length;
	return true;
}

/* <T>(in, out, indices, pairs of row and index, rows, length) */
static bool run_sort_postprocess(const Launch &launch)
{
	const int32_t *pairs = at_address<int32_t>(launch.param<uint64_t>(3));
	int rows = launch.param<int>(4), n = launch.param<int>(5);

	return with_type(launch.kernel.type(0), [&](auto t) {
		using T = decltype(t);
		const T *in = at_address<T>(launch.param<uint64_t>(0));
		T *out = at_address<T>(launch.param<uint64_t>(1));
		int64_t *indices =
		        at_address<int64_t>(launch.param<uint64_t>(2));

		for (int64_t i = 0; i < (int64_t)rows * n; i++) {
			int64_t row = i / n * n, from = pairs[2 * i + 1];

			out[i] = in[row + from];
			indices[i] = from;
		}
	});
}

/* ------------------------------------------------------------------ choice */

/* <T, index, dims, values come after>(in, size, k, largest, slices, stride,
 * values, their stride, indices, their stride); indices in order */
static bool run_top_k(const Launch &launch)
{
	TensorInfo in = launch.param<TensorInfo>(0);
	uint32_t n = launch.param<uint32_t>(1), k = launch.param<uint32_t>(2);
	bool largest = launch.param<bool>(3);
	uint32_t slices = launch.param<uint32_t>(4);
	int64_t stride = launch.param<uint32_t>(5);
	TensorInfo values = launch.param<TensorInfo>(6);
	int64_t value_stride = launch.param<uint32_t>(7);
	TensorInfo indices = launch.param<TensorInfo>(8);
	int64_t index_stride = launch.param<uint32_t>(9);

	if (launch.kernel.arguments.back() != "false" ||
	        launch.param_bytes(0) != sizeof(TensorInfo))
		return false;
	return with_type(launch.kernel.type(0), [&](auto t) {
		using T = decltype(t);
		std::vector<Math<T>> keys(n);
		std::vector<size_t> order;

		for (uint32_t s = 0; s < slices; s++) {
			const T *from = at_address<T>(in.data) + in.offset(s);
			T *to = at_address<T>(values.data) + values.offset(s);
			int64_t *places = at_address<int64_t>(indices.data) +
			                  indices.offset(s);

			for (uint32_t i = 0; i < n; i++)
				keys[i] = (Math<T>)from[i * stride];
			sort_order(keys, largest, &order);
			std::sort(order.begin(), order.begin() + k);
			for (uint32_t i = 0; i < k; i++) {
				to[i * value_stride] =
				        from[(int64_t)order[i] * stride];
				places[i * index_stride] = (int64_t)order[i];
			}
		}
	});
}

/* One of each slice in order: gatherKthValue(in, size, k, slices, stride,
 * values, indices), k from 1; gatherMedian(values, indices, in, size, slices,
 * stride, whether nan is left out), the lower middle. */
static bool run_kth(const Launch &launch)
{
	bool median = launch.kernel.family == "gatherMedian";
	TensorInfo in = launch.param<TensorInfo>(median ? 2 : 0);
	TensorInfo values = launch.param<TensorInfo>(median ? 0 : 5);
	TensorInfo indices = launch.param<TensorInfo>(median ? 1 : 6);
	uint32_t n = launch.param<uint32_t>(median ? 3 : 1);
	uint32_t k = median ? (n + 1) / 2 : launch.param<uint32_t>(2);
	uint32_t slices = launch.param<uint32_t>(median ? 4 : 3);
	int64_t stride = launch.param<uint32_t>(median ? 5 : 4);

	if (launch.param_bytes(0) != sizeof(TensorInfo) || k < 1 || k > n ||
	        (median && launch.param<bool>(6)))
		return false;
	return with_type(launch.kernel.type(0), [&](auto t) {
		using T = decltype(t);
		std::vector<Math<T>> keys(n);
		std::vector<size_t> order;

		for (uint32_t s = 0; s < slices; s++) {
			const T *from = at_address<T>(in.data) + in.offset(s);
			size_t found;

			for (uint32_t i = 0; i < n; i++)
				keys[i] = (Math<T>)from[i * stride];
			sort_order(keys, false, &order);
			found = order[k - 1];
			/* Of a slice with nan the median is nan. */
			if (median && keys[order[n - 1]] != keys[order[n - 1]])
				found = order[n - 1];
			at_address<T>(values.data)[values.offset(s)] =
			        from[(int64_t)found * stride];
			at_address<int64_t>(indices.data)[indices.offset(s)] =
			        (int64_t)found;
		}
	});
}

const Family sort_families[] = {
        {"gatherKthValue", run_kth},
        {"gatherMedian", run_kth},
        {"bitonicSortKVInPlace", run_sort_slices},
        {"warpMergeSortKVInPlace", run_sort_slices},
        {"radixSortKVInPlace", run_sort_slices},
        {"DeviceRadixSortSingleTileKernel", run_radix_single},
        {"DeviceRadixSortHistogramKernel", run_radix_histogram},
        {"DeviceRadixSortExclusiveSumKernel", run_radix_sums},
        {"DeviceRadixSortOnesweepKernel", run_radix_onesweep},
        {"fill_index_and_segment_kernel", run_fill_segments},
        {"fill_reverse_indices_kernel", run_fill_reverse},
        {"sort_postprocess_kernel", run_sort_postprocess},
        {"gatherTopK", run_top_k},
        {nullptr, nullptr},
};

} // namespace sgx
