/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The SIMGPU_* settings: one table, read once when the driver starts, under
 * the lock. A value that cannot be read is named in one line and the driver
 * does not start.
 */
#include "tests/simgpu/driver/content.h"
#include "tests/simgpu/driver/sg.h"
#include "tests/simgpu/driver/start.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct sg_settings sg_settings = {
        .device = "a100-80g-pcie4",
        .device_count = 1,
        .unmap_sync = "model",
        .cupti = "free",
        .races = true,
        .slow_link = {.factor = 1},
        .slow_kernel = {.factor = 1},
        .graph_node_bytes = 10 << 10,
};

extern char **environ;

static int read_text(const char *value, void *target)
{
	*(const char **)target = sg_xstrdup(value);
	return 0;
}

/* Reads the digits at the beginning of text; *ret_end is what follows. */
static int read_digits(
        const char *text, uint64_t *ret_number, const char **ret_end)
{
	unsigned long long number;
	char *end;

	/* No space or sign, which strtoull takes. */
	if (!isdigit((unsigned char)*text))
		return -EINVAL;
	errno = 0;
	number = strtoull(text, &end, 10);
	if (errno)
		return -EINVAL;
	*ret_number = number;
	*ret_end = end;
	return 0;
}

int sg_parse_number(const char *text, uint64_t *ret_number)
{
	const char *end;
	uint64_t number;

	if (read_digits(text, &number, &end) || *end)
		return -EINVAL;
	*ret_number = number;
	return 0;
}

static int read_count(const char *value, void *target)
{
	uint64_t count;

	if (sg_parse_number(value, &count) || count < 1 || count > 64)
		return -EINVAL;
	*(unsigned *)target = (unsigned)count;
	return 0;
}

static int read_bool(const char *value, void *target)
{
	if (strcmp(value, "0") && strcmp(value, "1"))
		return -EINVAL;
	*(bool *)target = *value == '1';
	return 0;
}

static int read_switch(const char *value, void *target)
{
	if (strcmp(value, "on") && strcmp(value, "off"))
		return -EINVAL;
	*(bool *)target = !strcmp(value, "on");
	return 0;
}

/* Above 0: without the setting there is none. */
static int read_number(const char *value, void *target)
{
	uint64_t number;

	if (sg_parse_number(value, &number) || !number)
		return -EINVAL;
	*(uint64_t *)target = number;
	return 0;
}

static int read_bytes(const char *value, void *target)
{
	static const struct {
		const char *unit;
		unsigned shift;
	} units[] = {{"", 0}, {"KiB", 10}, {"MiB", 20}, {"GiB", 30}};
	const char *end;
	uint64_t number;

	if (read_digits(value, &number, &end) || !number)
		return -EINVAL;
	for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
		if (strcmp(end, units[i].unit) ||
		        number > UINT64_MAX >> units[i].shift)
			continue;
		*(uint64_t *)target = number << units[i].shift;
		return 0;
	}
	return -EINVAL;
}

static int read_bytes_or_none(const char *value, void *target)
{
	if (strcmp(value, "0"))
		return read_bytes(value, target);
	*(uint64_t *)target = 0;
	return 0;
}

/* What may follow: "@N", from the Nth operation on. */
static int read_from(const char *text, uint64_t *ret_from)
{
	*ret_from = 0;
	if (!*text)
		return 0;
	return *text == '@' ? read_number(text + 1, ret_from) : -EINVAL;
}

/* "factor", "factor@N" or "factor@part:N". */
static int read_slow(const char *value, void *target)
{
	struct sg_slow slow = {0};
	const char *colon;
	char *end;

	slow.factor = strtod(value, &end);
	if (end == value || !(slow.factor > 0 && slow.factor <= 1))
		return -EINVAL;
	colon = *end == '@' ? strrchr(end, ':') : NULL;
	if (colon && (colon == end + 1 || read_number(colon + 1, &slow.from)))
		return -EINVAL;
	if (colon)
		slow.part = strndup(end + 1, (size_t)(colon - end - 1));
	if (colon ? !slow.part : read_from(end, &slow.from))
		return -EINVAL;
	*(struct sg_slow *)target = slow;
	return 0;
}

static int read_sticky(const char *value, void *target)
{
	struct sg_settings *settings = target;
	size_t length = strcspn(value, "@");
	char name[64];

	if (length >= sizeof(name))
		return -EINVAL;
	memcpy(name, value, length);
	name[length] = '\0';
	if (sg_error_parse(name, &settings->sticky_error) ||
	        settings->sticky_error == CUDA_SUCCESS)
		return -EINVAL;
	return read_from(value + length, &settings->sticky_error_from);
}

/* "part@N"; the value is the process's and stays. */
static int read_unstable(const char *value, void *target)
{
	struct sg_settings *settings = target;
	const char *at = strchr(value, '@');

	if (!at || at == value || read_from(at, &settings->unstable_from))
		return -EINVAL;
	settings->unstable = strndup(value, (size_t)(at - value));
	return settings->unstable ? 0 : -EINVAL;
}

