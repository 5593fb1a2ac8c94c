# SPDX-License-Identifier: LGPL-2.1-or-later
"""What must hold where steps go by a plan, TAPESWAP_MODE=plan.

  share   a model at a share of its peak: within the limit, the same output as
          without one, no races and no memory errors; steps go by the plan, in
          the time that it says, and no slower than with the pager alone
  other   a program that does other things between: right, and back on plan
"""

import re

from harness import ROOT, TRAIN_GPT, WORKLOADS, Spec, checked, launch, run_once
from runner import Case, expect, expect_equal

# Of the limit, beside the context: as for the pager.
SHARES = (90, 70, 50, 40, 30, 20)
# A step against its prediction: slower, and faster, by so much at most.
SLOWER, FASTER = 1.01, 0.99
# A step with the plan beside one with the pager alone; both are reproducible.
PAGER_TOLERANCE = 1.001


def share_of_peak(report, percent):
    context = report["context_bytes"]
    beside = report["physical_peak_bytes"] - context
    return context + beside * percent // 100


def limited(spec, limit, mode):
    return Spec(
        spec.script,
        spec.arguments,
        device=spec.device,
        limit=str(limit),
        venv=spec.venv,
        settings=spec.settings + (("TAPESWAP_MODE", mode),),
        timeout=spec.timeout,
    )


def printed(outcome):
    """What a script printed, but for the times of its steps."""
    return re.sub(r"  time [0-9.]+ ms", "", outcome.out)


def step_ms(outcome):
    """Time of the last step that the script told."""
    times = re.findall(r"  time ([0-9.]+) ms", outcome.out)
    return float(times[-1]) if times else None


def least_limit(outcome):
    named = re.findall(r"Remedy: TAPESWAP_LIMIT=(\d+)MiB", outcome.err)
    return max(int(mib) << 20 for mib in named) if named else None


def run_at(spec, limit, mode):
    """Under the limit or, where an op needs more, the least that it names."""
    while True:
        outcome = launch(limited(spec, limit, mode))
        least = least_limit(outcome)
        if outcome.code == 0 or least is None or least <= limit:
            return checked(outcome), limit
        limit = least


def check_plan(outcome, percent):
    """The plan was made and followed, or there is a reason not to."""
    plan = outcome.status.get("plan")
    expect(plan, f"no plan at {percent} %\n{outcome.err[-1000:]}")
    expect(plan["steps"] >= 3, f"steps by the plan: {plan}")
    measured = outcome.plan["measured"]
    predicted = outcome.plan["predicted"]["step_ns"]
    expect("step_ns" in measured, f"no step was timed: {measured}")
    ratio = measured["step_ns"] / predicted
    print(
        f"  {percent} %: predicted {predicted / 1e6:.3f} ms, measured "
        f"{measured['step_ns'] / 1e6:.3f} ms, {plan}"
    )
    expect(
        FASTER <= ratio <= SLOWER,
        f"step {measured['step_ns']} ns, predicted {predicted}",
    )
    expect(
        plan["missed"] + plan["astray"] <= 2 * plan["steps"],
        f"ops that found pages missing, pages that were not in time: {plan}",
    )


def share(spec, percent, must_plan):
    unlimited = run_once(spec)
    wanted = share_of_peak(unlimited.report, percent)
    outcome, limit = run_at(spec, wanted, "plan")
    peak = outcome.report["physical_peak_bytes"]
    expect(peak <= limit, f"physical peak {peak} over {limit}")
    expect_equal(
        printed(outcome), printed(unlimited), "output under the limit"
    )
    if not must_plan:
        return
    check_plan(outcome, percent)
    pager, _ = run_at(spec, limit, "cap")
    if step_ms(outcome):
        expect(
            step_ms(outcome) <= step_ms(pager) * PAGER_TOLERANCE,
            f"step {step_ms(outcome)} ms, {step_ms(pager)} with the pager",
        )


def other(spec, percent, least_steps):
    """Steps that differ, or other work between: right, and by plan again."""
    unlimited = run_once(spec)
    limit = share_of_peak(unlimited.report, percent)
    outcome, limit = run_at(spec, limit, "plan")
    peak = outcome.report["physical_peak_bytes"]
    expect(peak <= limit, f"physical peak {peak} over {limit}")
    expect_equal(
        printed(outcome), printed(unlimited), "output under the limit"
    )
    plan = outcome.status.get("plan")
    expect(plan, f"no plan\n{outcome.err[-1000:]}")
    expect(plan["steps"] >= least_steps, f"steps by the plan: {plan}")


# Large enough that pages of 2 MiB are few of many.
GPT = (
    *"--layers 4 --width 512 --heads 8 --sequence 512 --batch 16".split(),
    "--steps",
)


def all_cases():
    gpt = Spec(TRAIN_GPT, (*GPT, 12))
    between = Spec(TRAIN_GPT, (*GPT, 16, "--eval-every", 8))
    bert = Spec(
        WORKLOADS / "language_model.py", ("bert-large", "--steps", 9)
    )
    cases = [
        Case(
            f"torch/planned/gpt/{percent}",
            lambda p=percent: share(gpt, p, p >= 40),
            full=percent != 50,
        )
        for percent in SHARES
    ]
    cases.append(
        Case("torch/planned/evaluation", lambda: other(between, 60, 4))
    )
    cases += [
        Case(
            f"torch/planned/bert-large/{percent}",
            lambda p=percent: share(bert, p, True),
            full=True,
            alone=True,
        )
        for percent in (70, 50)
    ]
    return cases
