/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Element types of the kernels, numbered as PyTorch's ScalarType, and their
 * conversion. Arithmetic is done in one of three types: float for the floating
 * types up to 32 bits, double, and int64_t for integers and bool.
 */
#ifndef SGX_TYPES_H
#define SGX_TYPES_H

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <type_traits>

namespace sgx
{

enum class Type : int8_t {
	U8 = 0,
	I8 = 1,
	I16 = 2,
	I32 = 3,
	I64 = 4,
	F16 = 5,
	F32 = 6,
	F64 = 7,
	BOOL = 11,
	BF16 = 15,
	NONE = -1,
};

struct BFloat16 {
	uint16_t bits;

	BFloat16() = default;
	BFloat16(float f)
	{
		uint32_t u;

		memcpy(&u, &f, 4);
		if (f != f)
			bits = 0x7fc0;
		else /* to nearest, ties to even */
			bits = (uint16_t)((u + 0x7fff + ((u >> 16) & 1)) >> 16);
	}
	operator float() const
	{
		uint32_t u = (uint32_t)bits << 16;
		float f;

		memcpy(&f, &u, 4);
		return f;
	}
};

struct Half {
	uint16_t bits;

	Half() = default;
	Half(float f);
	operator float() const;
};

size_t size_of(Type type);
/* From a C++ type's name as the demangler writes it; NONE if not known. */
Type type_of(const std::string &name);

inline bool is_float(Type type)
{
	return type == Type::F16 || type == Type::F32 || type == Type::F64 ||
	       type == Type::BF16;
}

/* Calls fn with a value of the C++ type that stands for type; false if there
 * is none. */
template <class Fn> bool with_type(Type type, Fn &&fn)
{
	switch (type) {
	case Type::U8:
		fn(uint8_t());
		return true;
	case Type::I8:
		fn(int8_t());
		return true;
	case Type::I16:
		fn(int16_t());
		return true;
	case Type::I32:
		fn(int32_t());
		return true;
	case Type::I64:
		fn(int64_t());
		return true;
	case Type::F16:
		fn(Half());
		return true;
	case Type::F32:
		fn(float());
		return true;
	case Type::F64:
		fn(double());
		return true;
	case Type::BOOL:
		fn(bool());
		return true;
	case Type::BF16:
		fn(BFloat16());
		return true;
	case Type::NONE:
		break;
	}
	return false;
}

/* The same for the floating types of training alone. */
template <class Fn> bool with_float(Type type, Fn &&fn)
{
	switch (type) {
	case Type::F16:
		fn(Half());
		return true;
	case Type::F32:
		fn(float());
		return true;
	case Type::F64:
		fn(double());
		return true;
	case Type::BF16:
		fn(BFloat16());
		return true;
	default:
		return false;
	}
}

/* What a type is computed in. */
template <class T>
using Math = std::conditional_t<std::is_same_v<T, double>, double,
        std::conditional_t<std::is_integral_v<T>, int64_t, float>>;

template <class To, class From> To convert(From value)
{
	if constexpr (std::is_same_v<To, bool>) {
		return value != From(0);
	} else if constexpr (std::is_integral_v<To> &&
	                     !std::is_integral_v<From>) {
		/* Through int64_t, as narrow and negative values want. */
		double wide = (double)(Math<From>)value;

		return wide == wide ? (To)(int64_t)wide : To(0);
	} else if constexpr (std::is_same_v<To, BFloat16> ||
	                     std::is_same_v<To, Half>) {
		return To((float)value);
	} else {
		return (To)value;
	}
}

} // namespace sgx

#endif
