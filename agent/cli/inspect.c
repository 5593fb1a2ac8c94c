/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * `tapeswap inspect PROFILE`: a page on what fills the memory of a training
 * step, when, and what of it lies idle.
 */
#include <errno.h>
#include <getopt.h>
#include <stdlib.h>
#include <string.h>

#include "agent/base/units.h"
#include "agent/cli/inspection.h"
#include "agent/cli/planning.h"
#include "agent/cli/verdicts.h"
#include "planner/profile_json.h"

#define MS(ns) ((double)(ns)*1e-6)

#define GRAPH_COLUMNS 64
#define GRAPH_ROWS    6
#define TOP_ROWS      8

static const char usage[] =
        "usage: tapeswap inspect PROFILE [--by kind|region|kernel] [--top N] "
        "[--json]\n"
        "       tapeswap inspect PROFILE --verdicts [--json]\n"
        "\n"
        "What a step's memory and time are made of. Exit status 2: PROFILE "
        "cannot be\nread.\n"
        "\n"
        "  --by WHAT   only the table of kinds at the peak, of regions, or "
        "of kernels\n"
        "  --top N     rows of a table (default: 8)\n"
        "  --json      all tables, as JSON\n"
        "  --verdicts  which kernels can be launched again for what they make, "
        "and why\n"
        "              others cannot (a profile of TAPESWAP_REPLAY=1)\n";

static const char *const kind_titles[TS_KINDS] = {
        [TS_KIND_ACTIVATION] = "activations",
        [TS_KIND_PARAMETER] = "parameters",
        [TS_KIND_GRADIENT] = "gradients",
        [TS_KIND_OPTIMIZER] = "optimizer",
        [TS_KIND_INPUT] = "inputs",
        [TS_KIND_SCRATCH] = "scratch",
        [TS_KIND_OTHER] = "other",
};

/* In which the page names them. */
static const enum ts_value_kind kind_order[TS_KINDS] = {TS_KIND_PARAMETER,
        TS_KIND_GRADIENT, TS_KIND_OPTIMIZER, TS_KIND_ACTIVATION, TS_KIND_INPUT,
        TS_KIND_SCRATCH, TS_KIND_OTHER};

struct request {
	const char *by;
	size_t top;
	bool json, verdicts;
};

static long long run_figure(const struct ts_inspection *in, const char *key)
{
	return (long long)json_integer_value(json_object_get(in->run, key));
}

/* A layer's forward pass after a turn: the backward is over. */
static bool is_forward_again(
        const struct ts_profile *p, uint32_t op, uint32_t turn)
{
	for (uint32_t i = 0; i < p->n_regions; i++)
		if (p->regions[i].first_op >= turn &&
		        p->regions[i].first_op <= op)
			return true;
	return false;
}

/* By turns, regions and what ops are. */
static const char *part_of(const struct ts_inspection *in, uint32_t op)
{
	const struct ts_profile *p = in->profile;

	if (p->signatures[p->ops[op].signature].op_class == TS_CLASS_OPTIMIZER)
		return "optimizer";
	if (!p->n_turns)
		return "step";
	for (uint32_t i = p->n_turns; i > 0; i--)
		if (op >= p->turns[i - 1])
			return is_forward_again(p, op, p->turns[i - 1])
			               ? "forward"
			               : "backward";
	return "forward";
}

static void print_head(const struct ts_inspection *in, const char *path)
{
	const struct ts_profile *p = in->profile;
	const char *file = strrchr(path, '/');

	printf("%s  %s, ", file ? file + 1 : path,
	        p->device.name && *p->device.name ? p->device.name
	                                          : "unknown device");
	if (in->run)
		printf("%lld steps seen, ", run_figure(in, "steps"));
	printf("%u ops, %.3f ms as it ran (device busy %.3f)\n", p->n_ops,
	        MS(in->step_ns), MS(in->busy_ns));
	if (in->peak_op < p->n_ops)
		printf("peak %s at op %u (%s)", ts_size(in->peak_bytes).text,
		        in->peak_op, part_of(in, in->peak_op));
	else
		printf("peak %s at the end", ts_size(in->peak_bytes).text);
	printf("; outside the framework %s\n ",
	        ts_size(p->resident_bytes).text);
	for (int i = 0; i < TS_KINDS; i++)
		if (in->kinds[kind_order[i]])
			printf(" %s %s ", kind_titles[kind_order[i]],
			        ts_size(in->kinds[kind_order[i]]).text);
	putchar('\n');
}

/* Most bytes in the column's stretch of time. */
static void fill_columns(
        const struct ts_inspection *in, uint64_t *ret_bytes, uint32_t *ret_op)
{
	const struct ts_graph *g = in->graph;
	uint64_t end = g->start_ns[g->n_ops];

	for (uint32_t op = 0; op < g->n_ops; op++) {
		uint64_t at = end ? g->start_ns[op] : op;
		uint64_t of = end ? end : g->n_ops;
		size_t column =
		        (size_t)((double)at * GRAPH_COLUMNS / (double)(of + 1));
		uint64_t bytes = ts_inspection_live_bytes(in, op);

		if (bytes > ret_bytes[column])
			ret_bytes[column] = bytes;
		ret_op[column] = op;
	}
	/* One long op fills several columns. */
	for (size_t i = 1; i < GRAPH_COLUMNS; i++) {
		if (ret_bytes[i])
			continue;
		ret_bytes[i] = ret_bytes[i - 1];
		ret_op[i] = ret_op[i - 1];
	}
}

