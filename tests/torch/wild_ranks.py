# SPDX-License-Identifier: LGPL-2.1-or-later
"""Ranks that torchrun starts, each with a limit of its own."""

import re
from dataclasses import replace

from harness import (
    PROFILES,
    REPORTS,
    ROOT,
    STATUSES,
    WORKLOADS,
    Spec,
    launch,
)
from runner import Case, expect, expect_equal
from wild import STEPS, TAGS, for_long, limit_of, limited

TORCHRUN = ROOT / "build/venv/bin/torchrun"
SCRIPT = WORKLOADS / "wild_ranks.py"
RANKS = 2
NCCL = "cpu:gloo,cuda:nccl"  # what is said of objects goes through gloo


# Of the model in wild_common.py: its gradients, as DDP adds them up.
GRADIENT_BYTES = 6 * (512 * 512 + 512) * 4


def of_ranks(wrapped, devices, steps, mode, backend, more=()):
    return Spec(
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
            *more,
        ),
        timeout=300 + 10 * steps,
    )


def ranks(wrapped, devices, steps=3, mode="cap", backend="gloo", more=()):
    """The same losses on every rank, and each within its limit."""
    spec = of_ranks(wrapped, devices, steps, mode, backend, more)
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
        if mode != "plan":
            continue
        plan = status.get("plan")
        print(f"  a rank's plan: {plan}")
        # Gloo's threads take virtual time of which no two steps have the
        # same, so that plans are made anew meanwhile.
        least = 5 if backend == NCCL else 1
        expect(plan and plan["steps"] >= least, "steps by the plan")
        if backend == NCCL:
            expect_equal(
                plan["missed"] + plan["astray"], 0, "pages not there"
            )
    return outcome


def graphed():
    """Gradients that a graph adds up: each rank has the other's in them."""
    outcome = ranks("graphed", 2, backend=NCCL)
    found = re.findall(r"^rank \d graphed digest (\w+)$", outcome.out, re.M)
    expect_equal(len(found), RANKS, f"digests in\n{outcome.out}\n")
    expect_equal(len(set(found)), 1, "different parameters")
    for status in outcome.statuses:
        totals = status["totals"]
        expect(totals["captured"] and totals["graph_launches"], totals)


def observed():
    """A step's profile has what the ranks added up, once in and once out."""
    spec = of_ranks("data-parallel", 2, 7, "observe", NCCL)
    plain = launch(spec)
    expect_equal(plain.code, 0, f"exit status\n{plain.err[-3000:]}\n")
    profiled = (*spec.settings, ("TAPESWAP_PROFILE", PROFILES))
    outcome = launch(replace(spec, settings=profiled, observe=True))
    expect_equal(outcome.code, 0, f"exit status\n{outcome.err[-3000:]}\n")
    expect_equal(outcome.out, plain.out, "output when observed")
    expect_equal(len(outcome.profiles), RANKS, "profiles")
    for status in outcome.statuses:
        expect(status["totals"]["collectives"], "no collectives")
    for profile in outcome.profiles:
        received = 0
        for op in profile["ops"]:
            signature = profile["signatures"][op["signature"]]
            if signature["class"] != "collective":
                continue
            expect(not signature["replayable"], f"{signature['name']}")
            operands = len(op["reads"]), len(op["writes"])
            expect_equal(operands, (1, 1), f"operands of {signature['name']}")
            if signature["function"] == "simnccl_receive":
                value = profile["values"][op["writes"][0]]
                received += value["size_bytes"]
        expect_equal(received, GRADIENT_BYTES, "bytes added up in a step")


def as_gloo():
    """With real numbers NCCL's sums are gloo's, bit by bit."""
    texts = []
    for backend in ("gloo", NCCL):
        spec = of_ranks("data-parallel", 2, 3, "cap", backend)
        exact = (*spec.settings, ("SIMGPU_CONTENT", "exact"))
        outcome = launch(replace(spec, settings=exact))
        expect_equal(outcome.code, 0, f"exit\n{outcome.err[-3000:]}\n")
        expect("digest" in outcome.out, outcome.out)
        texts.append(outcome.out)
    expect_equal(texts[1], texts[0], "output over NCCL")


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
        Case("torch/wild/nccl/graphed", graphed, full=True),
    ] + [
        Case(
            f"torch/wild/many-steps/ranks-{wrapped}-{devices}",
            ranks,
            full=True,
            arguments=(wrapped, devices, STEPS, "cap", "gloo", for_long()),
        )
        for wrapped, devices in (("data-parallel", 1), ("sharded", 2))
    ] + [
        Case(
            f"torch/wild/many-steps/nccl-{wrapped}",
            ranks,
            full=True,
            arguments=(wrapped, 2, STEPS, "cap", NCCL, for_long()),
        )
        for wrapped in ("data-parallel", "sharded")
    ] + [
        Case("torch/observe/nccl", observed, full=True),
        Case("torch/wild/nccl/as-gloo", as_gloo, full=True),
        Case(
            "torch/planned/ranks",
            ranks,
            full=True,
            arguments=("data-parallel", 2, 16, "plan"),
        ),
        Case(
            "torch/planned/ranks-nccl",
            ranks,
            full=True,
            arguments=("data-parallel", 2, 16, "plan", NCCL),
        ),
    ]
