#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Planning time against tape length, from what planner_bench --csv wrote.

Usage: plot_growth.py TABLE PICTURE

Both axes are logarithmic; one line a shape of tape, and beside it a thin one:
n log n through its first point. PICTURE is an SVG file, or PNG where its name
says so and matplotlib is there. Fails where any tape takes more than that by
more than half.
"""

import csv
import math
import pathlib
import sys

WIDTH, HEIGHT, MARGIN = 640, 400, 60
FACTOR = 1.5
COLOURS = ("black", "firebrick", "navy")


def read(path):
    """shape: [(ops, ms)]"""
    shapes = {}
    with open(path, newline="", encoding="utf-8") as file:
        for row in csv.DictReader(file):
            point = int(row["ops"]), float(row["planning_ms"])
            shapes.setdefault(row["shape"], []).append(point)
    return shapes


def n_log_n(points):
    ops, ms = points[0]
    return [
        (n, ms * n * math.log2(n) / (ops * math.log2(ops))) for n, _ in points
    ]


def svg(shapes):
    both = [
        p for points in shapes.values() for p in points + n_log_n(points)
    ]
    low = [math.floor(math.log10(min(p[i] for p in both))) for i in (0, 1)]
    high = [math.ceil(math.log10(max(p[i] for p in both))) for i in (0, 1)]

    def place(point):
        x, y = (
            (math.log10(point[i]) - low[i]) / (high[i] - low[i])
            for i in (0, 1)
        )
        return (
            f"{MARGIN + x * (WIDTH - 2 * MARGIN):.1f},"
            f"{HEIGHT - MARGIN - y * (HEIGHT - 2 * MARGIN):.1f}"
        )

    def line(some, style):
        way = " ".join(place(p) for p in some)
        return f'<polyline points="{way}" fill="none" {style}/>'

    def label(x, y, text, anchor="middle"):
        return f'<text x="{x}" y="{y}" text-anchor="{anchor}">{text}</text>'

    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}"'
        f' height="{HEIGHT}" font-family="sans-serif" font-size="12">',
        '<rect width="100%" height="100%" fill="white"/>',
        label(WIDTH / 2, 24, "Planning time by length of the tape"),
        label(WIDTH / 2, HEIGHT - 12, "ops"),
        label(12, HEIGHT / 2, "ms", "start"),
    ]
    for exponent in range(low[0], high[0] + 1):
        x, y = place((10**exponent, 10 ** low[1])).split(",")
        out.append(label(x, float(y) + 18, f"{10**exponent:,}"))
    for exponent in range(low[1], high[1] + 1):
        x, y = place((10 ** low[0], 10**exponent)).split(",")
        out.append(label(float(x) - 6, y, f"{10.0**exponent:g}", "end"))
    for (name, points), colour in zip(shapes.items(), COLOURS):
        out.append(line(n_log_n(points), 'stroke="silver"'))
        out.append(line(points, f'stroke="{colour}" stroke-width="2"'))
        for point in points:
            x, y = place(point).split(",")
            out.append(f'<circle cx="{x}" cy="{y}" r="4" fill="{colour}"/>')
        x, y = place(points[-1]).split(",")
        out.append(label(x, float(y) - 10, name))
    return "\n".join([*out, "</svg>", ""])


def png(shapes, picture):
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    for (name, points), colour in zip(shapes.items(), COLOURS):
        pyplot.loglog(*zip(*points), "o-", color=colour, label=name)
        pyplot.loglog(*zip(*n_log_n(points)), color="silver")
    pyplot.xlabel("ops")
    pyplot.ylabel("ms")
    pyplot.legend()
    pyplot.savefig(picture)


def main(table, picture):
    shapes = read(table)
    if picture.suffix == ".png":
        png(shapes, picture)
    else:
        picture.write_text(svg(shapes), encoding="utf-8")
    worst = 0
    for name, points in shapes.items():
        for (ops, ms), (_, wanted) in zip(points, n_log_n(points)):
            print(
                f"{name:11} {ops:9} ops {ms:10.2f} ms,"
                f" n log n {wanted:10.2f} ms"
            )
        grown = max(
            ms / wanted for (_, ms), (_, wanted) in zip(points, n_log_n(points))
        )
        print(f"{name}: at most {grown:.2f} x n log n")
        worst = max(worst, grown)
    return 1 if worst > FACTOR else 0


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    sys.exit(main(sys.argv[1], pathlib.Path(sys.argv[2])))
