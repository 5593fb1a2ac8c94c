# SPDX-License-Identifier: LGPL-2.1-or-later
"""Real numbers on the simulated GPU: held against PyTorch's CPU, and against
themselves inside a limit."""

import dataclasses
import re

import capping
import planned
from harness import TRAIN_GPT, WORKLOADS, Spec, launch, run, run_once
from runner import Case, expect, expect_equal

SCRIPT = WORKLOADS / "exact.py"
OPS = WORKLOADS / "exact_ops.py"
EXACT = (("SIMGPU_CONTENT", "exact"),)
# What kernels touch is held against the kernel table as well.
CHECKED = (*EXACT, ("SIMGPU_CHECK_RANGES", "1"))
MODELS = (
    "mlp", "lenet", "gpt-manual", "gpt-fused", "gpt2", "bert", "llama",
)
# Largest relative errors of losses and gradients, by what is computed in.
TOLERANCE = {"fp32": 1e-4, "bf16": 2e-2, "fp16": 2e-2}
# How many operators are compared at least, by environment, and the error of
# one, relative to the largest element.
OPERATORS = {"venv": 180, "venv-2.11": 177}
OPERATOR_TOLERANCE = 1e-5
# In bfloat16 the CPU rounds sums in between, and what is sorted has equals,
# which may come in any order; a remainder may be the whole divisor.
NARROW_OPERATORS, NARROW_TOLERANCE = 160, 6e-2
UNORDERED = {
    "sort_rows", "sort_columns", "argsort", "topk_long", "kthvalue", "median",
    "remainders",
}
DROP_RATE, DROP_SLACK = 0.1, 0.003  # five deviations of 2^18 draws

# What some versions and types do not have on any device.
PYTORCH_REFUSES = (
    "not implemented for",
    "requires all the params to be floating point Tensors of supported devices",
)


def spec(*arguments, script=SCRIPT, **more):
    return Spec(script, arguments, settings=EXACT, **more)


def compare(precision, venv="venv"):
    amp = ("--amp",) if precision == "bf16" else ()
    outcome = run_once(
        Spec(
            SCRIPT,
            (*MODELS, "--compare", *amp),
            venv=venv,
            settings=CHECKED,
        )
    )
    lines = outcome.steps()
    expect_equal([line["model"] for line in lines], [*MODELS], "models")
    for line in lines:
        print(
            f"{precision} {line['model']}: largest relative error of a loss "
            f"{line['loss_error']:.1e}, of a gradient "
            f"{line['gradient_error']:.1e} ({line['worst_gradient']})"
        )
        for key in "loss_error", "gradient_error":
            expect(
                line[key] <= TOLERANCE[precision],
                f"{line['model']}: {key} {line[key]}",
            )
        losses = line["losses"]
        expect(losses[-1] < losses[0], f"{line['model']}: {losses}")
    outcome = run_once(spec("--drop-rate", venv=venv))
    seen = outcome.steps()[0]
    expect(
        abs(seen["dropped"] - DROP_RATE) < DROP_SLACK,
        f"dropped {seen['dropped']}",
    )
    expect(abs(seen["kept"] * (1 - DROP_RATE) - 1) < 1e-6, f"{seen}")
    expect_equal(seen["values"], 2, "values after dropout")


def scaled(venv="venv"):
    """float16 with a GradScaler: too large a scale, then one that grows."""
    outcome = run_once(
        Spec(
            SCRIPT,
            ("mlp", "gpt-fused", "--compare", "--scaler", "--steps", 12),
            venv=venv,
            settings=CHECKED,
        )
    )
    lines = outcome.steps()
    expect_equal(len(lines), 2, "models")
    for line in lines:
        print(
            f"{line['model']}: scales {line['scales']}, largest relative error"
            f" of a loss {line['loss_error']:.1e}, of a gradient"
            f" {line['gradient_error']:.1e}"
        )
        scales, losses = line["scales"], line["losses"]
        expect_equal(scales, line["cpu_scales"], "scales on the CPU")
        steps = list(zip(scales, scales[1:]))
        expect(any(b < a for a, b in steps), f"no step left out: {scales}")
        expect(any(b > a for a, b in steps), f"never grew: {scales}")
        for key in "loss_error", "gradient_error":
            expect(line[key] <= TOLERANCE["fp16"], f"{key} {line[key]}")
        expect(losses[-1] < losses[0], f"{line['model']}: {losses}")


