/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * CUDA_VISIBLE_DEVICES: which of the machine's devices a process sees, and in
 * which order. Read once when the driver starts, under the lock.
 */
#include "tests/simgpu/driver/sg.h"
#include "tests/simgpu/driver/start.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* GPU-xxxxxxxx-xxxx-..., as tools write a device's UUID. */
static void write_uuid(const struct sg_device *dev, char text[48])
{
	int used = sprintf(text, "GPU-");

	for (unsigned i = 0; i < sizeof(dev->uuid); i++)
		used += sprintf(text + used, "%s%02x",
		        i == 4 || i == 6 || i == 8 || i == 10 ? "-" : "",
		        dev->uuid[i]);
}

/* The device an entry of the list names, by number or start of its UUID. */
static struct sg_device *named(
        const char *entry, struct sg_device *devices, unsigned count)
{
	char text[48], *end;
	unsigned long number;

	if (isdigit((unsigned char)*entry)) {
		number = strtoul(entry, &end, 10);
		return *end || number >= count ? NULL : &devices[number];
	}
	for (unsigned i = 0; strlen(entry) > 4 && i < count; i++) {
		write_uuid(&devices[i], text);
		if (!strncmp(entry, text, strlen(entry)))
			return &devices[i];
	}
	return NULL;
}

static void swap(struct sg_device *a, struct sg_device *b)
{
	struct sg_device other = *a;

	*a = *b;
	*b = other;
}

unsigned sg_devices_visible(struct sg_device *devices, unsigned count)
{
	const char *list = getenv("CUDA_VISIBLE_DEVICES");
	struct sg_device *all;
	unsigned seen = 0;
	char *copy, *save;

	if (!list)
		return count;
	all = sg_xcalloc(count, sizeof(*all));
	memcpy(all, devices, count * sizeof(*all));
	copy = sg_xstrdup(list);
	/* The first bad entry, or one named twice, ends the list. */
	for (char *entry = strtok_r(copy, ", ", &save); entry;
	        entry = strtok_r(NULL, ", ", &save)) {
		const struct sg_device *dev = named(entry, all, count);
		unsigned at = seen;

		while (dev && at < count &&
		        devices[at].physical != dev->physical)
			at++;
		if (!dev || at == count)
			break;
		swap(&devices[seen++], &devices[at]);
	}
	free(copy);
	free(all);
	return seen;
}
