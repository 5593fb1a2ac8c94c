# SPDX-License-Identifier: LGPL-2.1-or-later
"""What must hold of proofs, TAPESWAP_REPLAY=1, or where they pay.

The program prints what it prints without, within its limit, with no race: the
agent only looks, and writes memory of its own. Every kernel has a verdict, and
those that must not be launched again are refused.
"""

import dataclasses
import tempfile

from harness import ROOT, TRAIN_GPT, WORKLOADS, Spec, run, run_once
from planned import GPT as LARGE, check_plan, printed, share_of_peak, step_ms
from runner import Case, expect, expect_equal

VERDICTS = ("proved", "refused by rule", "refused by proof", "not tried")
# Parts of kernels' names, and what their verdict must be.
GPT = {
    "vectorized_layer_norm": "proved",
    "GeluCUDAKernelImpl": "proved",
    "gemm_f32": "proved",
    "fused_dropout": "proved",
    "embedding_backward": "refused by rule",
    "foreach": "refused by rule",
    "MemcpyHtoD": "refused by rule",
}
REFUSED = {
    "batch_norm_collect_statistics": "refused by rule",
    "batch_norm_update_stats": "refused by rule",
    "batch_norm_transform_input": "proved",
    "launch_clamp": "proved",
    "fused_dropout": "proved",
    "embedding_backward": "refused by rule",
    "indexing_backward": "refused by rule",
    "foreach": "refused by rule",
}




def proving(spec, limit, content):
    return Spec(
        spec.script,
        spec.arguments,
        device=spec.device,
        limit=str(limit),
        settings=(
            *spec.settings,
            ("SIMGPU_CONTENT", content),
            ("TAPESWAP_REPLAY", "1"),
            ("TAPESWAP_PROFILE", "profile.json"),
        ),
    )


def planning(spec, limit, content, replay=None):
    """@replay None: as it is where nothing is set."""
    replays = (("TAPESWAP_REPLAY", replay),) if replay else ()
    return Spec(
        spec.script,
        spec.arguments,
        device=spec.device,
        limit=str(limit),
        settings=(
            ("SIMGPU_CONTENT", content),
            ("TAPESWAP_MODE", "plan"),
            ("TAPESWAP_PROFILE", "profile.json"),
            *replays,
        ),
        timeout=600,
    )


def plain(spec, content):
    return Spec(
        spec.script,
        spec.arguments,
        device=spec.device,
        settings=(*spec.settings, ("SIMGPU_CONTENT", content)),
    )


def check_closures(closures):
    """Each was made again out of what was there, and came out the same."""
    print(f"  closures: {closures}")
    expect(closures["tried"] > 0, "no closure was tried")
    expect(
        closures["proved"] >= closures["tried"] * 0.9,
        f"closures that were not proved: {closures}",
    )
    expect_equal(
        closures["proved"] + sum(closures["others"].values()),
        closures["tried"],
        "closures with a verdict",
    )


def check_verdicts(profile, wanted, least_proved):
    expect("proof" in profile, "nothing was proved")
    expect_equal(profile["proof"]["shadow_steps"], 4, "shadow steps")
    check_closures(profile["proof"]["closures"])
    seen = dict.fromkeys(wanted, 0)
    ops = proved = 0
    for signature in profile["signatures"]:
        replay = signature["replay"]
        expect(replay["verdict"] in VERDICTS, f"{signature}")
        expect(replay["reason"], f"{signature['name']}: no reason")
        expect_equal(
            signature["replayable"], replay["proved"] > 0, signature["name"]
        )
        refused = replay["refused_by_rule"] + replay["refused_by_proof"]
        expect(refused + replay["proved"] <= replay["ops"], f"{signature}")
        ops += replay["ops"]
        proved += replay["proved"]
        for part, verdict in wanted.items():
            if part in signature["name"]:
                expect_equal(replay["verdict"], verdict, signature["name"])
                seen[part] += 1
    expect_equal(ops, len(profile["ops"]), "ops with a verdict")
    missing = [part for part, count in seen.items() if not count]
    expect(not missing, f"no such kernels: {missing}")
    print(f"  {proved} of {ops} ops proved, {profile['proof']}")
    expect(proved >= ops * least_proved, f"{proved} of {ops} ops proved")
    # What no proven op makes is not replayed, whatever its signature says.
    for op in profile["ops"]:
        signature = profile["signatures"][op["signature"]]
        for value in op.get("writes", []):
            expect(
                signature["replayable"]
                or profile["values"][value].get("replayable") is False,
                f"a value of {signature['name']} may be replayed",
            )


