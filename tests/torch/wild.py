# SPDX-License-Identifier: LGPL-2.1-or-later
"""What scripts in the wild do, under a limit on their device's memory.

Each case runs a script without a limit and at a share of its peak: the same
losses and digests, within the limit, no races and no memory errors.
"""

import pathlib

from harness import (
    BIG_DEVICE,
    REMEDY,
    REPORTS,
    ROOT,
    STATUSES,
    WORKLOADS,
    Spec,
    checked,
    launch,
    run_once,
)
import planned
from runner import Case, expect, expect_equal

SHARE = 0.55  # of what lies beside the context
ROOM = 64 << 20  # above the peak: no need to move anything

TAGS = ("SIMGPU_CONTENT", "tags")
ALLOCATOR = ROOT / "build/tests/torch/libwild_allocator.so"
GROUPED = ROOT / "build/tests/torch/libwild_grouped.so"
MAPS = ROOT / "build/tests/torch/libwild_maps.so"
MEMORY = WORKLOADS / "wild_memory.py"


def limit_of(report, share=SHARE):
    context = report["context_bytes"]
    return context + int((report["physical_peak_bytes"] - context) * share)


def limited(spec, limit):
    return Spec(
        spec.script,
        spec.arguments,
        device=spec.device,
        limit=str(limit),
        venv=spec.venv,
        settings=spec.settings,
        timeout=spec.timeout,
    )


def same_within(spec, words, moves=True, share=SHARE):
    """The script's output, which names all words, is the same at a share."""
    unlimited = run_once(spec)
    for word in words:
        expect(word in unlimited.out, f"no {word} in\n{unlimited.out}")
    limit = limit_of(unlimited.report, share)
    outcome = checked(launch(limited(spec, limit)))
    peak = outcome.report["physical_peak_bytes"]
    expect(peak <= limit, f"physical peak {peak} over {limit}")
    expect_equal(outcome.out, unlimited.out, "output under the limit")
    expect(outcome.status, f"no status\n{outcome.err[-2000:]}")
    moved = [device["moved"] for device in outcome.status["devices"]]
    expect(
        any(m["out_bytes"] and m["in_bytes"] for m in moved) == moves,
        f"moved: {moved}",
    )
    return outcome


def together(script, *behaviours, settings=(), full=False):
    spec = Spec(WORKLOADS / script, behaviours, settings=(TAGS, *settings))
    words = ("loss", "digest")
    return Case(
        f"torch/wild/{behaviours[0]}",
        lambda: same_within(spec, words),
        full=full,
    )


def compiled():
    """Graphs that torch.compile captures; what they use has to stay."""
    spec = Spec(
        WORKLOADS / "wild_graphs.py",
        ("compiled",),
        settings=(TAGS,),
        timeout=600,
    )
    outcome = same_within(spec, ("loss", "digest"), share=0.62)
    totals = outcome.status["totals"]
    expect(totals["captured"] and totals["graph_launches"], totals)


STEPS = 200


def for_long(turns=STEPS, content="tags"):
    """With the agent's helper on a thread of its own."""
    # Real numbers take real time.
    batch = 1024 if content == "exact" else 4096
    return (
        ("SIMGPU_CONTENT", content),
        ("WILD_STEPS", str(turns)),
        ("WILD_BATCH", str(batch)),
        ("TAPESWAP_HELPER", "thread"),
    )


def many_steps(
    script, *behaviours, turns=STEPS, device=BIG_DEVICE, content="tags"
):
    """200 steps of training or more."""
    spec = Spec(
        WORKLOADS / script,
        behaviours,
        device=device,
        settings=for_long(turns, content),
        timeout=3000,
    )
    # With less at a time the optimizer's ops are what memory is for.
    share = 0.7 if content == "exact" else SHARE
    return same_within(spec, ("loss", "digest"), share=share)


def tables_for_long(how, *options, content="tags"):
    outcome = many_steps(
        "wild_tables.py",
        *(str(GROUPED), how, *options),
        turns=STEPS // 3 + 1,  # of three steps each
        content=content,
    )
    pinned = outcome.status["tables"]["pinned_blocks"]
    expect(pinned >= 3, f"{pinned} blocks pinned")


def planned_too(script, *behaviours, settings=()):
    """The same in the mode that is the default, for as long as a plan takes."""
    spec = Spec(
        WORKLOADS / script,
        behaviours,
        settings=(
            TAGS,
            ("WILD_STEPS", "12"),
            ("TAPESWAP_MODE", "plan"),
            *settings,
        ),
    )
    same_within(spec, ("loss", "digest"))


