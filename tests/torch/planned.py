# SPDX-License-Identifier: LGPL-2.1-or-later
"""What must hold where steps go by a plan, TAPESWAP_MODE=plan.

  share   a model at a share of its peak: within the limit, the same output as
          without one, no races and no memory errors; steps go by the plan, in
          the time that it says, and no slower than with the pager alone
  other   a program that does other things between: right, and back on plan
  steady  more steps by a plan make no VMM call more
  large   a large model at a share of its peak, or the least limit that there
          is a plan for: all of share and steady, or else it is said that the
          pager alone is as fast; with figures for tests/results/planned.json
  small   models that are small: no slower than with the pager alone
  ordinary  training loops as people write them: by plans that hold
  under     settings that the pager bears; faulty: driver calls that fail
  offline   a plan that the command made of a profile is taken up
  again   a second run takes the plan that the first one left, or says why not
"""

import dataclasses
import json
import os
import random
import re
import subprocess
import tempfile

from harness import (
    ROOT,
    TRAIN_GPT,
    WORKLOADS,
    Spec,
    checked,
    launch,
    run,
    run_once,
)
from capping import agent_symbols, check_told
from runner import Case, expect, expect_equal

# Of the limit, beside the context: as for the pager.
SHARES = (90, 70, 50, 40, 30, 20)
# A step against its prediction: slower, and faster, by so much at most.
SLOWER, FASTER = 1.01, 0.99
# Steps before a plan is in force: enough are seen for addresses to settle.
BEFORE = 8
# What an op takes that nothing moves for, half of them, on a busy machine too.
IDLE_NS = 200
# A step by the plan beside one with the pager alone, of the same run.
PAGER_TOLERANCE = 1.01
# What is said where there is no plan, and where none is made use of.
NONE_FITS = r"plan: none fits .*; for one: TAPESWAP_LIMIT=(\d+)MiB"
PAGER_AS_FAST = (
    r"plan: the pager alone takes ([0-9.]+) ms a step, "
    r"the plan (?:would take|took) [0-9.]+: it goes on alone"
)
# Bytes of a copy at least, pages that move before an op at most, on average.
WORK = {"llama-7b": (16 << 20, 20)}
# Ops between two marks in a stream, and between two looks at what is done;
# batches of copies from one wait on the host to the next.
STRIDE, LOOK, WAITED = 16, 64, 64
# So many steps at the end of a run are alike.
LAST_STEPS = 4


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


def step_times_ms(outcome):
    """Of all steps whose time the script told."""
    times = re.findall(r"  time ([0-9.]+) ms|\"ms\": ([0-9.]+)", outcome.out)
    return [float(gpt or other) for gpt, other in times]


def step_ms(outcome):
    """The best of the last steps whose time the script told."""
    last = step_times_ms(outcome)[-LAST_STEPS:]
    return min(last) if last else None


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
    # Words that may or may not be addresses are in no plan.
    expect(
        plan["missed"] - plan["doubted"] + plan["astray"]
        <= 2 * plan["steps"],
        f"ops that found pages missing, pages that were not in time: {plan}",
    )
    expect(
        plan["doubted"] <= 8 * plan["steps"],
        f"ops that a doubtful word led to missing pages: {plan}",
    )