static int read_unmap_sync(const char *value, void *target)
{
	if (strcmp(value, "model") && strcmp(value, "none") &&
	        strcmp(value, "device"))
		return -EINVAL;
	return read_text(value, target);
}

static int read_cupti(const char *value, void *target)
{
	if (strcmp(value, "free") && strcmp(value, "taken"))
		return -EINVAL;
	return read_text(value, target);
}

static int read_content(const char *value, void *target)
{
	if (strcmp(value, "none") && strcmp(value, "tags") &&
	        strcmp(value, "exact"))
		return -EINVAL;
	return read_text(value, target);
}

static const struct setting {
	const char *name;
	int (*read)(const char *value, void *target);
	void *target;
	const char *accepted;
} table[] = {
        {"SIMGPU_DEVICE", read_text, &sg_settings.device,
                "a model's name or the path of its JSON file, or one a device, "
                "separated by commas"},
        {"SIMGPU_DEVICES", read_count, &sg_settings.device_count,
                "a number of devices, 1 to 64"},
        {"SIMGPU_REPORT", read_text, &sg_settings.report,
                "a file; %p is the process id"},
        {"SIMGPU_FAIL", read_text, &sg_settings.fail,
                "symbol:N[:error], a list separated by commas"},
        {"SIMGPU_UNMAP_SYNC", read_unmap_sync, &sg_settings.unmap_sync,
                "model, none or device"},
        {"SIMGPU_CONTENT", read_content, &sg_settings.content,
                "none, tags or exact"},
        {"SIMGPU_CHECK_RANGES", read_bool, &sg_settings.check_ranges, "0 or 1"},
        {"SIMGPU_TRACE", read_text, &sg_settings.trace,
                "a file that launches are appended to"},
        {"SIMGPU_SLOW_LINK", read_slow, &sg_settings.slow_link,
                "a factor up to 1, or factor@N: from the Nth operation on, or "
                "factor@part:N: from the Nth launch of such kernels on"},
        {"SIMGPU_SLOW_KERNEL", read_slow, &sg_settings.slow_kernel,
                "a factor up to 1, or factor@N: from the Nth operation on, or "
                "factor@part:N: from the Nth launch of such kernels on"},
        {"SIMGPU_STICKY_ERROR", read_sticky, &sg_settings,
                "an error's name or number, or error@N: from the Nth "
                "operation on"},
        {"SIMGPU_OOM_BYTES", read_bytes, &sg_settings.oom_bytes,
                "a number of bytes, KiB, MiB or GiB"},
        {"SIMGPU_GRAPH_NODE_BYTES", read_bytes_or_none,
                &sg_settings.graph_node_bytes,
                "0 or a number of bytes, KiB, MiB or GiB"},
        {"SIMGPU_FOUND_INF", read_number, &sg_settings.found_inf,
                "a number above 0"},
        {"SIMGPU_RANDOM_ADDRESS", read_number, &sg_settings.random_address,
                "a seed, a number above 0"},
        {"SIMGPU_MUTATE", read_text, &sg_settings.mutate,
                "copy, truncate, move, shorten, launch or wait, each :k, a "
                "list"},
        {"SIMGPU_RACES", read_switch, &sg_settings.races, "on or off"},
        {"SIMGPU_UNSTABLE", read_unstable, &sg_settings,
                "a part of kernels' names, @ and a number"},
        {"SIMGPU_VERBOSE", read_bool, &sg_settings.verbose, "0 or 1"},
        {"SIMGPU_CUPTI", read_cupti, &sg_settings.cupti,
                "free, or taken: another tool has subscribed"},
};
#define TABLE_ROWS (sizeof(table) / sizeof(table[0]))

static void warn_unknown(const char *entry)
{
	size_t length = strcspn(entry, "=");

	for (size_t i = 0; i < TABLE_ROWS; i++) {
		if (strlen(table[i].name) == length &&
		        !strncmp(table[i].name, entry, length))
			return;
	}
	sg_say("%.*s is not a setting of the simulated GPU", (int)length,
	        entry);
}

int sg_settings_read(void)
{
	const char *launch_blocking;

	for (char **entry = environ; entry && *entry; entry++) {
		if (!strncmp(*entry, "SIMGPU_", 7))
			warn_unknown(*entry);
	}
	/* The real driver's; anything but 1 is off there too. */
	launch_blocking = getenv("CUDA_LAUNCH_BLOCKING");
	sg_settings.launch_blocking =
	        launch_blocking && !strcmp(launch_blocking, "1");
	for (size_t i = 0; i < TABLE_ROWS; i++) {
		const char *value = getenv(table[i].name);
		int err;

		if (!value || !*value)
			continue;
		err = table[i].read(value, table[i].target);
		if (err) {
			sg_say("%s=\"%s\": want %s", table[i].name, value,
			        table[i].accepted);
			return err;
		}
	}
	if (sg_settings.found_inf && !sg_content_tagged()) {
		sg_say("SIMGPU_FOUND_INF wants SIMGPU_CONTENT=tags");
		return -EINVAL;
	}
	return 0;
}
