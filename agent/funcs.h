/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Functions the program launches: name and parameter layout, asked from the
 * driver once, or from the code that was loaded. Records live as long as the
 * process, so that the tape may point to them; a handle is looked up anew after
 * code was unloaded, since the driver may give the same handle to another
 * function. Any thread.
 */
#ifndef TS_FUNCS_H
#define TS_FUNCS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/base/lock.h"
#include "agent/base/map.h"
#include "runtime/ops.h"

struct ts_code;

struct ts_param {
	uint32_t offset, bytes;
};

/* Where an index of a parameter says that there is none. */
#define TS_NO_PARAM UINT16_MAX

/* Constant once made. */
struct ts_func {
	struct ts_map_node node;
	struct ts_func *next;
	/* Whose it is, as long as generations of handles are this one. */
	CUfunction handle;
	uint64_t generation;
	char *name;         /* mangled; "?" where the driver tells none */
	uint32_t number;    /* in order of first launch */
	uint64_t name_hash; /* of name and layout, the same in every run */
	bool has_layout;
	bool writes_numbers;      /* and no addresses: numbers.h */
	struct ts_layout *layout; /* of structs; NULL: not known */
	uint32_t word_count;      /* of parameters (words.h); 0: not kept */
	size_t param_count;
	struct ts_param params[];
};

#define TS_FUNCS_RECENT 1024u /* a power of two */

struct ts_funcs {
	const struct ts_gpu_ops *ops;
	/* Asked where @ops has no func_param_info; NULL: nobody is. */
	struct ts_code *code;
	/* Found of late, by handle, for those without the lock. */
	_Atomic(const struct ts_func *) recent[TS_FUNCS_RECENT];
	_Atomic uint64_t generation; /* of handles; changes at every unload */
	struct ts_mutex lock;
	/* Guarded by lock. */
	struct ts_map by_handle;
	struct ts_func *all; /* newest first */
	uint32_t count;
};

void ts_funcs_init(struct ts_funcs *funcs, const struct ts_gpu_ops *ops);
void ts_funcs_finish(struct ts_funcs *funcs);

/* The record of @handle (a CUfunction or CUkernel); NULL without memory. */
const struct ts_func *ts_funcs_get(struct ts_funcs *funcs, CUfunction handle);

/* Code was unloaded: no handle known so far may be relied on. */
void ts_funcs_forget_handles(struct ts_funcs *funcs);

#endif
