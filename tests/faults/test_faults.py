#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Each driver call that the agent makes for a small program fails once.

The program then gets right results or is refused memory, in time; nothing is
lost, nothing leaks, and the agent's account agrees with the device's.

Usage: test_faults.py [--every] LIBRARY CLIENT SIMGPU GPU_OPS [TEST...]

Of each function the first calls fail and some others, drawn with a seed; with
--every all of them.
"""

import json
import os
import pathlib
import random
import re
import subprocess
import sys
import tempfile
import unittest
from concurrent.futures import ThreadPoolExecutor

EVERY = "--every" in sys.argv
if EVERY:
    sys.argv.remove("--every")
LIBRARY, CLIENT, SIMGPU, GPU_OPS = (
    str(pathlib.Path(a).resolve()) for a in sys.argv[1:5]
)

# 64 MiB of context and three of the four large buffers.
CONTEXT = 64 << 20
LIMIT = CONTEXT + (12 << 20)

# What the last of these held stays behind: nothing tries again after it.
LEAVES_MEMORY = {"cuMemRelease", "cuMemUnmap"}

SEED = 6
FIRST = 3  # calls of each function
DRAWN = 2  # further ones

SECONDS = 120


def symbols():
    """The driver functions that the agent calls, by the name of the symbol."""
    text = pathlib.Path(GPU_OPS).read_text(encoding="utf-8")
    return re.findall(r"^TS_GPU_OP\(\w+, (\w+),", text, re.M)


class Outcome:
    def __init__(self, **settings):
        with tempfile.TemporaryDirectory() as folder:
            self.done = subprocess.run(
                [CLIENT],
                env={
                    "PATH": os.environ["PATH"],
                    "LD_PRELOAD": LIBRARY,
                    "LD_LIBRARY_PATH": SIMGPU,
                    "SIMGPU_DEVICE": "tiny-1g",
                    "SIMGPU_CONTENT": "exact",
                    "SIMGPU_REPORT": f"{folder}/report.json",
                    "TAPESWAP_MODE": "cap",
                    # Which call is the n-th is the same in every run.
                    "TAPESWAP_HELPER": "inline",
                    "TAPESWAP_LIMIT": str(LIMIT),
                    "TAPESWAP_STATUS": f"{folder}/status.json",
                    **settings,
                },
                capture_output=True,
                text=True,
                timeout=SECONDS,
            )
            self.report = self.load(f"{folder}/report.json")
            self.status = self.load(f"{folder}/status.json")
        words = self.done.stdout.split()
        self.counts = [int(w) for w in words] if len(words) == 5 else None

    @staticmethod
    def load(path):
        try:
            with open(path, encoding="utf-8") as file:
                return json.load(file)
        except FileNotFoundError:
            return None

    def calls(self, symbol):
        return self.report["api_call_counts"].get(symbol, 0)


class Faults(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.plain = Outcome()

    def test_without_a_fault(self):
        plain = self.plain
        self.assertEqual([*plain.counts[:3], plain.counts[4]], [0, 0, 0, CONTEXT])
        moved = plain.status["devices"][0]["moved"]
        self.assertGreater(moved["out_bytes"], 0)
        self.assertGreater(moved["in_bytes"], 0)
        self.assertEqual(self.complaints(plain, None, 0), [])

    def test_where_no_host_memory_is_pinned_it_goes_on_without(self):
        outcome = Outcome(SIMGPU_FAIL="cuMemHostAlloc:1")
        self.assertEqual(self.complaints(outcome, "cuMemHostAlloc", 1), [])
        self.assertEqual(outcome.counts[0], 0)
        self.assertEqual(outcome.done.stderr.count("pageable"), 1)

    def test_calls_that_fail_beside_a_helper_thread(self):
        """Which thread meets the fault is chance."""
        said = []
        for symbol in symbols():
            count = self.plain.calls(symbol)
            if not count:
                continue
            nth = random.Random(f"thread {SEED} {symbol}").randint(1, count)
            outcome = Outcome(
                TAPESWAP_HELPER="thread", SIMGPU_FAIL=f"{symbol}:{nth}"
            )
            made = symbol if outcome.calls(symbol) >= nth else None
            said += [
                f"{symbol}:{nth}: {text}"
                for text in self.complaints(outcome, made, nth)
            ]
        self.assertEqual(said, [], "\n" + "\n".join(said))

    def complaints(self, outcome, symbol, nth):
        """What is wrong with a run, in words."""
        if outcome.counts is None or not outcome.report:
            return [f"ended badly: {outcome.done}"]
        said = []
        refused, failed, wrong, read, used = outcome.counts
        report = outcome.report
        if symbol and outcome.calls(symbol) < nth:
            said.append("the call was never made")
        if refused > 2:
            said.append(f"{refused} calls refused")
        if failed:
            said.append(f"{failed} calls failed otherwise")
        if wrong:
            said.append(f"{wrong} bytes wrong")
        last = symbol in LEAVES_MEMORY and nth == self.plain.calls(symbol)
        if used != CONTEXT and not last:
            said.append(f"{used - CONTEXT} bytes left in use")
        for name in "memory_errors", "races", "possible_races":
            if report[name]:
                texts = report.get("race_texts", [])[:1]
                said.append(f"{report[name]} {name} {texts}")
        if report["physical_peak_bytes"] > LIMIT:
            said.append(f"peak {report['physical_peak_bytes']}")
        status = outcome.status
        if not status:
            return said + ["no status"]
        device = status["devices"][0] if status["devices"] else None
        if device and device["peak_bytes"] != report["physical_peak_bytes"]:
            said.append(
                f"peak {device['peak_bytes']} by the agent, "
                f"{report['physical_peak_bytes']} by the device"
            )
        if device:
            moved = device["moved"]["out_bytes"], device["moved"]["in_bytes"]
            seen = report["bytes_d2h"] - read, report["bytes_h2d"]
            if moved != seen:
                said.append(f"moved {moved} by the agent, {seen} in truth")
        return said

    def try_call(self, call):
        symbol, nth = call
        try:
            outcome = Outcome(SIMGPU_FAIL=f"{symbol}:{nth}")
        except subprocess.TimeoutExpired:
            return [f"{symbol}:{nth}: no end within {SECONDS} s"]
        said = self.complaints(outcome, symbol, nth)
        return [f"{symbol}:{nth}: {text}" for text in said]

    def chosen(self, symbol):
        """Which calls of a function fail, one at a time."""
        rest = range(FIRST + 1, self.plain.calls(symbol) + 1)
        if not EVERY and len(rest) > DRAWN:
            chance = random.Random(f"{SEED} {symbol}")
            rest = sorted(chance.sample(rest, DRAWN))
        return [*range(1, min(FIRST, self.plain.calls(symbol)) + 1), *rest]

    def test_calls_that_fail(self):
        calls = [(s, nth) for s in symbols() for nth in self.chosen(s)]
        self.assertGreater(len(calls), 50)
        with ThreadPoolExecutor(2) as pool:
            said = sum(pool.map(self.try_call, calls), [])
        print(f"{len(calls)} calls", file=sys.stderr)
        self.assertEqual(said, [], "\n" + "\n".join(said))


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[5:]])
