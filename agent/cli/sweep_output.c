/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "agent/cli/sweep_output.h"
#include "agent/cli/cli.h"

#include <inttypes.h>
#include <string.h>

#include "agent/base/units.h"

#define MIB    (UINT64_C(1) << 20)
#define MS(ns) ((double)(ns)*1e-6)

/* A limit is recommended while it costs less than this. */
#define WORTH_IT 1.10

static uint64_t ideal_ns(const struct ts_sweep *sweep)
{
	return sweep->graph->start_ns[sweep->graph->n_ops];
}

/* Steps of no time at all are as long as any other of them. */
static double slower(const struct ts_sweep *sweep, uint64_t ns)
{
	uint64_t ideal = ideal_ns(sweep);

	return ideal ? (double)ns / (double)ideal : 1;
}

/* "swap 55 %, replay 45 %" of what is moved at all. */
static void print_means(const struct ts_cli_result *r)
{
	double moved = (double)(r->swap_bytes + r->replay_bytes);
	int swap;

	if (moved <= 0) {
		printf("nothing moved");
		return;
	}
	swap = (int)(100 * (double)r->swap_bytes / moved + 0.5);
	if (swap == 100)
		printf("swap");
	else if (!swap)
		printf("replay");
	else
		printf("swap %d %%, replay %d %%", swap, 100 - swap);
}

/* In which limits of the sweep are given: the first is the largest. */
static struct ts_size_unit unit_of(const struct ts_sweep *sweep)
{
	return ts_size_unit(sweep->limits[0]);
}

/* And what the table's policy keeps on the host. */
static struct ts_size_unit host_unit(const struct ts_sweep *sweep)
{
	uint64_t most = 0;

	for (uint32_t i = 0; i < sweep->n_limits; i++)
		if (sweep->results[i].outcome.fits &&
		        sweep->results[i].swap_bytes > most)
			most = sweep->results[i].swap_bytes;
	return most ? ts_size_unit(most) : unit_of(sweep);
}

static void print_second(const struct ts_sweep *sweep, uint32_t limit)
{
	const struct ts_outcome *o =
	        &sweep->results[sweep->n_limits + limit].outcome;

	if (o->fits)
		printf("%11.2f  ", slower(sweep, o->step_ns));
	else
		printf("%11s  ", "-");
}

/* What a run takes for a result of the first policy, as far as is known. */
static uint64_t run_limit(const struct ts_sweep *sweep, uint32_t i)
{
	uint64_t pages = sweep->results[i].run_bytes;

	return pages ? pages : sweep->limits[i];
}

/* Of the first policy: what is worth it and takes least; else n_limits. */
static uint32_t recommended(const struct ts_sweep *sweep)
{
	uint32_t best = sweep->n_limits;

	for (uint32_t i = 0; i < sweep->n_limits; i++) {
		const struct ts_outcome *o = &sweep->results[i].outcome;

		if (o->fits &&
		        (double)o->step_ns <
		                WORTH_IT * (double)ideal_ns(sweep) &&
		        (best == sweep->n_limits ||
		                run_limit(sweep, i) < run_limit(sweep, best)))
			best = i;
	}
	return best;
}

/* How to run what is recommended, if the first policy is a run's. */
static void print_use(const struct ts_sweep *sweep, uint32_t arrow)
{
	const char *policy = sweep->policies[0];
	uint64_t pages = sweep->results[arrow].run_bytes;
	bool replay = !strcmp(policy, TS_POLICY_PLANNER);

	printf("<- smallest limit under 10 %% slower; predicted for %s\n",
	        replay ? "swapping and making values again"
	        : !strcmp(policy, TS_POLICY_NO_REPLAY) ? "swapping alone"
	                                               : policy);
	if (pages)
		printf("   (in pages of 2 MiB where PyTorch puts its blocks a "
		       "run takes %s for that, or a\n    little more: its own "
		       "line \"plan: step\" says what it gets)\n",
		        ts_size(pages).text);
	if (replay || !strcmp(policy, TS_POLICY_NO_REPLAY))
		printf("use: TAPESWAP_LIMIT=%" PRIu64 "MiB tapeswap run -- "
		       "PROGRAM\n",
		        (run_limit(sweep, arrow) + MIB - 1) / MIB);
}

