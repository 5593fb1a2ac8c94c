/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "agent/cli/report_chart.h"

#include <stdlib.h>
#include <string.h>

#include "agent/base/units.h"
#include "planner/model.h"

#define WIDTH  1000
#define HEIGHT 260
/* For the longest of a number with its unit, as 1023.99 MiB. */
#define LEFT   96
#define FOOT   24
#define PARTS  4 /* of an axis */
#define LANE   22
#define COLS   1000 /* of the timeline: what is finer is added up */
#define SHADES 4

/* What the trace counts memory in. */
#define GIB 0x1p30

static void open_svg(FILE *out, const char *label, int height)
{
	fprintf(out,
	        "<svg role=\"img\" aria-label=\"%s\" viewBox=\"0 0 %d %d\">\n",
	        label, LEFT + WIDTH + 20, height);
}

static double number(const json_t *object, const char *key)
{
	return json_number_value(json_object_get(object, key));
}

static const char *text(const json_t *object, const char *key)
{
	const char *found = json_string_value(json_object_get(object, key));

	return found ? found : "";
}

static double step_us(const json_t *trace)
{
	return number(json_object_get(trace, "otherData"), "step_ns") * 1e-3;
}

static double counted(const json_t *event)
{
	return number(json_object_get(event, "args"), "GiB");
}

static double most_memory(const json_t *trace)
{
	double most = 0;
	const json_t *event;
	size_t index;

	json_array_foreach (json_object_get(trace, "traceEvents"), index, event)
		if (!strcmp(text(event, "ph"), "C") && counted(event) > most)
			most = counted(event);
	return most;
}

static double x_at(double us, double step)
{
	double x = step > 0 ? us / step : 0;

	return LEFT + WIDTH * (x < 1 ? x : 1);
}

static double y_at(double value, double most)
{
	return HEIGHT - (most > 0 ? (HEIGHT - 10) * value / most : 0);
}

static void label(FILE *out, double x, double y, bool ends, double value,
        const char *unit)
{
	fprintf(out, "<text x=\"%.0f\" y=\"%.0f\"%s>%.*f %s</text>\n", x, y,
	        ends ? " class=\"end\"" : "",
	        value <= 0    ? 0
	        : value < 100 ? 2
	                      : 1,
	        value, unit);
}

/* Below a chart of @height: from 0 to @last. */
static void across(FILE *out, int height, double last, const char *unit)
{
	fprintf(out, "<path class=\"axis\" d=\"M%d %dH%d\"/>\n", LEFT, height,
	        LEFT + WIDTH);
	for (int i = 0; i <= PARTS; i++) {
		double x = LEFT + WIDTH * i / (double)PARTS;

		fprintf(out, "<path class=\"axis\" d=\"M%.0f %dv4\"/>\n", x,
		        height);
		label(out, x, height + 16, i, last * i / PARTS, unit);
	}
}

static void axis(FILE *out, double most, const char *unit, double last,
        const char *last_unit)
{
	across(out, HEIGHT, last, last_unit);
	for (int i = 1; i <= PARTS; i++) {
		double value = most * i / PARTS, y = y_at(value, most);

		fprintf(out, "<path class=\"grid\" d=\"M%d %.1fH%d\"/>\n", LEFT,
		        y, LEFT + WIDTH);
		label(out, LEFT - 6, y + 4, true, value, unit);
	}
}

void ts_report_memory(FILE *out, const json_t *trace)
{
	double step = step_us(trace), most = most_memory(trace);
	double limit =
	        number(json_object_get(trace, "otherData"), "limit_bytes");
	struct ts_size_unit unit = ts_size_unit((uint64_t)(most * GIB));
	const json_t *event;
	bool first = true;
	size_t index;

	open_svg(out, "memory over the step", HEIGHT + FOOT);
	axis(out, most * GIB / unit.bytes, unit.name, step * 1e-3, "ms");
	fputs("<path class=\"memory\" d=\"", out);
	json_array_foreach (
	        json_object_get(trace, "traceEvents"), index, event) {
		double x, y;

		if (strcmp(text(event, "ph"), "C") ||
		        strcmp(text(event, "name"), "memory"))
			continue;
		x = x_at(number(event, "ts"), step);
		y = y_at(counted(event), most);
		fprintf(out, first ? "M%.1f %.1f" : "H%.1fV%.1f", x, y);
		first = false;
	}
	fprintf(out,
	        "\"/>\n<path class=\"limit\" d=\"M%d %.1fH%d\"/>\n"
	        "<text x=\"%d\" y=\"%.1f\" class=\"limit\">limit %s"
	        "</text>\n</svg>\n",
	        LEFT, y_at(limit / GIB, most), LEFT + WIDTH, LEFT + 6,
	        y_at(limit / GIB, most) + 14, ts_size((uint64_t)limit).text);
}

