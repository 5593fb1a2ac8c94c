# SPDX-License-Identifier: LGPL-2.1-or-later
"""What must hold where the steps of a program change their size.

  drawn   each step's length is drawn anew: within the limit, right, few plans
          and hardly any more time than with the pager alone
  grown   the length grows to four times what it was: steps go by a plan again
"""

import re

from harness import WORKLOADS, Spec, run, run_once
from planned import BEFORE, limited, printed, share_of_peak
from runner import Case, expect, expect_equal

# From one length to twice that.
PLANS_A_DOUBLING = 8
# Of lengths that PyTorch runs other kernels for, as the whole one.
KINDS = 2
# Steps are recorded and plans are tried, for all that none is of use.
PAGER_TOLERANCE = 1.05
# Steps in which the pager finds what to move.
WARM_UP = 2
MODEL = (
    *"--layers 4 --width 512 --heads 8 --sequence 512 --batch 16".split(),
    "--digest",
    "--steps",
)


def spec_of(least, most, stride, steps):
    return Spec(
        WORKLOADS / "lengths.py",
        (least, most, stride, *MODEL, steps),
        settings=(("SIMGPU_CONTENT", "tags"),),
        timeout=900,
    )


def step_times(outcome):
    return [float(ms) for ms in re.findall(r"time ([0-9.]+) ms", outcome.out)]


def beside_pager(outcome):
    """Times of steps of the second half, and what steps of their lengths took
    before there was a plan: pairs in ms."""
    steps = [
        (int(length), float(ms))
        for length, ms in re.findall(
            r"length (\d+) .* time ([0-9.]+) ms", outcome.out
        )
    ]
    pager = {}
    for length, ms in steps[WARM_UP:BEFORE]:
        pager.setdefault(length, []).append(ms)
    return [
        (ms, min(pager[length]))
        for length, ms in steps[len(steps) // 2 :]
        if length in pager
    ]


def run_limited(spec, percent):
    unlimited = run_once(spec)
    limit = share_of_peak(unlimited.report, percent)
    outcome = run(limited(spec, limit, "plan"))
    peak = outcome.report["physical_peak_bytes"]
    expect(peak <= limit, f"physical peak {peak} over {limit}")
    expect_equal(printed(outcome), printed(unlimited), "output")
    print(f"  {outcome.status.get('plan')}")
    return outcome


def drawn(percent):
    steps = 200
    spec = spec_of(256, 512, 16, steps)
    outcome = run_limited(spec, percent)
    plans = outcome.status["plan"]["plans"]
    expect(plans <= KINDS * PLANS_A_DOUBLING, f"{plans} plans were made")
    expect(plans >= 2, f"{plans} plans were made")
    pairs = beside_pager(outcome)
    expect(len(pairs) >= steps // 10, f"few lengths come again: {pairs}")
    took_ms, pager_ms = (sum(times) for times in zip(*pairs))
    print(f"  {len(pairs)} late steps took {took_ms} ms, before {pager_ms}")
    expect(
        took_ms <= pager_ms * PAGER_TOLERANCE,
        f"ms of late steps, and of such by the pager: {pairs}",
    )


def grown(percent):
    steps = 44
    outcome = run_limited(spec_of("128,512", "128,512", 1, steps), percent)
    plan = outcome.status["plan"]
    expect(plan["plans"] >= 1, f"{plan}")
    # The first half fits as it is.
    expect(plan["steps"] >= steps // 2 - BEFORE - 4, f"{plan}")
    times = step_times(outcome)
    expect(
        max(times[-4:]) < min(times[steps // 2 : steps // 2 + 4]),
        f"no faster than before there was a plan: {times}",
    )


def all_cases():
    return [
        Case("torch/buckets/grown", lambda: grown(60)),
        Case("torch/buckets/drawn", lambda: drawn(60), full=True),
    ]
