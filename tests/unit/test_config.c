/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <locale.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "agent/base/log.h"
#include "agent/base/units.h"
#include "agent/config.h"
#include "tests/unit/suite.h"

static struct ts_config config;
static char message[TS_CONFIG_MESSAGE_BYTES];
static char warned[TS_CONFIG_MESSAGE_BYTES];
static int warnings;

static void warn(const char *text)
{
	snprintf(warned, sizeof(warned), "%s", text);
	warnings++;
}

static int parse(const char *one, const char *two)
{
	char first[256], second[256];
	char *environment[] = {first, two ? second : NULL, NULL};

	snprintf(first, sizeof(first), "%s", one);
	snprintf(second, sizeof(second), "%s", two ? two : "");
	warnings = 0;
	return ts_config_parse(&config, environment, message, warn);
}

START_TEST(defaults_hold_without_settings)
{
	ck_assert_int_eq(parse("PATH=/bin", NULL), 0);
	ck_assert_int_eq(config.mode, TS_MODE_PLAN);
	ck_assert_int_eq(config.log_level, TS_LOG_INFO);
	ck_assert_int_eq(config.limit.unit, TS_LIMIT_NONE);
	ck_assert(!config.strict && !config.ipc);
	ck_assert_str_eq(config.plan, "");
	ck_assert_int_eq(warnings, 0);
}
END_TEST

START_TEST(sizes_are_read_with_their_units)
{
	static const struct {
		const char *text;
		enum ts_limit_unit unit;
		uint64_t value;
	} good[] = {
	        {"TAPESWAP_LIMIT=4096", TS_LIMIT_BYTES, 4096},
	        {"TAPESWAP_LIMIT=12GiB", TS_LIMIT_BYTES, 12ull << 30},
	        {"TAPESWAP_LIMIT=1.5 MiB", TS_LIMIT_BYTES, 3ull << 19},
	        {"TAPESWAP_LIMIT=7KiB", TS_LIMIT_BYTES, 7168},
	        {"TAPESWAP_LIMIT=60%", TS_LIMIT_PERCENT, 6000},
	        {"TAPESWAP_LIMIT=12.5 %", TS_LIMIT_PERCENT, 1250},
	};

	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
		ck_assert_int_eq(parse(good[i].text, NULL), 0);
		ck_assert_int_eq(config.limit.unit, good[i].unit);
		ck_assert_uint_eq(config.limit.value, good[i].value);
	}
}
END_TEST

START_TEST(a_file_is_for_one_setting)
{
	ck_assert_int_eq(
	        parse("TAPESWAP_STATUS=x.json", "TAPESWAP_PLAN=x.json"),
	        -EINVAL);
	ck_assert_ptr_nonnull(strstr(message, "TAPESWAP_STATUS=\"x.json\": "
	                                      "TAPESWAP_PLAN names that"));
	ck_assert_str_eq(config.plan, "");
	ck_assert_int_eq(
	        parse("TAPESWAP_STATUS=x.json", "TAPESWAP_PLAN=y.json"), 0);
	ck_assert_int_eq(
	        parse("TAPESWAP_STATUS=/dev/null", "TAPESWAP_PLAN=/dev/null"),
	        0);
}
END_TEST

/* With a comma for the point, where the machine has such a locale. */
START_TEST(sizes_are_the_same_in_any_locale)
{
	static const char *const commas[] = {
	        "de_DE.UTF-8", "de_DE.utf8", "fr_FR.UTF-8", "de_DE"};
	bool set = false;

	for (size_t i = 0; i < sizeof(commas) / sizeof(commas[0]); i++)
		set = set || setlocale(LC_NUMERIC, commas[i]);
	ck_assert_int_eq(parse("TAPESWAP_LIMIT=12.25GiB", NULL), 0);
	ck_assert_uint_eq(config.limit.value, 49ull << 28);
	ck_assert_int_eq(parse("TAPESWAP_LIMIT=12,25GiB", NULL), -EINVAL);
	/* Rounded to hundredths it would be none. */
	ck_assert_int_eq(parse("TAPESWAP_LIMIT=0.001%", NULL), -EINVAL);
	ck_assert_int_eq(parse("TAPESWAP_LIMIT=0.01%", NULL), 0);
	ck_assert_uint_eq(config.limit.value, 1);
	setlocale(LC_NUMERIC, "C");
}
END_TEST