def children(script, behaviour, count):
    """Processes with a limit each: each keeps to its own."""
    spec = Spec(
        WORKLOADS / script,
        (behaviour,),
        settings=(
            TAGS,
            ("SIMGPU_REPORT", REPORTS),
            ("TAPESWAP_STATUS", STATUSES),
            ("TAPESWAP_PLAN", "plan-%p.json"),
        ),
    )
    unlimited = launch(spec)
    expect_equal(unlimited.code, 0, f"exit status\n{unlimited.err[-2000:]}\n")
    expect("digest" in unlimited.out, unlimited.out)
    expect_equal(len(unlimited.reports), count, "reports")
    limit = limit_of(unlimited.reports[0])
    outcome = launch(limited(spec, limit))
    expect_equal(outcome.code, 0, f"exit status\n{outcome.err[-2000:]}\n")
    expect_equal(outcome.out, unlimited.out, "output under the limit")
    expect_equal(len(outcome.reports), count, "reports")
    expect_equal(len(outcome.statuses), count, "statuses")
    for report in outcome.reports:
        peak = report["physical_peak_bytes"]
        expect(peak <= limit, f"physical peak {peak} over {limit}")
        found = report["races"], report["memory_errors"]
        expect_equal(found, (0, 0), "races and memory errors")
    for status in outcome.statuses:
        moved = status["devices"][0]["moved"]
        expect(moved["out_bytes"] and moved["in_bytes"], f"moved: {moved}")


def expandable(*behaviours):
    """What PyTorch maps in expandable segments moves as its memory does."""
    spec = Spec(
        MEMORY,
        behaviours,
        settings=(
            TAGS,
            ("PYTORCH_CUDA_ALLOC_CONF", "expandable_segments:True"),
        ),
    )
    outcome = same_within(spec, ("loss", "digest", "expandable True"))
    expect("taken off" not in outcome.err, outcome.err[-2000:])


def pluggable():
    """An allocator of the program's own; each of its calls is a block."""
    spec = Spec(
        MEMORY, ("plain", "--allocator", str(ALLOCATOR)), settings=(TAGS,)
    )
    same_within(spec, ("loss", "digest", "calls True"))


def tables(how, *options, content="tags"):
    """Addresses that lie in device memory keep resident what they name."""
    spec = Spec(
        WORKLOADS / "wild_tables.py",
        (str(GROUPED), how, *options),
        settings=(("SIMGPU_CONTENT", content),),
    )
    outcome = same_within(spec, ("loss", "product digest"))
    pinned = outcome.status["tables"]["pinned_blocks"]
    expect(pinned >= 3, f"{pinned} blocks pinned")


def tensor_maps(mode):
    """What a tensor map describes is there whenever a kernel has the map."""
    spec = Spec(
        WORKLOADS / "wild_maps.py",
        (str(MAPS),),
        device="h200",
        settings=(TAGS, ("TAPESWAP_MODE", mode)),
    )
    same_within(spec, ("loss", "tensor digest"))


def driver_pools():
    """The back end cudaMallocAsync counts; it is not moved, and it is said."""
    settings = (TAGS, ("PYTORCH_CUDA_ALLOC_CONF", "backend:cudaMallocAsync"))
    spec = Spec(MEMORY, ("plain",), settings=settings)
    unlimited = run_once(spec)
    expect("digest" in unlimited.out, unlimited.out)
    roomy = unlimited.report["physical_peak_bytes"] + ROOM
    outcome = checked(launch(limited(spec, roomy)))
    peak = outcome.report["physical_peak_bytes"]
    expect(peak <= roomy, f"physical peak {peak} over {roomy}")
    expect_equal(outcome.out, unlimited.out, "output under the limit")
    limit = limit_of(unlimited.report)
    refused = launch(limited(spec, limit))
    expect(refused.code == 1, f"exit status {refused.code}")
    expect("torch.OutOfMemoryError" in refused.err, refused.err[-2000:])
    expect(REMEDY.search(refused.err), refused.err[-2000:])
    peak = refused.report["physical_peak_bytes"]
    expect(peak <= limit, f"physical peak {peak} over {limit}")


def sharing_refused(*settings):
    """Memory that moves is not shared: one line names the way out."""
    outcome = launch(
        Spec(
            WORKLOADS / "wild_ipc.py",
            settings=(TAGS, *settings),
            limit="4GiB",
        )
    )
    checked(outcome)
    expect("not shared" in outcome.out, outcome.out)
    expect("digest" in outcome.out, outcome.out)
    lines = [l for l in outcome.err.splitlines() if "TAPESWAP_IPC=1" in l]
    expect_equal(len(lines), 1, f"lines about it in\n{outcome.err}\n")