void ts_sweep_table(const struct ts_sweep *sweep)
{
	uint32_t arrow = recommended(sweep);
	const struct ts_graph *g = sweep->graph;
	struct ts_size_unit unit = unit_of(sweep), host = host_unit(sweep);
	bool two = sweep->n_policies == 2;

	printf("limit %-5s  in a run   step ms  slower   bound  host %-5s",
	        unit.name, host.name);
	if (two)
		printf("%11.11s  ",
		        strcmp(sweep->policies[1], TS_POLICY_PLANNER)
		                ? sweep->policies[1]
		                : "with replay");
	puts("means");
	for (uint32_t i = 0; i < sweep->n_limits; i++) {
		const struct ts_cli_result *r = &sweep->results[i];

		if (!r->outcome.fits) {
			printf("%9.2f    does not fit\n",
			        (double)sweep->limits[i] / unit.bytes);
			continue;
		}
		printf("%9.2f %s ", (double)sweep->limits[i] / unit.bytes,
		        i == arrow ? "<-" : "  ");
		if (r->run_bytes)
			printf("%8.2f", (double)r->run_bytes / unit.bytes);
		else
			printf("%8s", "-");
		printf("  %8.1f  %6.2f  %6.2f  %8.1f  ", MS(r->outcome.step_ns),
		        slower(sweep, r->outcome.step_ns),
		        slower(sweep, r->bound_ns),
		        (double)r->swap_bytes / host.bytes);
		if (two)
			print_second(sweep, i);
		print_means(r);
		putchar('\n');
	}
	if (sweep->run_graph != g)
		printf("< %s no plan; the pager alone goes on\n",
		        ts_size(sweep->run_graph->floor_bytes).text);
	printf("< %s does not fit: op %u (%s) needs that much at once\n",
	        ts_size(g->floor_bytes).text, g->floor_op,
	        g->n_ops ? g->profile
	                           ->signatures[g->profile->ops[g->floor_op]
	                                                .signature]
	                           .name
	                 : "none");
	if (arrow < sweep->n_limits)
		print_use(sweep, arrow);
}

int ts_sweep_csv(const struct ts_sweep *sweep, const char *path)
{
	struct ts_cli_file file;
	int err = ts_cli_open(&file, path);

	if (err)
		return err;
	fputs("policy,limit_bytes,fits,step_ns,bound_step_ns,unlimited_step_ns,"
	      "peak_bytes,swap_bytes,replay_ns,d2h_bytes,run_bytes\n",
	        file.stream);
	for (uint32_t k = 0; k < sweep->n_policies; k++) {
		for (uint32_t i = 0; i < sweep->n_limits; i++) {
			const struct ts_cli_result *r =
			        &sweep->results[k * sweep->n_limits + i];
			const struct ts_outcome *o = &r->outcome;

			fprintf(file.stream, "%s,%llu,%d,", sweep->policies[k],
			        (unsigned long long)sweep->limits[i], o->fits);
			if (o->fits)
				fprintf(file.stream, "%llu",
				        (unsigned long long)o->step_ns);
			fputc(',', file.stream);
			if (r->bound_ns != TS_NEVER)
				fprintf(file.stream, "%llu",
				        (unsigned long long)r->bound_ns);
			fprintf(file.stream, ",%llu,",
			        (unsigned long long)ideal_ns(sweep));
			if (o->fits)
				fprintf(file.stream, "%llu,%llu,%llu,%llu",
				        (unsigned long long)o->peak_bytes,
				        (unsigned long long)r->swap_bytes,
				        (unsigned long long)o->replay_ns,
				        (unsigned long long)o->d2h_bytes);
			else
				fputs(",,,", file.stream);
			fputc(',', file.stream);
			if (r->run_bytes)
				fprintf(file.stream, "%llu",
				        (unsigned long long)r->run_bytes);
			fputc('\n', file.stream);
		}
	}
	return ts_cli_commit(&file, true);
}

