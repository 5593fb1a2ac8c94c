/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "agent/config.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "agent/base/path.h"

#define PREFIX         "TAPESWAP_"
#define MAX_NAME_BYTES 64

static const struct ts_setting settings[] = {
        {"TAPESWAP_DEBUG_UNMAP", TS_SETTING_BOOLEAN, "0", NULL,
                "1 unmaps what is moved out at once, so that a use that "
                "tapeswap does not see is error 700 (slow; for tests)",
                offsetof(struct ts_config, unmaps)},
        {"TAPESWAP_HELPER", TS_SETTING_CHOICE, "thread", "thread, inline",
                "who pins host memory and moves ahead of need: a thread of "
                "tapeswap's, or the program's own",
                offsetof(struct ts_config, helper)},
        {"TAPESWAP_HOST_LIMIT", TS_SETTING_SIZE, "", NULL,
                "pinned host memory for what is moved out (default: 80 % of "
                "what the host and its cgroup have free at start)",
                offsetof(struct ts_config, host_limit)},
        {"TAPESWAP_IPC", TS_SETTING_BOOLEAN, "0", NULL,
                "1 leaves allocations unmanaged but counted, so that "
                "cuIpcGetMemHandle works",
                offsetof(struct ts_config, ipc)},
        {"TAPESWAP_LIMIT", TS_SETTING_LIMIT, "", NULL,
                "device memory the program may use, context included "
                "(default: the device's own)",
                offsetof(struct ts_config, limit)},
        {"TAPESWAP_LOG", TS_SETTING_CHOICE, "info", "error, warn, info, debug",
                "least important lines that are printed",
                offsetof(struct ts_config, log_level)},
        {"TAPESWAP_MODE", TS_SETTING_CHOICE, "plan", "off, observe, cap, plan",
                "off: nothing; observe: record only; cap: hold the limit; "
                "plan: hold it by a plan where that is faster",
                offsetof(struct ts_config, mode)},
        {"TAPESWAP_PLAN", TS_SETTING_FILE, "", NULL,
                "file for the plan, which the next run takes up; in mode cap "
                "for "
                "the last step's ops, blocks and what was moved (%p: process "
                "id, %r: local rank)",
                offsetof(struct ts_config, plan)},
        {"TAPESWAP_PROFILE", TS_SETTING_FILE, "", NULL,
                "file for the profile of a training step, written after each "
                "step that is profiled (%p, %r)",
                offsetof(struct ts_config, profile)},
        {"TAPESWAP_REPLAY", TS_SETTING_CHOICE, "auto", "auto, 0, 1",
                "1 proves in some steps of the program which kernels can be "
                "launched again for what they make, and has values made again "
                "where that is cheaper than to copy them; auto: in mode plan, "
                "where it may be faster by it; 0: never",
                offsetof(struct ts_config, replay)},
        {"TAPESWAP_STATUS", TS_SETTING_FILE, "", NULL,
                "file for the figures of the exit line, as JSON (%p, %r)",
                offsetof(struct ts_config, status)},
        {"TAPESWAP_STEP_RANGE", TS_SETTING_TEXT, "", NULL,
                "name of the NVTX range that a training step begins with "
                "(default: steps are found without)",
                offsetof(struct ts_config, step_range)},
        {"TAPESWAP_STRICT", TS_SETTING_BOOLEAN, "0", NULL,
                "1 makes CUDA initialisation fail on a bad setting or, in mode "
                "plan, a plan's file that holds none, instead of running "
                "without",
                offsetof(struct ts_config, strict)},
        {"TAPESWAP_TIMING", TS_SETTING_CHOICE, "events", "events, cupti",
                "how ops are timed for the profile: by pairs of events, or by "
                "CUPTI's records where no other tool uses it",
                offsetof(struct ts_config, timing)},
        {"TAPESWAP_VERIFY", TS_SETTING_COUNT, "1000", NULL,
                "steps in which values are made again before one step looks "
                "whether they still come out the same; 0: never",
                offsetof(struct ts_config, verify)},
};

#define SETTING_COUNT (sizeof(settings) / sizeof(settings[0]))

const struct ts_setting *ts_config_table(size_t *ret_count)
{
	*ret_count = SETTING_COUNT;
	return settings;
}

