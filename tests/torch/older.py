# SPDX-License-Identifier: LGPL-2.1-or-later
"""Drivers of before CUDA 12.4, which do not tell the parameters of kernels:
what a launch touches is read from the program's code, and is the same."""

import contextlib
import pathlib
import re
import subprocess
import tempfile

import operands
import words
from harness import ROOT, SIMGPU, TRACE, TRAIN_GPT, Spec, run, run_once
from runner import Case, expect, expect_equal

OLDER = ROOT / "build/tests/simgpu/driver/libsimcuda-12.2.so"
HIDDEN = (
    "cuFuncGetName", "cuFuncGetParamInfo", "cuKernelGetName",
    "cuKernelGetParamInfo",
)
GPT = ("--steps", 5, "--amp", "--dropout", 0.1, "--attention", "manual")
LIMIT = "640MiB"
LOSS = re.compile(r"loss ([0-9.]+)")


@contextlib.contextmanager
def older_driver():
    """Setting that puts the older driver in the other one's place."""
    symbols = subprocess.run(
        ["nm", "-D", "--defined-only", OLDER],
        check=True, capture_output=True, text=True,
    ).stdout.split()
    expect("cuInit" in symbols, "no driver")
    for name in HIDDEN:
        expect(name not in symbols, f"the older driver exports {name}")
    with tempfile.TemporaryDirectory(prefix="tapeswap-test-") as folder:
        # What the driver looks for beside itself is there too.
        for path in SIMGPU.iterdir():
            target = OLDER if path.name == "libcuda.so.1" else path
            pathlib.Path(folder, path.name).symlink_to(target)
        yield ("LD_LIBRARY_PATH", folder)


def check_operands():
    with older_driver() as setting:
        outcome = run(
            Spec(
                TRAIN_GPT, GPT, observe=True,
                settings=(setting, ("SIMGPU_TRACE", TRACE)),
            )
        )
    operands.check(outcome.profile, outcome.trace)
    words.check(outcome.profile, outcome.trace, True)


def cap():
    """Under a limit all is right, as with a driver that tells."""
    tags = ("SIMGPU_CONTENT", "tags")
    unlimited = run_once(Spec(TRAIN_GPT, GPT, settings=(tags,)))
    with older_driver() as setting:
        older = run(
            Spec(TRAIN_GPT, GPT, limit=LIMIT, settings=(setting, tags))
        )
    losses, wanted = (LOSS.findall(o.out) for o in (older, unlimited))
    expect_equal(losses, wanted, "losses")
    expect_equal(len(set(losses)), GPT[1], "steps with a loss of their own")
    for key in "races", "possible_races", "memory_errors":
        expect_equal(older.report[key], 0, key)
    device = older.status["devices"][0]
    expect(device["moved"]["in_bytes"] > 0, "nothing moved")


def all_cases():
    return [
        Case("torch/older-driver/operands", check_operands),
        Case("torch/older-driver/cap", cap),
    ]
