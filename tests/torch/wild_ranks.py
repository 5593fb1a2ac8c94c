# SPDX-License-Identifier: LGPL-2.1-or-later
"""Ranks that torchrun starts, each with a limit of its own."""

from harness import REPORTS, ROOT, STATUSES, WORKLOADS, Spec, launch
from runner import Case, expect, expect_equal
from wild import TAGS, limit_of, limited

TORCHRUN = ROOT / "build/venv/bin/torchrun"
SCRIPT = WORKLOADS / "wild_ranks.py"
RANKS = 2
NCCL = "cpu:gloo,cuda:nccl"  # what is said of objects goes through gloo


def ranks(wrapped, devices, steps=3, mode="cap", backend="gloo"):
    """The same losses on every rank, and each within its limit."""
    spec = Spec(
        TORCHRUN,
        (
            f"--nproc-per-node={RANKS}",
            "--rdzv-backend=c10d",
            "--rdzv-endpoint=127.0.0.1:0",
            str(SCRIPT),
            wrapped,
            f"--devices={devices}",
            f"--steps={steps}",
            f"--backend={backend}",
        ),
        settings=(
            TAGS,
            ("GLOO_SOCKET_IFNAME", "lo"),
            ("SIMGPU_DEVICES", str(devices)),
            ("SIMGPU_REPORT", REPORTS),
            ("TAPESWAP_STATUS", STATUSES),
            ("TAPESWAP_PLAN", "plan-%p.json"),
            ("TAPESWAP_MODE", mode),
        ),
    )
    unlimited = launch(spec)
    expect_equal(unlimited.code, 0, f"exit status\n{unlimited.err[-3000:]}\n")
    expect("loss" in unlimited.out, unlimited.out)
    reports = [r for r in unlimited.reports if busiest(r)["launches"]]
    expect_equal(len(reports), RANKS, "reports")
    limit = min(limit_of(busiest(report)) for report in reports)
    outcome = launch(limited(spec, limit))
    expect_equal(outcome.code, 0, f"exit status\n{outcome.err[-3000:]}\n")
    expect_equal(outcome.out, unlimited.out, "output under the limit")
    expect_equal(len(outcome.statuses), RANKS, "statuses")
    for report in outcome.reports:
        for device in report["devices"]:
            peak = device["physical_peak_bytes"]
            expect(peak <= limit, f"physical peak {peak} over {limit}")
            found = device["races"], device["memory_errors"]
            expect_equal(found, (0, 0), "races and memory errors")
    for status in outcome.statuses:
        moved = [device["moved"] for device in status["devices"]]
        expect(any(m["out_bytes"] and m["in_bytes"] for m in moved), moved)
        # Threads of gloo's copy in no fixed order: where no step is like
        # another they stay with the pager.
        if mode == "plan":
            print(f"  a rank's plan: {status.get('plan')}")


def busiest(report):
    return max(report["devices"], key=lambda d: d["physical_peak_bytes"])


def all_cases():
    return [
        Case(
            f"torch/wild/torchrun/{wrapped}-{devices}",
            ranks,
            full=True,
            arguments=(wrapped, devices),
        )
        for wrapped in ("data-parallel", "sharded")
        for devices in (1, 2)
    ] + [
        Case(
            f"torch/wild/nccl/{wrapped}",
            ranks,
            full=wrapped == "sharded",
            arguments=(wrapped, 2, 3, "cap", NCCL),
        )
        for wrapped in ("data-parallel", "sharded")
    ] + [
        Case(
            "torch/planned/ranks",
            ranks,
            full=True,
            arguments=("data-parallel", 2, 16, "plan"),
        )
    ]