static const char *accepted(const struct ts_setting *setting)
{
	switch (setting->type) {
	case TS_SETTING_SIZE:
		return "bytes or KiB/MiB/GiB";
	case TS_SETTING_LIMIT:
		return "bytes, KiB/MiB/GiB or %";
	case TS_SETTING_CHOICE:
		return setting->choices;
	case TS_SETTING_BOOLEAN:
		return "0 or 1";
	case TS_SETTING_COUNT:
		return "a whole number";
	case TS_SETTING_FILE:
		return "a file name with %p, %r or %% in it";
	case TS_SETTING_TEXT:
		return "a name of up to 255 bytes";
	}
	return "";
}

/*
 * Digits, and a point with more of them, in any locale; no exponents, since
 * "1e3" is more likely a slip.
 */
static double parse_number(const char *text, const char **ret_end)
{
	double number = 0, place = 1;

	for (; isdigit((unsigned char)*text); text++)
		number = number * 10 + (*text - '0');
	if (*text == '.')
		for (text++; isdigit((unsigned char)*text); text++)
			number += (*text - '0') * (place /= 10);
	*ret_end = text;
	return number;
}

/* Digits alone, up to a thousand million. */
static int parse_count(const char *text, uint64_t *ret_count)
{
	const char *end;
	double count = parse_number(text, &end);

	if (!*text || *end || strchr(text, '.') || count > 1e9)
		return -EINVAL;
	*ret_count = (uint64_t)count;
	return 0;
}

/* "12GiB", "1.5 MiB", "4096", "60%"; fractions only before a unit. */
int ts_config_read_size(
        const char *text, bool percent, struct ts_limit *ret_size)
{
	static const struct {
		const char *name;
		double bytes;
	} units[] = {{"KiB", 0x1p10}, {"MiB", 0x1p20}, {"GiB", 0x1p30}};
	const char *end;
	double number;

	if (!isdigit((unsigned char)*text))
		return -EINVAL;
	number = parse_number(text, &end);
	while (*end == ' ')
		end++;
	if (!*end) {
		uint64_t bytes;
		char *rest;

		errno = 0;
		bytes = strtoull(text, &rest, 10);
		if (errno || (*rest && *rest != ' ') || !bytes)
			return -EINVAL;
		*ret_size = (struct ts_limit){TS_LIMIT_BYTES, bytes};
		return 0;
	}
	if (percent && number <= 100 && !strcmp(end, "%")) {
		uint64_t hundredths = (uint64_t)(number * 100 + 0.5);

		if (!hundredths)
			return -EINVAL;
		*ret_size = (struct ts_limit){TS_LIMIT_PERCENT, hundredths};
		return 0;
	}
	for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
		double bytes = number * units[i].bytes;

		if (strcmp(end, units[i].name))
			continue;
		if (bytes < 1 || bytes >= 0x1p63)
			return -EINVAL;
		*ret_size = (struct ts_limit){TS_LIMIT_BYTES, (uint64_t)bytes};
		return 0;
	}
	return -EINVAL;
}

/* Our units, and those that are taken for them; a GiB is the last of ours. */
static const struct {
	const char *name;
	double bytes;
} known_units[] = {
        {"KiB", 0x1p10},
        {"MiB", 0x1p20},
        {"GiB", 0x1p30},
        {"TiB", 0x1p40},
        {"K", 0x1p10},
        {"M", 0x1p20},
        {"G", 0x1p30},
        {"KB", 1e3},
        {"MB", 1e6},
        {"GB", 1e9},
        {"TB", 1e12},
};

#define OUR_UNITS 3

#define KNOWN_UNITS (sizeof(known_units) / sizeof(known_units[0]))

static size_t find_unit(const char *unit)
{
	size_t i = 0;

	while (i < KNOWN_UNITS && strcasecmp(unit, known_units[i].name))
		i++;
	return i;
}

/*
 * @number of the @given unit in ours of that size, or in a smaller one where
 * little would be left. By hand: the comma that a locale would give could not
 * be read again.
 */
