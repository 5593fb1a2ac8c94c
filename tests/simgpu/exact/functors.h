/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What element-wise kernels compute: functors found by their C++ names. A
 * functor is coded once, over the type it is computed in, and works on arrays
 * of elements that have been loaded already.
 */
#ifndef SGX_FUNCTORS_H
#define SGX_FUNCTORS_H

#include "tests/simgpu/exact/kernel.h"

namespace sgx
{

/* A functor's own bytes, as the launch carries them. */
struct Capture {
	const uint8_t *data;
	size_t bytes;
	Type type; /* of the first argument, else of the result */

	/* A value stored as an element of this type, at an offset that is
	 * rounded up to its alignment; moves the offset past it. */
	template <class M> M value(Type stored, size_t &offset) const
	{
		M result{};

		with_type(stored, [&](auto t) {
			using S = decltype(t);

			offset = (offset + sizeof(S) - 1) / sizeof(S) *
			         sizeof(S);
			if (offset + sizeof(S) <= bytes)
				result = convert<M>(read_at<S>(data + offset));
			offset += sizeof(S);
		});
		return result;
	}
	/* The same in the type that PyTorch computes this one in. */
	template <class M> M math_value(size_t &offset) const
	{
		bool narrow = type == Type::BF16 || type == Type::F16;

		return value<M>(narrow ? Type::F32 : type, offset);
	}
};

constexpr size_t BATCH = 512; /* elements at a time */
constexpr unsigned MAX_INPUTS = 7;

template <class M>
using Body = void (*)(
        const Capture &capture, M *out, const M *const *in, size_t n);

struct Functor {
	const char *pattern; /* of the name; * is any text */
	unsigned arity;
	Type result; /* NONE: as the first argument */
	Body<float> f32;
	Body<double> f64;
	Body<int64_t> i64;
	/* How many values of the type computed in it holds; ADDRESS_VALUE: an
	 * address; UNKNOWN_VALUES: something else. */
	unsigned values;
};
constexpr unsigned UNKNOWN_VALUES = ~0u, ADDRESS_VALUE = ~1u;

/* An element-wise functor as a kernel names it. */
struct ElementOp {
	const Functor *functor = nullptr;
	Type result = Type::NONE;
	std::vector<Type> inputs; /* argument types, without a bound scalar */
	int bound = -1; /* this argument is a scalar behind the functor */
	Type scalar = Type::NONE; /* as which it is stored */
};

/* Understands a functor's name. False: not known. */
bool find_functor(const std::string &name, ElementOp *ret);
/* Does text match pattern as a whole? */
bool glob(const char *pattern, const char *text);

} // namespace sgx

#endif
