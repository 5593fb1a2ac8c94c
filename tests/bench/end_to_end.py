#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""How much slower training gets inside a limit, by tapeswap and without it.

Usage: end_to_end.py [--model NAME ...] [--share PERCENT ...] [--check]

On the simulated GPU, in its own time, scripts/examples/train_gpt.py at shares
of its unlimited peak, the context beside: tapeswap by a plan, and with the
pager alone; PyTorch's save_on_cpu hooks in pinned memory, and checkpointing of
every layer, both on a device with no more memory than that. The step's time is
the best of the last ones, which have settled; what does not fit is "out of
memory". With --check, as in the tests' case, steps by a plan must be no slower
than those before it in the same run, with the pager alone.
"""

import argparse
import contextlib
import dataclasses
import json
import pathlib
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tests/torch"), str(ROOT / "tests")]

# pylint: disable=wrong-import-position
from harness import (  # noqa: E402
    BIG_DEVICE,
    WORKLOADS,
    Spec,
    checked,
    launch,
    run_once,
)
from planned import (  # noqa: E402
    check_pager,
    limited,
    losses,
    share_of_peak,
    step_ms,
)
from runner import Case, expect, expect_equal  # noqa: E402

MODELS = {
    "small": "--layers 4 --width 512 --heads 8 --sequence 512 --batch 16",
    "larger": "--layers 8 --width 768 --heads 12 --sequence 512 --batch 32",
}
STEPS = ("--steps", 16)
SHARES = (70, 50, 40, 30)
PLAN, PAGER, HOOKS, CHECKPOINT = (
    "plan", "pager alone", "save_on_cpu hooks", "checkpointing"
)
METHODS = (PLAN, PAGER, HOOKS, CHECKPOINT)
MODEL_FILE = ROOT / f"tests/simgpu/models/{BIG_DEVICE}.json"
WIDTH = 16


def of_model(name, how="none"):
    script = WORKLOADS / "saved.py"
    arguments = (how, *MODELS[name].split(), *STEPS)
    return Spec(script, arguments, timeout=1800)


@contextlib.contextmanager
def smaller_device(memory_bytes):
    """The same device with so much memory, as a file."""
    model = json.loads(MODEL_FILE.read_text(encoding="utf-8"))
    model["memory_bytes"] = memory_bytes
    with tempfile.TemporaryDirectory(prefix="tapeswap-bench-") as folder:
        path = pathlib.Path(folder, "device.json")
        path.write_text(json.dumps(model), encoding="utf-8")
        yield str(path)


def launched(name, method, limit):
    if method in (PLAN, PAGER):
        mode = "plan" if method == PLAN else "cap"
        return launch(limited(of_model(name), limit, mode))
    how = "cpu" if method == HOOKS else "checkpoint"
    with smaller_device(limit) as device:
        spec = dataclasses.replace(of_model(name, how), device=device)
        return launch(spec)


def time_of(name, method, limit, unlimited, checks):
    """ms a step, or None: out of memory."""
    outcome = launched(name, method, limit)
    if outcome.code and "OutOfMemoryError" in outcome.err:
        return None
    checked(outcome)
    peak = outcome.report["physical_peak_bytes"]
    expect(peak <= limit, f"{method}: physical peak {peak} over {limit}")
    expect_equal(losses(outcome), losses(unlimited), f"{method}: losses")
    plan = outcome.status.get("plan") if checks else None
    if method == PLAN and plan and not plan["declined"]:
        check_pager(outcome)
    return step_ms(outcome)


def table(name, shares=SHARES, checks=False):
    """Prints it; {share: {method: ms, or None}}."""
    unlimited = run_once(of_model(name))
    free_ms = step_ms(unlimited)
    whole = share_of_peak(unlimited.report, 100)
    context = unlimited.report["context_bytes"]
    print(
        f"{name}: {MODELS[name]}\n  unlimited {free_ms:.2f} ms a step, "
        f"{(whole - context) / 2**30:.2f} GiB beside the context"
    )
    print("  " + "".join(f"{word:>{WIDTH + 2}}" for word in ("", *METHODS)))
    found = {}
    for share in shares:
        limit = share_of_peak(unlimited.report, share)
        row = found[share] = {}
        for method in METHODS:
            above = [found[s][method] for s in found if s > share]
            # What does not fit does not fit into less.
            row[method] = (
                None
                if None in above
                else time_of(name, method, limit, unlimited, checks)
            )
        words = [f"{share} %"] + [
            f"{ms / free_ms:.2f}" if ms else "out of memory"
            for ms in row.values()
        ]
        print("  " + "".join(f"{w:>{WIDTH + 2}}" for w in words), flush=True)
    return found


def check(name, shares=SHARES):
    """Wherever the pager goes on, a plan does, and is no slower than that was
    in the same run."""
    for share, row in table(name, shares, True).items():
        expect(
            row[PLAN] or not row[PAGER],
            f"{share} %: out of memory with a plan only",
        )


def all_cases():
    return [
        Case(f"bench/end-to-end/{name}", check, full=True, arguments=(name,))
        for name in MODELS
    ]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", nargs="+", choices=MODELS, default=MODELS)
    parser.add_argument("--share", type=int, nargs="+", default=SHARES)
    parser.add_argument("--check", action="store_true")
    args = parser.parse_args()
    for name in args.model:
        (check if args.check else table)(name, args.share)


if __name__ == "__main__":
    main()