def bitwise(share, *arguments):
    """The same bits again, and the same inside a limit."""
    plainly = spec(*arguments)
    first = run_once(plainly)
    expect_equal(run(plainly).out, first.out, "output of the second run")
    report = first.report
    context = report["context_bytes"]
    limit = context + int((report["physical_peak_bytes"] - context) * share)
    inside = run(spec(*arguments, limit=str(limit)))
    expect_equal(inside.out, first.out, "output inside the limit")
    expect(
        inside.report["physical_peak_bytes"] <= limit,
        f"peak {inside.report['physical_peak_bytes']} over {limit}",
    )
    moved = [device["moved"] for device in inside.status["devices"]]
    expect(any(m["in_bytes"] for m in moved), "nothing was moved")
    return first


def language(share):
    """Dropout, both attentions, two precisions."""
    for amp in (), ("--amp",):
        bitwise(
            share,
            *("gpt-manual", "gpt-fused", *amp, "--dropout", 0.1),
            *("--batch", 64),
        )


def convolutions(share):
    """Batch norm's running sums and what follows from them, over 30 steps."""
    first = bitwise(share, "lenet", "--batch", 256, "--steps", 30)
    losses = first.steps()[0]["losses"]
    expect_equal(len(losses), 30, "losses")
    expect(losses[-1] < losses[0] - 0.5, f"loss {losses[0]} to {losses[-1]}")


def operators(venv, dtype="float32"):
    """Each operator as on the CPU, or stopped with the name of the kernel or
    the function that is missing: never other numbers."""
    narrow = dtype != "float32"
    least = NARROW_OPERATORS if narrow else OPERATORS[venv]
    tolerance = NARROW_TOLERANCE if narrow else OPERATOR_TOLERANCE
    # One process each: a missing kernel ends that one, not this run.
    outcome = launch(
        spec("--dtype", dtype, script=OPS, venv=venv, timeout=900)
    )
    expect_equal(outcome.code, 0, f"exit status\n{outcome.err[-2000:]}")
    lines = outcome.steps()
    done = {
        line["op"]: line
        for line in lines
        if "error" in line and not (narrow and line["op"] in UNORDERED)
    }
    others = {line["op"]: line for line in lines if "failed" in line}
    worst = max(done, key=lambda name: done[name]["error"])
    print(
        f"{len(done)} of {len(lines)} operators compared, largest error"
        f" {done[worst]['error']:.1e} ({worst})"
    )
    expect(len(done) >= least, f"not compared: {sorted(others)}")
    wrong = {
        name: line["error"]
        for name, line in done.items()
        if not line["error"] <= tolerance
    }
    expect(not wrong, f"wrong results: {wrong}")
    for name, line in others.items():
        # By the device, with the kernel's name, or by PyTorch before any.
        named = "refused" in line or any(
            words in line["failed"] for words in PYTORCH_REFUSES
        )
        expect(named, f"{name}: nothing is named: {line}")


def missing():
    """No implementation: the program stops, and the kernel is named."""
    outcome = launch(spec("--missing"))
    expect(outcome.code, f"it went on:\n{outcome.out}")
    expect(
        re.search(r"no implementation of kernel .*atan", outcome.err),
        outcome.err[-2000:],
    )


def losses_of(outcome):
    return [float(x) for x in re.findall(r"loss ([0-9.]+)", outcome.out)]


