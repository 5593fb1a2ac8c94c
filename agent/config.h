/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The TAPESWAP_* settings: one table of names, types, defaults and help, read
 * once from the environment before any other thread looks at the result.
 */
#ifndef TS_CONFIG_H
#define TS_CONFIG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum ts_mode {
	TS_MODE_OFF,     /* every call goes straight to the driver */
	TS_MODE_OBSERVE, /* the tape is recorded, memory is left alone */
	TS_MODE_CAP,     /* the pager holds the limit */
	TS_MODE_PLAN,    /* the pager holds the limit, a plan moves ahead */
};

enum ts_timing_way {
	TS_TIMING_EVENTS, /* pairs of events around each op */
	TS_TIMING_CUPTI,  /* activity records, where CUPTI can be had */
};

enum ts_helper_way {
	TS_HELPER_THREAD, /* a thread of the agent's for each device */
	TS_HELPER_INLINE, /* none: the program's threads do its work */
};

enum ts_limit_unit {
	TS_LIMIT_NONE,
	TS_LIMIT_BYTES,
	TS_LIMIT_PERCENT, /* of the device's memory, in hundredths */
};

struct ts_limit {
	enum ts_limit_unit unit;
	uint64_t value;
};

/* When it is proved what can be launched again; as its setting's words. */
enum ts_replay_way {
	TS_REPLAY_WANTED, /* where a plan may be faster by it */
	TS_REPLAY_NEVER,
	TS_REPLAY_ALWAYS,
};

enum ts_setting_type {
	TS_SETTING_SIZE,    /* bytes, KiB/MiB/GiB */
	TS_SETTING_LIMIT,   /* the same, or % */
	TS_SETTING_CHOICE,  /* one of a list of words */
	TS_SETTING_BOOLEAN, /* 0 or 1 */
	TS_SETTING_COUNT,   /* a whole number */
	TS_SETTING_FILE,    /* %p and %r are replaced */
	TS_SETTING_TEXT,    /* anything that is not too long */
};

struct ts_setting {
	const char *name; /* TAPESWAP_... */
	enum ts_setting_type type;
	const char *default_text;
	const char *choices; /* words separated by ", " (CHOICE) */
	const char *help;
	size_t offset; /* of the field in struct ts_config */
};

#define TS_CONFIG_PATH_BYTES 4096
#define TS_CONFIG_TEXT_BYTES 256

struct ts_config {
	struct ts_limit limit;
	struct ts_limit host_limit; /* NONE: derived from the host's memory */
	int mode;                   /* enum ts_mode */
	int log_level;              /* enum ts_log_level */
	int timing;                 /* enum ts_timing_way */
	int replay;                 /* enum ts_replay_way */
	uint64_t verify; /* steps between two shadow steps; 0: none */
	int helper;      /* enum ts_helper_way */
	bool unmaps;     /* what leaves the device, at once */
	bool strict;
	bool ipc;
	char plan[TS_CONFIG_PATH_BYTES]; /* "": none; placeholders replaced */
	char profile[TS_CONFIG_PATH_BYTES];
	char status[TS_CONFIG_PATH_BYTES];
	char step_range[TS_CONFIG_TEXT_BYTES]; /* "": none */
};

#define TS_CONFIG_MESSAGE_BYTES 512

/* The table, and in @ret_count its length. */
const struct ts_setting *ts_config_table(size_t *ret_count);

/*
 * Fills @config with the defaults and what @environment (as environ) holds.
 * Returns 0; or -EINVAL for the first value that cannot be read, with
 * @ret_message, which begins with the variable's name, saying what was read,
 * where that can be told why it is wrong, and what is accepted: @config then
 * keeps the defaults but for strict, which is read in any case.
 * A TAPESWAP_ name that is not in the table is no error: @warn is called with
 * one line that names the nearest setting.
 */
int ts_config_parse(struct ts_config *config, char *const *environment,
        char ret_message[TS_CONFIG_MESSAGE_BYTES],
        void (*warn)(const char *message));

/*
 * Reads a size above 0: bytes, or a number and KiB, MiB or GiB; with @percent
 * up to 100 % of the device, too. 0 or -EINVAL.
 */
int ts_config_read_size(
        const char *text, bool percent, struct ts_limit *ret_size);

/*
 * Writes to @ret_text, of @size bytes, why @text is no size, or
 * "" where nobody can tell. @percent: shares of the device are sizes too.
 */
void ts_config_explain_size(
        const char *text, bool percent, char *ret_text, size_t size);

#endif