def shared():
    """With TAPESWAP_IPC=1 a tensor is shared with a child process."""
    spec = Spec(
        WORKLOADS / "wild_ipc.py",
        ("--exchange",),
        settings=(
            ("SIMGPU_CONTENT", "exact"),
            ("SIMGPU_REPORT", REPORTS),
            ("TAPESWAP_STATUS", STATUSES),
            ("TAPESWAP_PLAN", "plan-%p.json"),
            ("TAPESWAP_IPC", "1"),
        ),
    )
    unlimited = launch(spec)
    expect_equal(unlimited.code, 0, f"exit status\n{unlimited.err[-2000:]}\n")
    expect("child saw 1048576.0" in unlimited.out, unlimited.out)
    expect("written 2097152.0" in unlimited.out, unlimited.out)
    peaks = [report["physical_peak_bytes"] for report in unlimited.reports]
    expect_equal(len(peaks), 2, "reports")
    limit = max(peaks) + ROOM
    outcome = launch(limited(spec, limit))
    expect_equal(outcome.code, 0, f"exit status\n{outcome.err[-2000:]}\n")
    expect_equal(outcome.out, unlimited.out, "output under the limit")
    expect_equal(len(outcome.statuses), 2, "statuses")
    for report in outcome.reports:
        peak = report["physical_peak_bytes"]
        expect(peak <= limit, f"physical peak {peak} over {limit}")
        found = report["races"], report["memory_errors"]
        expect_equal(found, (0, 0), "races and memory errors")


def two_devices(script):
    """One limit holds for each device of a process."""
    spec = Spec(
        WORKLOADS / script, settings=(TAGS, ("SIMGPU_DEVICES", "2"))
    )
    unlimited = run_once(spec)
    expect("loss" in unlimited.out, unlimited.out)
    devices = unlimited.report["devices"]
    expect_equal(len(devices), 2, "devices")
    wanted = max(limit_of(device) for device in devices)
    # An optimizer's op has all parameters of a device at once.
    outcome, limit = planned.run_at(spec, wanted, "cap")
    most = max(device["physical_peak_bytes"] for device in devices)
    expect(limit < most, f"the least limit named is {limit}, the peak {most}")
    expect_equal(outcome.out, unlimited.out, "output under the limit")
    for device in outcome.report["devices"]:
        peak = device["physical_peak_bytes"]
        expect(peak <= limit, f"physical peak {peak} over {limit}")
        found = device["races"], device["memory_errors"]
        expect_equal(found, (0, 0), "races and memory errors")
    moved = [device["moved"] for device in outcome.status["devices"]]
    expect(any(m["in_bytes"] or m["reclaimed_pages"] for m in moved), moved)


def exits(way, code, complete):
    """Ends as without a limit, nothing hangs, files are there and whole."""
    spec = Spec(WORKLOADS / "wild_exit.py", (way,), settings=(TAGS,))
    unlimited = launch(spec)
    expect_equal(unlimited.code, code, f"exit status\n{unlimited.err}\n")
    expect("digest" in unlimited.out, unlimited.out)
    reference = run_once(
        Spec(WORKLOADS / "wild_exit.py", ("atexit",), settings=(TAGS,))
    )
    limit = limit_of(reference.report)
    outcome = launch(limited(spec, limit))
    expect_equal(outcome.code, code, f"exit status\n{outcome.err}\n")
    expect_equal(outcome.out, unlimited.out, "output under the limit")
    # Files that are there were read whole by launch().
    if complete:
        peak = outcome.report["physical_peak_bytes"]
        expect(peak <= limit, f"physical peak {peak} over {limit}")
        found = outcome.report["races"], outcome.report["memory_errors"]
        expect_equal(found, (0, 0), "races and memory errors")
        moved = outcome.status["devices"][0]["moved"]
        expect(moved["out_bytes"] and moved["in_bytes"], f"moved: {moved}")


# How a script ends, its exit status, whether exit handlers of libraries run.
EXITS = (
    ("atexit", 0, True),
    ("daemon", 0, True),
    ("exception", 1, True),
    ("os-exit", 7, False),
    ("sigint", -2, False),
    ("sigkill", -9, False),
)


# What goes on for many steps: a script, and behaviours of one process.
MANY = (
    ("wild_memory.py", "plain", "empty-cache", "memory-pool", "by-hand"),
    ("wild_work.py", "side-stream", "two-models", "inference"),
    ("wild_work.py", "threads"),
    ("wild_work.py", "checkpointing", "save-on-cpu"),
    ("wild_work.py", "scaler"),
    ("wild_graphs.py", "graphed-callables", "replayed-inference"),
)


