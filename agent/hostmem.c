/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "agent/hostmem.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define PATH_BYTES 2048

static FILE *open_under(const char *root, const char *path)
{
	char whole[PATH_BYTES];

	if ((size_t)snprintf(whole, sizeof(whole), "%s%s", root, path) >=
	        sizeof(whole))
		return NULL;
	return fopen(whole, "re");
}

/* A file of one number; "max", as cgroups say, is no limit. */
static uint64_t read_number(const char *root, const char *path)
{
	uint64_t value = UINT64_MAX;
	FILE *file = open_under(root, path);

	if (!file)
		return UINT64_MAX;
	if (fscanf(file, "%" SCNu64, &value) != 1)
		value = UINT64_MAX;
	fclose(file);
	return value;
}

/* What a group may still take; files that are not there say no limit. */
static uint64_t left_in(
        const char *root, const char *limit_path, const char *used_path)
{
	uint64_t limit = read_number(root, limit_path);
	uint64_t used = limit == UINT64_MAX ? 0 : read_number(root, used_path);

	if (limit == UINT64_MAX)
		return UINT64_MAX;
	return used < limit ? limit - used : 0;
}

/* The least that is left in this process's cgroup (version 2) and above. */
static uint64_t cgroup_left(const char *root)
{
	char line[1024], limit[1200], used[1200];
	FILE *file = open_under(root, "/proc/self/cgroup");
	uint64_t least = UINT64_MAX, left;
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
		snprintf(limit, sizeof(limit), "/sys/fs/cgroup%s/memory.max",
		        group);
		snprintf(used, sizeof(used), "/sys/fs/cgroup%s/memory.current",
		        group);
		left = left_in(root, limit, used);
		if (left < least)
			least = left;
		if (!*group)
			return least;
		*strrchr(group, '/') = '\0';
	}
}

/* What the kernel says can be had without swapping. */
static uint64_t host_free(const char *root)
{
	uint64_t free_bytes = (uint64_t)sysconf(_SC_AVPHYS_PAGES) *
	                      (uint64_t)sysconf(_SC_PAGESIZE);
	FILE *file = open_under(root, "/proc/meminfo");
	char line[256];
	uint64_t kib;

	while (file && fgets(line, sizeof(line), file))
		if (sscanf(line, "MemAvailable: %" SCNu64, &kib) == 1)
			free_bytes = kib << 10;
	if (file)
		fclose(file);
	return free_bytes;
}

uint64_t ts_hostmem_limit_under(const char *root)
{
	uint64_t memory = host_free(root);
	uint64_t left = cgroup_left(root);

	/* Version 1 has one fixed place for it. */
	if (left == UINT64_MAX)
		left = left_in(root,
		        "/sys/fs/cgroup/memory/memory.limit_in_bytes",
		        "/sys/fs/cgroup/memory/memory.usage_in_bytes");
	return (left < memory ? left : memory) / 5 * 4;
}

uint64_t ts_hostmem_default_limit(void)
{
	return ts_hostmem_limit_under("");
}