/* @unit: what the graph's axis counts. */
static void print_parts(
        const struct ts_inspection *in, const uint32_t *ops, const char *unit)
{
	const char *before = "";
	int written = 0;

	printf("%8s ", unit);
	for (int i = 0; i < GRAPH_COLUMNS; i++) {
		const char *part = part_of(in, ops[i]);

		/* A name needs room for itself and the bar before it. */
		if (strcmp(part, before) && written <= i &&
		        i + (int)strlen(part) < GRAPH_COLUMNS + 8) {
			written = i + printf("%*s|%s", i - written, "", part);
			before = part;
		}
	}
	putchar('\n');
}

static void print_graph(const struct ts_inspection *in)
{
	uint64_t bytes[GRAPH_COLUMNS] = {0}, most = 1;
	uint32_t ops[GRAPH_COLUMNS] = {0};
	struct ts_size_unit unit;

	if (!in->profile->n_ops)
		return;
	fill_columns(in, bytes, ops);
	for (int i = 0; i < GRAPH_COLUMNS; i++)
		if (bytes[i] > most)
			most = bytes[i];
	unit = ts_size_unit(most);
	for (int row = GRAPH_ROWS; row > 0; row--) {
		printf("%8.2f|", (double)most / unit.bytes * row / GRAPH_ROWS);
		for (int i = 0; i < GRAPH_COLUMNS; i++) {
			double level =
			        (double)bytes[i] * GRAPH_ROWS / (double)most;

			putchar(level >= row             ? '#'
			        : level > row - 1 + 0.33 ? ':'
			                                 : ' ');
		}
		putchar('\n');
	}
	print_parts(in, ops, unit.name);
}

static void print_ops(const struct ts_inspection *in, const char *title,
        const struct ts_rows *rows, size_t top)
{
	printf("%-44s %7s %10s %7s\n", title, "ops", "ms", "share");
	for (size_t i = 0; i < rows->count && i < top; i++)
		printf("%-44.44s %7llu %10.3f %5.1f %%\n", rows->rows[i].name,
		        (unsigned long long)rows->rows[i].count,
		        MS(rows->rows[i].ns),
		        in->busy_ns ? 100 * (double)rows->rows[i].ns /
		                              (double)in->busy_ns
		                    : 0.0);
}

static void print_idle(const struct ts_inspection *in, size_t top)
{
	const struct ts_rows *rows = &in->idle;
	struct ts_size_unit unit;

	if (!rows->count)
		return;
	/* The largest comes first. */
	unit = ts_size_unit(rows->rows[0].bytes);
	printf("%-44s %7s %10s %9s\n", "largest idle", "gaps", unit.name,
	        "idle ms");
	for (size_t i = 0; i < rows->count && i < top; i++)
		printf("%-44.44s %7llu %10.2f %9.1f\n", rows->rows[i].name,
		        (unsigned long long)rows->rows[i].count,
		        (double)rows->rows[i].bytes / unit.bytes,
		        MS(rows->rows[i].ns));
}

static void print_kinds(const struct ts_inspection *in)
{
	struct ts_size_unit unit = ts_size_unit(in->peak_bytes);

	printf("%-20s %10s %7s\n", "at the peak", unit.name, "share");
	for (int i = 0; i < TS_KINDS; i++)
		printf("%-20s %10.3f %5.1f %%\n", kind_titles[kind_order[i]],
		        (double)in->kinds[kind_order[i]] / unit.bytes,
		        in->peak_bytes
		                ? 100 * (double)in->kinds[kind_order[i]] /
		                          (double)in->peak_bytes
		                : 0.0);
}

static uint32_t region_types(const struct ts_profile *p)
{
	uint32_t types = 0;

	for (uint32_t i = 0; i < p->n_regions; i++)
		if (p->regions[i].type >= types)
			types = p->regions[i].type + 1;
	return types;
}

static void print_page(const struct ts_inspection *in, const char *path,
        const struct request *r)
{
	const struct ts_profile *p = in->profile;

	print_head(in, path);
	print_graph(in);
	print_ops(in, "family", &in->families, r->top);
	printf("layers %u of %u types; turns %u; values %u\n", p->n_regions,
	        region_types(p), p->n_turns, p->n_values);
	print_idle(in, r->top);
	printf("least limit %s      next: tapeswap sweep %s\n",
	        ts_size(in->graph->floor_bytes).text, path);
}

static json_t *rows_json(const struct ts_rows *rows, const char *ns_key)
{
	json_t *list = json_array();

	for (size_t i = 0; i < rows->count; i++)
		json_array_append_new(
		        list, json_pack("{s:s, s:I, s:I, s:I}", "name",
		                      rows->rows[i].name, "count",
		                      (json_int_t)rows->rows[i].count, "bytes",
		                      (json_int_t)rows->rows[i].bytes, ns_key,
		                      (json_int_t)rows->rows[i].ns));
	return list;
}