def all_cases():
    return [
        together(
            "wild_memory.py", "empty-cache", "rebuilt", "memory-pool",
            "fraction", "retry", "by-hand",
        ),
        together(
            "wild_work.py", "side-stream", "threads", "checkpointing",
            "save-on-cpu", "scaler", "inference", "two-models",
            settings=(("SIMGPU_FOUND_INF", "2"),),
        ),
        together("wild_process.py", "loader", "forked"),
        Case("torch/wild/compiled", compiled, full=True, alone=True),
        together(
            "wild_graphs.py", "graphed-callables", "replayed-inference",
            full=True,
        ),
        Case(
            "torch/wild/expandable-segments",
            expandable,
            arguments=("plain", "--segments"),
        ),
        Case(
            "torch/wild/expandable-segments-all",
            expandable,
            full=True,
            arguments=(
                *("empty-cache", "rebuilt", "memory-pool", "fraction"),
                *("retry", "by-hand", "--segments"),
            ),
        ),
        Case("torch/wild/pluggable-allocator", pluggable, full=True),
        Case(
            "torch/wild/tables/made-by-a-kernel",
            tables,
            arguments=("made", "--unknown"),
        ),
        Case(
            "torch/wild/tables/copied-up",
            tables,
            full=True,
            arguments=("copied", "--unknown"),
        ),
        Case(
            "torch/wild/tables/batched-pointers",
            tables,
            full=True,
            arguments=("made",),
        ),
        Case(
            "torch/wild/tables/made-in-a-graph",
            lambda: tables("graph", "--unknown", content="exact"),
            full=True,
        ),
        *(
            Case(
                f"torch/wild/tensor-maps/{mode}",
                tensor_maps,
                full=True,
                arguments=(mode,),
            )
            for mode in ("cap", "plan")
        ),
        Case("torch/wild/driver-pools", driver_pools, full=True),
        Case(
            "torch/wild/spawned",
            lambda: children("wild_process.py", "spawned", 2),
            full=True,
        ),
        Case(
            "torch/wild/data-parallel",
            lambda: children("wild_process.py", "data-parallel", 2),
            full=True,
        ),
        *(
            Case(
                f"torch/wild/{name}",
                two_devices,
                full=True,
                arguments=(script,),
            )
            for name, script in (
                ("two-devices", "two_devices.py"),
                ("nccl/replicas", "wild_replicas.py"),
            )
        ),
        Case("torch/wild/sharing-refused", sharing_refused, full=True),
        Case(
            "torch/wild/sharing-refused-expandable",
            lambda: sharing_refused(
                ("PYTORCH_CUDA_ALLOC_CONF", "expandable_segments:True")
            ),
            full=True,
        ),
        Case("torch/wild/shared", shared, full=True),
        *(
            Case(
                f"torch/wild/planned/{pathlib.Path(behaviours[0]).stem}",
                planned_too,
                full=True,
                arguments=(script, *behaviours),
            )
            for script, *behaviours in (
                *MANY,
                ("wild_process.py", "loader", "forked"),
                ("wild_tables.py", str(GROUPED), "made", "--unknown"),
            )
        ),
        Case(
            "torch/wild/planned/expandable-segments",
            lambda: planned_too(
                "wild_memory.py",
                "plain",
                "empty-cache",
                settings=(
                    ("PYTORCH_CUDA_ALLOC_CONF", "expandable_segments:True"),
                ),
            ),
            full=True,
        ),
        *(
            Case(
                f"torch/wild/many-steps/{behaviours[0]}",
                many_steps,
                full=True,
                arguments=(script, *behaviours),
            )
            for script, *behaviours in MANY
        ),
        *(
            Case(
                f"torch/wild/many-steps/tables-{how}",
                tables_for_long,
                full=True,
                arguments=(how, *options),
            )
            for how, *options in (
                ("made", "--unknown"),
                ("copied", "--unknown"),
            )
        ),
        Case(
            "torch/wild/many-steps/tables-graph",
            lambda: tables_for_long("graph", "--unknown", content="exact"),
            full=True,
        ),
        Case(
            "torch/wild/many-steps/tensor-maps",
            lambda: many_steps(
                "wild_maps.py",
                str(MAPS),
                turns=STEPS // 2,  # of two steps each
                device="h200",
            ),
            full=True,
        ),
        *(
            Case(
                f"torch/wild/exit/{way}",
                exits,
                full=True,
                arguments=(way, *more),
            )
            for way, *more in EXITS
        ),
    ]
