/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What a kernel's name tells: its class, a short label, and which parameters
 * may be written through. A guess to start from, never a proof. Pure but for
 * the demangler, which is taken from the process if it has one.
 */
#ifndef TS_KERNEL_H
#define TS_KERNEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "planner/profile.h"

enum ts_param_type {
	TS_PARAM_OTHER, /* number, struct, or not known */
	TS_PARAM_CONST, /* pointer to const */
	TS_PARAM_WRITABLE,
};

/* How a kernel's operands are passed. */
enum ts_family {
	TS_FAMILY_PLAIN,    /* parameters by their types */
	TS_FAMILY_ITERATOR, /* PyTorch's iterator: the output comes first */
	TS_FAMILY_LISTS,    /* lists of tensors; see written_list */
	TS_FAMILY_REDUCE,   /* one struct: the source, then what is written */
	TS_FAMILY_ADAM,     /* lists of parameters, gradients and state */
};

struct ts_kernel {
	char *label; /* for people */
	enum ts_op_class op_class;
	enum ts_family family;
	unsigned int outputs;  /* of several (ITERATOR); 0: one */
	unsigned int lists;    /* how many (LISTS) */
	int written_list;      /* which is written; -1: none, or not known */
	uint16_t added_offset; /* in a struct: what is added to; 0: none */
	bool adds;             /* accumulates into what is there, by atomics */
	size_t param_count;    /* of types; 0: the name tells none */
	uint8_t *param_type;   /* enum ts_param_type */
};

/* From a mangled or plain name; NULL without memory. */
struct ts_kernel *ts_kernel_create(const char *name);
void ts_kernel_destroy(struct ts_kernel *kernel);

#endif
