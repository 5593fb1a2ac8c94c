# SPDX-License-Identifier: LGPL-2.1-or-later
"""What must hold where the device is not what a plan was made for.

  link    it slows down to half while the program runs
  kernel  one kind of kernels takes twice as long from then on
  memory  others give memory back, and take it again
  replayed  as link, where values are made again: so they are by the new plan

The plan is made anew within ten steps, steps by it are faster than those by
the old one were by then, and what the program prints stays what it was.
"""

import dataclasses
import json
import re

from harness import TRAIN_GPT, TRACE, WORKLOADS, Spec, run, run_once
from planned import (
    GPT,
    LAST_STEPS,
    limited,
    printed,
    share_of_peak,
    with_steps,
)
from runner import Case, expect, expect_equal

# The first step in which something is otherwise, and how many there are.
SINCE, STEPS = 21, 40
# So many steps after that at most steps go by the new plan.
WITHIN = 10
# Once a step.
LOSS = "nll_loss_forward"
GEMM = "gemm_f32"
# Once a step too, and never launched again: it tells of steps while kernels
# are proved.
ONCE = "embedding_backward_feature"


def with_settings(spec, *settings):
    return dataclasses.replace(spec, settings=spec.settings + settings)


def plain(spec, steps=STEPS):
    return with_settings(with_steps(spec, steps), ("SIMGPU_CONTENT", "tags"))


def step_times(outcome):
    """In ms, by step from 1 on."""
    found = re.findall(r"  time ([0-9.]+) ms", outcome.out)
    return [None, *map(float, found)]


def launches_a_step(spec, part):
    """Of kernels with this part in their names, from one loss to the next."""
    traced = with_settings(with_steps(spec, 3), ("SIMGPU_TRACE", TRACE))
    names = [json.dumps(line) for line in run_once(traced).trace]
    losses = [at for at, name in enumerate(names) if LOSS in name]
    return sum(part in name for name in names[losses[1] : losses[2]])


def check_times(outcome, since):
    """Those after the plan was made anew against those before, the same
    device all the while."""
    times = step_times(outcome)
    slow = min(times[since + 1 : since + 4])
    usual = min(times[since - 4 : since])
    last = times[-LAST_STEPS:]
    print(f"  {usual} ms before, {slow} with the old plan, {last[-1]} then")
    expect(slow > 1.05 * usual, f"nothing has slowed down: {times}")
    expect(max(last) < 0.995 * slow, f"no faster: {times}")
    after = times[since + WITHIN + 1 :]
    expect(max(after) < slow, f"not within {WITHIN} steps: {times}")


def check(outcome, unlimited, limit, remade):
    peak = outcome.report["physical_peak_bytes"]
    expect(peak <= limit, f"physical peak {peak} over {limit}")
    expect_equal(printed(outcome), printed(unlimited), "output")
    plan = outcome.status["plan"]
    print(f"  {plan}")
    expect_equal(plan["remade"], remade, f"plans that were made anew: {plan}")
    expect_equal(plan["declined"], 0, f"{plan}")


def check_prediction(outcome):
    measured = outcome.plan["measured"]["step_ns"]
    predicted = outcome.plan["predicted"]["step_ns"]
    expect(
        0.99 <= measured / predicted <= 1.01,
        f"step {measured} ns, predicted {predicted}",
    )


def slower(spec, percent, setting, part):
    """@part: of the kernel that becomes slower; None: the link does."""
    unlimited = run_once(plain(spec))
    limit = share_of_peak(unlimited.report, percent)
    if part:
        first = (SINCE - 1) * launches_a_step(spec, part)
        value = f"0.5@{part}:{first + 1}"
    else:
        value = f"0.5@{LOSS}:{SINCE}"
    outcome = run(
        with_settings(limited(plain(spec), limit, "plan"), (setting, value))
    )
    check(outcome, unlimited, limit, 1)
    check_times(outcome, SINCE)
    check_prediction(outcome)


def replayed(spec, percent):
    """A plan that is made anew has values made again as the old one had."""
    since, steps = 28, 42
    unlimited = run_once(plain(spec, steps))
    limit = share_of_peak(unlimited.report, percent)
    outcome = run(
        with_settings(
            limited(plain(spec, steps), limit, "plan"),
            ("TAPESWAP_REPLAY", "1"),
            ("SIMGPU_SLOW_LINK", f"0.5@{ONCE}:{since}"),
        )
    )
    check(outcome, unlimited, limit, 1)
    check_times(outcome, since)
    check_prediction(outcome)
    found, made = outcome.status["remade"], outcome.plan["made_again"]
    print(f"  {found}\n  {made}")
    expect_equal(found["failed"] + found["kept"], 0, f"{found}")
    expect_equal(found["made_again"], found["given_up"], "made again")
    times = step_times(outcome)
    expect(
        max(times[-LAST_STEPS:]) * 1e6 < made["without_ns"],
        f"{times[-LAST_STEPS:]} ms, {made['without_ns']} ns without replays",
    )


def memory(mib, percent):
    """What others give back is used, what they take again is given."""
    spec = Spec(WORKLOADS / "beside.py", (mib, 20, 32, "--", *GPT[:-1]))
    spec = dataclasses.replace(
        spec, arguments=(*spec.arguments, "--digest", "--steps", 44)
    )
    spec = with_settings(spec, ("SIMGPU_CONTENT", "tags"))
    unlimited = run_once(spec)
    limit = share_of_peak(unlimited.report, percent)
    outcome = run(limited(spec, limit, "plan"))
    plan = outcome.status["plan"]
    peak = outcome.report["physical_peak_bytes"]
    times = step_times(outcome)
    print(f"  {plan}\n  {times[16:]}")
    expect(peak <= limit, f"physical peak {peak} over {limit}")
    expect_equal(printed(outcome), printed(unlimited), "output")
    expect(plan["remade"] >= 1, f"plans that were made anew: {plan}")
    before = min(times[16:21])
    expect(max(times[31:33]) < 0.98 * before, f"no faster with more: {times}")
    expect(max(times[-2:]) < 1.01 * before, f"slower than before: {times}")


def all_cases():
    gpt = Spec(TRAIN_GPT, (*GPT[:-1], "--digest"))
    dropout = Spec(TRAIN_GPT, (*GPT[:-1], "--digest", "--dropout", 0.1))
    return [
        Case(
            "torch/drifting/link",
            lambda: slower(gpt, 50, "SIMGPU_SLOW_LINK", None),
        ),
        Case(
            "torch/drifting/kernel",
            # With more memory nothing is to be had by another plan.
            lambda: slower(gpt, 40, "SIMGPU_SLOW_KERNEL", GEMM),
            full=True,
        ),
        Case(
            "torch/drifting/replayed",
            lambda: replayed(dropout, 40),
            full=True,
        ),
        Case("torch/drifting/memory", lambda: memory(300, 60), full=True),
    ]
