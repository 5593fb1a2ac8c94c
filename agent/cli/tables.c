/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * `tapeswap tables [--json]`: the SlackSwap paper's tables and figure series
 * beside what this planner, the policies written here and the bound give.
 */
#include "agent/cli/cli.h"
#include "agent/cli/policies.h"

#include <errno.h>
#include <getopt.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "planner/workloads.h"

static const char usage[] =
        "usage: tapeswap tables [--json] [--only TABLE]\n"
        "\n"
        "Tables and figure series of the SlackSwap paper: paper, ours, bound.\n"
        "--only: one of table1, table2, table3, figure1 ... figure6b.\n";

enum metric {
	SAVED_GB,
	STEP_MS,
	INTENSITY,
	HIDEABLE_PERCENT,
	STEP_RATIO,
	REPLAY_RATIO,
	FORWARD_STALL_RATIO,
	BACKWARD_STALL_RATIO,
	OUT_GB,
	KEEP_GB,
	REPLAY_GB,
	PERCENT_OF_IDEAL,
	METRICS,
};

static const char *const metric_names[METRICS] = {"saved_gb", "step_ms",
        "intensity_flops_per_byte", "hideable_percent", "step_ratio",
        "replay_ratio", "forward_stall_ratio", "backward_stall_ratio", "out_gb",
        "keep_gb", "replay_gb", "percent_of_ideal"};

/* What is run: a workload on a machine, its link or sequence changed. */
struct setting {
	const char *workload;
	const char *machine;
	double link_gb_per_s; /* 0: the machine's */
	unsigned sequence;    /* 0: the workload's; tokens stay the same */
};

struct row {
	const char *table;
	struct setting setting;
	double limit_percent; /* 100: unlimited */
	const char *policy;   /* NULL: the workload itself */
	enum metric metric;
	double paper; /* NAN: the paper plots it, but prints no number */
};

/* The last setting and result: rows of one kind stand together. */
struct bench {
	struct setting setting;
	bool loaded;
	struct ts_profile profile;
	struct ts_graph graph;
	double limit_percent;
	const char *policy;
	bool ran;
	struct ts_cli_result result;
	json_t *rows;
};

static bool same_setting(const struct setting *a, const struct setting *b)
{
	return !strcmp(a->workload, b->workload) &&
	       !strcmp(a->machine, b->machine) &&
	       a->link_gb_per_s == b->link_gb_per_s &&
	       a->sequence == b->sequence;
}

static void unload(struct bench *b)
{
	if (!b->loaded)
		return;
	ts_graph_finish(&b->graph);
	ts_profile_finish(&b->profile);
	b->loaded = b->ran = false;
}

static int load(struct bench *b, const struct setting *setting)
{
	struct ts_machine machine = *ts_machine_find(setting->machine);
	const struct ts_transformer *named =
	        ts_transformer_find(setting->workload);
	int err;

	if (b->loaded && same_setting(&b->setting, setting))
		return 0;
	unload(b);
	if (setting->link_gb_per_s > 0)
		machine.link_bytes_per_s =
		        (uint64_t)(setting->link_gb_per_s * 1e9);
	if (named && setting->sequence) {
		struct ts_transformer shape = *named;
		/* 16K tokens a batch, and one sequence at least. */
		unsigned tokens = 16384;

		shape.sequence = setting->sequence;
		shape.batch = setting->sequence < tokens
		                      ? tokens / setting->sequence
		                      : 1;
		err = ts_workload_transformer(&shape, &machine, &b->profile);
	} else {
		err = ts_workload(setting->workload, &machine, &b->profile);
	}
	if (err)
		return err;
	err = ts_graph_init(
	        &b->graph, &b->profile, &(struct ts_graph_options){0});
	if (err) {
		ts_profile_finish(&b->profile);
		return err;
	}
	b->setting = *setting;
	b->loaded = true;
	return 0;
}