static void propose(double number, size_t given, char *ret_text, size_t size)
{
	double bytes = number * known_units[given].bytes;
	double most = fmin(1.1 * known_units[given].bytes, 10 * bytes);
	size_t unit = OUR_UNITS - 1;
	uint64_t hundredths;
	const char *name;
	char part[8] = "";

	while (unit && known_units[unit].bytes > most)
		unit--;
	name = known_units[unit].name;
	hundredths = (uint64_t)(bytes * 100 / known_units[unit].bytes);
	if (!hundredths) {
		name = "";
		hundredths = (uint64_t)bytes * 100;
	}
	if (hundredths % 100)
		snprintf(part, sizeof(part), ".%02u",
		        (unsigned int)(hundredths % 100));
	snprintf(ret_text, size, "did you mean %" PRIu64 "%s%s?",
	        hundredths / 100, part, name);
}

void ts_config_explain_size(
        const char *text, bool percent, char *ret_text, size_t size)
{
	const char *unit, *why = "";
	double number;
	size_t found;

	*ret_text = '\0';
	if (*text == '-' && isdigit((unsigned char)text[1])) {
		snprintf(ret_text, size, "less than nothing");
		return;
	}
	if (!isdigit((unsigned char)*text))
		return;
	number = parse_number(text, &unit);
	while (*unit == ' ')
		unit++;
	found = find_unit(unit);
	if (*unit && strcmp(unit, "%") && found == KNOWN_UNITS)
		return;
	if (number <= 0)
		why = "that is none";
	else if (!strcmp(unit, "%"))
		why = percent ? "more than the device has" : "";
	else if (number >= 1e13)
		why = "more than there can be";
	else if (!*unit || number * known_units[found].bytes < 1)
		why = "bytes are whole";
	else if (found >= OUR_UNITS || strcmp(unit, known_units[found].name))
		propose(number, found, ret_text, size);
	else
		why = "more than there can be";
	if (*why)
		snprintf(ret_text, size, "%s", why);
}

static int parse_choice(const char *text, const char *choices, int *ret_index)
{
	int index = 0;

	for (const char *at = choices;; index++) {
		size_t length = strcspn(at, ",");

		if (length == strlen(text) && !strncmp(at, text, length)) {
			*ret_index = index;
			return 0;
		}
		if (!at[length])
			return -EINVAL;
		at += length + 2;
	}
}

static int parse_setting(struct ts_config *config,
        const struct ts_setting *setting, const char *text)
{
	void *field = (char *)config + setting->offset;

	switch (setting->type) {
	case TS_SETTING_SIZE:
	case TS_SETTING_LIMIT:
		return ts_config_read_size(
		        text, setting->type == TS_SETTING_LIMIT, field);
	case TS_SETTING_CHOICE:
		return parse_choice(text, setting->choices, field);
	case TS_SETTING_BOOLEAN:
		if (strcmp(text, "0") && strcmp(text, "1"))
			return -EINVAL;
		*(bool *)field = *text == '1';
		return 0;
	case TS_SETTING_COUNT:
		return parse_count(text, field);
	case TS_SETTING_FILE:
		return ts_path_expand(text, field, TS_CONFIG_PATH_BYTES);
	case TS_SETTING_TEXT:
		if (strlen(text) >= TS_CONFIG_TEXT_BYTES)
			return -EINVAL;
		strcpy(field, text);
		return 0;
	}
	return -EINVAL;
}

static void set_defaults(struct ts_config *config)
{
	memset(config, 0, sizeof(*config));
	for (size_t i = 0; i < SETTING_COUNT; i++)
		if (*settings[i].default_text)
			parse_setting(
			        config, &settings[i], settings[i].default_text);
}

/* Levenshtein distance of two short names. */
static size_t distance(const char *a, size_t a_length, const char *b)
{
	size_t row[MAX_NAME_BYTES + 1];
	size_t b_length = strlen(b);

	if (a_length > MAX_NAME_BYTES || b_length > MAX_NAME_BYTES)
		return SIZE_MAX;
	for (size_t j = 0; j <= b_length; j++)
		row[j] = j;
	for (size_t i = 1; i <= a_length; i++) {
		size_t corner = row[0];

		row[0] = i;
		for (size_t j = 1; j <= b_length; j++) {
			size_t best = corner + (a[i - 1] != b[j - 1]);

			if (best > row[j] + 1)
				best = row[j] + 1;
			if (best > row[j - 1] + 1)
				best = row[j - 1] + 1;
			corner = row[j];
			row[j] = best;
		}
	}
	return row[b_length];
}

