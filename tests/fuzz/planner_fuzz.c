/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Malformed, truncated, huge and inconsistent profiles and plans: each is
 * refused with a path, or accepted and then planned and simulated. Bytes and
 * numbers of valid documents are changed, or whole nodes of their trees; some
 * inputs are nothing but random bytes. Meant to run in the build with ASan.
 * Arguments: how many inputs (TS_FUZZ_INPUTS, then 20000), and the first seed.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "planner/model.h"
#include "planner/pages.h"
#include "planner/plan.h"
#include "planner/plan_json.h"
#include "planner/profile_json.h"
#include "tests/unit/planner/random_tape.h"

#define INPUTS 20000
/* Accepted tapes are planned only up to this length. */
#define MAX_PLANNED_OPS 200
/* One in so many tapes is a wide one, which takes longer. */
#define WIDE_EVERY 12

struct counts {
	unsigned refused, planned, impossible;
};

/* Values that parsers and arithmetic stumble over. */
static const char *const nasty[] = {"-1", "0", "1", "4294967295", "4294967294",
        "9223372036854775807", "9223372036854775808", "18446744073709551616",
        "1e308", "1.5", "null", "true", "[]", "{}", "\"\"", "1125899906842624",
        "[[[[[[[[[[]]]]]]]]]]"};

/* Replaces a number of @text by something else. */
static void replace_number(struct ts_random *r, char **text, size_t *length)
{
	size_t at = ts_random_below(r, (uint32_t)*length), from, to, n;
	const char *by =
	        nasty[ts_random_below(r, sizeof(nasty) / sizeof(nasty[0]))];
	char digits[24], *next;

	while (at < *length && strchr("0123456789", (*text)[at]) == NULL)
		at++;
	from = to = at;
	while (to < *length && strchr("0123456789", (*text)[to]) != NULL)
		to++;
	/* Half of the time something that may pass the first checks. */
	if (ts_random_below(r, 2)) {
		snprintf(digits, sizeof(digits), "%u", ts_random_below(r, 40));
		by = digits;
	}
	n = strlen(by);
	next = malloc(*length - (to - from) + n + 1);
	if (!next)
		abort();
	memcpy(next, *text, from);
	memcpy(next + from, by, n);
	memcpy(next + from + n, *text + to, *length - to);
	*length = *length - (to - from) + n;
	next[*length] = '\0';
	free(*text);
	*text = next;
}

static void mutate(struct ts_random *r, char **text, size_t *length)
{
	uint32_t times = 1 + ts_random_below(r, 4);

	while (times-- && *length > 1) {
		switch (ts_random_below(r, 8)) {
		case 0: /* Truncated. */
			*length = ts_random_below(r, (uint32_t)*length);
			break;
		case 1: /* A byte changed. */
			(*text)[ts_random_below(r, (uint32_t)*length)] =
			        (char)ts_random_below(r, 256);
			break;
		case 2: { /* A stretch moved over another. */
			uint32_t n = ts_random_below(r, 32);

			if (*length > n)
				memmove(*text + ts_random_below(r,
				                        (uint32_t)*length - n),
				        *text + ts_random_below(r,
				                        (uint32_t)*length - n),
				        n);
			break;
		}
		default:
			replace_number(r, text, length);
		}
	}
}

/* Any node below @root, @skip nodes on in some fixed order. */
static json_t *pick(json_t *root, uint32_t *skip, json_t **ret_parent)
{
	const char *key;
	json_t *item;
	size_t index;

	json_object_foreach (root, key, item) {
		json_t *found = NULL;

		*ret_parent = root;
		if (!(*skip)--)
			return item;
		found = pick(item, skip, ret_parent);
		if (found)
			return found;
	}
	json_array_foreach (root, index, item) {
		json_t *found = NULL;

		*ret_parent = root;
		if (!(*skip)--)
			return item;
		found = pick(item, skip, ret_parent);
		if (found)
			return found;
	}
	return NULL;
}