static double workload_metric(const struct bench *b, enum metric metric)
{
	const struct ts_profile *p = &b->profile;
	const struct ts_graph *g = &b->graph;
	double saved = (double)ts_cli_saved_bytes(g);
	double forward = (double)g->start_ns[p->turns[0]];

	switch (metric) {
	case SAVED_GB:
		return saved * 1e-9;
	case STEP_MS:
		return (double)g->start_ns[g->n_ops] * 1e-6;
	case INTENSITY:
		return (double)p->forward_flops / saved;
	default:
		return fmin(100, 100 * (double)p->device.d2h_bytes_per_s *
		                         forward * 1e-9 / saved);
	}
}

static double policy_metric(const struct bench *b, enum metric metric)
{
	const struct ts_outcome *o = &b->result.outcome;
	double ideal = (double)b->graph.start_ns[b->graph.n_ops];
	double stall = (double)(o->wait_in_ns + o->wait_memory_ns);

	switch (metric) {
	case STEP_MS:
		return (double)o->step_ns * 1e-6;
	case STEP_RATIO:
		return (double)o->step_ns / ideal;
	case REPLAY_RATIO:
		return (double)o->replay_ns / ideal;
	case FORWARD_STALL_RATIO:
		return (double)o->wait_forward_ns / ideal;
	case BACKWARD_STALL_RATIO:
		return (stall - (double)o->wait_forward_ns) / ideal;
	case OUT_GB:
		return (double)o->d2h_bytes * 1e-9;
	case KEEP_GB:
		return (double)b->result.keep_bytes * 1e-9;
	case REPLAY_GB:
		return (double)b->result.replay_bytes * 1e-9;
	default:
		return 100 * ideal / (double)o->step_ns;
	}
}

/* The bound in the row's own unit; NAN where it says nothing about it. */
static double bound_metric(const struct bench *b, enum metric metric)
{
	double bound = (double)b->result.bound_ns;
	double ideal = (double)b->graph.start_ns[b->graph.n_ops];

	if (b->result.bound_ns == TS_NEVER)
		return NAN;
	switch (metric) {
	case STEP_MS:
		return bound * 1e-6;
	case STEP_RATIO:
		return bound / ideal;
	case PERCENT_OF_IDEAL:
		return 100 * ideal / bound;
	default:
		return NAN;
	}
}

static json_t *number(double value)
{
	return isnan(value) ? json_null() : json_real(value);
}

static int run_row(struct bench *b, const struct row *row)
{
	double ours = NAN, bound = NAN;
	uint64_t limit;
	int err = load(b, &row->setting);

	if (err)
		return err;
	if (!row->policy) {
		ours = workload_metric(b, row->metric);
	} else {
		limit = (uint64_t)((double)b->graph.peak_bytes *
		                   row->limit_percent / 100);
		if (!b->ran || b->limit_percent != row->limit_percent ||
		        strcmp(b->policy, row->policy)) {
			err = ts_cli_policy_run(&b->graph, limit, row->policy,
			        false, &b->result);
			if (err)
				return err;
			b->ran = true;
			b->limit_percent = row->limit_percent;
			b->policy = row->policy;
		}
		if (b->result.outcome.fits)
			ours = policy_metric(b, row->metric);
		bound = bound_metric(b, row->metric);
	}
	json_t *node = json_pack("{s:s, s:s, s:s, s:s, s:f, s:o, s:o, s:o}",
	        "table", row->table, "workload", row->setting.workload,
	        "device", row->setting.machine, "metric",
	        metric_names[row->metric], "limit_percent", row->limit_percent,
	        "paper", number(row->paper), "ours", number(ours), "bound",
	        number(bound));

	json_object_set_new(node, "policy",
	        row->policy ? json_string(row->policy) : json_null());
	if (row->setting.link_gb_per_s > 0)
		json_object_set_new(node, "link_gb_per_s",
		        json_real(row->setting.link_gb_per_s));
	if (row->setting.sequence)
		json_object_set_new(
		        node, "sequence", json_integer(row->setting.sequence));
	json_array_append_new(b->rows, node);
	return 0;
}