def proof(spec, content, percent, wanted, least_proved):
    unlimited = run_once(plain(spec, content))
    limit = share_of_peak(unlimited.report, percent)
    outcome = run(proving(spec, limit, content))
    peak = outcome.report["physical_peak_bytes"]
    expect(peak <= limit, f"physical peak {peak} over {limit}")
    expect_equal(printed(outcome), printed(unlimited), "output")
    check_verdicts(outcome.profile, wanted, least_proved)


def remade(spec, content, percent, faster=True):
    """Values are given up and made again: the same output within the limit,
    and less time than it takes to copy them."""
    unlimited = run_once(plain(spec, content))
    limit = share_of_peak(unlimited.report, percent)
    outcome = run(proving(spec, limit, content))
    peak = outcome.report["physical_peak_bytes"]
    expect(peak <= limit, f"physical peak {peak} over {limit}")
    expect_equal(printed(outcome), printed(unlimited), "output")
    found = outcome.status.get("remade")
    expect(found, f"nothing was given up\n{outcome.err[-1000:]}")
    expect_equal(found["failed"], 0, "values that could not be made again")
    expect_equal(found["made_again"], found["given_up"], "values made again")
    expect(found["given_up"] >= 20, f"{found}")
    print(f"  {found}")
    if not faster:
        return found
    copied = run(
        Spec(
            spec.script,
            spec.arguments,
            device=spec.device,
            limit=str(limit),
            settings=(*spec.settings, ("SIMGPU_CONTENT", content)),
        )
    )
    print(f"  step {step_ms(outcome)} ms, {step_ms(copied)} ms with copies")
    expect(
        step_ms(outcome) < step_ms(copied),
        f"step {step_ms(outcome)} ms, {step_ms(copied)} ms with copies",
    )
    return found


def check_kernels(outcome):
    """The plan lists every kernel of the step, with its verdict."""
    kernels = outcome.plan["kernels"]
    listed = {kernel["kernel"] for kernel in kernels}
    profile = outcome.profile
    signatures = profile["signatures"]
    known = {signatures[op["signature"]]["name"] for op in profile["ops"]}
    expect_equal(listed, known, "kernels with a verdict")
    expect_equal(
        sum(kernel["ops"] for kernel in kernels), len(profile["ops"]), "ops"
    )
    verdicts = {kernel["verdict"] for kernel in kernels}
    expect(verdicts <= set(VERDICTS), f"verdicts: {verdicts}")
    # What the plan launches again was proved.
    refused = {k["kernel"] for k in kernels if not k["proved"]}
    for replay in outcome.plan["replays"]:
        name = signatures[profile["ops"][replay["op"]]["signature"]]["name"]
        expect(name not in refused, f"{name} is launched again by the plan")


def by_plan(spec, content, percent, without=True):
    """Values are made again as the plan says: the same output within the
    limit, in the time that it says, and no slower than a plan that has none."""
    unlimited = run_once(plain(spec, content))
    limit = share_of_peak(unlimited.report, percent)
    outcome = run(planning(spec, limit, content, "1"))
    peak = outcome.report["physical_peak_bytes"]
    expect(peak <= limit, f"physical peak {peak} over {limit}")
    expect_equal(printed(outcome), printed(unlimited), "output")
    check_plan(outcome, percent)
    made = outcome.plan["made_again"]
    found = outcome.status["remade"]
    steps = outcome.status["plan"]["steps"]
    print(f"  {found}\n  {made}")
    expect(outcome.plan["swap_bytes"] > 0, "nothing is swapped")
    expect(outcome.plan["replay_ns"] > 0, "nothing is made again")
    expect_equal(found["failed"], 0, f"{found}")
    expect(found["early"] <= steps, f"made before their time: {found}")
    expect_equal(found["kept"], 0, "values that could not be given up")
    expect_equal(found["made_again"], found["given_up"], "made again")
    expect_equal(found["given_up"], steps * made["values"], "given up")
    check_kernels(outcome)
    step_ns = outcome.plan["measured"]["step_ns"]
    expect(
        step_ns <= made["without_ns"],
        f"step {step_ns} ns, {made['without_ns']} with copies alone",
    )
    if not without:
        return
    copied = run(planning(spec, limit, content, "0"))
    print(f"  step {step_ms(outcome)} ms, {step_ms(copied)} ms with copies")
    expect(
        step_ms(outcome) <= step_ms(copied),
        f"step {step_ms(outcome)} ms, {step_ms(copied)} ms with copies",
    )


