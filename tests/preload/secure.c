/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Makes a process look as one that was started with more rights than its
 * caller has. The real thing needs rights of the tester's, and a preloaded
 * library that is installed for it.
 */
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <sys/auxv.h>
#include <unistd.h>

unsigned long getauxval(unsigned long type)
        __attribute__((visibility("default")));

unsigned long getauxval(unsigned long type)
{
	ElfW(auxv_t) entry;
	int file = open("/proc/self/auxv", O_RDONLY | O_CLOEXEC);
	unsigned long value = 0;

	if (type == AT_SECURE)
		value = 1;
	while (type != AT_SECURE &&
	        read(file, &entry, sizeof(entry)) == sizeof(entry))
		if (entry.a_type == type)
			value = entry.a_un.a_val;
	close(file);
	return value;
}
