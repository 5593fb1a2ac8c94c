/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Random numbers and dropout, element by element as CUDA's threads draw them.
 */
#include "tests/simgpu/exact/random.h"

#include <cmath>

namespace sgx
{

Seed Seed::unpack(const uint8_t *state, size_t bytes)
{
	Seed seed = {read_at<uint64_t>(state), read_at<uint64_t>(state + 8)};

	/* In a captured graph both are addresses. */
	if (state[bytes == 24 ? 20 : 24]) {
		seed.seed = *at_address<uint64_t>(seed.seed);
		seed.offset = *at_address<uint64_t>(seed.offset) +
		              (bytes == 24 ? read_at<uint32_t>(state + 16)
		                           : read_at<uint64_t>(state + 16));
	}
	return seed;
}

void philox(uint64_t seed, uint64_t subsequence, uint64_t position,
        uint32_t words[4])
{
	uint32_t c0 = (uint32_t)position, c1 = (uint32_t)(position >> 32);
	uint32_t c2 = (uint32_t)subsequence;
	uint32_t c3 = (uint32_t)(subsequence >> 32);
	uint32_t k0 = (uint32_t)seed, k1 = (uint32_t)(seed >> 32);

	for (int round = 0; round < 10; round++) {
		uint64_t p0 = (uint64_t)0xd2511f53u * c0;
		uint64_t p1 = (uint64_t)0xcd9e8d57u * c2;
		uint32_t n0 = (uint32_t)(p1 >> 32) ^ c1 ^ k0;
		uint32_t n2 = (uint32_t)(p0 >> 32) ^ c3 ^ k1;

		c1 = (uint32_t)p1;
		c3 = (uint32_t)p0;
		c0 = n0;
		c2 = n2;
		k0 += 0x9e3779b9u;
		k1 += 0xbb67ae85u;
	}
	words[0] = c0;
	words[1] = c1;
	words[2] = c2;
	words[3] = c3;
}

constexpr float TWO_POW_MINUS_32 = 2.3283064e-10f;

static float uniform_of(uint32_t word)
{
	return (float)word * TWO_POW_MINUS_32 + TWO_POW_MINUS_32 / 2;
}

void Philox::uniform(float out[4])
{
	uint32_t words[4];

	next(words);
	for (int i = 0; i < 4; i++)
		out[i] = uniform_of(words[i]);
}

void Philox::normal(float out[4])
{
	constexpr float TWO_PI = 6.2831855f;
	uint32_t words[4];

	next(words);
	for (int i = 0; i < 4; i += 2) { /* Box and Muller */
		float radius = std::sqrt(-2 * std::log(uniform_of(words[i])));
		float angle = uniform_of(words[i + 1]) * TWO_PI;

		out[i] = radius * std::sin(angle);
		out[i + 1] = radius * std::cos(angle);
	}
}

/* ----------------------------------------------------------------- dropout */

template <class T> struct Dropout {
	TensorInfo in, out, mask;
	float keep, scale;

	void element(uint64_t i, float random) const
	{
		bool kept = random < keep;
		T x = at_address<T>(in.data)[in.offset(i)];

		at_address<T>(out.data)[out.offset(i)] =
		        convert<T>(kept ? (float)(Math<T>)x * scale : 0.0f);
		at_address<uint8_t>(mask.data)[mask.offset(i)] = kept;
	}
};

/* (in, out, mask, n, probability to keep, random state); vector: elements a
 * thread takes at a time, next to each other, or 0: four, a grid apart. */
static bool dropout(const Launch &launch, unsigned vector)
{
	uint32_t n = launch.param<uint32_t>(3);
	uint64_t threads = (uint64_t)launch.raw.grid[0] * launch.raw.block[0];
	Seed seed = Seed::unpack(launch.param_data(5), launch.param_bytes(5));

	if (launch.kernel.arguments.back() != "bool" &&
	        launch.kernel.arguments.back() != "unsigned char")
		return false;
	if (launch.param_bytes(0) != sizeof(TensorInfo) ||
	        launch.param_bytes(5) < 24)
		return false;
	return with_float(launch.kernel.type(0), [&](auto t) {
		Dropout<decltype(t)> dropout;
		float keep = launch.param<float>(4), random[4], kept[2] = {};

		dropout.in = launch.param<TensorInfo>(0);
		dropout.out = launch.param<TensorInfo>(1);
		dropout.mask = launch.param<TensorInfo>(2);
		dropout.keep = keep;
		dropout.scale = 1 / keep;
		for (uint64_t id = 0; id < threads; id++) {
			Philox generator(seed, id);
			bool second = false;

			if (!vector) {
				for (uint64_t at = id; at < n;
				        at += threads * 4) {
					generator.uniform(random);
					for (unsigned i = 0; i < 4; i++)
						if (at + threads * i < n)
							dropout.element(
							        at + threads * i,
							        random[i]);
				}
				continue;
			}
			for (uint64_t at = id * vector; at < n;
			        at += threads * vector) {
				/* Pairs share one draw of four. */
				if (vector == 2 && second) {
					random[0] = kept[0];
					random[1] = kept[1];
				}
				for (unsigned i = 0; i < vector && at + i < n;
				        i++) {
					if (i % 4 == 0 && !second)
						generator.uniform(random);
					dropout.element(at + i, random[i % 4]);
				}
				if (vector == 2) {
					kept[0] = random[2];
					kept[1] = random[3];
					second = !second;
				}
			}
		}
	});
}

/* <scalar, acc, index, dims, vector, mask> */
static bool run_dropout_vector(const Launch &launch)
{
	if (launch.kernel.arguments.size() < 6)
		return false;
	return dropout(
	        launch, (unsigned)atoi(launch.kernel.arguments[4].c_str()));
}

static bool run_dropout(const Launch &launch)
{
	return dropout(launch, 0);
}

/* ----------------------------------------------------------- distributions */

enum class Drawn { UNIFORM, NORMAL, BERNOULLI, INTEGER, UNKNOWN };

static Drawn drawn_of(const Kernel &kernel)
{
	if (kernel.has("uniform_and_transform<") ||
	        kernel.has("uniform_kernel<"))
		return kernel.has("bernoulli") ? Drawn::BERNOULLI
		                               : Drawn::UNIFORM;
	if (kernel.has("normal_and_transform<"))
		return Drawn::NORMAL;
	if (kernel.has("random_from_to_kernel<"))
		return Drawn::INTEGER;
	return Drawn::UNKNOWN;
}

/*
 * Where the results go: the transform is a lambda that holds, for one
 * dimension, the address, the stride in bytes and the user's transform; for
 * more an OffsetCalculator first.
 */
struct Results {
	uint8_t *base;
	int64_t stride;
	bool strided;
	const uint8_t *transform;
	const uint8_t *calculator;
};

static Results results_of(const Launch &launch)
{
	const uint8_t *data = launch.param_data(3);
	size_t bytes = launch.param_bytes(3);
	size_t calculator = (calculator_bytes(1) + 7) / 8 * 8;
	Results r = {};

	if (bytes > calculator) {
		r.strided = true;
		r.calculator = data;
		r.base = at_address<uint8_t>(
		        read_at<uint64_t>(data + calculator));
		r.transform = data + calculator + 8;
		return r;
	}
	r.base = at_address<uint8_t>(read_at<uint64_t>(data));
	r.stride = read_at<int32_t>(data + 8);
	r.transform = data + 12;
	return r;
}

/* The element type of the result: PyTorch names it first in the transform. */
static Type result_type(const Kernel &kernel)
{
	for (const char *name :
	        {"uniform_and_transform<", "normal_and_transform<",
	                "uniform_kernel<", "bernoulli_kernel<"}) {
		size_t at = kernel.name.find(name);

		if (at != std::string::npos)
			return type_of(split_arguments(bracketed(
			        kernel.name, at + strlen(name) - 1))[0]);
	}
	return Type::NONE;
}

/* distribution_elementwise_grid_stride_kernel<acc, unroll, dist, transform>(n,
 * random state, dist, transform) */
static bool run_distribution(const Launch &launch)
{
	Drawn drawn = drawn_of(launch.kernel);
	Type type = result_type(launch.kernel);
	int64_t n = launch.param<int64_t>(0);
	int64_t threads = (int64_t)launch.raw.grid[0] * launch.raw.block[0];
	Seed seed = Seed::unpack(launch.param_data(1), launch.param_bytes(1));
	Results r = results_of(launch);

	if (drawn != Drawn::UNIFORM && drawn != Drawn::NORMAL)
		return false;
	if (launch.kernel.type(0) != Type::F32 || r.strided ||
	        launch.kernel.arguments.at(1) != "4")
		return false;
	/* uniform: the range, then from; normal: mean, then deviation. */
	float first = read_at<float>(r.transform);
	float second = read_at<float>(r.transform + 4);

	return with_float(type, [&](auto t) {
		using T = decltype(t);

		for (int64_t id = 0; id < threads && id < n; id++) {
			Philox generator(seed, (uint64_t)id);
			float random[4];

			for (int64_t at = id; at < n; at += threads * 4) {
				if (drawn == Drawn::UNIFORM)
					generator.uniform(random);
				else
					generator.normal(random);
				for (int i = 0; i < 4; i++) {
					int64_t to = at + threads * i;
					float x = random[i];

					if (to >= n)
						break;
					if (drawn == Drawn::NORMAL)
						x = x * second + first;
					else if (x == 1.0f)
						x = second;
					else
						x = x * first + second;
					T value = convert<T>(x);
					memcpy(r.base + to * r.stride, &value,
					        sizeof(T));
				}
			}
		}
	});
}

const Family random_families[] = {
        {"fused_dropout_kernel_vec", run_dropout_vector},
        {"fused_dropout_kernel", run_dropout},
        {"distribution_elementwise_grid_stride_kernel", run_distribution},
        {nullptr, nullptr},
};

} // namespace sgx
