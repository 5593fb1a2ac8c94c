/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * `tapeswap report PROFILE PLAN [-o FILE]`: one page of HTML that needs
 * nothing beside it: memory against the limit, timeline, decisions, limits
 * against step times, and verdicts where the profile has them.
 */
#include <stdlib.h>
#include <string.h>

#include "agent/base/units.h"
#include "agent/cli/planning.h"
#include "agent/cli/policies.h"
#include "agent/cli/report_chart.h"
#include "agent/cli/trace.h"
#include "planner/pages.h"
#include "planner/plan_json.h"

#define MS(ns) ((double)(ns)*1e-6)
/* Decisions that are named; all are counted. */
#define TOP_ROWS 30
/* From the peak down to the least. */
#define POINTS 7

static const char usage[] =
        "usage: tapeswap report PROFILE PLAN [-o FILE]\n"
        "\n"
        "Writes one HTML page about a planned step: memory against the limit,\n"
        "timeline, decisions, limits against step times. FILE - is standard\n"
        "output, which is the default.\n";

static const char style[] =
        "body{font:15px sans-serif;max-width:1100px;margin:2em auto;"
        "padding:0 1em;color:#222}\n"
        "svg{width:100%;height:auto;font:12px sans-serif}\n"
        "table{border-collapse:collapse}td,th{padding:2px 10px;"
        "text-align:right;border-bottom:1px solid #ddd}\n"
        "td:first-child,th:first-child{text-align:left}\n"
        "path{fill:none;stroke:#888}.end{text-anchor:end}\n"
        ".memory{stroke:#1565c0;stroke-width:1.5}\n"
        "path.limit{stroke:#c62828;stroke-dasharray:6 3}"
        "text.limit{fill:#c62828}\n"
        ".step{stroke:#1565c0;stroke-width:2}"
        ".bound{stroke:#2e7d32;stroke-dasharray:4 3}\n"
        ".ideal{stroke:#888;stroke-dasharray:2 3}.grid{stroke:#eee}\n"
        ".lane0{fill:#1565c0}.lane1{fill:#8e24aa}.lane2{fill:#ef6c00}"
        ".lane3{fill:#2e7d32}\n"
        ".s1{opacity:.25}.s2{opacity:.5}.s3{opacity:.75}\n";

struct report {
	const struct ts_profile *profile;
	const struct ts_graph *graph;
	const struct ts_plan *plan;
	const json_t *profile_json, *trace;
	FILE *out;
};

/* Names come from programs: nothing of them is markup. */
static void print_text(FILE *out, const char *text)
{
	for (; *text; text++) {
		if (*text == '<')
			fputs("&lt;", out);
		else if (*text == '>')
			fputs("&gt;", out);
		else if (*text == '&')
			fputs("&amp;", out);
		else if (*text == '"')
			fputs("&quot;", out);
		else
			fputc(*text, out);
	}
}

static void print_figures(const struct report *r)
{
	const struct ts_plan *plan = r->plan;
	uint64_t pages = ts_pages_limit(
	        r->profile->resident_bytes, plan->page_static_chunks);

	fprintf(r->out,
	        "<table><tr><th>step</th><td>%.3f ms</td></tr>\n"
	        "<tr><th>without a limit</th><td>%.3f ms</td></tr>\n"
	        "<tr><th>bound of any plan</th><td>%.3f ms</td></tr>\n"
	        "<tr><th>limit</th><td>%s</td></tr>\n"
	        "<tr><th>peak</th><td>%s</td></tr>\n"
	        "<tr><th>peak without a limit</th><td>%s</td></tr>\n"
	        "<tr><th>limit that a run in pages takes</th><td>%s</td></tr>\n"
	        "<tr><th>copied out a step</th><td>%s</td></tr>\n"
	        "<tr><th>made again a step</th><td>%.3f ms</td></tr></table>\n",
	        MS(plan->predicted_step_ns), MS(plan->unlimited_step_ns),
	        MS(plan->bound_step_ns), ts_size(plan->limit_bytes).text,
	        ts_size(plan->predicted_peak_bytes).text,
	        ts_size(plan->unlimited_peak_bytes).text,
	        plan->page_static_chunks ? ts_size(pages).text : "not known",
	        ts_size(plan->swap_bytes).text, MS(plan->replay_ns));
}

