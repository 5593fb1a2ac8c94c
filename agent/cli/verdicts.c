/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "agent/cli/verdicts.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/cli/cli.h"

/* In the order they are printed in. */
static const char *const verdicts[] = {
        "proved", "not tried", "refused by rule", "refused by proof"};

#define VERDICTS (sizeof(verdicts) / sizeof(verdicts[0]))

/* How many ops it is of, in a profile; what is left was not tried. */
static const char *const keys[VERDICTS] = {
        "proved", NULL, "refused_by_rule", "refused_by_proof"};

/* Of some ops of a kernel that was proved where others were not: it counts for
 * both, and its time by how many ops of it each are. */
struct totals {
	json_int_t ops[VERDICTS], kernels[VERDICTS];
	json_int_t ns[VERDICTS];
};

static size_t index_of(const char *verdict)
{
	size_t i = 0;

	while (i + 1 < VERDICTS && strcmp(verdicts[i], verdict))
		i++;
	return i;
}

static const json_t *replay_of(const json_t *signature)
{
	return json_object_get(signature, "replay");
}

static const char *text(const json_t *object, const char *key)
{
	const char *found = json_string_value(json_object_get(object, key));

	return found ? found : "?";
}

static json_int_t number(const json_t *object, const char *key)
{
	return json_integer_value(json_object_get(object, key));
}

/*
 * How many of the ops of @replay came to each verdict. An older profile has no
 * more than how many were proved: what speaks most against them is told then of
 * all others.
 */
static void split(const json_t *replay, json_int_t *ret_ops)
{
	json_int_t left = number(replay, "ops");

	memset(ret_ops, 0, VERDICTS * sizeof(*ret_ops));
	for (size_t v = 0; v < VERDICTS; v++) {
		if (keys[v])
			ret_ops[v] = number(replay, keys[v]);
		left -= ret_ops[v];
	}
	if (json_object_get(replay, "refused_by_proof"))
		ret_ops[index_of("not tried")] = left;
	else
		ret_ops[index_of(text(replay, "verdict"))] += left;
}

/* Time of all ops by signature; NULL without memory. */
static json_int_t *times(const json_t *profile, size_t signatures)
{
	json_int_t *ns = calloc(signatures + 1, sizeof(*ns));
	const json_t *op;
	size_t index;

	json_array_foreach (json_object_get(profile, "ops"), index, op) {
		size_t signature = (size_t)number(op, "signature");

		if (ns && signature < signatures)
			ns[signature] += number(op, "duration_ns");
	}
	return ns;
}

static void print_row(
        const json_t *signature, const json_t *replay, json_int_t ns)
{
	const char *function = text(signature, "function");

	printf("  %-44.44s %6lld %6lld %9.3f  %s\n", function,
	        (long long)number(replay, "ops"),
	        (long long)number(replay, "proved"), (double)ns * 1e-6,
	        text(replay, "reason"));
}

static void print_table(const json_t *profile, const json_int_t *ns)
{
	const json_t *list = json_object_get(profile, "signatures"), *signature;
	size_t index;

	for (size_t v = 0; v < VERDICTS; v++) {
		bool any = false;

		json_array_foreach (list, index, signature) {
			const json_t *replay = replay_of(signature);

			if (!replay || index_of(text(replay, "verdict")) != v)
				continue;
			if (!any)
				printf("%s\n  %-44s %6s %6s %9s  %s\n",
				        verdicts[v], "kernel", "ops", "proved",
				        "ms", "because it");
			any = true;
			print_row(signature, replay, ns[index]);
		}
	}
}

static void add_up(
        const json_t *profile, const json_int_t *ns, struct totals *totals)
{
	const json_t *signature;
	size_t index;

	json_array_foreach (
	        json_object_get(profile, "signatures"), index, signature) {
		const json_t *replay = replay_of(signature);
		json_int_t ops[VERDICTS], all = number(replay, "ops");

		if (!replay || !all)
			continue;
		split(replay, ops);
		for (size_t v = 0; v < VERDICTS; v++) {
			totals->kernels[v] += ops[v] != 0;
			totals->ops[v] += ops[v];
			totals->ns[v] += ns[index] * ops[v] / all;
		}
	}
}

static int print_json(const struct totals *totals, const json_t *profile)
{
	json_t *root = json_object(), *list = json_array();
	const json_t *signature;
	size_t index;
	int rc;

	for (size_t v = 0; v < VERDICTS; v++)
		json_object_set_new(root, verdicts[v],
		        json_pack("{s:I, s:I, s:I}", "kernels",
		                totals->kernels[v], "ops", totals->ops[v],
		                "busy_ns", totals->ns[v]));
	json_array_foreach (
	        json_object_get(profile, "signatures"), index, signature) {
		json_t *item = json_deep_copy(replay_of(signature));

		if (!item)
			continue;
		json_object_set_new(item, "kernel",
		        json_string(text(signature, "function")));
		json_array_append_new(list, item);
	}
	json_object_set_new(root, "all", list);
	rc = ts_cli_write_json("-", root);
	json_decref(root);
	return rc ? ts_cli_bad_output("-", rc) : TS_EXIT_YES;
}

/* Were there steps enough for any? */
static bool has_verdicts(const json_t *profile)
{
	const json_t *signature;
	size_t index;

	json_array_foreach (
	        json_object_get(profile, "signatures"), index, signature)
		if (replay_of(signature))
			return true;
	return false;
}

int ts_cli_print_verdicts(const char *path, const json_t *profile, bool as_json)
{
	size_t signatures =
	        json_array_size(json_object_get(profile, "signatures"));
	struct totals totals = {{0}, {0}, {0}};
	json_int_t *ns;

	if (!json_object_get(profile, "proof"))
		return ts_cli_bad("record it with TAPESWAP_REPLAY=1",
		        "%s: nothing was proved", path);
	if (!has_verdicts(profile))
		return ts_cli_bad("let the program go on for 20 steps",
		        "%s: nothing was proved, the program ended before",
		        path);
	ns = times(profile, signatures);
	if (!ns)
		return ts_cli_bad(NULL, "out of memory");
	add_up(profile, ns, &totals);
	if (as_json) {
		free(ns);
		return print_json(&totals, profile);
	}
	print_table(profile, ns);
	for (size_t v = 0; v < VERDICTS; v++)
		printf("%s%s: %lld ops of %lld kernels", v ? "; " : "",
		        verdicts[v], (long long)totals.ops[v],
		        (long long)totals.kernels[v]);
	putchar('\n');
	free(ns);
	return TS_EXIT_YES;
}
