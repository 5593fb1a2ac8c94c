/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* C++ names for people. Any thread. */
#ifndef TS_DEMANGLE_H
#define TS_DEMANGLE_H

/*
 * The name as it is written in C++, by the C++ library that the process has
 * loaded; a copy of @name where it has none or where it is no C++ name. NULL
 * without memory. The caller frees it.
 */
char *ts_demangle(const char *name);

#endif
