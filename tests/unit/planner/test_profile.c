/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* profile.json: what is accepted, and how what is not is spoken of. */
#include "tests/unit/planner/suite.h"

#include <string.h>

#include "planner/profile_json.h"
#include "planner/workloads.h"

/* A small valid profile; %s marks where the tables below put members. */
#define HEAD                                                                   \
	"{\"schema\":\"tapeswap-profile\",\"schema_version\":\"1.0\","         \
	"\"device\":{\"d2h_bytes_per_s\":1000000000,"                          \
	"\"h2d_bytes_per_s\":1000000000},"                                     \
	"\"signatures\":[{\"name\":\"f\",\"class\":\"gemm\"}],"
#define VALUES                                                                 \
	"\"values\":[{\"size_bytes\":8,\"kind\":\"input\"},"                   \
	"{\"size_bytes\":8,\"kind\":\"activation\"}],"
#define OPS                                                                    \
	"\"ops\":[{\"signature\":0,\"duration_ns\":5,\"reads\":[0],"           \
	"\"writes\":[1]},{\"signature\":0,\"duration_ns\":5,\"reads\":[1]}]}"

static int parse(const char *text, struct ts_input_error *error)
{
	struct ts_profile profile;
	int err = ts_profile_parse(text, strlen(text), &profile, error);

	if (!err)
		ts_profile_finish(&profile);
	return err;
}

START_TEST(minimal_profile_is_accepted)
{
	struct ts_input_error error;

	ck_assert_int_eq(parse(HEAD VALUES OPS, &error), 0);
}
END_TEST

START_TEST(unknown_members_are_ignored)
{
	struct ts_input_error error;

	ck_assert_int_eq(
	        parse(HEAD "\"later\":{\"x\":[1]}," VALUES OPS, &error), 0);
}
END_TEST

START_TEST(bad_input_is_named_by_its_path)
{
	static const struct {
		const char *text;
		const char *path;
	} cases[] = {
	        {"", "$"},
	        {"{", "$"},
	        {"[]", "$"},
	        {"{\"schema\":\"tapeswap-plan\"}", "$.schema"},
	        {"{\"schema\":\"tapeswap-profile\",\"schema_version\":\"2.0\"}",
	                "$.schema_version"},
	        {"{\"schema\":\"tapeswap-profile\",\"schema_version\":\"1.0\"}",
	                "$.device"},
	        {HEAD "\"values\":7," OPS, "$.values"},
	        {HEAD "\"values\":[{\"size_bytes\":-1,\"kind\":\"input\"}]"
	              "," OPS,
	                "$.values[0].size_bytes"},
	        {HEAD "\"values\":[{\"size_bytes\":1e9,\"kind\":\"input\"}]"
	              "," OPS,
	                "$.values[0].size_bytes"},
	        {HEAD "\"values\":[{\"size_bytes\":1125899906842625,"
	              "\"kind\":\"input\"}]," OPS,
	                "$.values[0].size_bytes"},
	        {HEAD "\"values\":[{\"size_bytes\":8,\"kind\":\"what\"}]," OPS,
	                "$.values[0].kind"},
	        {HEAD VALUES "\"ops\":[{\"signature\":1,\"duration_ns\":1}]}",
	                "$.ops[0]"},
	        {HEAD VALUES "\"ops\":[{\"signature\":0,\"duration_ns\":1,"
	                     "\"reads\":[2]}]}",
	                "$.ops[0].reads[0]"},
	        /* Read by its own writer, written twice, read too early. */
	        {HEAD VALUES "\"ops\":[{\"signature\":0,\"duration_ns\":1,"
	                     "\"reads\":[1],\"writes\":[1]}]}",
	                "$.ops[0]"},
	        {HEAD VALUES
	                "\"ops\":[{\"signature\":0,\"duration_ns\":1,"
	                "\"writes\":[1]},{\"signature\":0,\"duration_ns\":1,"
	                "\"writes\":[1]}]}",
	                "$.ops[1]"},
	        {HEAD VALUES
	                "\"ops\":[{\"signature\":0,\"duration_ns\":1,"
	                "\"reads\":[1]},{\"signature\":0,\"duration_ns\":1,"
	                "\"writes\":[1]}]}",
	                "$.ops[1]"},
	        {HEAD VALUES "\"turns\":[9]," OPS, "$.turns[0]"},
	        {HEAD VALUES "\"regions\":[{\"type\":0,\"first_op\":1,"
	                     "\"end_op\":1}]," OPS,
	                "$.regions[0]"},
	        {HEAD "\"values\":[{\"size_bytes\":8,\"kind\":\"input\"},"
	              "{\"size_bytes\":9,\"kind\":\"input\","
	              "\"in_place_of\":0}]," OPS,
	                "$.values[1]"},
	        {HEAD "\"values\":[{\"size_bytes\":8,\"kind\":\"input\"},"
	              "{\"size_bytes\":8,\"kind\":\"input\","
	              "\"in_place_of\":1}]," OPS,
	                "$.values[1]"},
	        {HEAD "\"values\":[{\"size_bytes\":8,\"kind\":\"input\"},"
	              "{\"size_bytes\":8,\"kind\":\"input\","
	              "\"persistent\":true}]," OPS,
	                "$.values[1]"},
	        /* Sizes that only together are too large. */
	        {HEAD "\"idle\":[{\"size_bytes\":1125899906842624},"
	              "{\"size_bytes\":1125899906842624}]," VALUES OPS,
	                "$.idle[0]"},
	        {HEAD "\"idle\":[{\"size_bytes\":562949953421312},"
	              "{\"size_bytes\":562949953421312}]," VALUES OPS,
	                "$.idle[1]"},
	        /* A rebuild that needs what it makes. */
	        {HEAD "\"values\":[{\"size_bytes\":8,\"kind\":\"input\"},"
	              "{\"size_bytes\":8,\"kind\":\"input\",\"rebuild\":"
	              "{\"duration_ns\":1,\"reads\":[1]}}]," OPS,
	                "$.values[1]"},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct ts_input_error error = {"", ""};

		ck_assert_msg(parse(cases[i].text, &error) == -22,
		        "accepted: %s", cases[i].text);
		ck_assert_str_eq(error.path, cases[i].path);
		ck_assert_msg(
		        error.message[0], "no message for %s", error.path);
	}
}
END_TEST

