# SPDX-License-Identifier: LGPL-2.1-or-later
"""What `tapeswap sweep` recommends holds: a run under that limit has a plan and
takes no longer than was said."""

import dataclasses
import json
import re
import subprocess
import tempfile

from harness import ROOT, TRAIN_GPT, WORKLOADS, Spec, checked, launch, run
from planned import NONE_FITS, limited, with_steps
from runner import Case, expect

# Steps to observe, and of the run.
OBSERVED_STEPS, STEPS = 8, 18
# Of what was said. Every copy takes the host some time, which counts in steps
# of few milliseconds, and of batch norm's small tensors many share a page.
SLOWER = 1.10


def advice(profile):
    """Limit in MiB of the line to paste, and its step in ns."""
    with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
        json.dump(profile, file)
        file.flush()

        def sweep(*options):
            return subprocess.run(
                [ROOT / "build/tapeswap", "sweep", file.name, *options],
                capture_output=True, text=True, timeout=300, check=True,
            ).stdout

        table, document = sweep(), json.loads(sweep("--json"))
    mib = int(re.search(r"use: TAPESWAP_LIMIT=(\d+)MiB", table)[1])
    steps = [
        row["step_ns"] for row in document["rows"]
        if row["policy"] == "no-replay" and row["fits"]
        and -(-row["run_bytes"] // 2**20) == mib
    ]
    return mib, min(steps)


def holds(spec):
    observed = with_steps(spec, OBSERVED_STEPS)
    mib, said_ns = advice(
        run(dataclasses.replace(observed, observe=True)).profile
    )
    # As sweep plans: values only move.
    spec = dataclasses.replace(
        with_steps(spec, STEPS),
        settings=(*spec.settings, ("TAPESWAP_REPLAY", "0")),
    )
    outcome = checked(launch(limited(spec, mib << 20, "plan")))
    peak = outcome.report["physical_peak_bytes"]
    expect(peak <= mib << 20, f"physical peak {peak} over {mib} MiB")
    expect(not re.search(NONE_FITS, outcome.err), outcome.err[-1000:])
    plan = outcome.status.get("plan")
    expect(plan, f"no plan\n{outcome.err[-1000:]}")
    took_ns = (
        plan["pager_step_ns"] if plan["declined"]
        else outcome.plan["measured"]["step_ns"]
    )
    print(
        f"  {mib} MiB: {said_ns / 1e6:.2f} ms were said, "
        f"{took_ns / 1e6:.2f} taken"
    )
    expect(took_ns <= said_ns * SLOWER, f"{took_ns} ns, {said_ns} were said")


def all_cases():
    language = WORKLOADS / "language_model.py"
    vision = WORKLOADS / "vision.py"
    small = WORKLOADS / "small.py"
    specs = {
        "lstm": Spec(WORKLOADS / "lstm.py"),
        "gpt": Spec(TRAIN_GPT),
        "mlp": Spec(small, ("mlp", "--batch", 16384)),
        "lenet": Spec(small, ("lenet", "--batch", 1024)),
        "bert-small": Spec(language, ("bert-small", "--laps")),
        "llama-small": Spec(language, ("llama-small", "--laps")),
        "resnet18": Spec(
            vision, ("resnet18", "--batch", 128, "--size", 64, "--laps")
        ),
    }
    return [
        Case(
            f"torch/swept/{name}", lambda s=spec: holds(s),
            full=name != "lstm",
        )
        for name, spec in specs.items()
    ]