static void warn_unknown(
        const char *name, size_t length, void (*warn)(const char *message))
{
	const struct ts_setting *nearest = &settings[0];
	char message[TS_CONFIG_MESSAGE_BYTES];
	size_t least = SIZE_MAX;

	for (size_t i = 0; i < SETTING_COUNT; i++) {
		size_t d = distance(name, length, settings[i].name);

		if (d < least) {
			least = d;
			nearest = &settings[i];
		}
	}
	snprintf(message, sizeof(message),
	        "unknown setting %.*s: did you mean %s?",
	        (int)(length < 200 ? length : 200), name, nearest->name);
	warn(message);
}

static const char *value_of(char *const *environment, const char *name)
{
	size_t length = strlen(name);

	for (; *environment; environment++)
		if (!strncmp(*environment, name, length) &&
		        (*environment)[length] == '=')
			return *environment + length + 1;
	return NULL;
}

static void find_unknown(
        char *const *environment, void (*warn)(const char *message))
{
	for (; *environment; environment++) {
		const char *name = *environment;
		size_t length = strcspn(name, "=");
		bool known = false;

		if (strncmp(name, PREFIX, strlen(PREFIX)))
			continue;
		for (size_t i = 0; i < SETTING_COUNT; i++)
			known |= strlen(settings[i].name) == length &&
			         !strncmp(settings[i].name, name, length);
		if (!known)
			warn_unknown(name, length, warn);
	}
}

/* What is named there is one thing, and may be written by many. */
static bool is_shared(const char *path)
{
	return !*path || !strncmp(path, "/dev/", 5);
}

/* Two settings that name one file: the second one, and @ret_first; or NULL. */
static const struct ts_setting *find_twin(
        const struct ts_config *config, const struct ts_setting **ret_first)
{
	for (size_t i = 1; i < SETTING_COUNT; i++) {
		const char *path = (const char *)config + settings[i].offset;

		if (settings[i].type != TS_SETTING_FILE || is_shared(path))
			continue;
		for (size_t k = 0; k < i; k++) {
			*ret_first = &settings[k];
			if (settings[k].type == TS_SETTING_FILE &&
			        !strcmp((const char *)config +
			                        settings[k].offset,
			                path))
				return &settings[i];
		}
	}
	return NULL;
}

static void explain(const struct ts_setting *setting, const char *text,
        char ret_message[TS_CONFIG_MESSAGE_BYTES])
{
	char why[64] = "";
	const char *after = "";
	size_t length;

	if (setting->type == TS_SETTING_SIZE ||
	        setting->type == TS_SETTING_LIMIT)
		ts_config_explain_size(text, setting->type == TS_SETTING_LIMIT,
		        why, sizeof(why));
	length = strlen(why);
	if (length)
		after = why[length - 1] == '?' ? " " : ": ";
	snprintf(ret_message, TS_CONFIG_MESSAGE_BYTES,
	        "%s=\"%.200s\": %s%swant %s", setting->name, text, why, after,
	        accepted(setting));
}

int ts_config_parse(struct ts_config *config, char *const *environment,
        char ret_message[TS_CONFIG_MESSAGE_BYTES],
        void (*warn)(const char *message))
{
	const char *strict = value_of(environment, "TAPESWAP_STRICT");
	const struct ts_setting *twin, *first;
	int rc = 0;

	set_defaults(config);
	for (size_t i = 0; i < SETTING_COUNT && !rc; i++) {
		const struct ts_setting *setting = &settings[i];
		const char *text = value_of(environment, setting->name);

		/* Set but empty is as good as not set. */
		if (!text || !*text)
			continue;
		rc = parse_setting(config, setting, text);
		if (rc)
			explain(setting, text, ret_message);
	}
	twin = rc ? NULL : find_twin(config, &first);
	if (twin) {
		snprintf(ret_message, TS_CONFIG_MESSAGE_BYTES,
		        "%s=\"%.200s\": %s names that file too: want another",
		        twin->name, value_of(environment, twin->name),
		        first->name);
		rc = -EINVAL;
	}
	find_unknown(environment, warn);
	if (!rc)
		return 0;
	set_defaults(config);
	config->strict = strict && !strcmp(strict, "1");
	return -EINVAL;
}
