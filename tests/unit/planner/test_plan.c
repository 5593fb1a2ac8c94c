/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Plans and plan.json: determinism, the way through JSON, bad input. */
#include "tests/unit/planner/suite.h"

#include <string.h>

#include "planner/model.h"
#include "planner/plan.h"
#include "planner/plan_json.h"
#include "planner/workloads.h"
#include "tests/unit/planner/random_tape.h"

static char *plan_text(const struct ts_profile *profile, uint64_t limit)
{
	struct ts_plan_options options = ts_plan_default_options();
	struct ts_plan plan;
	json_t *root;
	char *text;

	ck_assert_int_eq(
	        ts_plan_make(profile, limit, &options, &plan, NULL), 0);
	root = ts_plan_to_json(&plan, profile);
	ts_plan_finish(&plan);
	text = json_dumps(root, JSON_SORT_KEYS);
	json_decref(root);
	ck_assert_ptr_nonnull(text);
	return text;
}

START_TEST(same_input_gives_the_same_bytes)
{
	struct ts_profile profile;

	ck_assert_int_eq(
	        ts_workload("bert-large", ts_machine_find("a100"), &profile),
	        0);
	for (uint64_t gb = 3; gb < 13; gb += 3) {
		char *a = plan_text(&profile, gb * 1000000000);
		char *b = plan_text(&profile, gb * 1000000000);

		ck_assert_str_eq(a, b);
		free(a);
		free(b);
	}
	ts_profile_finish(&profile);
}
END_TEST

/* What simulate does with a plan from a file. */
START_TEST(plan_from_json_runs_as_predicted)
{
	for (uint64_t seed = 0; seed < 200; seed++) {
		struct ts_input_error error = {"", ""};
		struct ts_profile p;
		struct ts_graph g;
		struct ts_plan plan;
		struct ts_choice choice;
		struct ts_model *model;
		struct ts_outcome outcome;
		uint64_t limit;
		char *text;

		ck_assert_int_eq(ts_random_tape(seed, &p), 0);
		ck_assert_int_eq(
		        ts_graph_init(&g, &p, &(struct ts_graph_options){0}),
		        0);
		limit = (g.floor_bytes + g.peak_bytes) / 2;
		text = plan_text(&p, limit);
		ck_assert_msg(!ts_plan_parse(text, strlen(text), &plan, &error),
		        "%s: %s", error.path, error.message);
		free(text);
		ck_assert_int_eq(ts_choice_init(&choice, g.n_gaps), 0);
		ck_assert_int_eq(
		        ts_plan_to_choice(&plan, &g, &choice, &error), 0);
		ck_assert_int_eq(ts_model_create(&g, limit, &model), 0);
		ck_assert_int_eq(
		        ts_model_run(model, &choice, &outcome, NULL), 0);
		ck_assert(outcome.fits);
		ck_assert_uint_le(outcome.peak_bytes, limit);
		ck_assert_uint_eq(outcome.step_ns, plan.predicted_step_ns);
		ts_model_destroy(model);
		ts_choice_finish(&choice);
		ts_plan_finish(&plan);
		ts_graph_finish(&g);
		ts_profile_finish(&p);
	}
}
END_TEST

/* Every replay of a plan only reads what is on the device or replayed. */
START_TEST(replays_run_in_an_order_that_works)
{
	struct ts_profile p;
	struct ts_plan_options options = ts_plan_default_options();
	struct ts_plan plan;
	uint32_t replays = 0;

	ck_assert_int_eq(
	        ts_workload("llama-7b", ts_machine_find("a100"), &p), 0);
	ck_assert_int_eq(
	        ts_plan_make(&p, UINT64_C(5000000000), &options, &plan, NULL),
	        0);
	/* Kept or swapped values count as there; others must come first. */
	bool *dropped = calloc(p.n_values, sizeof(*dropped));
	bool *made = calloc(p.n_values, sizeof(*made));
	uint32_t *last = calloc(p.n_values, sizeof(*last));

	for (uint32_t i = 0; i < p.n_ops; i++) {
		for (uint32_t k = 0; k < p.ops[i].n_reads; k++)
			last[p.uses[p.ops[i].first_read + k]] = i;
	}
	for (uint32_t i = 0; i < plan.n_decisions; i++) {
		if (plan.decisions[i].action == TS_REPLAY)
			dropped[plan.decisions[i].value] = true;
	}
	for (uint32_t i = 0; i < plan.n_replays; i++) {
		const struct ts_replay *r = &plan.replays[i];
		const struct ts_profile_op *op;

		made[r->value] = true;
		if (r->op == TS_NONE)
			continue;
		op = &p.ops[r->op];
		for (uint32_t k = 0; k < op->n_reads; k++) {
			uint32_t v = p.uses[op->first_read + k];
			bool alive = last[v] >= r->before_op;

			ck_assert_msg(made[v] || (alive && !dropped[v]),
			        "op %u reads value %u too early", r->before_op,
			        v);
			replays++;
		}
		for (uint32_t k = 0; k < op->n_writes; k++)
			made[p.uses[op->first_write + k]] = true;
	}
	ck_assert_uint_gt(replays, 100);
	free(dropped);
	free(made);
	free(last);
	ts_plan_finish(&plan);
	ts_profile_finish(&p);
}
END_TEST

