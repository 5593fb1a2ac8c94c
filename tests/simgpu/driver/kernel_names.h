/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Demangled kernel names taken apart: template arguments, element types and
 * the functors of elementwise kernels. Pure; texts point into the name.
 */
#ifndef SG_KERNEL_NAMES_H
#define SG_KERNEL_NAMES_H

#include "tests/simgpu/driver/sg.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A part of a name; at is NULL where there is none. */
struct sg_text {
	const char *at;
	size_t n;
};

/* An element's type: its size (0: not known) and how the host would read it
 * (enum sg_piece_type of tags.h). */
struct sg_type {
	uint32_t bytes;
	uint8_t piece;
};

struct sg_text sg_text(const char *name);
/* Is pattern, * standing for any run of characters, all of text? */
bool sg_text_like(struct sg_text text, const char *pattern);
/* What follows the first time prefix occurs; NULL if it does not. */
struct sg_text sg_text_after(struct sg_text text, const char *prefix);

/* The i-th argument of the first template argument list in text. */
struct sg_text sg_template_argument(struct sg_text text, unsigned i);
/* The i-th parameter of the last lambda named in text. */
struct sg_text sg_lambda_parameter(struct sg_text text, unsigned i);

/* const, references and spaces do not matter; a pointer has 8 bytes. */
struct sg_type sg_type_of(struct sg_text text);
/* The type of c10::ScalarType number n. */
struct sg_type sg_type_of_scalar(unsigned n);
/* What arithmetic on elements of a type is done in. */
uint32_t sg_opmath_bytes(struct sg_text text);

#define SG_FUNCTOR_TENSORS 8
#define SG_FUNCTOR_SCALARS 4
/* What is known of an elementwise functor: types of its result and arguments,
 * and which of its bytes are values; the others are padding or pointers. */
struct sg_functor {
	unsigned n_types;                         /* 0: not known */
	struct sg_type types[SG_FUNCTOR_TENSORS]; /* the result first */
	bool lambda; /* ends with a pointer to its host twin, if with any */
	enum sg_meaning meaning;
	bool value_left; /* of an operator */
	unsigned n_scalars;
	struct {
		int32_t offset; /* negative: from the end */
		uint32_t bytes;
	} scalars[SG_FUNCTOR_SCALARS];
};
struct sg_functor sg_functor_of(struct sg_text text);

#endif
