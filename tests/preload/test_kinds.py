#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Two kinds of device in one program: each has the layouts of its own code,
by a driver that tells them and by one that does not.

Usage: test_kinds.py LIBRARY PROGRAM SIMGPU OLDER_DRIVER [TEST...]
"""

import json
import os
import pathlib
import sys
import tempfile
import unittest

import preloaded

LIBRARY, PROGRAM, SIMGPU, OLDER = preloaded.arguments(4)
MIB = 1 << 20
# Of each device: the context, and two of five buffers.
LIMIT = (64 + 2 * 4) * MIB


class Kinds(unittest.TestCase):
    def check(self, words, libraries):
        tiny = json.loads(
            pathlib.Path(SIMGPU, "models/tiny-1g.json").read_text("utf-8")
        )
        self.assertEqual((tiny["compute_major"], tiny["compute_minor"]), (8, 0))
        with tempfile.TemporaryDirectory() as folder:
            other = pathlib.Path(folder, "other.json")
            other.write_text(
                json.dumps({**tiny, "compute_major": 9}), encoding="utf-8"
            )
            done, status, report = preloaded.run_and_read(
                self, words + "\n", [PROGRAM], LIBRARY, libraries,
                SIMGPU_DEVICE=f"tiny-1g,{other}", SIMGPU_DEVICES="2",
                TAPESWAP_LIMIT=str(LIMIT), TAPESWAP_MODE="cap",
            )
        self.assertNotIn("count as using every block", done.stderr)
        self.assertEqual(len(report["devices"]), 2)
        for device in report["devices"]:
            self.assertLessEqual(device["physical_peak_bytes"], LIMIT)
            # Each buffer left and came back, and nothing else.
            self.assertGreaterEqual(device["bytes_h2d"], 10 * 4 * MIB)
        self.assertGreater(status["out_bytes"], 0)

    def test_driver_that_tells_parameters(self):
        self.check("told", SIMGPU)

    def test_driver_that_does_not(self):
        with tempfile.TemporaryDirectory() as folder:
            os.symlink(OLDER, f"{folder}/libcuda.so.1")
            self.check("untold", f"{folder}:{SIMGPU}")


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[5:]])