def asked(spec, percent):
    """With no setting: proved where it pays, after steps by a plan without."""
    unlimited = run_once(plain(spec, "tags"))
    limit = share_of_peak(unlimited.report, percent)
    outcome = run(planning(spec, limit, "tags"))
    peak = outcome.report["physical_peak_bytes"]
    expect(peak <= limit, f"physical peak {peak} over {limit}")
    expect_equal(printed(outcome), printed(unlimited), "output")
    check_plan(outcome, percent)
    plan, made = outcome.status["plan"], outcome.plan["made_again"]
    found = outcome.status["remade"]
    print(f"  {found}\n  {made}")
    expect_equal(plan["plans"], 2, "plans")
    told = f"; {found['made_again']} values made again"
    expect(told in outcome.err, f"not {told}\n{outcome.err[-1000:]}")
    by_both = found["given_up"] / made["values"]
    expect(by_both >= 3, f"steps in which values are made again: {by_both}")
    expect(plan["steps"] >= 16 + by_both, f"steps by plans: {plan}")
    expect_equal(found["failed"] + found["kept"], 0, f"{found}")
    expect(
        step_ms(outcome) * 1e6 < 0.97 * made["without_ns"],
        f"step {step_ms(outcome)} ms, {made['without_ns']} ns without",
    )


def unasked(spec, percent):
    """Where a plan takes no longer than the step alone nothing is proved."""
    unlimited = run_once(plain(spec, "tags"))
    limit = share_of_peak(unlimited.report, percent)
    outcome = run(planning(spec, limit, "tags"))
    expect_equal(printed(outcome), printed(unlimited), "output")
    check_plan(outcome, percent)
    plan = outcome.status["plan"]
    expect(plan["steps"] >= 20, f"steps by plans: {plan}")
    shadow_steps = outcome.profile["proof"]["shadow_steps"]
    expect_equal((plan["plans"], shadow_steps), (1, 0), "plans, shadow steps")
    expect("made again" not in outcome.err, outcome.err[-1000:])


def asked_again(spec, percent):
    """A run that finds a plan with values made again proves it at once."""
    unlimited = run_once(plain(spec, "tags"))
    limit = share_of_peak(unlimited.report, percent)
    given_up = []
    with tempfile.TemporaryDirectory(prefix="tapeswap-plan-") as folder:
        path = f"{folder}/plan.json"
        base = planning(spec, limit, "tags")
        base = dataclasses.replace(
            base, settings=(*base.settings, ("TAPESWAP_PLAN", path))
        )
        for said in False, True:
            outcome = run(base)
            expect_equal(printed(outcome), printed(unlimited), "output")
            expect_equal(
                "has values made again" in outcome.err, said, outcome.err
            )
            given_up.append(outcome.status["remade"]["given_up"])
    print(f"  values given up: {given_up}")
    expect(given_up[1] >= 2 * given_up[0] > 0, f"given up: {given_up}")


