# SPDX-License-Identifier: LGPL-2.1-or-later
"""What must hold of proofs, TAPESWAP_REPLAY=1.

The program prints what it prints without, within its limit, with no race: the
agent only looks, and writes memory of its own. Every kernel has a verdict, and
those that must not be launched again are refused.
"""

from capping import share_of_peak
from harness import TRAIN_GPT, WORKLOADS, Spec, run, run_once
from planned import printed
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
    "launch_clamp": "refused by rule",
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
            ("SIMGPU_CONTENT", content),
            ("TAPESWAP_REPLAY", "1"),
            ("TAPESWAP_PROFILE", "profile.json"),
        ),
    )


def plain(spec, content):
    return Spec(
        spec.script,
        spec.arguments,
        device=spec.device,
        settings=(("SIMGPU_CONTENT", content),),
    )


def check_verdicts(profile, wanted, least_proved):
    expect("proof" in profile, "nothing was proved")
    expect_equal(profile["proof"]["shadow_steps"], 2, "shadow steps")
    seen = dict.fromkeys(wanted, 0)
    ops = proved = 0
    for signature in profile["signatures"]:
        replay = signature["replay"]
        expect(replay["verdict"] in VERDICTS, f"{signature}")
        expect(replay["reason"], f"{signature['name']}: no reason")
        expect_equal(
            signature["replayable"], replay["proved"] > 0, signature["name"]
        )
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


def all_cases():
    gpt = Spec(
        TRAIN_GPT,
        ("--steps", 10, "--dropout", 0.1, "--attention", "manual", "--layers",
         2, "--width", 128, "--sequence", 64, "--batch", 4, "--vocabulary",
         512),
    )
    refused = Spec(WORKLOADS / "refused.py")
    vision = Spec(
        WORKLOADS / "vision.py",
        ("resnet18", "--batch", 8, "--size", 64, "--steps", 12),
    )
    bert = Spec(WORKLOADS / "language_model.py", ("bert-large", "--steps", 9))
    return [
        Case(
            "torch/proof/gpt-exact",
            lambda: proof(gpt, "exact", 80, GPT, 0.5),
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
