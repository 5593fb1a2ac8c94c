#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""A profiler takes device memory when it is called back from the driver.

Usage: test_callbacks.py LIBRARY PROGRAM SIMGPU [TEST...]
"""

import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

LIBRARY, PROGRAM, SIMGPU = (
    str(pathlib.Path(a).resolve()) for a in sys.argv[1:4]
)
MIB = 1 << 20
# The context, three of six buffers, and what the profiler takes: that is not
# tapeswap's to place.
LIMIT, PROFILER = (64 + 3 * 4) * MIB, 2 * MIB


class Callbacks(unittest.TestCase):
    def run_with(self, helper):
        with tempfile.TemporaryDirectory() as folder:
            done = subprocess.run(
                [PROGRAM],
                env={
                    "PATH": os.environ["PATH"],
                    "LD_PRELOAD": LIBRARY,
                    "LD_LIBRARY_PATH": SIMGPU,
                    "SIMGPU_CONTENT": "exact",
                    "SIMGPU_DEVICE": "tiny-1g",
                    "SIMGPU_REPORT": f"{folder}/report.json",
                    "TAPESWAP_HELPER": helper,
                    "TAPESWAP_LIMIT": str(LIMIT),
                    "TAPESWAP_STATUS": f"{folder}/status.json",
                },
                capture_output=True,
                text=True,
                timeout=100,
            )
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
            status, report = (
                json.loads(pathlib.Path(folder, name).read_text("utf-8"))
                for name in ("status.json", "report.json")
            )
        self.assertEqual(
            (report["memory_errors"], report["races"]), (0, 0), done.stderr
        )
        self.assertLessEqual(
            report["physical_peak_bytes"], LIMIT + 2 * PROFILER
        )
        self.assertGreater(status["out_bytes"], 0)
        return done.stdout

    def test_on_the_program_s_threads(self):
        self.assertEqual(self.run_with("inline"), "here, kept\n")

    def test_on_tapeswap_s(self):
        self.assertEqual(self.run_with("thread"), "here, elsewhere, kept\n")


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], "-v", *sys.argv[4:]])