def told(steps, mode, why):
    """Why nothing was made again, or that some was, is said at the end."""
    outcome = run(
        Spec(
            WORKLOADS / "ordinary.py",
            ("mlp", "--steps", steps),
            limit="700MiB",
            settings=(
                ("SIMGPU_CONTENT", "tags"),
                ("TAPESWAP_MODE", mode),
                ("TAPESWAP_REPLAY", "1"),
            ),
        )
    )
    remade = outcome.status.get("remade")
    expect_equal(remade is None, why is not None, f"{remade}")
    if remade:
        words = f"{remade['made_again']} values made again"
    else:
        words = f"nothing made again: {why}"
    expect(f"; {words}" in outcome.err, f"not {words}\n{outcome.err[-600:]}")


def not_paid(spec, percent):
    """Where copies cost nothing what was proved is not made use of, and that
    is said."""
    unlimited = run_once(plain(spec, "tags"))
    limit = share_of_peak(unlimited.report, percent)
    outcome = run(planning(spec, limit, "tags", "1"))
    expect_equal(printed(outcome), printed(unlimited), "output")
    expect("remade" not in outcome.status, f"{outcome.status.get('remade')}")
    closures = outcome.profile["proof"]["closures"]
    expect(closures["proved"] > 0, f"nothing was proved: {closures}")
    words = "; nothing made again: it would not pay"
    expect(words in outcome.err, f"not {words}\n{outcome.err[-600:]}")


def looked_again(spec, percent, unstable):
    """Every few steps all is tried once more. What began to come out otherwise
    (@unstable, as SIMGPU_UNSTABLE has it) is found, and planned for no more."""
    unlimited = run_once(plain(spec, "tags"))
    limit = share_of_peak(unlimited.report, percent)
    base = planning(spec, limit, "tags", "1")
    more = (("TAPESWAP_VERIFY", "3"),)
    if unstable:
        more += (("SIMGPU_UNSTABLE", unstable),)
    outcome = run(dataclasses.replace(base, settings=base.settings + more))
    found = outcome.status["remade"]
    plan = outcome.status["plan"]
    print(f"  {found}\n  {plan}")
    expect(found["looks"] >= 2, f"looks: {found}")
    expect_equal(found["failed"] + found["kept"], 0, f"{found}")
    expect(plan["steps"] >= 3 * found["looks"] - 3, f"steps by plan: {plan}")
    if not unstable:
        expect_equal(printed(outcome), printed(unlimited), "output")
        expect_equal(found["demoted"], 0, "what came out otherwise")
        expect_equal(plan["plans"], 2, "plans")
        return
    expect(found["demoted"] > 0, f"nothing was found: {found}")
    expect_equal(plan["plans"], 3, "plans")
    part = unstable.split("@")[0]
    names = {
        index: signature["name"]
        for index, signature in enumerate(outcome.profile["signatures"])
    }
    for replay in outcome.plan["replays"]:
        op = outcome.profile["ops"][replay["op"]]
        name = names[op["signature"]]
        expect(part not in name, f"{name} is launched again by the plan")


# Steps, mode, and what is said then; None: some are made again.
TOLD = (
    (3, "plan", "no step was known"),
    (8, "cap", "the proof did not end"),
    (40, "plan", "blocks take turns from step to step"),
    (40, "cap", None),
)
# What checked.py's layers have, and verdicts on parts of kernels' names.
KEPT = {
    "norm": {
        "batch_norm_collect_statistics": "refused by rule",
        "batch_norm_update_stats": "refused by rule",
    },
    "inplace": {"launch_clamp": "proved"},
    # The gate can be made again, but not from what is there by then.
    "leaf": {"sigmoid_kernel": "proved"},
    "atomics": {
        "indexing_backward": "refused by rule",
        "embedding_backward": "refused by rule",
    },
    # It changes none of its operands: nobody sees what it writes.
    "hidden": {"gemm_batched": "refused by rule"},
    "added": {"gemm_batched": "refused by rule"},
    # Launched again alone, one waits for what no other sends.
    "together": {
        "simnccl_send": "refused by rule",
        "simnccl_receive": "refused by rule",
    },
    "random": {"GeluCUDAKernelImpl": "refused by proof"},
}


