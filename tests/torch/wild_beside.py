# SPDX-License-Identifier: LGPL-2.1-or-later
"""Other tools beside tapeswap: profilers, ranges, preloaded libraries."""

import pathlib

from harness import LIBRARY, ROOT, WORKLOADS, Spec, checked, launch, run_once
from runner import Case, Skipped, expect, expect_equal
from wild import TAGS, limit_of, limited, same_within

SCRIPT = WORKLOADS / "wild_beside.py"
SYSTEM = pathlib.Path("/usr/lib/x86_64-linux-gnu")

# What else is preloaded: a file, what it is called in a process's map, and
# settings of its own.
PRELOADED = {
    "jemalloc": (SYSTEM / "libjemalloc.so.2", ()),
    "tcmalloc": (SYSTEM / "libtcmalloc_minimal.so.4", ()),
    "faketime": (
        SYSTEM / "faketime/libfaketime.so.1",
        (("FAKETIME", "@2020-12-24 20:30:00"),),
    ),
    "another-dlsym": (
        ROOT / "build/tests/preload/libnext_dlsym.so",
        (),
    ),
}


def profiler(timing):
    """PyTorch's profiler has CUPTI, and sees the kernels it would see."""
    spec = Spec(
        SCRIPT,
        ("profiler",),
        settings=(TAGS, ("TAPESWAP_TIMING", timing)),
    )
    outcome = same_within(spec, ("loss", "digest", "kernel "))
    lines = [l for l in outcome.err.splitlines() if "CUPTI" in l]
    expect_equal(len(lines), 0, f"lines about it in\n{outcome.err}\n")


def profiler_takes_cupti():
    """Ops are timed by events from then on, in one line, and go on."""
    spec = Spec(
        SCRIPT,
        ("profiler",),
        settings=(TAGS, ("TAPESWAP_TIMING", "cupti")),
        observe=True,
    )
    plain = run_once(Spec(SCRIPT, ("profiler",), settings=(TAGS,)))
    outcome = checked(launch(spec))
    expect_equal(outcome.out, plain.out, "output when observed")
    lines = [l for l in outcome.err.splitlines() if "CUPTI" in l]
    expect_equal(len(lines), 1, f"lines about it in\n{outcome.err}\n")
    expect("the program uses CUPTI" in lines[0], lines[0])
    expect(outcome.profile.get("ops"), "no profile")


def ranges():
    """As many steps as ranges of that name."""
    spec = Spec(
        SCRIPT,
        ("nvtx",),
        settings=(TAGS, ("TAPESWAP_STEP_RANGE", "training-step")),
    )
    same_within(spec, ("loss", "digest"))
    observed = checked(
        launch(
            Spec(
                spec.script,
                spec.arguments,
                settings=spec.settings,
                observe=True,
            )
        )
    )
    expect_equal(observed.status["steps"], 6, "steps")


def preloaded(name, first):
    """Another library before or after tapeswap in LD_PRELOAD."""
    file, settings = PRELOADED[name]
    if not file.exists():
        raise Skipped(f"{file} is not installed")
    shown = file.name.split(".so")[0]
    script = Spec(
        SCRIPT,
        ("preloaded", shown),
        settings=(TAGS, ("LD_PRELOAD", str(file)), *settings),
    )
    unlimited = run_once(script)
    expect(f"loaded {shown} True" in unlimited.out, unlimited.out)
    if name == "faketime":
        expect("year 2020" in unlimited.out, unlimited.out)
    both = (LIBRARY, file) if first else (file, LIBRARY)
    limit = limit_of(unlimited.report)
    spec = Spec(
        SCRIPT,
        script.arguments,
        settings=(
            TAGS,
            ("LD_PRELOAD", ":".join(map(str, both))),
            *settings,
        ),
    )
    outcome = checked(launch(limited(spec, limit)))
    expect_equal(outcome.out, unlimited.out, "output under the limit")
    peak = outcome.report["physical_peak_bytes"]
    expect(peak <= limit, f"physical peak {peak} over {limit}")
    moved = outcome.status["devices"][0]["moved"]
    expect(moved["out_bytes"] and moved["in_bytes"], f"moved: {moved}")


def all_cases():
    return [
        Case("torch/wild/profiler", profiler, arguments=("events",)),
        Case(
            "torch/wild/profiler-takes-cupti",
            profiler_takes_cupti,
            full=True,
        ),
        Case("torch/wild/nvtx", ranges, full=True),
        *(
            Case(
                f"torch/wild/preload/{name}-{place}",
                preloaded,
                full=True,
                arguments=(name, place == "after"),
            )
            for name in PRELOADED
            for place in ("before", "after")
        ),
    ]
