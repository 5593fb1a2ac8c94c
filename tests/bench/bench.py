#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""What the preloaded library costs, on a driver that does nothing.

Usage: bench.py LIBRARY LAUNCHES STARTS NULL_FOLDER [--check | --slack N]

Prints one line a figure: without the library, with it, the difference, and
what is allowed. All are medians of one run, alternating, so that a busy
machine slows both. With --check a figure above what is allowed is a failure;
with --slack one above N times that, by fewer runs, as a test on any machine.
"""

import os
import statistics
import subprocess
import sys
import tempfile

LIBRARY, LAUNCHES, STARTS, FOLDER = (
    os.path.abspath(p) for p in sys.argv[1:5]
)
SLACK = float(sys.argv[6]) if sys.argv[5:6] == ["--slack"] else None
CHECK = "--check" in sys.argv[5:] or SLACK
REPEATS = 3 if SLACK else 7
TRUE_REPEATS = 50 if SLACK else 400
AT_ONCE = 50
AT_ONCE_REPEATS = 2 if SLACK else 9
MS = 1e6


def environment(preload, **settings):
    clean = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("TAPESWAP_", "LD_"))
    }
    clean["LD_LIBRARY_PATH"] = FOLDER
    if preload:
        clean["LD_PRELOAD"] = LIBRARY
    return {**clean, "TAPESWAP_LOG": "error", **settings}


def measure(arguments, env):
    done = subprocess.run(
        [LAUNCHES, *map(str, arguments)],
        env=env, capture_output=True, text=True, timeout=120, check=True,
    )
    return float(done.stdout)


def pair(arguments, **settings):
    """Medians without and with the library, by turns."""
    plain, loaded = environment(False), environment(True, **settings)
    runs = [
        (measure(arguments, plain), measure(arguments, loaded))
        for _ in range(REPEATS)
    ]
    return [statistics.median(column) for column in zip(*runs)]


def starts(repeats, at_once, *command, **settings):
    """Least and median wall time, and processor time, by way."""
    done = subprocess.run(
        [STARTS, LIBRARY, *map(str, (repeats, at_once)), *command],
        env=environment(False, **settings),
        capture_output=True, text=True, timeout=300, check=True,
    )
    figures = [float(f) for f in done.stdout.splitlines()[-1].split()]
    return list(zip(figures[:3], figures[3:]))


def main():
    late = []

    def line(name, without, with_it, allowed_ns):
        more = with_it - without
        allowed_ns = allowed_ns and allowed_ns * (SLACK or 1)
        allowed = f"{allowed_ns:.0f}" if allowed_ns else "-"
        print(
            f"{name:44} {without:12.1f} {with_it:12.1f} {more:+12.1f}"
            f" {allowed:>10}  x{with_it / without:.2f}"
        )
        if allowed_ns and more > allowed_ns:
            late.append(name)

    print(f"{'ns':44} {'without':>12} {'with':>12} {'more':>12}"
          f" {'allowed':>10}  ratio")
    with tempfile.TemporaryDirectory() as folder:
        observe = dict(
            TAPESWAP_MODE="observe", TAPESWAP_PROFILE=f"{folder}/p.json"
        )
        modes = {
            "off": (dict(TAPESWAP_MODE="off"), 150, ()),
            # The profile is made, steps are followed.
            "after profiling": (observe, 150, ()),
            "recording": (observe, 600, ("new",)),
        }
        for name, (settings, allowed, more) in modes.items():
            line(f"launch, 10 parameters, {name}",
                 *pair((10, 8, *more), **settings), allowed)
            for bytes_ in 4096, 32768:
                line(f"launch, one of {bytes_} bytes, {name}",
                     *pair((1, bytes_, *more), **settings), None)
    # Each launch of a step has blocks of its own, and all of them are there.
    cap = dict(TAPESWAP_MODE="cap", TAPESWAP_LIMIT="4GiB")
    for count, allowed in (3, 600), (10, 900):
        line(f"launch, {count} parameters, under a limit",
             *pair((count, 8, "many"), **cap), allowed)
    line("dlsym of another name", *pair(("dlsym",)), 20)
    least, median, cpu = starts(TRUE_REPEATS, 1, "/bin/true")
    line("/bin/true, least wall time", *least, MS)
    line("/bin/true, median wall time", *median, MS)
    line("/bin/true, median processor time", *cpu, None)
    _, _, cpu = starts(
        AT_ONCE_REPEATS, AT_ONCE, LAUNCHES, "start", TAPESWAP_LIMIT="1GiB"
    )
    line(f"start of {AT_ONCE} at once, processor time of each", *cpu, 5 * MS)
    for name in late:
        print(f"above what is allowed: {name}")
    return 1 if CHECK and late else 0


if __name__ == "__main__":
    sys.exit(main())
