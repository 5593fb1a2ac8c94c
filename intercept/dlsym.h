/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The exported dlsym and dlvsym. Both are a few instructions of assembly: a
 * driver symbol that is hooked gets its wrapper, everything else leaves by a
 * jump, so that the real function sees the program as its caller (RTLD_NEXT
 * depends on it; a call from C would put this library there). Any thread.
 */
#ifndef TS_DLSYM_H
#define TS_DLSYM_H

/*
 * For the assembly: the wrapper for @name in @handle, or NULL where the real
 * function is to answer, with @ret_handle for its handle, which is @handle
 * unless changed. @caller is the return address of the program's call. Takes
 * no lock that is held while the loader's is waited for.
 */
void *ts_dlsym_filter(
        void *handle, const char *name, const void *caller, void **ret_handle);

/* The real functions to jump to; NULL only where the C library has none. */
void *ts_next_dlsym(void);
void *ts_next_dlvsym(void);

#endif
