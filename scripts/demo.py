# SPDX-License-Identifier: LGPL-2.1-or-later
"""Trains a GPT on the simulated GPU: without a limit, inside one, by a plan.

scripts/demo sets up and calls this.
"""

import argparse
import json
import os
import pathlib
import re
import shlex
import statistics
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[1]
FOLDER = pathlib.Path("build/demo")
TRAIN = (
    "build/venv/bin/python",
    "scripts/examples/train_gpt.py",
    *"--layers 8 --width 128 --heads 4 --sequence 256 --batch 16".split(),
    *"--vocabulary 512 --steps 14 --lr 1e-3".split(),
)
STEP_TIME = re.compile(r"^step .* time ([0-9.]+) ms", re.M)
LOSS = re.compile(r"^step .* loss ([0-9.]+)", re.M)
PEAK = re.compile(r"^peak allocated (\d+) bytes, reserved (\d+) bytes", re.M)


RUNS = {
    "unlimited": "without a limit",
    "cap": "inside the limit, by the pager alone",
    "plan": "inside the limit, by a plan",
}


def announce(name, before_s):
    """Which run begins and, once there was one, how long it may take."""
    number = list(RUNS).index(name) + 1
    takes = f"; about {before_s:.0f} s, as the last one" if before_s else ""
    print(f"\n[{number}/{len(RUNS)}] {RUNS[name]}{takes}", flush=True)


def train(name, environment, before_s=0):
    """Run the example; what it printed, the device's report, its seconds."""
    announce(name, before_s)
    begun = time.monotonic()
    report = FOLDER / f"{name}-report.json"
    environment = {"SIMGPU_REPORT": str(report), **environment}
    words = [f"{k}={v}" for k, v in environment.items()]
    print(f"$ {shlex.join(words)} \\\n    {shlex.join(TRAIN)}", flush=True)
    lines = []
    with subprocess.Popen(
        TRAIN,
        env={**os.environ, **environment},
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        for line in process.stdout:
            print(line, end="", flush=True)
            lines.append(line)
    if process.returncode:
        sys.exit(f"demo: error: training ended with {process.returncode}")
    told = json.loads(report.read_text(encoding="utf-8"))
    wrong = complaint(told)
    if wrong:
        sys.exit(f"demo: error: {name}: {wrong}")
    return "".join(lines), told, time.monotonic() - begun


def size(count):
    return f"{count / (1 << 30):.2f} GiB"


def column(output, report, limit=None, moved=None):
    # The first steps still settle; what is left is the step as it goes on.
    times = [float(t) for t in STEP_TIME.findall(output)]
    losses = LOSS.findall(output)
    return [
        size(limit) if limit else "none",
        size(int(PEAK.search(output).group(1))),
        size(report["physical_peak_bytes"]),
        size(moved["out_bytes"]) if moved else "0",
        size(moved["in_bytes"]) if moved else "0",
        f"{statistics.median(times[len(times) // 2:]):.2f} ms",
        losses[0],
        losses[-1],
        *(str(report[key]) for key in DEFECTS),
    ]


# What the device counts of an agent's mistakes, and its words for them.
DEFECTS = {
    "memory_errors": "memory_error_texts",
    "races": "race_texts",
    "possible_races": "race_texts",
}
ROWS = [
    "limit",
    "peak by PyTorch (allocated)",
    "physical peak by the device",
    "moved out, whole run",
    "moved in, whole run",
    "virtual time of a step",
    "loss, first step",
    "loss, last step",
    *(key.replace("_", " ") for key in DEFECTS),
]


def complaint(report):
    """What a report says that no good run may have, or nothing."""
    if report["block_bounds"] == "missing":
        return "the device does not know PyTorch's blocks: run scripts/setup"
    for key, texts in DEFECTS.items():
        if report[key]:
            name = key.replace("_", " ")
            return "\n".join([f"{report[key]} {name}", *report[texts][:5]])
    return None


def main():
    parser = argparse.ArgumentParser(
        prog="scripts/demo", description=__doc__.splitlines()[0]
    )
    parser.add_argument(
        "--share",
        type=float,
        default=60,
        help="limit in %% of the peak, the context left out of both",
    )
    parser.add_argument("--sim", default="a100-80g-pcie4", metavar="MODEL")
    args = parser.parse_args()
    os.chdir(ROOT)
    FOLDER.mkdir(parents=True, exist_ok=True)
    device = {
        "LD_LIBRARY_PATH": "build/simgpu",
        "SIMGPU_DEVICE": args.sim,
        "SIMGPU_CONTENT": "exact",
    }

    print(
        f"three runs of a GPT, on a simulated {args.sim} whose numbers this "
        "machine's processor computes: one or two minutes on two idle cores"
    )
    free_output, free, took = train("unlimited", device)
    context = free["context_bytes"]  # no limit can be below it
    used = free["physical_peak_bytes"] - context
    limit = context + int(used * args.share / 100)
    columns = [column(free_output, free)]
    for mode in "cap", "plan":
        output, report, took = train(mode, limited(device, limit, mode), took)
        seen = load(f"{mode}-status")
        columns.append(column(output, report, limit, seen))
        if report["physical_peak_bytes"] > limit:
            sys.exit("demo: error: the limit was not kept")
        if LOSS.findall(output) != LOSS.findall(free_output):
            sys.exit("demo: error: the limit changed the losses")

    heads = "unlimited", f"{args.share:g} %, cap", f"{args.share:g} %, plan"
    print(f"\n{'':30}" + "".join(f"{head:>14}" for head in heads))
    for name, *cells in zip(ROWS, *columns):
        print(f"{name:30}" + "".join(f"{cell:>14}" for cell in cells))
    print("\nlosses of all steps are the same")
    if "plan" in seen:
        tell_plan(load("plan-plan"))
    else:
        print("no plan fits: the pager alone kept the limit")


def limited(device, limit, mode):
    return {
        **device,
        "LD_PRELOAD": str(ROOT / "build/libtapeswap.so"),
        "TAPESWAP_LIMIT": str(limit),
        "TAPESWAP_MODE": mode,
        "TAPESWAP_PLAN": str(FOLDER / f"{mode}-plan.json"),
        "TAPESWAP_STATUS": str(FOLDER / f"{mode}-status.json"),
    }


def load(name):
    path = FOLDER / f"{name}.json"
    return json.loads(path.read_text(encoding="utf-8"))


def tell_plan(plan):
    """What was planned, and what came of it."""
    swaps = [d for d in plan["decisions"] if d["action"] == "swap"]
    measured = plan["measured"]
    took = measured.get("step_ns")
    print(
        f"plan: {len(swaps)} values leave and come back, "
        f"{size(plan['swap_bytes'])} each way a step; "
        f"{measured['steps']} steps went by it, "
        f"{plan['predicted']['step_ns'] / 1e6:.2f} ms predicted, "
        + (f"{took / 1e6:.2f} ms measured" if took else "not measured")
    )
    print(f"the plan: {FOLDER}/plan-plan.json")


if __name__ == "__main__":
    main()