/* Numbers that the paper prints, by table; NAN: plotted only. */
static int table1(struct bench *b)
{
	static const struct {
		const char *workload;
		double saved, step, intensity, hideable;
	} rows[] = {
	        {"bert-large", 13.9, 173, 782, 11},
	        {"gpt2-xl", 22.3, 399, 1200, 15},
	        {"llama-7b", 35.2, 1635, 3326, 38},
	        {"vgg-16", 3.9, 82, 1015, 17},
	};
	int err = 0;

	for (size_t i = 0; !err && i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct row row = {.table = "table1",
		        .setting = {rows[i].workload, "a100", 0, 0},
		        .limit_percent = 100};
		const double paper[] = {rows[i].saved, rows[i].step,
		        rows[i].intensity, rows[i].hideable};
		static const enum metric metrics[] = {
		        SAVED_GB, STEP_MS, INTENSITY, HIDEABLE_PERCENT};

		for (unsigned m = 0; !err && m < 4; m++) {
			row.metric = metrics[m];
			row.paper = paper[m];
			err = run_row(b, &row);
		}
	}
	return err;
}

static int table2(struct bench *b)
{
	static const struct {
		const char *workload;
		const char *policy;
		double numbers[5];
	} rows[] = {
	        {"gpt2-xl", "vdnn", {4.52, 0, 1.85, 1.67, 22.3}},
	        {"gpt2-xl", "superneurons", {1.90, 0.027, 0.43, 0.44, 5.1}},
	        {"gpt2-xl", "swapadvisor", {2.82, 0, 0.99, 0.83, 14.0}},
	        {"gpt2-xl", "checkpoint", {1.16, 0.163, 0, 0, 0}},
	        {"gpt2-xl", "tapeswap", {1.05, 0.053, 0, 0, 3.3}},
	        {"llama-7b", "vdnn", {2.14, 0, 0.62, 0.52, 35.2}},
	        {"llama-7b", "superneurons", {1.43, 0.009, 0.27, 0.15, 11.3}},
	        {"llama-7b", "swapadvisor", {1.20, 0, 0.19, 0.01, 21.6}},
	        {"llama-7b", "checkpoint", {1.18, 0.176, 0, 0, 0}},
	        {"llama-7b", "tapeswap", {1.01, 0.008, 0, 0, 13.0}},
	};
	static const enum metric metrics[] = {STEP_RATIO, REPLAY_RATIO,
	        FORWARD_STALL_RATIO, BACKWARD_STALL_RATIO, OUT_GB};
	int err = 0;

	for (size_t i = 0; !err && i < sizeof(rows) / sizeof(rows[0]); i++) {
		for (unsigned m = 0; !err && m < 5; m++) {
			struct row row = {"table2",
			        {rows[i].workload, "a100", 0, 0}, 40,
			        rows[i].policy, metrics[m], rows[i].numbers[m]};

			err = run_row(b, &row);
		}
	}
	return err;
}

static int table3(struct bench *b)
{
	static const char *const policies[] = {"tapeswap", "swap-first",
	        "recompute-only", "barriers", "ga-seeded", "ga-random"};
	static const struct {
		const char *workload;
		double limit;
		double numbers[6];
	} rows[] = {
	        {"bert-large", 50, {96.3, 94.7, 93.1, 59.1, 96.4, 94.5}},
	        {"bert-large", 20, {87.2, 85.4, 84.2, 55.5, 87.3, NAN}},
	        {"gpt2-xl", 50, {97.6, 96.6, 93.5, 62.2, 97.6, 95.1}},
	        {"gpt2-xl", 20, {88.1, 85.7, 84.1, 56.3, 88.3, NAN}},
	        {"llama-7b", 50, {99.6, 99.5, 91.5, 66.9, 99.6, 99.6}},
	        {"llama-7b", 20, {93.4, 85.5, 82.7, 61.7, 93.8, NAN}},
	};
	int err = 0;

	for (size_t i = 0; !err && i < sizeof(rows) / sizeof(rows[0]); i++) {
		for (unsigned k = 0; !err && k < 6; k++) {
			struct row row = {"table3",
			        {rows[i].workload, "a100", 0, 0}, rows[i].limit,
			        policies[k], PERCENT_OF_IDEAL,
			        rows[i].numbers[k]};

			err = run_row(b, &row);
		}
	}
	return err;
}

