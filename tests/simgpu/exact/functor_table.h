/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * How the files of functors make rows of their tables.
 */
#ifndef SGX_FUNCTOR_TABLE_H
#define SGX_FUNCTOR_TABLE_H

#include "tests/simgpu/exact/functors.h"

#include <utility>

namespace sgx
{

/* A functor without captures. */
struct Plain {
	static constexpr unsigned VALUES = 0;

	explicit Plain(const Capture &)
	{
	}
};

/* One that holds N values of the type computed in, and nothing else. */
template <class M, unsigned N> struct Held {
	static constexpr unsigned VALUES = N;
	M held[N];

	explicit Held(const Capture &capture)
	{
		size_t at = 0;

		for (M &value : held)
			value = capture.math_value<M>(at);
	}
};

/* One that holds them in the elements' own type. */
template <class M, unsigned N> struct HeldNarrow {
	M held[N];

	explicit HeldNarrow(const Capture &capture)
	{
		size_t at = 0;

		for (M &value : held)
			value = capture.value<M>(capture.type, at);
	}
};

/* PyTorch's OpType of its comparisons: GE, GT, LE, LT. */
template <class M> bool compare(int32_t op, M a, M b)
{
	switch (op) {
	case 0:
		return a >= b;
	case 1:
		return a > b;
	case 2:
		return a <= b;
	default:
		return a < b;
	}
}

template <class Op, class M, size_t... input>
void apply(const Op &op, M *out, const M *const *in, size_t n,
        std::index_sequence<input...>)
{
	for (size_t i = 0; i < n; i++)
		out[i] = op(in[input][i]...);
}

template <class Op, class M, unsigned arity>
void body(const Capture &capture, M *out, const M *const *in, size_t n)
{
	apply(Op(capture), out, in, n, std::make_index_sequence<arity>());
}

/* A functor says itself how many values it holds, if it says so at all. */
template <class Op, class = void>
struct ValuesOf : std::integral_constant<unsigned, UNKNOWN_VALUES> {
};
template <class Op>
struct ValuesOf<Op, std::void_t<decltype(Op::VALUES)>>
    : std::integral_constant<unsigned, Op::VALUES> {
};
template <template <class> class Op>
constexpr unsigned values_of = ValuesOf<Op<float>>::value;

template <template <class> class Op, unsigned arity>
constexpr Functor row(const char *pattern, Type result = Type::NONE)
{
	return {pattern, arity, result, body<Op<float>, float, arity>,
	        body<Op<double>, double, arity>,
	        body<Op<int64_t>, int64_t, arity>, values_of<Op>};
}

/* Functors that make no sense on integers. */
template <template <class> class Op, unsigned arity>
constexpr Functor real(const char *pattern, Type result = Type::NONE)
{
	return {pattern, arity, result, body<Op<float>, float, arity>,
	        body<Op<double>, double, arity>, nullptr, values_of<Op>};
}

/* The same row for a lambda that captured an address and does not need it. */
constexpr Functor holds_address(Functor functor)
{
	functor.values = ADDRESS_VALUE;
	return functor;
}

/* The tables beside that of functors.cpp, ended by a row without pattern. */
extern const Functor number_functors[];     /* functors_number.cpp */
extern const Functor activation_functors[]; /* functors_activation.cpp */

} // namespace sgx

#endif