/* Puts @item, which is taken over, where @node is in @parent; NULL: away. */
static void put(json_t *parent, const json_t *node, json_t *item)
{
	const char *key;
	json_t *at;
	size_t index;

	json_object_foreach (parent, key, at) {
		if (at != node)
			continue;
		if (!item)
			json_object_del(parent, key);
		else
			json_object_set_new(parent, key, item);
		return;
	}
	json_array_foreach (parent, index, at) {
		if (at != node)
			continue;
		if (!item)
			json_array_remove(parent, index);
		else
			json_array_set_new(parent, index, item);
		return;
	}
	json_decref(item);
}

/* Nodes left out, doubled, or in each other's place: still good JSON. */
static void mutate_tree(struct ts_random *r, json_t *root)
{
	for (uint32_t times = 1 + ts_random_below(r, 4); times; times--) {
		uint32_t a = ts_random_below(r, 600);
		uint32_t b = ts_random_below(r, 600);
		json_t *parent = NULL, *other_parent = NULL;
		json_t *node = pick(root, &a, &parent);
		json_t *other = pick(root, &b, &other_parent);

		if (!node)
			continue;
		switch (ts_random_below(r, 4)) {
		case 0:
			put(parent, node, NULL);
			break;
		case 1:
			if (json_is_array(parent))
				json_array_append_new(
				        parent, json_deep_copy(node));
			break;
		case 2:
			if (other)
				put(parent, node, json_deep_copy(other));
			break;
		default:
			put(parent, node,
			        json_loads(nasty[ts_random_below(r,
			                           sizeof(nasty) /
			                                   sizeof(nasty[0]))],
			                JSON_DECODE_ANY, NULL));
		}
	}
}

/* Random bytes, half of them such as JSON is made of. */
static char *noise(struct ts_random *r, size_t *ret_length)
{
	static const char usual[] = "{}[]:,\"\\0123456789eE+-.truefalsn ";
	bool json = ts_random_below(r, 2);
	size_t length = ts_random_below(r, 400);
	char *text = malloc(length + 1);

	if (!text)
		abort();
	for (size_t i = 0; i < length; i++)
		text[i] = json ? usual[ts_random_below(r, sizeof(usual) - 1)]
		               : (char)ts_random_below(r, 256);
	text[length] = '\0';
	*ret_length = length;
	return text;
}

static void must_name_a_path(const struct ts_input_error *error)
{
	if (error->path[0] == '$' && error->message[0])
		return;
	fprintf(stderr, "refused without a path or a message\n");
	abort();
}

static void plan_profile(
        struct ts_random *r, const struct ts_profile *p, struct counts *counts)
{
	struct ts_plan_options options = ts_plan_default_options();
	struct ts_graph g;
	struct ts_plan plan;
	uint64_t limit;
	int err;

	if (p->n_ops > MAX_PLANNED_OPS)
		return;
	if (ts_graph_init(&g, p, &(struct ts_graph_options){0}))
		abort();
	limit = ts_random_below(r, 3)
	                ? g.floor_bytes + (g.peak_bytes - g.floor_bytes) / 2
	                : ts_random_below(r, 1u << 30);
	ts_graph_finish(&g);
	options.search_evaluations = 20;
	err = ts_plan_make(p, limit, &options, &plan, NULL);
	if (err == -28)
		counts->impossible++;
	else if (err || plan.predicted_peak_bytes > limit)
		abort();
	else
		counts->planned++;
	ts_plan_finish(&plan);
}

static void try_profile(struct ts_random *r, const char *text, size_t length,
        struct counts *counts)
{
	struct ts_input_error error = {"", ""};
	struct ts_profile p;

	if (ts_profile_parse(text, length, &p, &error)) {
		must_name_a_path(&error);
		counts->refused++;
		return;
	}
	plan_profile(r, &p, counts);
	ts_profile_finish(&p);
}