static uint64_t size_of(const struct report *r, const struct ts_decision *d)
{
	return r->profile->values[d->value].size_bytes;
}

static void print_totals(const struct report *r)
{
	fputs("<table><tr><th>decision</th><th>gaps</th><th>size</th></tr>\n",
	        r->out);
	for (int action = 0; action < TS_ACTIONS; action++) {
		uint64_t bytes = 0;
		uint32_t count = 0;

		for (uint32_t i = 0; i < r->plan->n_decisions; i++) {
			const struct ts_decision *d = &r->plan->decisions[i];

			if ((int)d->action != action)
				continue;
			count++;
			bytes += size_of(r, d);
		}
		fprintf(r->out,
		        "<tr class=\"total\"><td>%s</td><td>%u</td>"
		        "<td>%s</td></tr>\n",
		        ts_action_names[action], count, ts_size(bytes).text);
	}
	fputs("</table>\n", r->out);
}

static const char *maker(const struct report *r, const struct ts_decision *d)
{
	uint32_t signature = r->profile->values[d->value].signature;

	return signature == TS_NONE ? "(there before the step)"
	                            : r->profile->signatures[signature].name;
}

/* The largest that move, one after the other. */
static void print_decisions(const struct report *r)
{
	bool *shown = calloc(r->plan->n_decisions + 1ull, sizeof(*shown));

	fputs("<table><tr><th>made by</th><th>size</th><th>what</th>"
	      "<th>after op</th><th>before op</th><th>costs ms</th></tr>\n",
	        r->out);
	for (int row = 0; shown && row < TOP_ROWS; row++) {
		const struct ts_decision *best = NULL;

		for (uint32_t i = 0; i < r->plan->n_decisions; i++) {
			const struct ts_decision *d = &r->plan->decisions[i];

			if (!shown[i] && d->action != TS_KEEP &&
			        (!best || size_of(r, d) > size_of(r, best)))
				best = d;
		}
		if (!best)
			break;
		shown[best - r->plan->decisions] = true;
		fputs("<tr><td>", r->out);
		print_text(r->out, maker(r, best));
		fprintf(r->out,
		        "</td><td>%s</td><td>%s</td><td>%u</td><td>%u</td>"
		        "<td>%.3f</td></tr>\n",
		        ts_size(size_of(r, best)).text,
		        ts_action_names[best->action], best->from_op,
		        best->to_op, MS(best->cost_ns));
	}
	fputs("</table>\n", r->out);
	free(shown);
}

static void print_sweep(const struct report *r)
{
	struct ts_report_point points[POINTS];
	const struct ts_graph *g = r->graph;
	uint64_t span = g->peak_bytes - g->floor_bytes;
	/* Other limits as this one was planned for. */
	const char *policy =
	        r->plan->n_replays ? TS_POLICY_PLANNER : TS_POLICY_NO_REPLAY;

	for (uint32_t i = 0; i < POINTS; i++) {
		struct ts_cli_result result = {0};

		points[i].limit_bytes = g->peak_bytes - span * i / (POINTS - 1);
		points[i].fits = !ts_cli_policy_run(g, points[i].limit_bytes,
		                         policy, true, &result) &&
		                 result.outcome.fits;
		points[i].step_ns = result.outcome.step_ns;
		points[i].bound_ns = result.bound_ns;
	}
	ts_report_sweep(r->out, points, POINTS, g->start_ns[g->n_ops]);
}

