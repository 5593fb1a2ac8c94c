/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What the caller of a library (cuBLAS, cuDNN, NCCL) says of its operands
 * before the library launches its kernels. Of the calling thread, for the
 * launches between begin and end; no lock.
 */
#ifndef TS_DECLARED_H
#define TS_DECLARED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "runtime/pager.h"

struct ts_operand {
	uint64_t address, bytes; /* 0 bytes: all of the block there */
	enum ts_access access;   /* for the tape; moving does not rely on it */
};

struct ts_declaration {
	const struct ts_operand *operands;
	size_t count;
	/* Operands that are not listed are read; else nothing is known of
	 * what is read and what is written. */
	bool tells_roles;
	/* The list is complete: other addresses among the parameters are the
	 * library's own, or none. */
	bool complete;
	/* Kernels get at operands by other ways than their parameters. */
	bool unseen;
	/* They may be any block there is. */
	bool any;
	/* Other processes take part. */
	bool collective;
};

/* @declaration stays until the end. Calls may nest: the outermost counts. */
void ts_declared_begin(const struct ts_declaration *declaration);
void ts_declared_end(void);

/* What is declared now, or NULL. */
const struct ts_declaration *ts_declared(void);

static inline bool ts_declared_collective(void)
{
	const struct ts_declaration *said = ts_declared();

	return said && said->collective;
}

/*
 * How the operands in [address, address + bytes) are used, all of them
 * together; false where none lies there.
 */
bool ts_declared_access(const struct ts_declaration *declaration,
        uint64_t address, uint64_t bytes, enum ts_access *ret_access);

#endif
