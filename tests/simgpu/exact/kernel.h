/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A kernel as its demangled name tells it, and a launch of one.
 *
 * An implementation is a function that carries a launch out, or returns false
 * before it has written anything if this variant is not known to it. Families
 * of kernels are found by the name in front of the template arguments; each
 * file of implementations has a table of them.
 */
#ifndef SGX_KERNEL_H
#define SGX_KERNEL_H

#include "tests/simgpu/exact/exact.h"
#include "tests/simgpu/exact/types.h"

#include <memory>
#include <string>
#include <vector>

namespace sgx
{

struct Launch;
using Run = bool (*)(const Launch &launch);

/* What an implementation has worked out of the name once. */
struct Prepared {
	virtual ~Prepared() = default;
};

struct Kernel {
	std::string name;
	std::string family; /* without namespaces and arguments */
	std::vector<std::string> arguments; /* of the template */
	Run run = nullptr;
	mutable std::unique_ptr<Prepared> prepared;

	explicit Kernel(const char *demangled);
	bool has(const char *text) const
	{
		return name.find(text) != std::string::npos;
	}
	/* The element type that the i-th parameter points to, by the signature
	 * that ends the name. */
	Type pointee(size_t i) const;
	/* The first floating type among the template's arguments. */
	Type first_float() const;
	/* The i-th template argument as an element type. */
	Type type(size_t i) const
	{
		return i < arguments.size() ? type_of(arguments[i])
		                            : Type::NONE;
	}
};

struct Launch {
	const Kernel &kernel;
	const sgx_launch &raw;

	size_t param_bytes(unsigned i) const
	{
		return i < raw.n_params ? raw.params[i].size_bytes : 0;
	}
	const uint8_t *param_data(unsigned i) const
	{
		return raw.bytes + raw.params[i].offset_bytes;
	}
	/* A parameter, or a part of one; zeros beyond its end. */
	template <class T> T param(unsigned i, size_t offset = 0) const
	{
		T value{};

		if (offset + sizeof(T) <= param_bytes(i))
			memcpy(&value, param_data(i) + offset, sizeof(T));
		return value;
	}
};

struct Family {
	const char *name;
	Run run;
};

/* Splits at the commas outside all brackets; text is what stands between the
 * brackets. */
std::vector<std::string> split_arguments(const std::string &text);
/* The text between the bracket at `open` and the one that closes it. */
std::string bracketed(const std::string &text, size_t open);
/* Reads a T that lies at an address without alignment. */
template <class T> T read_at(const uint8_t *at)
{
	T value;

	memcpy(&value, at, sizeof(T));
	return value;
}

/* The tables, ended by an entry without name. */
extern const Family elementwise_families[];
extern const Family reduce_families[];
extern const Family random_families[];
extern const Family foreach_families[];
extern const Family softmax_families[];
extern const Family norm_families[];
extern const Family batch_norm_families[];
extern const Family index_families[];
extern const Family loss_families[];
extern const Family image_families[];
extern const Family attention_families[];
extern const Family blas_families[];
extern const Family sort_families[];
extern const Family scan_families[];
extern const Family lookup_families[];
extern const Family embedding_families[];
extern const Family select_families[];
extern const Family group_norm_families[];
extern const Family window_families[];
extern const Family resize_families[];
extern const Family depthwise_families[];

} // namespace sgx

#endif