def check_pager(outcome):
    """A step by the plan takes no longer than with the pager, before it."""
    plan = outcome.status["plan"]
    took_ns = outcome.plan["measured"]["step_ns"]
    expect(
        took_ns <= plan["pager_step_ns"] * PAGER_TOLERANCE,
        f"step {took_ns} ns, {plan['pager_step_ns']} with the pager",
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
    check_pager(outcome)


def check_steady(outcome):
    """
    Steps by the plan make the VMM calls that it says. All calls are the
    agent's, which PyTorch without expandable segments makes none of: so its
    count is held against the device's.
    """
    expect_equal(
        outcome.status["vmm_calls"],
        outcome.report["vmm_calls"],
        "VMM calls that the agent counts",
    )
    plan = outcome.status.get("plan")
    expect(plan and plan["steady_steps"] >= 1, f"steps by the plan: {plan}")
    if not outcome.plan["chunks"]["remaps"]:
        expect_equal(
            plan["steady_vmm_calls"], 0, "VMM calls of steady steps"
        )


def steady(spec, percent, more):
    """No VMM call in a step by the plan; @spec without its count of steps."""
    unlimited = run_once(with_steps(spec, 3))
    limit = share_of_peak(unlimited.report, percent)
    spec = dataclasses.replace(
        spec,
        settings=(
            *spec.settings,
            ("TAPESWAP_LOG", "debug"),
            ("TAPESWAP_PROFILE", "profile.json"),
        ),
    )
    outcome, _ = run_at(with_steps(spec, BEFORE + 2 + more), limit, "plan")
    check_steady(outcome)
    expect_equal(outcome.plan["chunks"]["remaps"], 0, "chunks that change")
    plan = outcome.status["plan"]
    expect(plan["steady_steps"] >= more, f"steps by the plan: {plan}")
    expect_equal(plan["missed"] + plan["astray"], 0, "pages not there")
    check_beside(outcome)
    check_calls(outcome)
    idle_ns = plan["idle_op_ns"]
    print(f"  an op that nothing moves for takes {idle_ns} ns")
    expect(idle_ns <= IDLE_NS, f"an op that nothing moves for: {idle_ns} ns")


# Figures of what ran, by model and share.
figures = {}


def run_by_plan(spec, limit):
    """As run_at(); where no plan fits under the least limit for one, too."""
    while True:
        outcome, limit = run_at(spec, limit, "plan")
        least = re.findall(NONE_FITS, outcome.err)
        if outcome.plan or not least or int(least[-1]) << 20 <= limit:
            return outcome, limit
        print(f"  no plan fits {limit >> 20} MiB: {least[-1]} MiB are taken")
        limit = int(least[-1]) << 20


def check_declined(outcome):
    """It was said why no step goes by the plan. False: some do."""
    said = re.findall(PAGER_AS_FAST, outcome.err)
    if not said or not outcome.status["plan"]["declined"]:
        return False
    print(f"  declined: the pager alone takes {said[-1]} ms")
    return True


def check_work(name, outcome):
    """Steady steps move large pages by large copies: each costs the host."""
    plan = outcome.status["plan"]
    ops = plan["steady_steps"] * outcome.plan["n_ops"]
    per_copy = plan["steady_copied_bytes"] / plan["steady_copies"]
    per_op = plan["steady_moved_pages"] / ops
    print(
        f"  {per_copy / 2**20:.1f} MiB a copy, {per_op:.1f} pages moved an op,"
        f" {plan['mean_op_ns']} ns an op on average, of which "
        f"{plan['driver_op_ns']} the driver's"
    )
    least, most = WORK.get(name, (0, per_op))
    expect(per_copy >= least, f"{per_copy} bytes a copy: {plan}")
    expect(per_op <= most, f"{per_op} pages moved an op: {plan}")


def check_calls(outcome):
    """
    What steady steps ask of the driver is what their copies take. A batch of
    copies has an event. Where pages leave a point in the program's stream is
    marked; a batch comes after that, after a batch the other way, and an op
    after it. Every STRIDE ops there is a mark, and every LOOK ops it is looked
    at what is done: at one event that is not in each of the two queues and the
    stream, and at each event that is. The program's ops work on the legacy
    stream, of whichever context is current, which is asked once, and once more
    where something moves.
    """
    plan = outcome.status["plan"]
    calls, steps = plan["steady_driver_calls"], plan["steady_steps"]
    batches, ops = plan["steady_batches"], steps * outcome.plan["n_ops"]
    looks = ops / LOOK + steps
    moving = min(ops, plan["steady_moved_pages"])
    per_step = {name: count // steps for name, count in calls.items()}
    print(f"  a step: {batches // steps} batches, calls: {per_step}")
    expect_equal(calls["copies"], plan["steady_copies"], "copies")
    most = {
        "records": batches + plan["steady_departures"] + ops / STRIDE + steps,
        "orders": 3 * batches,
        "queries": calls["records"] + 3 * looks,
        "waits": batches / WAITED + 2 * steps,
        "contexts": ops + calls["records"] + looks + moving,
    }
    for name, count in most.items():
        expect(calls[name] <= count, f"{calls[name]} {name}: {plan}")


def check_beside_pager(spec, limit, outcome):
    """Settled steps by the plan against those of a run with the pager alone."""
    alone = checked(launch(limited(spec, limit, "cap")))
    took, pager = step_ms(outcome), step_ms(alone)
    print(f"  a step takes {took} ms, {pager} in a run with the pager alone")
    expect("plan" not in alone.status, f"{alone.status.get('plan')}")
    expect(
        took <= pager * PAGER_TOLERANCE,
        f"{took} ms by the plan, {pager} with the pager alone",
    )


def large(name, spec, percent, still):
    """Where @still no step by the plan may make a VMM call."""
    unlimited = run_once(with_steps(spec, 3))
    limit = share_of_peak(unlimited.report, percent)
    spec = dataclasses.replace(spec, settings=(("TAPESWAP_LOG", "debug"),))
    spec = with_steps(spec, BEFORE + 6)
    outcome, limit = run_by_plan(spec, limit)
    peak = outcome.report["physical_peak_bytes"]
    plan = outcome.status.get("plan")
    measured = outcome.plan.get("measured", {}).get("step_ns")
    predicted = outcome.plan.get("predicted", {}).get("step_ns")
    figures.setdefault(name, {})[str(percent)] = {
        "limit_bytes": limit,
        "physical_peak_bytes": peak,
        "predicted_step_ns": predicted,
        "measured_step_ns": measured,
        "step_ms": step_ms(outcome),
        "pager_step_ns": plan and plan.get("pager_step_ns"),
        "unlimited_step_ns": outcome.plan.get("unlimited", {}).get("step_ns"),
        "swap_bytes": outcome.plan.get("swap_bytes"),
        "races": outcome.report["races"],
        "plan": plan,
        "seconds": round(outcome.seconds, 1),
    }
    expect(peak <= limit, f"physical peak {peak} over {limit}")
    expect_equal(
        losses(outcome)[:3], losses(unlimited)[:3], "losses under the limit"
    )
    if (name, percent) in BESIDE_PAGER:
        check_beside_pager(spec, limit, outcome)
    if check_declined(outcome):
        declined = (name, percent)
        expect(declined in MAY_BE_DECLINED, f"declined: {plan}")
        return
    check_plan(outcome, percent)
    check_pager(outcome)
    check_steady(outcome)
    check_work(name, outcome)
    check_calls(outcome)
    if still:
        expect_equal(plan["steady_vmm_calls"], 0, "VMM calls of steady steps")


def losses(outcome):
    """Of the models that print a JSON line a step, or as train_gpt.py does."""
    return re.findall(r'"?loss"?:? +"?([0-9.]+)', outcome.out)


def write_results():
    """Puts the figures of what ran into those kept in tests/results."""
    path = ROOT / "tests/results/planned.json"
    kept = {}
    if not figures:
        return
    if path.exists():
        kept = json.loads(path.read_text(encoding="utf-8"))
    for name, by_share in figures.items():
        kept.setdefault(name, {}).update(by_share)
    text = json.dumps(kept, indent=1, sort_keys=True)
    path.write_text(text + "\n", encoding="utf-8")


def with_steps(spec, steps):
    return dataclasses.replace(
        spec, arguments=(*spec.arguments, "--steps", steps)
    )


def small(spec, percent):
    """Steps that have settled take no longer by plan than with the pager, or
    else it goes on alone."""
    unlimited = run_once(with_steps(spec, 3))
    limit = share_of_peak(unlimited.report, percent)
    timed = with_steps(spec, BEFORE + 16)  # some are timed anew meanwhile
    outcome, limit = run_at(timed, limit, "plan")
    plan = outcome.status.get("plan")
    print(f"  {percent} %: {step_ms(outcome)} ms, {plan}")
    if plan and not plan["declined"]:
        check_pager(outcome)


def again(spec, percent):
    unlimited = run_once(spec)
    limit = share_of_peak(unlimited.report, percent)
    with tempfile.TemporaryDirectory(prefix="tapeswap-plan-") as folder:
        path = f"{folder}/plan.json"
        here = dataclasses.replace(
            spec, settings=(*spec.settings, ("TAPESWAP_PLAN", path))
        )
        first = checked(launch(limited(here, limit, "plan")))
        expect(os.path.exists(path), f"no plan\n{first.err[-1000:]}")
        second = checked(launch(limited(here, limit, "plan")))
        expect("is taken" in second.err, second.err[-1000:])
        expect_equal(printed(second), printed(unlimited), "output")
        # Nothing has to be timed: it is taken up before the first one was.
        steps = [run.status["plan"]["steps"] for run in (first, second)]
        expect(steps[1] >= steps[0] + 2, f"steps by the plan: {steps}")
        other_limit = limit + (64 << 20)
        third = checked(launch(limited(here, other_limit, "plan")))
        expect("is for another limit" in third.err, third.err[-1000:])


def offline(spec, percent):
    """What `tapeswap plan` makes of a profile is taken, and stays."""
    unlimited = run_once(spec)
    limit = share_of_peak(unlimited.report, percent)
    profile = run(dataclasses.replace(spec, observe=True)).profile
    with tempfile.TemporaryDirectory(prefix="tapeswap-plan-") as folder:
        with open(f"{folder}/profile.json", "w", encoding="utf-8") as file:
            json.dump(profile, file)
        path = f"{folder}/plan.json"

        def made_for(bytes_):
            command = [ROOT / "build/tapeswap", "plan", "--no-replay"]
            command += [f"{folder}/profile.json", f"--limit={bytes_}"]
            subprocess.run([*command, "-o", path], check=True, timeout=120)
            with open(path, "rb") as file:
                text = file.read()
            here = dataclasses.replace(
                spec, settings=(*spec.settings, ("TAPESWAP_PLAN", path))
            )
            outcome = checked(launch(limited(here, limit, "plan")))
            with open(path, "rb") as file:
                expect_equal(file.read(), text, "the file")
            expect_equal(printed(outcome), printed(unlimited), "output")
            return outcome

        # It knows nothing of pages, which take a little more.
        outcome = made_for(limit * 85 // 100)
        expect(f"that in {path} is taken" in outcome.err, outcome.err[-1000:])
        plan = outcome.status["plan"]
        expect(plan["steps"] >= 3, f"steps by the plan: {plan}")
        expect_equal(plan["missed"] + plan["astray"], 0, "pages not there")
        outcome = made_for(limit)
        expect("does not fit: " in outcome.err, outcome.err[-1000:])
        outcome = made_for(limit + (64 << 20))
        expect("is for another limit" in outcome.err, outcome.err[-1000:])


def none_fits(spec, percent):
    """That no plan fits is said, with a limit that there is one for."""
    unlimited = run_once(spec)
    limit = share_of_peak(unlimited.report, percent)
    outcome, limit = run_at(spec, limit, "plan")
    expect_equal(
        printed(outcome), printed(unlimited), "output under the limit"
    )
    said = re.findall(NONE_FITS, outcome.err)
    expect_equal(len(said), 1, f"lines that no plan fits\n{outcome.err}")
    expect("-> " not in outcome.err, f"a plan is named\n{outcome.err}")
    outcome, _ = run_at(spec, int(said[0]) << 20, "plan")
    expect(outcome.plan, f"no plan at {said[0]} MiB\n{outcome.err}")


def kept(spec, percent):
    """A file that no run left there stays, the plan goes beside it."""
    unlimited = run_once(spec)
    limit = share_of_peak(unlimited.report, percent)
    with tempfile.TemporaryDirectory(prefix="tapeswap-plan-") as folder:
        path = f"{folder}/plan.json"
        here = dataclasses.replace(
            spec, settings=(*spec.settings, ("TAPESWAP_PLAN", path))
        )
        with open(path, "w", encoding="utf-8") as file:
            file.write('{"schema": "plan"}')
        outcome = checked(launch(limited(here, limit, "plan")))
        with open(path, encoding="utf-8") as file:
            expect_equal(file.read(), '{"schema": "plan"}', "the file")
        with open(path + ".new", encoding="utf-8") as file:
            expect("measured" in json.load(file), "no plan of a run")
        expect(f"-> {path}.new" in outcome.err, outcome.err[-1000:])


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
    told = check_told(outcome)
    if "--eval-every" in spec.arguments:
        # One finder of steps names both, whatever lies between them.
        expect_equal(int(told["ops"] or 0), outcome.plan["n_ops"], f"{told}")


def check_beside(outcome):
    """What was moved out when the profile was taken is none of what is there
    beside PyTorch's memory: that is the context, and kernels' code."""
    context = outcome.report["context_bytes"]
    beside = outcome.profile["resident_bytes"]
    expect(
        context <= beside <= context + (16 << 20),
        f"{beside} bytes beside PyTorch's, of which {context} the context's",
    )


def as_unlimited(spec, limit, unlimited, what):
    """A run in mode plan keeps to the limit and puts out the same."""
    outcome = checked(launch(limited(spec, limit, "plan")))
    peak = outcome.report["physical_peak_bytes"]
    print(f"  {what}: {outcome.status.get('plan')}")
    expect(peak <= limit, f"physical peak {peak} over {limit}")
    expect_equal(
        printed(outcome), printed(unlimited), "output under the limit"
    )
    return outcome


def ordinary(how, percent, least_steps, absent):
    """What people write: by a plan that holds, which the next run takes up.

    @absent: pages that a step may find away, or where it did not expect them.
    """
    spec = Spec(
        WORKLOADS / "ordinary.py",
        (how,),
        settings=(("SIMGPU_CONTENT", "tags"), ("TAPESWAP_LOG", "debug")),
    )
    unlimited = run_once(spec)
    limit = share_of_peak(unlimited.report, percent)
    with tempfile.TemporaryDirectory(prefix="tapeswap-plan-") as folder:
        here = dataclasses.replace(
            spec,
            settings=(
                *spec.settings,
                ("TAPESWAP_PLAN", f"{folder}/plan.json"),
                ("TAPESWAP_PROFILE", "profile.json"),
            ),
        )
        for run in "first", "second":
            outcome = as_unlimited(
                here, limit, unlimited, f"{how}, {run} run"
            )
            # The second has the first one's plan, yet tells what it saw.
            check_beside(outcome)
            plan = outcome.status.get("plan")
            expect(plan, f"no plan\n{outcome.err[-1000:]}")
            expect(plan["steps"] >= least_steps, f"steps by plan: {plan}")
            check_told(outcome)
            expect(
                plan["missed"] + plan["astray"] <= absent * plan["steps"],
                f"pages not there: {plan}",
            )
            expect_equal(
                plan["steady_vmm_calls"], 0, "VMM calls of steady steps"
            )
        expect("plan.json is taken" in outcome.err, outcome.err[-1000:])


def mlp(*settings):
    return Spec(
        WORKLOADS / "ordinary.py",
        ("mlp",),
        settings=(("SIMGPU_CONTENT", "tags"), *settings),
    )


def under(name, value):
    """A setting that the pager bears, where steps go by a plan."""
    unlimited = run_once(mlp())
    limit = share_of_peak(unlimited.report, 65)
    outcome = as_unlimited(
        mlp((name, value)), limit, unlimited, f"{name}={value}"
    )
    plan = outcome.status.get("plan")
    # Nothing stays mapped that is not resident: no plan holds.
    if name == "TAPESWAP_DEBUG_UNMAP":
        return
    expect(plan and plan["steps"] >= 5, f"steps by the plan: {plan}")
    expect_equal(plan["missed"] + plan["astray"], 0, "pages not there")


# Driver calls that fail, drawn with this seed from those of planned steps.
FAULTS, FAULT_SEED = 16, 10


def draw_faults(before, after):
    """Calls that the agent alone makes, in the second half of the run."""
    chance = random.Random(FAULT_SEED)
    drawn = [
        (symbol, chance.randint(after[symbol] // 2 + 1, after[symbol]))
        for symbol in agent_symbols()
        if after.get(symbol, 0) and not before.get(symbol, 0)
        for _ in range(3)
    ]
    return chance.sample(sorted(set(drawn)), FAULTS)


def faulty():
    """A driver call fails on the plan: right results, or out of memory."""
    unlimited = run_once(mlp())
    limit = share_of_peak(unlimited.report, 65)
    plain = checked(launch(limited(mlp(), limit, "plan")))
    words = {}
    for symbol, nth in draw_faults(
        unlimited.report["api_call_counts"], plain.report["api_call_counts"]
    ):
        spec = mlp(("SIMGPU_FAIL", f"{symbol}:{nth}"))
        outcome = launch(limited(spec, limit, "plan"))
        report, which = outcome.report, f"{symbol}:{nth}"
        word = "out of memory" if outcome.code else "right"
        # PyTorch takes other kernels where one product is refused memory.
        recovered = "Will attempt to recover" in outcome.err
        if recovered and not outcome.code:
            word = "recovered by PyTorch"
        words[word] = words.get(word, 0) + 1
        expect(report, f"{which}: no report\n{outcome.err[-1000:]}")
        counts = report["api_call_counts"]
        expect(counts.get(symbol, 0) >= nth, f"{which}: was never made")
        if outcome.code:
            expect(
                "out of memory" in outcome.err,
                f"{which}: {outcome.err[-1000:]}",
            )
        elif not recovered:
            expect_equal(printed(outcome), printed(unlimited), which)
        peak = report["physical_peak_bytes"]
        expect(peak <= limit, f"{which}: peak {peak} over {limit}")
        found = report["races"], report["memory_errors"]
        expect_equal(found, (0, 0), f"{which}: races and memory errors")
    print(f"  {FAULTS} faults: {words}")


# Large enough that pages of 2 MiB are few of many.
GPT = (
    *"--layers 4 --width 512 --heads 8 --sequence 512 --batch 16".split(),
    "--steps",
)


# Least steps by a plan: all before what differs but BEFORE, and at the latest
# from the second one on after it.
CHANGES = (
    ("lengths", (12, 4, 6), 9),
    ("alternate", (12, 8, 4), 5),
    ("skipped", (12, 1, 5), 8),
    ("exception", (12, 1, 5), 8),
    ("accumulate", (12, 8, 5), 7),
    ("second", (12, 12, 0), 5),
)


# Steps by the plan, of sixteen; where it is taken up again in the middle of a
# step after each evaluation there are more than without that. What is kept in
# a list comes back to its place after more steps than are planned for: its
# plan does as well as it can, and is given up where the pager does better.
ORDINARY = (
    # A cycle of two: its plan may wait a step for the first of them.
    ("mlp", 5, 0),
    ("loader", 6, 0),
    ("lstm", 6, 0),
    ("vit", 6, 0),
    ("scaler", 6, 0),
    ("gan", 6, 0),
    ("evaluate", 7, 0),
    ("zeroed", 6, 0),
    ("fused", 6, 0),
    ("dropout", 6, 0),
    ("averaged", 6, 0),
    ("kept", 4, 1),
)


def changing(how, counts):
    """Content is checked: results are those without a limit."""
    return Spec(
        WORKLOADS / "changing.py",
        (how, *counts, *GPT, 1, "--digest"),
        settings=(("SIMGPU_CONTENT", "tags"),),
    )


def small_models():
    language = WORKLOADS / "language_model.py"
    vision = WORKLOADS / "vision.py"
    return {
        "gpt": Spec(TRAIN_GPT),
        "gpt-amp": Spec(TRAIN_GPT, ("--amp",)),
        "bert-small": Spec(language, ("bert-small", "--laps")),
        "gpt2-small": Spec(language, ("gpt2-small", "--laps")),
        "resnet18": Spec(vision, ("resnet18", "--laps")),
    }


# Nothing to gain; at 40 % what fits takes longer than the pager. Where another
# one is declined something is wrong with plans.
MAY_BE_DECLINED = (("vgg16", 90), ("vgg16", 70), ("vgg16", 40))
# Models that are run with the pager alone, too: what steps by the plan are held
# against is none of the agent's own figures.
BESIDE_PAGER = (("bert-large", 50), ("gpt-compile", 50), ("resnet50", 50))

# Whose plans at half the peak and above are to need no VMM call.
NO_CALLS = ("bert-large", "gpt2-xl", "llama-7b")


def large_models():
    language = WORKLOADS / "language_model.py"
    vision = WORKLOADS / "vision.py"
    compiled = (*GPT[:-1], "--compile")
    return {
        "bert-large": Spec(language, ("bert-large", "--laps"), timeout=1800),
        "gpt2-xl": Spec(language, ("gpt2-xl", "--laps"), timeout=2400),
        "llama-7b": Spec(language, ("llama-7b", "--laps"), timeout=2400),
        "vgg16": Spec(
            vision, ("vgg16", "--batch", 128, "--laps"), timeout=1200
        ),
        "resnet50": Spec(
            vision, ("resnet50", "--batch", 64, "--laps"), timeout=1200
        ),
        "gpt-compile": Spec(TRAIN_GPT, compiled, timeout=900),
    }


def all_cases():
    gpt_steps = Spec(TRAIN_GPT, GPT[:-1])
    gpt = Spec(TRAIN_GPT, (*GPT, 12))
    longer = Spec(TRAIN_GPT, (*GPT, 14))
    between = Spec(TRAIN_GPT, (*GPT, 16, "--eval-every", 8))
    cases = [
        Case(
            f"torch/planned/gpt/{percent}",
            # Where little is saved the pager's steps are timed first.
            lambda p=percent: share(
                longer if p == 90 else gpt, p, p >= 40
            ),
            full=percent != 50,
        )
        for percent in SHARES
    ]
    cases.append(
        Case("torch/planned/evaluation", lambda: other(between, 60, 4))
    )
    cases += [
        Case(
            f"torch/planned/changing/{how}",
            lambda h=how, c=counts, n=least: other(changing(h, c), 60, n),
            full=how != "skipped",
        )
        for how, counts, least in CHANGES
    ]
    cases += [
        Case(
            f"torch/planned/ordinary/{how}",
            lambda h=how, n=least, a=absent: ordinary(h, 65, n, a),
            full=how not in ("mlp", "gan", "evaluate"),
        )
        for how, least, absent in ORDINARY
    ]
    cases.append(
        Case(
            "torch/planned/dead-gradients",
            lambda: ordinary("wide", 30, 6, 0),
            full=True,
        )
    )
    cases += [
        Case(
            f"torch/planned/settings/{name}={value}",
            lambda n=name, v=value: under(n, v),
            full=True,
        )
        for name, value in (
            ("SIMGPU_UNMAP_SYNC", "none"),
            ("SIMGPU_UNMAP_SYNC", "device"),
            ("TAPESWAP_HELPER", "inline"),
            ("TAPESWAP_HELPER", "thread"),
            ("TAPESWAP_DEBUG_UNMAP", "1"),
        )
    ]
    cases += [
        Case("torch/planned/faults", faulty, full=True),
        Case("torch/planned/steady/gpt", lambda: steady(gpt_steps, 50, 5)),
        Case("torch/planned/again", lambda: again(gpt, 60), full=True),
        Case("torch/planned/offline", lambda: offline(gpt, 60), full=True),
        Case("torch/planned/none", lambda: none_fits(gpt, 20), full=True),
        Case("torch/planned/kept", lambda: kept(gpt, 60), full=True),
    ]
    cases += [
        Case(
            f"torch/planned/small/{name}/{percent}",
            lambda s=spec, p=percent: small(s, p),
            full=(name, percent) != ("gpt", 60),
        )
        for name, spec in small_models().items()
        for percent in (80, 60)
    ]
    cases += [
        Case(
            f"torch/planned/{name}/{percent}",
            lambda n=name, s=spec, p=percent: large(
                n, s, p, n in NO_CALLS and p >= 50
            ),
            full=True,
            alone=True,
        )
        for name, spec in large_models().items()
        for percent in SHARES
    ]
    return cases
