/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Arithmetic of collectives on real numbers. Pure; called under sg_lock.
 */
#include "tests/simgpu/driver/collective.h"
#include "tests/simgpu/nccl/simnccl.h"

#include <math.h>
#include <string.h>

static float of_bfloat16(uint16_t bits)
{
	uint32_t wide = (uint32_t)bits << 16;
	float value;

	memcpy(&value, &wide, sizeof(value));
	return value;
}

static uint16_t to_bfloat16(float value)
{
	uint32_t bits;

	memcpy(&bits, &value, sizeof(bits));
	if (value != value)
		return 0x7fc0;
	return (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

static float of_half(uint16_t bits)
{
	int exponent = bits >> 10 & 31, fraction = bits & 1023;
	float value;

	if (exponent == 31)
		value = fraction ? NAN : INFINITY;
	else if (exponent)
		value = ldexpf((float)(fraction + 1024), exponent - 25);
	else
		value = ldexpf((float)fraction, -24);
	return bits & 0x8000 ? -value : value;
}

/* To nearest, ties to even. */
static uint16_t to_half(float value)
{
	uint16_t sign = signbit(value) ? 0x8000 : 0;
	float size = fabsf(value);
	int exponent, steps;

	if (isnan(value))
		return sign | 0x7e00;
	if (size >= 65520)
		return sign | 0x7c00;
	exponent = size < 0x1p-14f ? -14 : ilogbf(size);
	steps = (int)rintf(ldexpf(size, 10 - exponent));
	/* What rounds up to the next power of two carries over by itself. */
	return (uint16_t)(sign | (((exponent + 14) << 10) + steps));
}

#define SAME(x) (x)

/* One function a type: T in memory, M computed in. Sums of integers wrap, as
 * they do on a device. */
#define REDUCE(name, T, M, of, to)                                             \
	static void name(int operation, const void *const *sources,            \
	        unsigned n, uint64_t count, void *out)                         \
	{                                                                      \
		for (uint64_t i = 0; i < count; i++) {                         \
			M sum = (M)of(((const T *)sources[0])[i]);             \
                                                                               \
			for (unsigned k = 1; k < n; k++) {                     \
				M x = (M)of(((const T *)sources[k])[i]);       \
                                                                               \
				if (operation == ncclProd)                     \
					sum = (M)(sum * x);                    \
				else if (operation == ncclMax)                 \
					sum = x > sum ? x : sum;               \
				else if (operation == ncclMin)                 \
					sum = x < sum ? x : sum;               \
				else                                           \
					sum = (M)(sum + x);                    \
			}                                                      \
			if (operation == ncclAvg)                              \
				sum = (M)(sum / (M)n);                         \
			((T *)out)[i] = (T)to(sum);                            \
		}                                                              \
	}
/* Unsigned sums are those of signed numbers; order and quotient are not. */
REDUCE(reduce_i8, int8_t, int32_t, SAME, SAME)
REDUCE(reduce_u8, uint8_t, uint32_t, SAME, SAME)
REDUCE(reduce_i32, int32_t, int64_t, SAME, SAME)
REDUCE(reduce_u32, uint32_t, uint64_t, SAME, SAME)
REDUCE(reduce_i64, int64_t, __int128, SAME, SAME)
REDUCE(reduce_u64, uint64_t, unsigned __int128, SAME, SAME)
REDUCE(reduce_f16, uint16_t, float, of_half, to_half)
REDUCE(reduce_f32, float, float, SAME, SAME)
REDUCE(reduce_f64, double, double, SAME, SAME)
REDUCE(reduce_bf16, uint16_t, float, of_bfloat16, to_bfloat16)

void sg_collective_reduce(int operation, int type, const void *const *sources,
        unsigned n_sources, uint64_t count, void *out)
{
	static void (*const reduce[ncclNumTypes])(int operation,
	        const void *const *sources, unsigned n, uint64_t count,
	        void *out) = {
	        [ncclInt8] = reduce_i8,
	        [ncclUint8] = reduce_u8,
	        [ncclInt32] = reduce_i32,
	        [ncclUint32] = reduce_u32,
	        [ncclInt64] = reduce_i64,
	        [ncclUint64] = reduce_u64,
	        [ncclFloat16] = reduce_f16,
	        [ncclFloat32] = reduce_f32,
	        [ncclFloat64] = reduce_f64,
	        [ncclBfloat16] = reduce_bf16,
	};

	reduce[type](operation, sources, n_sources, count, out);
}
