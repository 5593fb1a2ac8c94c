/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * CUB's counting and selecting, as PyTorch uses them: unique and nonzero
 * elements, sums and scans of equal keys. What tiles tell each other is not
 * needed here: a launch does all of it.
 */
#include "tests/simgpu/exact/layout.h"

#include <algorithm>

namespace sgx
{

static Type pointed_at(const std::string &name)
{
	size_t end = name.find_last_not_of('*');
	std::string type = name.substr(0, end + 1);
	size_t qualifier = type.rfind(" const");

	if (name.empty() || name.back() != '*')
		return Type::NONE;
	if (qualifier != std::string::npos && qualifier + 6 == type.size())
		type.resize(qualifier);
	return type_of(type);
}

/*
 * What CUB reads from: an array, one of bools made of an array's elements, one
 * walked backwards, or the same number again and again.
 */
struct Input {
	Type type = Type::NONE;
	uint64_t address = 0;
	bool truth = false, constant = false;
	int64_t step = 1, value = 0;

	Input(const Launch &launch, unsigned param, const std::string &name)
	{
		auto starts = [&](const char *text) {
			return name.find(text) != std::string::npos &&
			       name.find(text) < name.find('<');
		};
		std::vector<std::string> arguments =
		        split_arguments(bracketed(name, name.find('<')));

		address = launch.param<uint64_t>(param);
		if (name.find('<') == std::string::npos) {
			type = pointed_at(name);
		} else if (starts("transform_iterator") &&
		           arguments.size() > 1 &&
		           arguments[0].find("NonZeroOp<") !=
		                   std::string::npos) {
			type = pointed_at(arguments[1]);
			truth = true;
		} else if (starts("reverse_iterator")) {
			type = pointed_at(arguments[0]);
			address -= size_of(type);
			step = -1;
		} else if (starts("constant_iterator")) {
			type = type_of(arguments[0]);
			value = launch.param<int64_t>(param, 8);
			constant = true;
		}
	}
	bool known() const
	{
		return type != Type::NONE;
	}
	bool integral() const
	{
		return known() && !is_float(type);
	}
	int64_t operator[](int64_t i) const
	{
		int64_t result = value;

		if (truth)
			return element(type, address, i) != 0;
		if (constant)
			return value;
		with_type(type, [&](auto t) {
			using T = decltype(t);

			result = (int64_t)(Math<T>)at_address<const T>(
			        address)[i * step];
		});
		return result;
	}
};

static void put(Type type, uint64_t address, int64_t i, int64_t value)
{
	with_type(type, [&](auto t) {
		using T = decltype(t);

		at_address<T>(address)[i] = convert<T>(value);
	});
}

/* The number of elements, by the size of its parameter. */
static int64_t number(const Launch &launch, unsigned param)
{
	return launch.param_bytes(param) == 8 ? launch.param<int64_t>(param)
	                                      : launch.param<int32_t>(param);
}

/* In these tools a tile has no effect of its own. */
static bool run_tiles(const Launch &launch)
{
	return launch.kernel.has("ScanTileState<");
}

/* <tiles, N *>(tiles, how many, selected) */
static bool run_compact_init(const Launch &launch)
{
	Type type = launch.kernel.pointee(2);

	if (!launch.kernel.has("ScanTileState<") || type == Type::NONE)
		return false;
	put(type, launch.param<uint64_t>(2), 0, 0);
	return true;
}

/* <policy, keys, values, ...>(keys, first of counted values, unique keys,
 * their first values, how many, tiles, equal, n, ...) */
static bool run_unique_by_key(const Launch &launch)
{
	const auto &arguments = launch.kernel.arguments;

	if (arguments.size() < 6 ||
	        arguments[2].find("counting_iterator<") == std::string::npos)
		return false;
	Input keys(launch, 0, arguments[1]);
	Type key = launch.kernel.pointee(2), value = launch.kernel.pointee(3);
	int64_t first = launch.param<int64_t>(1), n = number(launch, 7);
	int64_t found = 0;

	if (!keys.integral() || key == Type::NONE || value == Type::NONE)
		return false;
	for (int64_t i = 0; i < n; i++) {
		if (i && keys[i] == keys[i - 1])
			continue;
		put(key, launch.param<uint64_t>(2), found, keys[i]);
		put(value, launch.param<uint64_t>(3), found++, first + i);
	}
	put(launch.kernel.pointee(4), launch.param<uint64_t>(4), 0, found);
	return true;
}

/* <policy, in, ...>(in, out, n, op, first, transform), or without first and a
 * part of the sum for each block: sums of integers */
static bool run_sum(const Launch &launch)
{
	const auto &arguments = launch.kernel.arguments;
	bool blocks = launch.kernel.family == "DeviceReduceKernel";

	if (arguments.size() < 5 || !launch.kernel.has("plus<"))
		return false;
	Input in(launch, 0, arguments[1]);
	Type out = launch.kernel.pointee(1);
	if (blocks && out == Type::NONE)
		out = type_of(split_arguments(bracketed(
		        arguments[0], arguments[0].find('<')))[0]);
	int64_t n = number(launch, 2);
	int64_t sum = 0;

	if (!(in.integral() || in.truth) || out == Type::NONE || is_float(out))
		return false;
	if (!blocks)
		sum = launch.param_bytes(4) == 8 ? launch.param<int64_t>(4)
		                                 : launch.param<int32_t>(4);
	for (int64_t i = 0; i < n; i++)
		sum += in[i];
	put(out, launch.param<uint64_t>(1), 0, sum);
	for (unsigned block = 1; blocks && block < launch.raw.grid[0]; block++)
		put(out, launch.param<uint64_t>(1), block, 0);
	return true;
}

/* CUB cuts what is too long into several launches; this one does it all if it
 * is the first and the last. */
static bool whole(const Launch &launch, unsigned streaming)
{
	return launch.param<uint8_t>(streaming) == 1 &&
	       launch.param<uint8_t>(streaming, 1) == 1;
}

/* <policy, in, flags, ...>(first of counted numbers, flags, out, how many,
 * tiles, select, equal, n, tiles, streaming, ...) */
static bool run_select(const Launch &launch)
{
	const auto &arguments = launch.kernel.arguments;

	if (arguments.size() < 8 ||
	        arguments[1].find("counting_iterator<") == std::string::npos ||
	        arguments[6].find("NullType") == std::string::npos ||
	        !whole(launch, 9))
		return false;
	Input flags(launch, 1, arguments[2]);
	Type out = launch.kernel.pointee(2);
	int64_t first = launch.param<int64_t>(0), n = number(launch, 7);
	int64_t found = 0;

	if (!flags.truth || out == Type::NONE)
		return false;
	for (int64_t i = 0; i < n; i++)
		if (flags[i])
			put(out, launch.param<uint64_t>(2), found++, first + i);
	put(launch.kernel.pointee(3), launch.param<uint64_t>(3), 0, found);
	return true;
}

/* <index>(places in a flat tensor, its sizes, dimensions, n, how many are
 * there, what stands for others): to coordinates, dimension by dimension */
static bool run_write_indices(const Launch &launch)
{
	int64_t *places = at_address<int64_t>(launch.param<uint64_t>(0));
	size_t bytes = launch.param_bytes(1) / MAX_DIMS;
	int dims = launch.param<int>(2);
	int64_t n = number(launch, 3), valid = n;
	const int64_t *total =
	        at_address<const int64_t>(launch.param<uint64_t>(4));
	int64_t other = launch.param<int64_t>(5);

	if ((bytes != 4 && bytes != 8) || dims > (int)MAX_DIMS)
		return false;
	if (total)
		valid = std::min(n, *total);
	for (int64_t i = 0; i < n; i++) {
		int64_t at = places[i];

		for (int d = dims - 1; d >= 0; d--) {
			size_t offset = (size_t)d * bytes;
			int64_t size = bytes == 8
			                       ? launch.param<int64_t>(1, offset)
			                       : launch.param<int32_t>(
			                                 1, offset);

			places[i + d * n] = i < valid ? at % size : other;
			at /= size;
		}
	}
	return true;
}

/* <policy, keys, values, out, tiles, equal, op, first, ...>(keys, those before
 * tiles, values, out, tiles, first tile, equal, op, first, n): inclusive */
static bool run_scan_by_key(const Launch &launch)
{
	const auto &arguments = launch.kernel.arguments;

	if (arguments.size() < 8 ||
	        arguments[7].find("NullType") == std::string::npos)
		return false;
	Input keys(launch, 0, arguments[1]), values(launch, 2, arguments[2]);
	Input out(launch, 3, arguments[3]);
	bool sum = arguments[6].find("plus<") != std::string::npos;
	int64_t n = number(launch, 9), acc = 0;

	if (!sum && arguments[6].find("maximum<") == std::string::npos)
		return false;
	if (!keys.integral() || !values.integral() || !out.integral() ||
	        out.constant)
		return false;
	/* A copy, since results may go where the values lie. */
	std::vector<int64_t> results((size_t)n);
	for (int64_t i = 0; i < n; i++) {
		bool same = i && keys[i] == keys[i - 1];

		if (!same)
			acc = values[i];
		else
			acc = sum ? acc + values[i] : std::max(acc, values[i]);
		results[(size_t)i] = acc;
	}
	for (int64_t i = 0; i < n; i++)
		put(out.type, out.address, i * out.step, results[(size_t)i]);
	return true;
}

/* <policy, keys, unique, values, sums, how many, ...>(keys, unique, values,
 * sums, how many, tiles, first tile, equal, op, n, streaming, ...) */
static bool run_reduce_by_key(const Launch &launch)
{
	const auto &arguments = launch.kernel.arguments;

	if (arguments.size() < 9 || !launch.kernel.has("plus<void>") ||
	        !whole(launch, 10))
		return false;
	Input keys(launch, 0, arguments[1]), values(launch, 2, arguments[3]);
	Type unique = launch.kernel.pointee(1), sums = launch.kernel.pointee(3);
	Type counts = launch.kernel.pointee(4);
	int64_t n = number(launch, 9), found = 0, acc = 0;

	if (!keys.integral() || !values.integral() || unique == Type::NONE ||
	        sums == Type::NONE || counts == Type::NONE)
		return false;
	for (int64_t i = 0; i < n; i++) {
		acc += values[i];
		if (i + 1 < n && keys[i + 1] == keys[i])
			continue;
		put(unique, launch.param<uint64_t>(1), found, keys[i]);
		put(sums, launch.param<uint64_t>(3), found++, acc);
		acc = 0;
	}
	put(counts, launch.param<uint64_t>(4), 0, found);
	return true;
}

const Family select_families[] = {
        {"DeviceCompactInitKernel", run_compact_init},
        {"DeviceUniqueByKeySweepKernel", run_unique_by_key},
        {"DeviceReduceSingleTileKernel", run_sum},
        {"DeviceReduceKernel", run_sum},
        {"DeviceSelectSweepKernel", run_select},
        {"write_indices", run_write_indices},
        {"DeviceScanByKeyInitKernel", run_tiles},
        {"DeviceScanByKeyKernel", run_scan_by_key},
        {"DeviceReduceByKeyKernel", run_reduce_by_key},
        {nullptr, nullptr},
};

} // namespace sgx