static json_t *known(bool is_known, uint64_t value)
{
	return is_known ? json_integer((json_int_t)value) : json_null();
}

int ts_sweep_json(const struct ts_sweep *sweep, const char *path)
{
	json_t *root = ts_cli_json_object("tapeswap-sweep"), *rows;
	int err;

	rows = json_array();
	for (uint32_t k = 0; k < sweep->n_policies; k++) {
		for (uint32_t i = 0; i < sweep->n_limits; i++) {
			const struct ts_cli_result *r =
			        &sweep->results[k * sweep->n_limits + i];
			const struct ts_outcome *o = &r->outcome;
			json_t *row = json_object();

			json_object_set_new(
			        row, "policy", json_string(sweep->policies[k]));
			json_object_set_new(row, "limit_bytes",
			        known(true, sweep->limits[i]));
			json_object_set_new(row, "fits", json_boolean(o->fits));
			json_object_set_new(
			        row, "step_ns", known(o->fits, o->step_ns));
			json_object_set_new(row, "bound_step_ns",
			        known(r->bound_ns != TS_NEVER, r->bound_ns));
			json_object_set_new(row, "peak_bytes",
			        known(o->fits, o->peak_bytes));
			json_object_set_new(row, "swap_bytes",
			        known(o->fits, r->swap_bytes));
			json_object_set_new(
			        row, "replay_ns", known(o->fits, o->replay_ns));
			json_object_set_new(
			        row, "d2h_bytes", known(o->fits, o->d2h_bytes));
			json_object_set_new(row, "run_bytes",
			        known(r->run_bytes != 0, r->run_bytes));
			json_array_append_new(rows, row);
		}
	}
	json_object_set_new(root, "profile",
	        json_string(sweep->graph->profile->name
	                            ? sweep->graph->profile->name
	                            : ""));
	json_object_set_new(
	        root, "unlimited_step_ns", known(true, ideal_ns(sweep)));
	json_object_set_new(root, "unlimited_peak_bytes",
	        known(true, sweep->graph->peak_bytes));
	json_object_set_new(root, "smallest_feasible_limit_bytes",
	        known(true, sweep->graph->floor_bytes));
	json_object_set_new(root, "least_planned_limit_bytes",
	        known(true, sweep->run_graph->floor_bytes));
	json_object_set_new(root, "rows", rows);
	err = ts_cli_write_json(path, root);
	json_decref(root);
	return err;
}

/* Plot area of the SVG, in its own units. */
enum {
	LEFT = 60,
	TOP = 20,
	WIDTH = 560,
	HEIGHT = 320,
	LEGEND = 150,
};

struct axes {
	double low_bytes, high_bytes;
	struct ts_size_unit unit;
	double most_slower;
};

static double x_of(const struct axes *a, uint64_t limit)
{
	double span = a->high_bytes - a->low_bytes;

	return LEFT +
	       WIDTH * (span > 0 ? ((double)limit - a->low_bytes) / span : 0.5);
}

static double y_of(const struct axes *a, double slower)
{
	double span = a->most_slower - 1;

	if (slower > a->most_slower)
		slower = a->most_slower;
	return TOP + HEIGHT * (1 - (slower - 1) / span);
}

static void svg_line(FILE *to, const struct ts_sweep *sweep,
        const struct axes *a, uint32_t policy, const char *colour)
{
	bool down = false;

	fprintf(to, "<path fill=\"none\" stroke=\"%s\" stroke-width=\"2\" d=\"",
	        colour);
	for (uint32_t i = 0; i < sweep->n_limits; i++) {
		const struct ts_outcome *o =
		        &sweep->results[policy * sweep->n_limits + i].outcome;

		if (!o->fits) {
			down = false;
			continue;
		}
		fprintf(to, "%s%.1f %.1f ", down ? "L" : "M",
		        x_of(a, sweep->limits[i]),
		        y_of(a, slower(sweep, o->step_ns)));
		down = true;
	}
	fputs("\"/>\n", to);
	fprintf(to, "<text x=\"%d\" y=\"%u\" fill=\"%s\">%s</text>\n",
	        LEFT + WIDTH + 12, TOP + 12 + policy * 16, colour,
	        sweep->policies[policy]);
}