START_TEST(what_is_no_size_is_named_with_what_is_accepted)
{
	static const struct {
		const char *text, *why;
	} bad[] = {
	        {"12GB x", ""},
	        {"12GB", "did you mean 11.17GiB? "},
	        {"8 gb", "did you mean 7.45GiB? "},
	        {"1024KB", "did you mean 1000KiB? "},
	        {"12G", "did you mean 12GiB? "},
	        {"1.5gib", "did you mean 1.50GiB? "},
	        {"2TiB", "did you mean 2048GiB? "},
	        {"much", ""},
	        {"-1GiB", "less than nothing: "},
	        {"-1", "less than nothing: "},
	        {"-x", ""},
	        {"0", "that is none: "},
	        {"0%", "that is none: "},
	        {"0GB", "that is none: "},
	        {"101%", "more than the device has: "},
	        {"150 %", "more than the device has: "},
	        {"1e3", ""},
	        {"0x10", ""},
	        {"1..5GiB", ""},
	        {"GiB", ""},
	        {"4 4", ""},
	        {"1.5", "bytes are whole: "},
	        {"0.0001KiB", "bytes are whole: "},
	        {"99999999999999999999", "more than there can be: "},
	        {"nan", ""},
	        {"17179869184GiB", "more than there can be: "},
	};
	char text[128], wanted[256];

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		snprintf(text, sizeof(text), "TAPESWAP_LIMIT=%s", bad[i].text);
		ck_assert_msg(parse(text, NULL) == -EINVAL, "%s", bad[i].text);
		snprintf(wanted, sizeof(wanted),
		        "TAPESWAP_LIMIT=\"%s\": %swant bytes, KiB/MiB/GiB or "
		        "%%",
		        bad[i].text, bad[i].why);
		ck_assert_str_eq(message, wanted);
		ck_assert_int_eq(config.limit.unit, TS_LIMIT_NONE);
	}
}
END_TEST

START_TEST(sizes_are_shown_in_what_they_are_of)
{
	static const struct {
		uint64_t bytes;
		const char *text;
	} sizes[] = {
	        {0, "0 bytes"},
	        {1023, "1023 bytes"},
	        {1024, "1.0 KiB"},
	        {1536, "1.5 KiB"},
	        {1 << 20, "1.0 MiB"},
	        {690 << 20, "690.0 MiB"},
	        {1ull << 30, "1.00 GiB"},
	        {12ull << 30, "12.00 GiB"},
	};

	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		ck_assert_str_eq(ts_size(sizes[i].bytes).text, sizes[i].text);
		if (sizes[i].bytes)
			ck_assert_ptr_nonnull(strstr(sizes[i].text,
			        ts_size_unit(sizes[i].bytes).name));
	}
}
END_TEST

START_TEST(host_limit_takes_no_percentage)
{
	ck_assert_int_eq(parse("TAPESWAP_HOST_LIMIT=4GiB", NULL), 0);
	ck_assert_uint_eq(config.host_limit.value, 4ull << 30);
	ck_assert_int_eq(parse("TAPESWAP_HOST_LIMIT=50%", NULL), -EINVAL);
	ck_assert_str_eq(message,
	        "TAPESWAP_HOST_LIMIT=\"50%\": want bytes or KiB/MiB/GiB");
}
END_TEST