static int print_json(const struct ts_inspection *in)
{
	json_t *root = ts_cli_json_object("tapeswap-inspect");
	json_t *kinds = json_object();
	int rc;

	for (int i = 0; i < TS_KINDS; i++)
		json_object_set_new(kinds, ts_value_kind_names[i],
		        json_integer((json_int_t)in->kinds[i]));
	json_object_set_new(
	        root, "step_ns", json_integer((json_int_t)in->step_ns));
	json_object_set_new(
	        root, "busy_ns", json_integer((json_int_t)in->busy_ns));
	json_object_set_new(root, "ops", json_integer(in->profile->n_ops));
	json_object_set_new(root, "steps",
	        in->run ? json_integer(run_figure(in, "steps")) : json_null());
	json_object_set_new(
	        root, "layers", json_integer(in->profile->n_regions));
	json_object_set_new(root, "turns", json_integer(in->profile->n_turns));
	json_object_set_new(
	        root, "peak_bytes", json_integer((json_int_t)in->peak_bytes));
	json_object_set_new(root, "peak_op", json_integer(in->peak_op));
	json_object_set_new(root, "kinds_at_peak", kinds);
	json_object_set_new(root, "smallest_feasible_limit_bytes",
	        json_integer((json_int_t)in->graph->floor_bytes));
	json_object_set_new(
	        root, "families", rows_json(&in->families, "busy_ns"));
	json_object_set_new(
	        root, "kernels", rows_json(&in->kernels, "busy_ns"));
	json_object_set_new(
	        root, "regions", rows_json(&in->regions, "busy_ns"));
	json_object_set_new(root, "idle", rows_json(&in->idle, "idle_ns"));
	rc = ts_cli_write_json("-", root);
	json_decref(root);
	return rc ? ts_cli_bad_output("-", rc) : TS_EXIT_YES;
}

static int print_all(const struct ts_inspection *in, const char *path,
        const struct request *r)
{
	if (r->json)
		return print_json(in);
	if (!r->by)
		print_page(in, path, r);
	else if (!strcmp(r->by, "kind"))
		print_kinds(in);
	else if (!strcmp(r->by, "region"))
		print_ops(in, "region", &in->regions, r->top);
	else
		print_ops(in, "kernel", &in->kernels, r->top);
	return TS_EXIT_YES;
}

/* The planner keeps what it needs; the rest is in the file's tree only. */
static int inspect_file(const char *path, const struct request *r)
{
	struct ts_inspection inspection;
	struct ts_profile profile;
	struct ts_graph graph;
	json_t *root;
	int status = ts_cli_load_profile_tree(path, &profile, &root);

	if (status)
		return status;
	if (r->verdicts) {
		status = ts_cli_print_verdicts(path, root, r->json);
		ts_profile_finish(&profile);
		json_decref(root);
		return status;
	}
	if (ts_graph_init(&graph, &profile, &(struct ts_graph_options){0})) {
		json_decref(root);
		ts_profile_finish(&profile);
		return ts_cli_bad(NULL, "%s: out of memory", path);
	}
	if (ts_inspection_init(&inspection, root, &graph)) {
		status = ts_cli_bad(NULL, "out of memory");
	} else {
		status = print_all(&inspection, path, r);
		ts_inspection_finish(&inspection);
	}
	ts_graph_finish(&graph);
	ts_profile_finish(&profile);
	json_decref(root);
	return status;
}

static bool is_table(const char *name)
{
	return !strcmp(name, "kind") || !strcmp(name, "region") ||
	       !strcmp(name, "kernel");
}

int ts_cli_inspect(int argc, char **argv)
{
	static const struct option options[] = {
	        {"by", required_argument, NULL, 'b'},
	        {"top", required_argument, NULL, 't'},
	        {"json", no_argument, NULL, 'j'},
	        {"verdicts", no_argument, NULL, 'v'},
	        {"help", no_argument, NULL, 'h'},
	        {NULL, 0, NULL, 0},
	};
	struct request r = {.top = TOP_ROWS};
	char *end;
	int opt;

	while ((opt = ts_cli_option(argc, argv, ":h", options)) != -1) {
		switch (opt) {
		case 'b':
			r.by = optarg;
			break;
		case 't':
			r.top = strtoul(optarg, &end, 10);
			if (*optarg < '0' || *optarg > '9' || *end || !r.top)
				return ts_cli_bad("a whole number above 0",
				        "--top: cannot read '%s'", optarg);
			break;
		case 'j':
			r.json = true;
			break;
		case 'v':
			r.verdicts = true;
			break;
		case 'h':
			fputs(usage, stdout);
			return TS_EXIT_YES;
		default:
			return TS_EXIT_BAD;
		}
	}
	if (ts_cli_check_names(argc, argv, "PROFILE"))
		return TS_EXIT_BAD;
	if (r.by && !is_table(r.by))
		return ts_cli_bad(
		        "kind, region or kernel", "--by: no table '%s'", r.by);
	return inspect_file(argv[optind], &r);
}