static void svg_bound(
        FILE *to, const struct ts_sweep *sweep, const struct axes *a)
{
	bool down = false;

	fputs("<path fill=\"none\" stroke=\"#888\" stroke-dasharray=\"4 3\" "
	      "d=\"",
	        to);
	for (uint32_t i = 0; i < sweep->n_limits; i++) {
		uint64_t bound = sweep->results[i].bound_ns;

		if (bound == TS_NEVER)
			continue;
		fprintf(to, "%s%.1f %.1f ", down ? "L" : "M",
		        x_of(a, sweep->limits[i]),
		        y_of(a, (double)bound / (double)ideal_ns(sweep)));
		down = true;
	}
	fprintf(to,
	        "\"/>\n<text x=\"%d\" y=\"%u\" fill=\"#888\">bound</text>\n",
	        LEFT + WIDTH + 12, TOP + 12 + sweep->n_policies * 16);
}

static void svg_axes(FILE *to, const struct axes *a)
{
	fprintf(to,
	        "<rect x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\" "
	        "fill=\"none\" stroke=\"#333\"/>\n",
	        LEFT, TOP, WIDTH, HEIGHT);
	for (int i = 0; i <= 4; i++) {
		double bytes =
		        a->low_bytes + (a->high_bytes - a->low_bytes) * i / 4;
		double slower = 1 + (a->most_slower - 1) * i / 4;

		fprintf(to,
		        "<text x=\"%d\" y=\"%d\" text-anchor=\"middle\">%.1f"
		        "</text>\n",
		        LEFT + WIDTH * i / 4, TOP + HEIGHT + 16,
		        bytes / a->unit.bytes);
		fprintf(to,
		        "<text x=\"%d\" y=\"%.1f\" text-anchor=\"end\">%.2f"
		        "</text>\n",
		        LEFT - 6, y_of(a, slower) + 4, slower);
	}
	fprintf(to,
	        "<text x=\"%d\" y=\"%d\" text-anchor=\"middle\">memory limit "
	        "(%s)</text>\n",
	        LEFT + WIDTH / 2, TOP + HEIGHT + 36, a->unit.name);
	fprintf(to,
	        "<text transform=\"translate(16 %d) rotate(-90)\" "
	        "text-anchor=\"middle\">step time / unlimited</text>\n",
	        TOP + HEIGHT / 2);
}

int ts_sweep_svg(const struct ts_sweep *sweep, const char *path)
{
	static const char *const colours[] = {"#1f5fa8", "#c4442f", "#2f8f4e",
	        "#8a56a8", "#b8862d", "#2b8f9c", "#a83f76", "#6b6b1f"};
	struct axes a = {.most_slower = 1.05, .unit = unit_of(sweep)};
	struct ts_cli_file file;
	int err = ts_cli_open(&file, path);

	if (err)
		return err;
	a.high_bytes = (double)sweep->limits[0];
	a.low_bytes = (double)sweep->limits[sweep->n_limits - 1];
	for (uint32_t i = 0; i < sweep->n_policies * sweep->n_limits; i++) {
		const struct ts_outcome *o = &sweep->results[i].outcome;
		double times = slower(sweep, o->step_ns);

		if (o->fits && times > a.most_slower)
			a.most_slower = times;
	}
	fprintf(file.stream,
	        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d "
	        "%d\" font-family=\"sans-serif\" font-size=\"12\">\n"
	        "<rect width=\"100%%\" height=\"100%%\" fill=\"white\"/>\n",
	        LEFT + WIDTH + LEGEND, TOP + HEIGHT + 50);
	svg_axes(file.stream, &a);
	for (uint32_t k = 0; k < sweep->n_policies; k++)
		svg_line(file.stream, sweep, &a, k,
		        colours[k % (sizeof(colours) / sizeof(colours[0]))]);
	svg_bound(file.stream, sweep, &a);
	fputs("</svg>\n", file.stream);
	return ts_cli_commit(&file, true);
}
