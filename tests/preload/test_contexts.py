#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Programs with several contexts and devices under a limit.

Usage: test_contexts.py LIBRARY PROGRAM SIMGPU [TEST...]
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


class Contexts(unittest.TestCase):
    def run_program(self, command, word, limit_mib, **settings):
        with tempfile.TemporaryDirectory() as folder:
            environment = {
                "PATH": os.environ["PATH"],
                "LD_PRELOAD": LIBRARY,
                "LD_LIBRARY_PATH": SIMGPU,
                "SIMGPU_CONTENT": "exact",
                "SIMGPU_DEVICE": "tiny-1g",
                "SIMGPU_REPORT": f"{folder}/report.json",
                "TAPESWAP_LIMIT": f"{limit_mib}MiB",
                "TAPESWAP_STATUS": f"{folder}/status.json",
                **settings,
            }
            done = subprocess.run(
                [PROGRAM, command],
                env=environment,
                capture_output=True,
                text=True,
                timeout=120,
            )
            self.assertEqual(
                (done.returncode, done.stdout), (0, word + "\n"), done.stderr
            )
            with open(f"{folder}/report.json", encoding="utf-8") as file:
                report = json.load(file)
            with open(f"{folder}/status.json", encoding="utf-8") as file:
                status = json.load(file)
        self.assertEqual(report["memory_errors"], 0, done.stderr)
        self.assertEqual(report["races"], 0)
        for device in report["devices"]:
            self.assertLessEqual(device["physical_peak_bytes"], limit_mib * MIB)
        return status

    # Two contexts of 64 MiB each, and two of the five buffers of 4 MiB.
    def test_release_ends_no_other_context(self):
        status = self.run_program("release", "kept", 136)
        self.assertGreater(status["out_bytes"], 0)

    def test_reset_ends_no_other_context(self):
        self.run_program("reset", "kept", 136)

    def test_peer_reaches_memory_that_moves(self):
        status = self.run_program("peer", "reached", 74, SIMGPU_DEVICES="2")
        self.assertGreater(status["out_bytes"], 0)


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[4:]])