static int figure1(struct bench *b)
{
	static const char *const machines[] = {
	        "titan-x", "v100", "a100", "h100"};
	static const char *const workloads[] = {
	        "bert-large", "gpt2-xl", "llama-7b", "vgg-16"};
	int err = 0;

	for (unsigned w = 0; w < 4; w++) {
		for (unsigned m = 0; !err && m < 4; m++) {
			struct row row = {"figure1",
			        {workloads[w], machines[m], 0, 0}, 100, NULL,
			        HIDEABLE_PERCENT, NAN};

			err = run_row(b, &row);
		}
	}
	return err;
}

static int figure3(struct bench *b)
{
	static const enum metric metrics[] = {OUT_GB, REPLAY_GB, KEEP_GB};
	static const double paper[] = {3.3, 12.9, 6.1};
	int err = 0;

	for (unsigned m = 0; !err && m < 3; m++) {
		struct row row = {"figure3", {"gpt2-xl", "a100", 0, 0}, 30,
		        "tapeswap", metrics[m], paper[m]};

		err = run_row(b, &row);
	}
	return err;
}

static int figure4(struct bench *b)
{
	static const char *const workloads[] = {
	        "bert-large", "gpt2-xl", "llama-7b", "vgg-16"};
	static const char *const policies[] = {"tapeswap", "checkpoint",
	        "swapadvisor", "superneurons", "vdnn"};
	int err = 0;

	for (unsigned w = 0; w < 4; w++) {
		bool vgg = w == 3;

		for (unsigned k = 0; k < 5; k++) {
			for (int limit = 95; !err && limit >= (vgg ? 65 : 10);
			        limit -= 5) {
				struct row row = {"figure4",
				        {workloads[w], "a100", 0, 0}, limit,
				        policies[k], PERCENT_OF_IDEAL, NAN};

				err = run_row(b, &row);
			}
		}
	}
	return err;
}

static int figure5(struct bench *b)
{
	struct row row = {"figure5", {"gpt2-xl", "a100", 0, 0}, 50, "vdnn",
	        STEP_MS, 1105};
	int err = run_row(b, &row);

	row.policy = "tapeswap";
	row.paper = 409;
	return err ? err : run_row(b, &row);
}

static int figure6a(struct bench *b)
{
	static const double links[] = {12, 25, 50, 100, 200, 450};
	static const char *const policies[] = {"tapeswap", "checkpoint",
	        "swapadvisor", "superneurons", "vdnn"};
	int err = 0;

	for (unsigned i = 0; i < 6; i++) {
		for (unsigned k = 0; !err && k < 5; k++) {
			struct row row = {"figure6a",
			        {"gpt2-xl", "a100", links[i], 0}, 30,
			        policies[k], PERCENT_OF_IDEAL, NAN};

			err = run_row(b, &row);
			if (err || k)
				continue;
			row.metric = OUT_GB;
			row.paper = links[i] == 12    ? 1.6
			            : links[i] == 200 ? 16.7
			                              : NAN;
			err = run_row(b, &row);
			row.metric = REPLAY_GB;
			row.paper = links[i] == 12    ? 14.6
			            : links[i] == 200 ? 0
			                              : NAN;
			err = err ? err : run_row(b, &row);
		}
	}
	return err;
}

static int figure6b(struct bench *b)
{
	static const unsigned sequences[] = {2048, 4096, 8192, 16384, 32768};
	static const char *const policies[] = {"tapeswap", "checkpoint",
	        "swapadvisor", "superneurons", "vdnn"};
	int err = 0;

	for (unsigned i = 0; i < 5; i++) {
		const struct setting setting = {
		        "llama-7b", "a100", 0, sequences[i]};
		struct row share = {"figure6b", setting, 100, NULL,
		        HIDEABLE_PERCENT,
		        i == 0   ? 36
		        : i == 4 ? 60
		                 : NAN};

		err = err ? err : run_row(b, &share);
		for (unsigned k = 0; !err && k < 5; k++) {
			struct row row = {"figure6b", setting, 30, policies[k],
			        PERCENT_OF_IDEAL,
			        k != 0   ? NAN
			        : i == 0 ? 96.9
			        : i == 4 ? 99.8
			                 : NAN};

			err = run_row(b, &row);
		}
	}
	return err;
}