/* How busy a lane is, column by column. */
static void add_slice(double *busy, double begin, double end, double step)
{
	double from = begin / step * COLS, to = end / step * COLS;

	for (int i = from > 0 ? (int)from : 0; i < COLS && i < to; i++) {
		double left = i > from ? i : from;
		double right = i + 1 < to ? i + 1 : to;

		busy[i] += right - left;
	}
}

static int shade(double busy)
{
	int level = (int)(busy * SHADES + 0.5);

	return level < SHADES ? level : SHADES;
}

static void draw_lane(FILE *out, const double *busy, int row, const char *name)
{
	fprintf(out, "<text x=\"%d\" y=\"%d\" class=\"end\">%s</text>\n",
	        LEFT - 6, row * LANE + 15, name);
	for (int i = 0, end; i < COLS; i = end) {
		int level = shade(busy[i]);

		for (end = i + 1; end < COLS && shade(busy[end]) == level;)
			end++;
		if (level)
			fprintf(out,
			        "<rect class=\"lane%d s%d\" x=\"%d\" y=\"%d\" "
			        "width=\"%d\" height=\"%d\"/>\n",
			        row, level, LEFT + i, row * LANE + 2, end - i,
			        LANE - 4);
	}
}

void ts_report_timeline(FILE *out, const json_t *trace)
{
	static const struct {
		int lane;
		const char *name;
	} lanes[] = {{TS_LANE_COMPUTE, "compute"}, {TS_LANE_REPLAY, "replay"},
	        {TS_LANE_D2H, "out"}, {TS_LANE_H2D, "in"}};
	double step = step_us(trace);

	open_svg(out, "timeline of the step", 4 * LANE + FOOT);
	for (int row = 0; row < 4; row++) {
		double *busy = calloc(COLS, sizeof(*busy));
		const json_t *event;
		size_t index;

		json_array_foreach (
		        json_object_get(trace, "traceEvents"), index, event)
			if (busy && !strcmp(text(event, "ph"), "X") &&
			        (int)number(event, "tid") == lanes[row].lane)
				add_slice(busy, number(event, "ts"),
				        number(event, "ts") +
				                number(event, "dur"),
				        step);
		if (busy)
			draw_lane(out, busy, row, lanes[row].name);
		free(busy);
	}
	across(out, 4 * LANE, step * 1e-3, "ms");
	fputs("</svg>\n", out);
}

static void sweep_line(FILE *out, const struct ts_report_point *points,
        uint32_t count, double most, const char *class, bool bound)
{
	double widest = (double)points[0].limit_bytes;
	bool first = true;

	fprintf(out, "<path class=\"%s\" d=\"", class);
	for (uint32_t i = 0; i < count; i++) {
		uint64_t ns = bound ? points[i].bound_ns : points[i].step_ns;

		if (!points[i].fits)
			continue;
		fprintf(out, "%c%.1f %.1f", first ? 'M' : 'L',
		        LEFT + WIDTH * (double)points[i].limit_bytes / widest,
		        y_at((double)ns * 1e-6, most));
		first = false;
	}
	fputs("\"/>\n", out);
}

/*
 * What a line of a chart is, below it; its last text is left open where it
 * ends with a space.
 */
static void key(FILE *out, int place, const char *class, const char *what)
{
	int x = LEFT + place * WIDTH / 4, y = HEIGHT + FOOT + LANE - 6;

	if (class)
		fprintf(out, "<path class=\"%s\" d=\"M%d %dh24\"/>\n", class, x,
		        y - 4);
	fprintf(out, "<text x=\"%d\" y=\"%d\">%s%s", x + (class ? 30 : 0), y,
	        what, what[strlen(what) - 1] == ' ' ? "" : "</text>\n");
}

void ts_report_sweep(FILE *out, const struct ts_report_point *points,
        uint32_t count, uint64_t ideal_ns)
{
	struct ts_size_unit unit = ts_size_unit(points[0].limit_bytes);
	double most = 0;

	for (uint32_t i = 0; i < count; i++)
		if (points[i].fits && (double)points[i].step_ns * 1e-6 > most)
			most = (double)points[i].step_ns * 1e-6;
	open_svg(out, "step time by limit", HEIGHT + FOOT + LANE);
	axis(out, most, "ms", (double)points[0].limit_bytes / unit.bytes,
	        unit.name);
	sweep_line(out, points, count, most, "step", false);
	sweep_line(out, points, count, most, "bound", true);
	fprintf(out, "<path class=\"ideal\" d=\"M%d %.1fH%d\"/>\n", LEFT,
	        y_at((double)ideal_ns * 1e-6, most), LEFT + WIDTH);
	key(out, 0, "step", "by this planner");
	key(out, 1, "bound", "bound of any plan");
	key(out, 2, "ideal", "without a limit: ");
	fprintf(out, "%.3f ms</text>\n", (double)ideal_ns * 1e-6);
	key(out, 3, NULL, "the least limit: ");
	fprintf(out, "%s</text>\n</svg>\n",
	        ts_size(points[count - 1].limit_bytes).text);
}