def kept(kinds, percent, least, settings=()):
    """Values are given up and made again, and each activation is what it was
    when it was made; the kernels that would make it otherwise are refused."""
    spec = Spec(
        WORKLOADS / "checked.py",
        (*kinds, "--library", ROOT / "build/tests/torch/libwild_grouped.so"),
    )
    settings = (("SIMGPU_CONTENT", "tags"), *settings)
    unlimited = run_once(dataclasses.replace(spec, settings=settings))
    limit = share_of_peak(unlimited.report, percent)
    base = proving(spec, limit, "tags")
    outcome = run(
        dataclasses.replace(base, settings=base.settings + settings)
    )
    steps = outcome.steps()
    expect(all(step["looked"] for step in steps), "nothing was looked at")
    wrong = [step["step"] for step in steps if not step["same"]]
    expect(not wrong, f"activations that are not what they were: {wrong}")
    # What differs at each launch does so for one launch more or less.
    if "random" not in kinds:
        expect_equal(outcome.out, unlimited.out, "output")
    found = outcome.status["remade"]
    print(f"  {found}")
    expect(found["given_up"] >= least, f"{found}")
    expect_equal(found["failed"], 0, f"{found}")
    for kind in kinds:
        for part, verdict in KEPT[kind].items():
            verdicts = {
                signature["replay"]["verdict"]
                for signature in outcome.profile["signatures"]
                if part in signature["name"]
            }
            expect_equal(verdicts, {verdict}, f"verdicts on {part}")


def disturbed(spec, content, percent):
    """Other work between: what it needs is made again before its time."""
    found = remade(spec, content, percent, faster=False)
    expect(found["early"] > 0, f"nothing was needed early: {found}")


def beside(spec, percent):
    """Values of two streams that do not wait for each other are made again by
    a plan, with scratch that they have by turns: no race, the same output."""
    unlimited = run_once(plain(spec, "tags"))
    limit = share_of_peak(unlimited.report, percent)
    outcome = run(planning(spec, limit, "tags", "1"))
    peak = outcome.report["physical_peak_bytes"]
    expect(peak <= limit, f"physical peak {peak} over {limit}")
    expect_equal(printed(outcome), printed(unlimited), "output")
    found, made = outcome.status.get("remade"), outcome.plan["made_again"]
    print(f"  {found}\n  {made}")
    expect(found, f"nothing was given up\n{outcome.err[-1000:]}")
    expect_equal(found["failed"] + found["kept"], 0, f"{found}")
    expect_equal(found["made_again"], found["given_up"], "made again")
    expect(found["given_up"] >= 3 * made["values"], f"steps: {found}")
    expect(made["scratch_bytes"] > 0, f"no scratch: {made}")
    expect(found["launches"] > found["made_again"], f"no scratch: {found}")