static const struct {
	const char *name;
	int (*fn)(struct bench *b);
} tables[] = {
        {"table1", table1},
        {"table2", table2},
        {"table3", table3},
        {"figure1", figure1},
        {"figure3", figure3},
        {"figure4", figure4},
        {"figure5", figure5},
        {"figure6a", figure6a},
        {"figure6b", figure6b},
};

static void print_number(const json_t *node)
{
	if (json_is_null(node))
		printf(" %9s", "-");
	else
		printf(" %9.2f", json_number_value(node));
}

static const char *text_of(const json_t *row, const char *key)
{
	const char *text = json_string_value(json_object_get(row, key));

	return text ? text : "";
}

static void print_rows(const json_t *rows)
{
	const json_t *row;
	size_t i;

	printf("%-9s %-11s %-8s %6s %-15s %-25s %9s %9s %9s\n", "table",
	        "workload", "device", "limit", "policy", "metric", "paper",
	        "ours", "bound");
	json_array_foreach (rows, i, row) {
		const json_t *link = json_object_get(row, "link_gb_per_s");
		const json_t *sequence = json_object_get(row, "sequence");
		char device[32];

		snprintf(device, sizeof(device), "%s", text_of(row, "device"));
		if (link)
			snprintf(device, sizeof(device), "%gGB/s",
			        json_number_value(link));
		if (sequence)
			snprintf(device, sizeof(device), "s=%lld",
			        (long long)json_integer_value(sequence));
		printf("%-9s %-11s %-8s %5.0f%% %-15s %-25s",
		        text_of(row, "table"), text_of(row, "workload"), device,
		        json_number_value(
		                json_object_get(row, "limit_percent")),
		        text_of(row, "policy"), text_of(row, "metric"));
		print_number(json_object_get(row, "paper"));
		print_number(json_object_get(row, "ours"));
		print_number(json_object_get(row, "bound"));
		putchar('\n');
	}
}

static int run_tables(const char *only, bool as_json)
{
	struct bench b = {.rows = json_array()};
	bool known = !only;
	int err = 0;

	for (size_t i = 0; !err && i < sizeof(tables) / sizeof(tables[0]);
	        i++) {
		if (only && strcmp(only, tables[i].name))
			continue;
		known = true;
		err = tables[i].fn(&b);
	}
	unload(&b);
	if (err || !known) {
		json_decref(b.rows);
		return known ? ts_cli_bad(NULL, "%s", strerror(-err))
		             : ts_cli_bad("tapeswap tables --help lists them",
		                       "no table '%s'", only);
	}
	if (as_json) {
		json_t *root = ts_cli_json_object("tapeswap-tables");

		json_object_set_new(root, "rows", b.rows);
		err = ts_cli_write_json("-", root);
		json_decref(root);
	} else {
		print_rows(b.rows);
		json_decref(b.rows);
	}
	return err ? ts_cli_bad_output("-", err) : TS_EXIT_YES;
}

int ts_cli_tables(int argc, char **argv)
{
	static const struct option options[] = {
	        {"json", no_argument, NULL, 'j'},
	        {"only", required_argument, NULL, 'o'},
	        {"help", no_argument, NULL, 'h'},
	        {NULL, 0, NULL, 0},
	};
	const char *only = NULL;
	bool as_json = false;
	int opt;

	while ((opt = ts_cli_option(argc, argv, ":h", options)) != -1) {
		switch (opt) {
		case 'j':
			as_json = true;
			break;
		case 'o':
			only = optarg;
			break;
		case 'h':
			fputs(usage, stdout);
			return TS_EXIT_YES;
		default:
			return TS_EXIT_BAD;
		}
	}
	if (ts_cli_check_names(argc, argv, ""))
		return TS_EXIT_BAD;
	return run_tables(only, as_json);
}