START_TEST(words_and_booleans_are_read)
{
	ck_assert_int_eq(
	        parse("TAPESWAP_MODE=observe", "TAPESWAP_LOG=debug"), 0);
	ck_assert_int_eq(config.mode, TS_MODE_OBSERVE);
	ck_assert_int_eq(config.log_level, TS_LOG_DEBUG);
	ck_assert_int_eq(parse("TAPESWAP_IPC=1", "TAPESWAP_STRICT=0"), 0);
	ck_assert(config.ipc && !config.strict);
	ck_assert_int_eq(config.helper, TS_HELPER_THREAD);
	ck_assert_int_eq(parse("TAPESWAP_HELPER=inline", NULL), 0);
	ck_assert_int_eq(config.helper, TS_HELPER_INLINE);
	ck_assert_int_eq(parse("TAPESWAP_MODE=of", NULL), -EINVAL);
	ck_assert_str_eq(
	        message, "TAPESWAP_MODE=\"of\": want off, observe, cap, plan");
	ck_assert_int_eq(parse("TAPESWAP_IPC=yes", NULL), -EINVAL);
}
END_TEST

START_TEST(empty_setting_is_none)
{
	ck_assert_int_eq(parse("TAPESWAP_LIMIT=", "TAPESWAP_MODE="), 0);
	ck_assert_int_eq(config.limit.unit, TS_LIMIT_NONE);
	ck_assert_int_eq(config.mode, TS_MODE_PLAN);
}
END_TEST

START_TEST(strict_is_known_even_beside_a_bad_setting)
{
	ck_assert_int_eq(
	        parse("TAPESWAP_LIMIT=x", "TAPESWAP_STRICT=1"), -EINVAL);
	ck_assert(config.strict);
}
END_TEST

START_TEST(file_names_get_the_process_id)
{
	char wanted[64];

	snprintf(wanted, sizeof(wanted), "plan-%d%%.json", (int)getpid());
	ck_assert_int_eq(parse("TAPESWAP_PLAN=plan-%p%%.json", NULL), 0);
	ck_assert_str_eq(config.plan, wanted);
	ck_assert_int_eq(parse("TAPESWAP_PLAN=plan-%x", NULL), -EINVAL);
}
END_TEST

START_TEST(unknown_name_is_warned_of_with_the_nearest)
{
	ck_assert_int_eq(parse("TAPESWAP_LIMITS=1GiB", NULL), 0);
	ck_assert_int_eq(warnings, 1);
	ck_assert_str_eq(warned,
	        "unknown setting TAPESWAP_LIMITS: did you mean "
	        "TAPESWAP_LIMIT?");
	ck_assert_int_eq(config.limit.unit, TS_LIMIT_NONE);
	/* Not ours to judge. */
	ck_assert_int_eq(parse("TAPESWAPPED=1", NULL), 0);
	ck_assert_int_eq(warnings, 0);
}
END_TEST

START_TEST(table_is_complete)
{
	size_t count;
	const struct ts_setting *table = ts_config_table(&count);

	ck_assert_uint_ge(count, 8);
	for (size_t i = 0; i < count; i++) {
		ck_assert(!strncmp(table[i].name, "TAPESWAP_", 9));
		ck_assert(table[i].help && *table[i].help);
		ck_assert((table[i].type == TS_SETTING_CHOICE) ==
		          (table[i].choices != NULL));
		ck_assert(!i || strcmp(table[i - 1].name, table[i].name) < 0);
	}
}
END_TEST

static void add_tests(TCase *tests)
{
	tcase_add_test(tests, defaults_hold_without_settings);
	tcase_add_test(tests, sizes_are_read_with_their_units);
	tcase_add_test(tests, a_file_is_for_one_setting);
	tcase_add_test(tests, sizes_are_the_same_in_any_locale);
	tcase_add_test(tests, what_is_no_size_is_named_with_what_is_accepted);
	tcase_add_test(tests, sizes_are_shown_in_what_they_are_of);
	tcase_add_test(tests, host_limit_takes_no_percentage);
	tcase_add_test(tests, words_and_booleans_are_read);
	tcase_add_test(tests, empty_setting_is_none);
	tcase_add_test(tests, strict_is_known_even_beside_a_bad_setting);
	tcase_add_test(tests, file_names_get_the_process_id);
	tcase_add_test(tests, unknown_name_is_warned_of_with_the_nearest);
	tcase_add_test(tests, table_is_complete);
}

int main(void)
{
	return run_suite("config", add_tests);
}