def all_cases():
    gpt = Spec(
        TRAIN_GPT,
        ("--steps", 16, "--dropout", 0.1, "--attention", "manual", "--layers",
         2, "--width", 128, "--sequence", 64, "--batch", 4, "--vocabulary",
         512),
    )
    refused = Spec(WORKLOADS / "refused.py", ("--steps", 18))
    vision = Spec(
        WORKLOADS / "vision.py",
        ("resnet18", "--batch", 8, "--size", 64, "--steps", 18),
    )
    bert = Spec(WORKLOADS / "language_model.py", ("bert-large", "--steps", 16))
    dropout = Spec(TRAIN_GPT, (*LARGE, 18, "--dropout", 0.1))
    # The pager weighs each value by itself: it gains where links are busy.
    slow = dataclasses.replace(
        dropout, settings=(("SIMGPU_SLOW_LINK", "0.5"),)
    )
    longer = Spec(TRAIN_GPT, (*LARGE, 22, "--dropout", 0.1))
    mini = Spec(
        TRAIN_GPT,
        ("--steps", 22, "--dropout", 0.1, "--layers", 4, "--width", 256,
         "--heads", 8, "--sequence", 512, "--batch", 16, "--vocabulary", 512),
    )
    longest = dataclasses.replace(
        mini, arguments=("--steps", 42, *mini.arguments[2:])
    )
    tall = Spec(
        TRAIN_GPT,
        ("--steps", 22, "--dropout", 0.1, "--layers", 12, "--width", 256,
         "--heads", 4, "--sequence", 512, "--batch", 32, "--vocabulary", 512),
    )
    evaluating = Spec(
        TRAIN_GPT, (*LARGE, 22, "--dropout", 0.1, "--eval-every", 3)
    )
    between = Spec(WORKLOADS / "disturbed.py")
    by_turns = Spec(WORKLOADS / "disturbed.py", ("--streams", "--layers", 8))
    apart = Spec(WORKLOADS / "apart.py")
    small = Spec(
        WORKLOADS / "disturbed.py",
        ("--layers", 4, "--batch", 1024, "--width", 512),
    )
    return [
        Case("torch/remade/gpt", lambda: remade(slow, "tags", 50)),
        Case(
            "torch/remade/planned",
            lambda: by_plan(mini, "tags", 40, without=False),
        ),
        Case("torch/remade/asked", lambda: asked(longest, 40)),
        *(
            Case(
                f"torch/remade/told/{steps}-{mode}",
                lambda s=steps, m=mode, w=why: told(s, m, w),
                full=True,
            )
            for steps, mode, why in TOLD
        ),
        Case(
            "torch/remade/told/not-paid",
            lambda: not_paid(mini, 90),
            full=True,
        ),
        Case(
            "torch/remade/asked-again",
            lambda: asked_again(longest, 40),
            full=True,
        ),
        Case(
            "torch/remade/unasked",
            lambda: unasked(longest, 90),
            full=True,
        ),
        Case(
            "torch/remade/gpt-40",
            lambda: by_plan(longer, "tags", 40),
            full=True,
        ),
        Case(
            "torch/remade/looked-again",
            lambda: looked_again(longest, 40, None),
            full=True,
        ),
        Case(
            "torch/remade/unstable",
            lambda: looked_again(longest, 40, "GeluCUDA@130"),
            full=True,
        ),
        *(
            Case(
                f"torch/remade/planned/tall/{percent}",
                lambda p=percent: by_plan(tall, "tags", p),
                full=True,
            )
            for percent in (40, 30, 20)
        ),
        Case(
            "torch/remade/evaluation",
            lambda: remade(evaluating, "tags", 50, faster=False),
            full=True,
        ),
        Case(
            "torch/remade/disturbed",
            lambda: disturbed(between, "tags", 50),
            full=True,
        ),
        Case(
            "torch/remade/streams",
            lambda: disturbed(by_turns, "tags", 50),
            full=True,
        ),
        Case("torch/remade/apart", lambda: beside(apart, 50), full=True),
        Case(
            "torch/remade/disturbed-exact",
            lambda: disturbed(small, "exact", 60),
            full=True,
        ),
        Case(
            "torch/remade/kept/rules",
            lambda: kept(("norm", "inplace", "leaf", "atomics"), 60, 50),
        ),
        Case(
            "torch/remade/kept/hidden",
            lambda: kept(("hidden",), 60, 5),
            full=True,
        ),
        Case(
            "torch/remade/kept/added",
            lambda: kept(("added",), 60, 5),
            full=True,
        ),
        Case(
            "torch/remade/kept/together",
            lambda: kept(("together",), 60, 100),
            full=True,
        ),
        Case(
            "torch/remade/kept/random",
            lambda: kept(
                ("random",),
                60,
                100,
                (("SIMGPU_UNSTABLE", "GeluCUDAKernelImpl@1"),),
            ),
            full=True,
        ),
        Case(
            "torch/proof/gpt-exact",
            lambda: proof(gpt, "exact", 80, GPT, 0.5),
            full=True,
        ),
        Case(
            "torch/proof/refused",
            lambda: proof(refused, "tags", 100, REFUSED, 0.3),
        ),
        Case(
            "torch/proof/gpt-tags",
            lambda: proof(gpt, "tags", 60, GPT, 0.4),
            full=True,
        ),
        Case(
            "torch/proof/resnet18",
            lambda: proof(vision, "tags", 70, {}, 0.3),
            full=True,
        ),
        Case(
            "torch/proof/bert-large",
            lambda: proof(bert, "tags", 70, {}, 0.4),
            full=True,
            alone=True,
        ),
    ]