#define HEAD                                                                   \
	"{\"schema\":\"tapeswap-plan\",\"schema_version\":\"1.0\","            \
	"\"limit_bytes\":9,\"n_ops\":4,\"n_values\":2,\"swap_bytes\":0,"       \
	"\"replay_ns\":0,\"smallest_feasible_limit_bytes\":1,"                 \
	"\"predicted\":{\"step_ns\":1,\"peak_bytes\":1},"                      \
	"\"bound\":{\"step_ns\":1},"                                           \
	"\"unlimited\":{\"step_ns\":1,\"peak_bytes\":1},"

START_TEST(bad_plans_are_named_by_their_path)
{
	static const struct {
		const char *text;
		const char *path;
	} cases[] = {
	        {HEAD "\"replays\":[]}", "$.decisions"},
	        {HEAD "\"decisions\":[1],\"replays\":[]}", "$.decisions[0]"},
	        {HEAD "\"decisions\":[{\"value\":2,\"action\":\"keep\","
	              "\"from_op\":0,\"to_op\":2}],\"replays\":[]}",
	                "$.decisions[0].value"},
	        {HEAD "\"decisions\":[{\"value\":1,\"action\":\"drop\","
	              "\"from_op\":0,\"to_op\":2}],\"replays\":[]}",
	                "$.decisions[0].action"},
	        {HEAD "\"decisions\":[{\"value\":1,\"action\":\"keep\","
	              "\"from_op\":2,\"to_op\":2}],\"replays\":[]}",
	                "$.decisions[0].to_op"},
	        {HEAD "\"decisions\":[{\"value\":1,\"action\":\"swap\","
	              "\"from_op\":0,\"to_op\":3,\"due_op\":3}],"
	              "\"replays\":[]}",
	                "$.decisions[0].prefetch_op"},
	        {HEAD "\"decisions\":[{\"value\":1,\"action\":\"replay\","
	              "\"from_op\":0,\"to_op\":3,\"due_op\":4}],"
	              "\"replays\":[]}",
	                "$.decisions[0].due_op"},
	        {HEAD "\"decisions\":[],\"replays\":[{\"before_op\":1,"
	              "\"op\":1,\"value\":0,\"duration_ns\":1}]}",
	                "$.replays[0].op"},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct ts_input_error error = {"", ""};
		struct ts_plan plan;

		ck_assert_int_eq(ts_plan_parse(cases[i].text,
		                         strlen(cases[i].text), &plan, &error),
		        -22);
		ck_assert_str_eq(error.path, cases[i].path);
	}
}
END_TEST

START_TEST(plan_of_another_tape_is_refused)
{
	struct ts_input_error error;
	struct ts_plan plan;
	struct ts_profile a, b;
	struct ts_graph g;
	struct ts_choice choice;
	char *text;

	ck_assert_int_eq(
	        ts_workload("bert-large", ts_machine_find("a100"), &a), 0);
	ck_assert_int_eq(
	        ts_workload("llama-7b", ts_machine_find("a100"), &b), 0);
	ck_assert_int_eq(
	        ts_graph_init(&g, &b, &(struct ts_graph_options){0}), 0);
	ck_assert_int_eq(ts_choice_init(&choice, g.n_gaps), 0);
	text = plan_text(&a, UINT64_C(9000000000));
	ck_assert_int_eq(ts_plan_parse(text, strlen(text), &plan, &error), 0);
	ck_assert_int_eq(ts_plan_to_choice(&plan, &g, &choice, &error), -22);
	ck_assert_str_eq(error.path, "$.n_ops");
	/* Same length, but a gap that is not there. */
	plan.n_ops = g.n_ops;
	plan.n_values = b.n_values;
	ck_assert_int_eq(ts_plan_to_choice(&plan, &g, &choice, &error), -22);
	free(text);
	ts_plan_finish(&plan);
	ts_choice_finish(&choice);
	ts_graph_finish(&g);
	ts_profile_finish(&a);
	ts_profile_finish(&b);
}
END_TEST

int main(void)
{
	const TTest *const tests[] = {same_input_gives_the_same_bytes,
	        plan_from_json_runs_as_predicted,
	        replays_run_in_an_order_that_works,
	        bad_plans_are_named_by_their_path,
	        plan_of_another_tape_is_refused};

	return ts_run_suite(
	        "planner plan", tests, sizeof(tests) / sizeof(tests[0]), 300);
}