def whole_run(*arguments, tolerance, seconds):
    """30 steps of the example: against the CPU, how long they take, and the
    same inside a limit. The machine may be busy: the time that counts is that
    of processors."""
    arguments = ("--layers", 4, "--width", 128, "--steps", 30, *arguments)
    plainly = spec(*arguments, script=TRAIN_GPT, timeout=1200)
    outcome = run(plainly)
    cpu = run(
        spec(
            *arguments, "--device", "cpu", script=TRAIN_GPT, timeout=1200
        )
    )
    seen, wanted = losses_of(outcome), losses_of(cpu)
    expect_equal((len(seen), len(wanted)), (30, 30), "losses")
    error = max(abs(a / b - 1) for a, b in zip(seen, wanted))
    print(
        f"largest relative error of a loss {error:.1e}; 30 steps take "
        f"{outcome.cpu_seconds:.1f} s of processors, {outcome.seconds:.1f} s "
        f"by the clock; loss {seen[0]} to {seen[-1]}"
    )
    expect(error <= tolerance, f"largest relative error {error}")
    expect(seen[-1] < seen[0] - 1, f"loss from {seen[0]} to {seen[-1]}")
    expect(
        outcome.cpu_seconds < seconds,
        f"{outcome.cpu_seconds:.1f} s of processors",
    )
    limit = capping.share_of_peak(outcome.report, 0.4)
    inside, least = capping.run_capped(plainly, limit)
    capping.check_capped(inside, least)
    expect_equal(inside.report["possible_races"], 0, "possible races")
    expect_equal(
        capping.printed(inside), capping.printed(outcome), "output inside"
    )
    print(f"the same within {least >> 20} MiB, wanted {limit >> 20} MiB")


def replayed(percent, script, *arguments):
    """30 steps in which values are made again: the same bits. Over a link so
    slow that it is worth it for values that real numbers are soon computed
    of."""
    settings = (("SIMGPU_SLOW_LINK", "0.02"), ("TAPESWAP_REPLAY", "1"))
    plainly = spec(
        *arguments, "--steps", 30, "--dropout", 0.1, script=script,
        timeout=2400,
    )
    plainly = dataclasses.replace(
        plainly, settings=plainly.settings + settings
    )
    first = run(plainly)
    limit = planned.share_of_peak(first.report, percent)
    inside = run(planned.limited(plainly, limit, "plan"))
    peak = inside.report["physical_peak_bytes"]
    expect(peak <= limit, f"physical peak {peak} over {limit}")
    expect_equal(
        planned.printed(inside), planned.printed(first), "output inside"
    )
    made, plan = inside.status["remade"], inside.status["plan"]
    print(f"  {inside.seconds:.0f} s, {made}\n  {plan}")
    expect(made["made_again"] >= 50, f"values made again: {made}")
    expect_equal(made["made_again"], made["given_up"], "made again")
    expect_equal(made["failed"], 0, f"{made}")
    expect(plan["steps"] >= 3, f"steps by a plan: {plan}")


def all_cases():
    return [
        Case("torch/exact/fp32", lambda: compare("fp32")),
        Case("torch/exact/bf16", lambda: compare("bf16")),
        Case(
            "torch/exact/fp32-torch-2.11",
            lambda: compare("fp32", "venv-2.11"),
            full=True,
        ),
        Case(
            "torch/exact/bf16-torch-2.11",
            lambda: compare("bf16", "venv-2.11"),
            full=True,
        ),
        Case("torch/exact/operators", lambda: operators("venv")),
        Case(
            "torch/exact/operators-bf16",
            lambda: operators("venv", "bfloat16"),
            full=True,
        ),
        Case(
            "torch/exact/operators-torch-2.11",
            lambda: operators("venv-2.11"),
            full=True,
        ),
        Case("torch/exact/scaler", scaled),
        Case("torch/exact/cap40", lambda: language(0.4)),
        Case(
            "torch/exact/cap40-convolutions",
            lambda: convolutions(0.4),
            full=True,
        ),
        Case("torch/exact/missing", missing),
        Case(
            "torch/exact/replayed/gpt",
            lambda: replayed(
                40, TRAIN_GPT, "--digest",
                *("--layers", 3, "--width", 128, "--heads", 4),
                *("--sequence", 128, "--batch", 64, "--vocabulary", 128),
            ),
            full=True,
            alone=True,
        ),
        Case(
            "torch/exact/replayed/convolutions",
            lambda: replayed(
                60, SCRIPT, "convolutions", "--batch", 52
            ),
            full=True,
            alone=True,
        ),
        Case(
            "torch/exact/gpt-30-steps",
            lambda: whole_run(
                "--attention", "manual", tolerance=1e-4, seconds=60
            ),
            full=True,
            alone=True,
        ),
        Case(
            "torch/exact/gpt-30-steps-amp",
            lambda: whole_run("--amp", tolerance=2e-2, seconds=60),
            full=True,
            alone=True,
        ),
    ]
