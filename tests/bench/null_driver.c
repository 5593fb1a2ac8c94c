/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A libcuda.so.1 that does nothing at once and says that it went well, so that
 * what is measured is what stands before it. Every function of the hook table
 * is here; the few that must answer are in null_answers.c, and win. Not
 * compiled against cuda.h: arguments are ignored.
 */
#define TS_HOOK(symbol, name, version, type, need)                             \
	int symbol(void)                                                       \
	        __attribute__((weak, visibility("default"), noinline));        \
	int symbol(void)                                                       \
	{                                                                      \
		return 0;                                                      \
	}
#define TS_CALL TS_HOOK
#include "intercept/cuda_hooks.def"
