/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The dlsym and dlvsym that come after this library in the global scope: those
 * of the C library, or of another library that hooks them. This library
 * exports both names itself, so they are found by reading the symbol tables
 * of the loaded objects. Any thread, at any time.
 */
#ifndef TS_REAL_DLSYM_H
#define TS_REAL_DLSYM_H

/* As dlsym, for a handle; not for RTLD_NEXT, which asks who the caller is. */
void *ts_real_dlsym(void *handle, const char *name);

#endif
