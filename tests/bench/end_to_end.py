#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""How much slower training gets inside a limit, by tapeswap and without it.

Usage: end_to_end.py [--share PERCENT ...] [-- ARGUMENTS of train_gpt.py]

On the simulated GPU, in its own time: tapeswap by a plan and with the pager
alone, each at the shares of the unlimited peak; PyTorch's save_on_cpu hooks
and full checkpointing, which take what memory they take. Peaks are those of
the device without its context.
"""

import argparse
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tests/torch"), str(ROOT / "tests")]

# pylint: disable=wrong-import-position
from harness import WORKLOADS, Spec, run  # noqa: E402
from planned import limited, share_of_peak  # noqa: E402

DEFAULT = (
    "--layers 8 --width 768 --heads 12 --sequence 512 --batch 32 --steps 12"
).split()
GIB = 1 << 30


def figures(outcome):
    """Time of the last step, which has settled, and the peak."""
    times = re.findall(r"  time ([0-9.]+) ms", outcome.out)
    report = outcome.report
    peak = report["physical_peak_bytes"] - report["context_bytes"]
    return float(times[-1]), peak


def losses(outcome):
    return re.findall(r"  loss ([0-9.]+)", outcome.out)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--share", type=int, nargs="+", default=[70, 50, 30]
    )
    parser.add_argument("arguments", nargs="*", default=DEFAULT)
    args = parser.parse_args()

    def spec(how):
        script = WORKLOADS / "saved.py"
        return Spec(script, (how, *args.arguments), timeout=1200)

    unlimited = run(spec("none"))
    free_ms, free_peak = figures(unlimited)
    print(f"{'':24}{'step ms':>10}{'slowdown':>10}{'peak GiB':>10}")

    def row(name, outcome):
        ms, peak = figures(outcome)
        same = losses(outcome) == losses(unlimited)
        print(
            f"{name:24}{ms:10.2f}{ms / free_ms:10.3f}{peak / GIB:10.2f}"
            + ("" if same else "  other losses"),
            flush=True,
        )

    row("unlimited", unlimited)
    for share in args.share:
        limit = share_of_peak(unlimited.report, share)
        for name, mode in ("plan", "plan"), ("pager alone", "cap"):
            outcome = run(limited(spec("none"), limit, mode))
            row(f"{share} %, {name}", outcome)
    row("save_on_cpu hooks", run(spec("cpu")))
    row("full checkpointing", run(spec("checkpoint")))
    print(f"100 % are {free_peak / GIB:.2f} GiB")


if __name__ == "__main__":
    main()
