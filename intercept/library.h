/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Hooked functions of libraries beside the driver (cuBLAS, cuDNN, NCCL, CUPTI,
 * NVML): which there are, and the libraries' own. Wrappers are found as
 * ordinary symbols, or by dlsym on the library's handle. Any thread; no lock.
 */
#ifndef TS_LIBRARY_H
#define TS_LIBRARY_H

#include <stdbool.h>

enum ts_library_id {
#define TS_LIBRARY(symbol) TS_LIBRARY_##symbol,
#include "intercept/library.def"
	TS_LIBRARY_COUNT,
};

/* True where a name may be one of them: a quick look. */
static inline bool ts_library_may_have(const char *name)
{
	return (name[0] == 'c' && name[1] == 'u' &&
	               (name[2] == 'b' || name[2] == 'd' || name[2] == 'p')) ||
	       (name[0] == 'n' && name[1] == 'c' && name[2] == 'c') ||
	       (name[0] == 'p' && name[1] == 'n' && name[2] == 'c') ||
	       (name[0] == 'n' && name[1] == 'v' && name[2] == 'm');
}

/* Its number; TS_LIBRARY_COUNT where @symbol is none of them. */
enum ts_library_id ts_library_find(const char *symbol);

/*
 * What a program gets that found @function for the name: the wrapper, or
 * @function itself where the wrapper leads to another library's.
 */
void *ts_library_wrapper(enum ts_library_id id, void *function);

/*
 * The library's function that code at @caller means, looked up once; NULL
 * where there is none.
 */
void *ts_library_real(enum ts_library_id id, const void *caller);

/* True where code at @caller belongs to NCCL. */
bool ts_library_is_nccl(const void *caller);

/* True where it belongs to PyTorch's allocator, which reports its blocks. */
bool ts_library_is_allocator(const void *caller);

#endif