START_TEST(in_place_chain_in_a_ring_is_refused)
{
	static const char ring[] = HEAD
	        "\"values\":[{\"size_bytes\":8,\"kind\":\"input\","
	        "\"in_place_of\":1},{\"size_bytes\":8,\"kind\":\"input\","
	        "\"in_place_of\":0}],"
	        "\"ops\":[{\"signature\":0,\"duration_ns\":1,\"writes\":[0]},"
	        "{\"signature\":0,\"duration_ns\":1,\"writes\":[1]}]}";
	struct ts_input_error error;

	ck_assert_int_eq(parse(ring, &error), -22);
}
END_TEST

START_TEST(profile_survives_the_way_through_json)
{
	const struct ts_machine *a100 = ts_machine_find("a100");
	struct ts_profile profile, again;
	struct ts_input_error error;
	char *text, *twice;
	json_t *root;

	ck_assert_int_eq(ts_workload("gpt2-xl", a100, &profile), 0);
	profile.idle = calloc(2, sizeof(*profile.idle));
	ck_assert_ptr_nonnull(profile.idle);
	profile.n_idle = 2;
	profile.idle[0] = (struct ts_idle){8, UINT64_C(1) << 40, 7};
	profile.idle[1] = (struct ts_idle){9, 0, TS_NONE};
	root = ts_profile_to_json(&profile);
	text = json_dumps(root, JSON_SORT_KEYS);
	json_decref(root);
	ck_assert_int_eq(
	        ts_profile_parse(text, strlen(text), &again, &error), 0);
	ck_assert_uint_eq(again.n_ops, profile.n_ops);
	ck_assert_uint_eq(again.n_values, profile.n_values);
	ck_assert_uint_eq(again.n_regions, 48);
	ck_assert_uint_eq(again.n_idle, 2);
	ck_assert_uint_eq(again.idle[0].address, UINT64_C(1) << 40);
	ck_assert_uint_eq(again.idle[0].died, 7);
	ck_assert_uint_eq(again.idle[1].size_bytes, 9);
	ck_assert_uint_eq(again.idle[1].died, TS_NONE);
	ts_profile_finish(&again);
	/* Of a tree that was read before it is the same, and the tree too. */
	root = json_loads(text, 0, NULL);
	ck_assert_int_eq(ts_profile_from_json(root, &again, &error), 0);
	twice = json_dumps(root, JSON_SORT_KEYS);
	json_decref(root);
	ck_assert_str_eq(text, twice);
	free(twice);
	root = ts_profile_to_json(&again);
	twice = json_dumps(root, JSON_SORT_KEYS);
	json_decref(root);
	ck_assert_str_eq(text, twice);
	free(text);
	free(twice);
	ts_profile_finish(&profile);
	ts_profile_finish(&again);
}
END_TEST

int main(void)
{
	const TTest *const tests[] = {minimal_profile_is_accepted,
	        unknown_members_are_ignored, bad_input_is_named_by_its_path,
	        in_place_chain_in_a_ring_is_refused,
	        profile_survives_the_way_through_json};

	return ts_run_suite(
	        "planner profile", tests, sizeof(tests) / sizeof(tests[0]), 60);
}
