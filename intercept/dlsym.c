/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "intercept/dlsym.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "intercept/driver.h"
#include "intercept/guard.h"
#include "intercept/library.h"
#include "intercept/lookup.h"
#include "intercept/real_dlsym.h"

#ifndef __x86_64__
#error "dlsym is written for x86-64 only"
#endif

/*
 * Keeps the three arguments over two calls, with the stack aligned to 16: the
 * filter may answer (rax) or put another handle in the first one's place, else
 * the next function's address is asked for and jumped to with everything as it
 * was. endbr64 is a no-op without CET.
 */
#define FORWARD(name, next)                                                    \
	__asm__(".text\n"                                                      \
	        ".globl " name "\n"                                            \
	        ".type " name ", @function\n"                                  \
	        ".p2align 4\n" name ":\n"                                      \
	        "	.cfi_startproc\n"                                            \
	        "	endbr64\n"                                                   \
	        "	push %rdi\n"                                                 \
	        "	.cfi_adjust_cfa_offset 8\n"                                  \
	        "	push %rsi\n"                                                 \
	        "	.cfi_adjust_cfa_offset 8\n"                                  \
	        "	push %rdx\n"                                                 \
	        "	.cfi_adjust_cfa_offset 8\n"                                  \
	        "	mov 24(%rsp), %rdx\n"                                        \
	        "	lea 16(%rsp), %rcx\n"                                        \
	        "	call ts_dlsym_filter\n"                                      \
	        "	test %rax, %rax\n"                                           \
	        "	jnz 1f\n"                                                    \
	        "	call " next "\n"                                       \
	        "	pop %rdx\n"                                                  \
	        "	.cfi_adjust_cfa_offset -8\n"                                 \
	        "	pop %rsi\n"                                                  \
	        "	.cfi_adjust_cfa_offset -8\n"                                 \
	        "	pop %rdi\n"                                                  \
	        "	.cfi_adjust_cfa_offset -8\n"                                 \
	        "	jmp *%rax\n"                                                 \
	        "1:	add $24, %rsp\n"                                           \
	        "	ret\n"                                                       \
	        "	.cfi_endproc\n"                                              \
	        ".size " name ", . - " name "\n")

FORWARD("dlsym", "ts_next_dlsym");
FORWARD("dlvsym", "ts_next_dlvsym");

/* A quick look: cu and a capital. */
static bool may_be_driver(const char *name)
{
	return name[0] == 'c' && name[1] == 'u' && name[2] >= 'A' &&
	       name[2] <= 'Z';
}

static bool may_be_exported(const char *name)
{
	return name && (may_be_driver(name) || ts_library_may_have(name));
}

/* A driver that looks up its own functions must find its own. */
static bool called_by_driver(const void *caller, const void *function)
{
	Dl_info from, in;

	return dladdr(caller, &from) && dladdr(function, &in) &&
	       from.dli_fbase == in.dli_fbase;
}

/* What this library exports beside the driver's names. */
static bool is_exported(const char *name)
{
	return may_be_driver(name) ? ts_hook_by_symbol(name) != NULL
	                           : ts_library_find(name) != TS_LIBRARY_COUNT;
}

/*
 * Where nobody else has the symbol a search of the whole scope must not find
 * it here: the C library lacks it, and says so as dlsym does.
 */
static void hide_own(const char *name, void **ret_handle)
{
	void *library;

	if (!is_exported(name) || ts_defined_elsewhere(name))
		return;
	library = dlopen("libc.so.6", RTLD_LAZY | RTLD_NOLOAD);
	if (library)
		*ret_handle = library;
}

/* The wrapper of a function of @handle's above the driver, or NULL. */
static void *library_wrapper(void *handle, const char *name)
{
	enum ts_library_id id = ts_library_find(name);
	void *function;

	if (id == TS_LIBRARY_COUNT)
		return NULL;
	function = ts_real_dlsym(handle, name);
	return function ? ts_library_wrapper(id, function) : NULL;
}

/*
 * Others that hook dlsym ask for the next one by its version in the C library,
 * which the one here does not have: from before it they would pass it by.
 */
static void *own_look_up(void *handle, const char *name, const void *caller)
{
	if (handle != RTLD_NEXT || !name || name[0] != 'd' ||
	        (strcmp(name, "dlsym") && strcmp(name, "dlvsym")) ||
	        !ts_comes_before(caller))
		return NULL;
	return name[2] == 's' ? (void *)dlsym : (void *)dlvsym;
}

void *ts_dlsym_filter(
        void *handle, const char *name, const void *caller, void **ret_handle)
{
	const struct ts_hook *hook;
	const char *missing;
	void *function;

	if (!may_be_exported(name))
		return own_look_up(handle, name, caller);
	/*
	 * Where the whole scope is searched the wrappers are found as ordinary
	 * symbols, from the place in it the caller stands at.
	 */
	if (handle == RTLD_NEXT || handle == RTLD_DEFAULT) {
		hide_own(name, ret_handle);
		return NULL;
	}
	/* This library's own look-ups, and the driver's while it loads. */
	if (ts_inside)
		return NULL;
	if (!may_be_driver(name))
		return library_wrapper(handle, name);
	hook = ts_hook_by_symbol(name);
	if (!hook || ts_driver_resolve(false, &missing) == -ENOENT)
		return NULL;
	function = ts_real_dlsym(handle, name);
	/* Only the driver's own function: cu... is a prefix of others too. */
	if (!function || function != ts_hook_function(hook) ||
	        called_by_driver(caller, function))
		return NULL;
	return hook->wrapper;
}