static void print_verdicts(const struct report *r)
{
	const json_t *signature;
	size_t index;

	if (!json_integer_value(json_object_get(
	            json_object_get(r->profile_json, "proof"), "shadow_steps")))
		return;
	fputs("<h2>What can be launched again</h2>\n<table><tr><th>kernel</th>"
	      "<th>ops</th><th>proved</th><th>verdict</th><th>because it</th>"
	      "</tr>\n",
	        r->out);
	json_array_foreach (json_object_get(r->profile_json, "signatures"),
	        index, signature) {
		const json_t *replay = json_object_get(signature, "replay");
		const char *name = json_string_value(
		        json_object_get(signature, "function"));
		const char *verdict =
		        json_string_value(json_object_get(replay, "verdict"));
		const char *reason =
		        json_string_value(json_object_get(replay, "reason"));

		if (!name || !verdict || !reason)
			continue;
		fputs("<tr><td>", r->out);
		print_text(r->out, name);
		fprintf(r->out, "</td><td>%lld</td><td>%lld</td><td>",
		        (long long)json_integer_value(
		                json_object_get(replay, "ops")),
		        (long long)json_integer_value(
		                json_object_get(replay, "proved")));
		print_text(r->out, verdict);
		fputs("</td><td>", r->out);
		print_text(r->out, reason);
		fputs("</td></tr>\n", r->out);
	}
	fputs("</table>\n", r->out);
}

static void print_page(const struct report *r)
{
	fputs("<!doctype html>\n<html lang=\"en\"><head><meta "
	      "charset=\"utf-8\">\n<title>tapeswap: ",
	        r->out);
	print_text(r->out, r->profile->name);
	fprintf(r->out, "</title>\n<style>\n%s</style></head><body>\n<h1>",
	        style);
	print_text(r->out, r->profile->name);
	fputs("</h1>\n", r->out);
	print_figures(r);
	fputs("<h2>Memory against the limit</h2>\n", r->out);
	ts_report_memory(r->out, r->trace);
	fputs("<h2>Timeline</h2>\n", r->out);
	ts_report_timeline(r->out, r->trace);
	fputs("<h2>Decisions</h2>\n", r->out);
	print_totals(r);
	print_decisions(r);
	fputs("<h2>Step time by limit</h2>\n", r->out);
	print_sweep(r);
	print_verdicts(r);
	fputs("</body></html>\n", r->out);
}

static int write_page(struct report *r, const char *path)
{
	struct ts_cli_file file;
	int err;

	err = ts_cli_open(&file, path);
	if (err)
		return ts_cli_bad_output(path, err);
	r->out = file.stream;
	print_page(r);
	err = ts_cli_commit(&file, true);
	return err ? ts_cli_bad_output(path, err) : TS_EXIT_YES;
}

static int report(const struct ts_cli_pair *pair)
{
	const struct ts_profile *profile = &pair->profile;
	const char *plan_path = pair->plan_path, *path = pair->output;
	struct ts_input_error error;
	struct ts_graph graph;
	struct ts_plan plan;
	json_t *trace = NULL;
	struct report r = {.profile = profile, .graph = &graph, .plan = &plan};
	int status;

	if (ts_plan_load(plan_path, &plan, &error))
		return ts_cli_bad(NULL, "%s: %s: %s", plan_path, error.path,
		        error.message);
	if (ts_graph_init(&graph, profile, &(struct ts_graph_options){0})) {
		ts_plan_finish(&plan);
		return ts_cli_bad(NULL, "out of memory");
	}
	status = ts_cli_make_trace(&graph, &plan, plan_path, &trace);
	r.trace = trace;
	r.profile_json = pair->profile_tree;
	if (!status)
		status = write_page(&r, path);
	json_decref(trace);
	ts_graph_finish(&graph);
	ts_plan_finish(&plan);
	return status;
}

int ts_cli_report(int argc, char **argv)
{
	return ts_cli_with_pair(argc, argv, usage, true, report);
}
