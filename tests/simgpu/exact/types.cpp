/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "tests/simgpu/exact/types.h"

#include <cmath>

namespace sgx
{

Half::Half(float f)
{
	uint32_t u, sign, magnitude;

	memcpy(&u, &f, 4);
	sign = (u >> 16) & 0x8000;
	magnitude = u & 0x7fffffff;
	if (magnitude > 0x7f800000) {
		bits = 0x7e00;
	} else if (magnitude >= 0x477ff000) { /* rounds to infinity */
		bits = (uint16_t)(sign | 0x7c00);
	} else if (magnitude < 0x38800000) { /* subnormal: units of 2^-24 */
		bits = (uint16_t)(sign | (uint32_t)std::nearbyint(
		                                 std::fabs(f) * 16777216.0f));
	} else {
		magnitude -= 0x38000000;
		magnitude += 0xfff + ((magnitude >> 13) & 1);
		bits = (uint16_t)(sign | magnitude >> 13);
	}
}

Half::operator float() const
{
	uint32_t sign = (uint32_t)(bits & 0x8000) << 16;
	uint32_t exponent = (bits >> 10) & 0x1f, mantissa = bits & 0x3ff, u;
	float f;

	if (exponent == 0) {
		f = (float)mantissa / 16777216.0f;
		return sign ? -f : f;
	}
	if (exponent == 31)
		u = sign | 0x7f800000 | mantissa << 13;
	else
		u = sign | (exponent + 112) << 23 | mantissa << 13;
	memcpy(&f, &u, 4);
	return f;
}

size_t size_of(Type type)
{
	size_t bytes = 0;

	with_type(type, [&](auto t) { bytes = sizeof(t); });
	return bytes;
}

Type type_of(const std::string &name)
{
	static const struct {
		const char *name;
		Type type;
	} names[] = {
	        {"float", Type::F32},
	        {"double", Type::F64},
	        {"c10::BFloat16", Type::BF16},
	        {"c10::Half", Type::F16},
	        {"cutlass::bfloat16_t", Type::BF16},
	        {"cutlass::half_t", Type::F16},
	        {"long", Type::I64},
	        {"int", Type::I32},
	        {"short", Type::I16},
	        {"signed char", Type::I8},
	        {"unsigned char", Type::U8},
	        {"bool", Type::BOOL},
	};
	std::string plain = name;

	for (const char *end : {" const", "&", "*", " const"}) {
		size_t n = strlen(end);

		if (plain.size() > n &&
		        !plain.compare(plain.size() - n, n, end))
			plain.resize(plain.size() - n);
	}
	for (const auto &entry : names)
		if (plain == entry.name)
			return entry.type;
	return Type::NONE;
}

} // namespace sgx