static void try_plan(const char *text, size_t length,
        const struct ts_profile *p, struct counts *counts)
{
	struct ts_input_error error = {"", ""};
	struct ts_outcome outcome;
	struct ts_choice choice;
	struct ts_model *model;
	struct ts_pages pages;
	struct ts_graph g;
	struct ts_plan plan;

	if (ts_plan_parse(text, length, &plan, &error)) {
		must_name_a_path(&error);
		counts->refused++;
		return;
	}
	if (ts_graph_init(&g, p, &(struct ts_graph_options){0}) ||
	        ts_choice_init(&choice, g.n_gaps))
		abort();
	if (ts_plan_to_choice(&plan, &g, &choice, &error)) {
		must_name_a_path(&error);
		counts->refused++;
	} else if (ts_model_create(&g, plan.limit_bytes, &model)) {
		abort();
	} else {
		if (ts_model_run(model, &choice, &outcome, NULL))
			abort();
		/* What the runtime makes of a plan that it read. */
		if (outcome.fits && ts_pages_of_plan(p, &plan, &pages))
			abort();
		counts->planned++;
		ts_model_destroy(model);
	}
	ts_choice_finish(&choice);
	ts_graph_finish(&g);
	ts_plan_finish(&plan);
}

/* A valid document of @root, spoilt in one way or another. */
static char *spoil(struct ts_random *r, json_t *root, size_t *ret_length)
{
	uint32_t way = ts_random_below(r, 16);
	char *text;

	if (way == 0) {
		json_decref(root);
		return noise(r, ret_length);
	}
	if (way < 6)
		mutate_tree(r, root);
	text = json_dumps(root, JSON_COMPACT | JSON_SORT_KEYS);
	json_decref(root);
	if (!text)
		abort();
	*ret_length = strlen(text);
	if (way >= 5)
		mutate(r, &text, ret_length);
	return text;
}

static void one_input(uint64_t seed, struct counts *counts)
{
	struct ts_plan_options options = ts_plan_default_options();
	struct ts_random r;
	struct ts_profile p;
	struct ts_plan plan;
	char *text;
	size_t length;
	bool as_plan = seed % 4 == 3;

	ts_random_seed(&r, seed * 31 + 7);
	if (seed / 16 % WIDE_EVERY == 1 ? ts_random_wide_tape(seed / 16, &p)
	                                : ts_random_tape(seed / 16, &p))
		abort();
	/* As recorded profiles have them. */
	for (uint32_t v = 0; seed % 3 == 0 && v < p.n_values; v++)
		p.values[v].address = UINT64_C(1) << 45 | v << 19;
	options.search_evaluations = 0;
	options.baselines = false;
	if (as_plan &&
	        ts_plan_make(&p, UINT64_C(1) << 40, &options, &plan, NULL))
		abort();
	text = spoil(&r,
	        as_plan ? ts_plan_to_json(&plan, &p) : ts_profile_to_json(&p),
	        &length);
	if (as_plan) {
		try_plan(text, length, &p, counts);
		ts_plan_finish(&plan);
	} else {
		try_profile(&r, text, length, counts);
	}
	free(text);
	ts_profile_finish(&p);
}

int main(int argc, char **argv)
{
	const char *wanted = argc > 1 ? argv[1] : getenv("TS_FUZZ_INPUTS");
	unsigned long n = wanted ? strtoul(wanted, NULL, 10) : INPUTS;
	unsigned long first = argc > 2 ? strtoul(argv[2], NULL, 10) : 0;
	struct counts counts = {0};

	for (unsigned long i = 0; i < n; i++)
		one_input(first + i, &counts);
	printf("%lu inputs: %u refused, %u planned or simulated, %u that fit "
	       "no limit\n",
	        n, counts.refused, counts.planned, counts.impossible);
	/* A fuzzer whose inputs are all refused early tests nothing. */
	return n >= 1000 && (counts.planned < n / 100 ||
	                            counts.refused < n / 10)
	               ? EXIT_FAILURE
	               : EXIT_SUCCESS;
}
