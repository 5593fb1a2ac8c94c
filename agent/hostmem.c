/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "agent/hostmem.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* A file of one number; "max", as cgroups say, is no limit. */
static uint64_t read_number(const char *path)
{
	uint64_t value = UINT64_MAX;
	FILE *file = fopen(path, "re");

	if (!file)
		return UINT64_MAX;
	if (fscanf(file, "%" SCNu64, &value) != 1)
		value = UINT64_MAX;
	fclose(file);
	return value;
}

/* The least limit of this process's cgroup (version 2) and those above. */
static uint64_t cgroup_limit(void)
{
	char line[1024], path[1200];
	uint64_t least = UINT64_MAX, limit;
	FILE *file = fopen("/proc/self/cgroup", "re");
	char *group = NULL;

	while (file && !group && fgets(line, sizeof(line), file))
		if (!strncmp(line, "0::/", 4))
			group = line + 3;
	if (file)
		fclose(file);
	if (!group)
		return least;
	group[strcspn(group, "\n")] = '\0';
	for (;;) {
		snprintf(path, sizeof(path), "/sys/fs/cgroup%s/memory.max",
		        group);
		limit = read_number(path);
		if (limit < least)
			least = limit;
		if (!*group)
			return least;
		*strrchr(group, '/') = '\0';
	}
}

uint64_t ts_hostmem_default_limit(void)
{
	uint64_t memory = (uint64_t)sysconf(_SC_PHYS_PAGES) *
	                  (uint64_t)sysconf(_SC_PAGESIZE);
	uint64_t limit = cgroup_limit();

	/* Version 1 has one fixed place for it. */
	if (limit == UINT64_MAX)
		limit = read_number(
		        "/sys/fs/cgroup/memory/memory.limit_in_bytes");
	return (limit < memory ? limit : memory) / 5 * 4;
}
