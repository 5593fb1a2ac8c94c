# SPDX-License-Identifier: LGPL-2.1-or-later
"""What scripts in the wild do, under a limit on their device's memory.

Each case runs a script without a limit and at a share of its peak: the same
losses and digests, within the limit, no races and no memory errors.
"""

from harness import WORKLOADS, Spec, checked, launch, run_once
from runner import Case, expect, expect_equal

SHARE = 0.55  # of what lies beside the context

TAGS = ("SIMGPU_CONTENT", "tags")


def limit_of(report):
    context = report["context_bytes"]
    return context + int((report["physical_peak_bytes"] - context) * SHARE)


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


def same_within(spec, words, moves=True):
    """The script's output, which names all words, is the same at a share."""
    unlimited = run_once(spec)
    for word in words:
        expect(word in unlimited.out, f"no {word} in\n{unlimited.out}")
    limit = limit_of(unlimited.report)
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


def all_cases():
    return [
        together(
            "wild_memory.py", "empty-cache", "rebuilt", "memory-pool",
            "fraction", "retry", "by-hand",
        ),
        together(
            "wild_work.py", "side-stream", "threads", "checkpointing",
            "scaler", "inference", "two-models",
            settings=(("SIMGPU_FOUND_INF", "2"),),
        ),
        together(
            "wild_graphs.py", "graphed-callables", "replayed-inference",
            full=True,
        ),
    ]
