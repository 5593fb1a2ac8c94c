#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""How much slower training gets inside a limit, by tapeswap and without it.

Usage: end_to_end.py [--model NAME ...] [--share PERCENT ...] [--check]

On the simulated GPU, in its own time, scripts/examples/train_gpt.py at shares
of its unlimited peak, the context beside:

  settled        steps of a run as it is by default that change no more
  first plan     the same run's 13th to 16th step, before values are made again
  from step      the first one of the settled ones
  pager alone    mode cap
  save_on_cpu    PyTorch's hooks, in pinned memory, on a device that has no more
                 memory than that
  checkpointing  of every layer, on such a device

Of steps the best is told; what does not fit is "out of memory". PyTorch's own
means are run once where what they take at most is within the limit.

With --check, as in the tests' case, settled steps must be no slower than the
first plan's, than PyTorch's own means, and than the pager alone in a run of its
own as in the steps before the plan.
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
    LAST_STEPS,
    PAGER_TOLERANCE,
    check_pager,
    limited,
    losses,
    share_of_peak,
    step_times_ms,
)
from runner import Case, expect, expect_equal  # noqa: E402

MODELS = {
    "small": "--layers 4 --width 512 --heads 8 --sequence 512 --batch 16",
    "larger": "--layers 8 --width 768 --heads 12 --sequence 512 --batch 32",
}
# A first plan is in force after some 8 steps, and 16 by it are followed by the
# proof of what may be made again.
FIRST_STEPS, ALL_STEPS = 16, 44
# The pager's steps are alike after some; PyTorch's own means start alike.
PAGER_STEPS, OWN_STEPS = 16, 6
SHARES = (70, 50, 40, 30)
SETTLED, FIRST, FROM, PAGER, HOOKS, CHECKPOINT = (
    "settled", "first plan", "from step", "pager alone", "save_on_cpu",
    "checkpointing",
)
COLUMNS = (FIRST, SETTLED, FROM, PAGER, HOOKS, CHECKPOINT)
HOW = {HOOKS: "cpu", CHECKPOINT: "checkpoint"}
# Without content there is nothing that a proof could look at.
CONTENT = (("SIMGPU_CONTENT", "tags"),)
MODEL_FILE = ROOT / f"tests/simgpu/models/{BIG_DEVICE}.json"
WIDTH = 14


def of_model(name, steps, how="none", device=BIG_DEVICE):
    script = WORKLOADS / "saved.py"
    arguments = (how, *MODELS[name].split(), "--steps", steps)
    return Spec(
        script, arguments, device=device, settings=CONTENT, timeout=1800
    )


@contextlib.contextmanager
def smaller_device(memory_bytes):
    """The same device with so much memory, as a file."""
    model = json.loads(MODEL_FILE.read_text(encoding="utf-8"))
    model["memory_bytes"] = memory_bytes
    with tempfile.TemporaryDirectory(prefix="tapeswap-bench-") as folder:
        path = pathlib.Path(folder, "device.json")
        path.write_text(json.dumps(model), encoding="utf-8")
        yield str(path)


def good(outcome, limit, unlimited, what, same=None):
    """An outcome that kept the limit and whose first @same losses, or all, are
    the same; None: it ended because memory did not suffice."""
    if outcome.code and "OutOfMemoryError" in outcome.err:
        return None
    checked(outcome)
    peak = outcome.report["physical_peak_bytes"]
    expect(peak <= limit, f"{what}: physical peak {peak} over {limit}")
    found = losses(outcome)[:same]
    expect(found, f"{what}: no losses")
    expect_equal(found, losses(unlimited)[: len(found)], f"{what}: losses")
    return outcome


def by_plan(name, limit, unlimited, checks):
    """{column: ms, or the step} of a run as it is by default."""
    outcome = good(
        launch(limited(of_model(name, ALL_STEPS), limit, "plan")),
        limit, unlimited, "plan",
    )
    if not outcome:
        return dict.fromkeys((FIRST, SETTLED, FROM))
    times = step_times_ms(outcome)
    expect_equal(len(times), ALL_STEPS, "steps whose time was told")
    settled = min(times[-LAST_STEPS:])
    differ = [t > settled * PAGER_TOLERANCE for t in times]
    plan = outcome.status.get("plan")
    if checks:
        expect(not any(differ[-LAST_STEPS:]), f"steps not settled: {times}")
    if checks and plan and not plan["declined"]:
        check_pager(outcome)
    return {
        FIRST: min(times[FIRST_STEPS - LAST_STEPS : FIRST_STEPS]),
        SETTLED: settled,
        FROM: 1 + max((i + 1 for i, d in enumerate(differ) if d), default=0),
    }


def by_pager(name, limit, unlimited):
    spec = limited(of_model(name, PAGER_STEPS), limit, "cap")
    outcome = good(launch(spec), limit, unlimited, PAGER)
    return outcome and min(step_times_ms(outcome)[-LAST_STEPS:])


def by_own_means(name, column, limit, unlimited):
    """Of PyTorch. Where there is more memory than it takes it takes no time
    but that which it takes with any more."""
    outcome = run_once(of_model(name, OWN_STEPS, HOW[column]))
    if outcome.report["physical_peak_bytes"] > limit:
        with smaller_device(limit) as device:
            outcome = launch(of_model(name, OWN_STEPS, HOW[column], device))
    # What comes back from the host lies otherwise, so that other kernels work
    # on it in the backward.
    same = 1 if column == HOOKS else None
    outcome = good(outcome, limit, unlimited, column, same)
    return outcome and min(step_times_ms(outcome)[-LAST_STEPS:])


def cell(column, value, free_ms):
    if value is None:
        return "out of memory" if column != FROM else "-"
    return str(value) if column == FROM else f"{value / free_ms:.2f}"


def table(name, shares=SHARES, checks=False):
    """Prints it; {share: {column: ms, or None}}."""
    unlimited = run_once(of_model(name, ALL_STEPS))
    free_ms = min(step_times_ms(unlimited)[-LAST_STEPS:])
    whole = share_of_peak(unlimited.report, 100)
    context = unlimited.report["context_bytes"]
    print(
        f"{name}: {MODELS[name]}\n  unlimited {free_ms:.2f} ms a step, "
        f"{(whole - context) / 2**30:.2f} GiB beside the context"
    )
    print("  " + "".join(f"{word:>{WIDTH + 2}}" for word in ("", *COLUMNS)))
    found = {}
    for share in shares:
        limit = share_of_peak(unlimited.report, share)
        row = by_plan(name, limit, unlimited, checks)
        row[PAGER] = by_pager(name, limit, unlimited)
        for column in HOW:
            above = [found[s][column] for s in found if s > share]
            # What does not fit does not fit into less.
            row[column] = (
                None
                if None in above
                else by_own_means(name, column, limit, unlimited)
            )
        found[share] = row
        words = [f"{share} %", *(cell(c, row[c], free_ms) for c in COLUMNS)]
        print("  " + "".join(f"{w:>{WIDTH + 2}}" for w in words), flush=True)
    return found


def check(name, shares=SHARES):
    """Wherever another way goes on a plan does, and is no slower."""
    for share, row in table(name, shares, True).items():
        for column in (FIRST, PAGER, HOOKS, CHECKPOINT):
            if row[column] is None:
                continue
            expect(row[SETTLED], f"{share} %: out of memory with a plan only")
            expect(
                row[SETTLED] <= row[column] * PAGER_TOLERANCE,
                f"{share} %: settled {row[SETTLED]} ms, {column} {row[column]}",
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
