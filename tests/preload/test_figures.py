#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""CUDA and NVML tell one story of a device's memory.

Usage: test_figures.py LIBRARY PROGRAM SIMGPU [TEST...]
"""

import json
import sys
import unittest

import preloaded

LIBRARY, PROGRAM, SIMGPU = preloaded.arguments(3)
MIB = 1 << 20
LIMIT = 300 * MIB


class Figures(unittest.TestCase):
    def figures(self, way, **settings):
        """What the program printed, by when it did."""
        done = preloaded.run(
            [PROGRAM, way], LIBRARY, SIMGPU, SIMGPU_DEVICES="2", **settings
        )
        self.assertEqual(done.returncode, 0, done.stderr)
        lines = [json.loads(line) for line in done.stdout.splitlines()]
        return {line["when"]: line for line in lines}

    def check_story(self, line, number, total):
        """All of CUDA and NVML on the device that CUDA has as its first."""
        nvml = line["nvml"][number]
        self.assertEqual(nvml["first"], nvml["second"])
        self.assertEqual(nvml["first"][:2], [total, line["free"]])
        self.assertEqual(sum(nvml["first"][1:]), total)
        self.assertEqual((line["device"], line["total"]), (total, total))

    def check_limited(self, way):
        seen = self.figures(way, TAPESWAP_LIMIT=str(LIMIT))
        whole = seen["before"]["nvml"][0]["first"][0]
        self.assertGreater(whole, LIMIT)
        self.assertEqual(seen["initialised"]["nvml"][0]["first"][0], LIMIT)
        for when in "context", "two blocks", "one block":
            self.check_story(seen[when], 0, LIMIT)
        free = [seen[w]["free"] for w in ("context", "two blocks", "one block")]
        self.assertEqual(free[0] - free[1], 96 * MIB)
        self.assertEqual(free[2] - free[1], 32 * MIB)
        # What the process holds is told as it is.
        for when in "context", "two blocks", "one block":
            nvml = seen[when]["nvml"][0]
            self.assertEqual(nvml["process"], nvml["first"][2])

    def test_linked(self):
        self.check_limited("linked")

    def test_loaded(self):
        self.check_limited("loaded")

    def test_devices_are_told_apart(self):
        seen = self.figures(
            "linked", TAPESWAP_LIMIT=str(LIMIT), CUDA_VISIBLE_DEVICES="1"
        )
        whole = seen["before"]["nvml"][0]["first"]
        self.assertEqual(seen["two blocks"]["nvml"][0]["first"], whole)
        self.check_story(seen["two blocks"], 1, LIMIT)

    def test_limit_above_the_memory(self):
        seen = self.figures("linked", TAPESWAP_LIMIT="100GiB")
        whole = seen["before"]["nvml"][0]["first"][0]
        self.check_story(seen["one block"], 0, whole)

    def test_off(self):
        seen = self.figures(
            "linked", TAPESWAP_LIMIT=str(LIMIT), TAPESWAP_MODE="off"
        )
        whole = seen["before"]["nvml"][0]["first"][0]
        self.check_story(seen["one block"], 0, whole)


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[4:]])
