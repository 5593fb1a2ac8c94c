/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The dlsym and dlvsym that come after this library in the global scope: those
 * of the C library, or of another library that hooks them. This library
 * exports both names itself, so they are found by reading the symbol tables
 * of the loaded objects. Any thread, at any time.
 */
#ifndef TS_REAL_DLSYM_H
#define TS_REAL_DLSYM_H

#include <stdbool.h>

/* As dlsym, for a handle; not for RTLD_NEXT, which asks who the caller is. */
void *ts_real_dlsym(void *handle, const char *name);

/*
 * The definition of @name that code at @caller would be bound to if this
 * library had none: its own object's, that of what it depends on, which may
 * have been loaded for it alone, then any that was loaded after this library.
 * NULL where nothing else defines it.
 */
void *ts_next_for(const void *caller, const char *name);

/* True where code at @caller stands before this library in the global scope. */
bool ts_comes_before(const void *caller);

/* True where an object other than this library defines @name. */
bool ts_defined_elsewhere(const char *name);

#endif
