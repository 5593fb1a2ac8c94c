#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Every family of hooked functions on memory that is not on the device.

Usage: test_rows.py LIBRARY ROWS SIMGPU [TEST...]
"""

import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

LIBRARY, ROWS, SIMGPU = (str(pathlib.Path(a).resolve()) for a in sys.argv[1:4])

# 64 MiB of context, and four buffers of 4 MiB.
LIMIT = 80 << 20


class Rows(unittest.TestCase):
    def rows(self, group, count, content, **settings):
        with tempfile.TemporaryDirectory() as folder:
            done = subprocess.run(
                [ROWS, group],
                env={
                    "PATH": os.environ["PATH"],
                    "LD_PRELOAD": LIBRARY,
                    "LD_LIBRARY_PATH": SIMGPU,
                    "SIMGPU_DEVICE": "tiny-1g",
                    "SIMGPU_CONTENT": content,
                    "SIMGPU_REPORT": f"{folder}/report.json",
                    "TAPESWAP_LIMIT": str(LIMIT),
                    **settings,
                },
                capture_output=True,
                text=True,
                timeout=250,
            )
            self.assertEqual(
                (done.returncode, done.stdout),
                (0, f"{count} rows\n"),
                done.stderr,
            )
            with open(f"{folder}/report.json", encoding="utf-8") as file:
                report = json.load(file)
        self.assertEqual(report["memory_errors"], 0, done.stderr)
        self.assertLessEqual(report["physical_peak_bytes"], LIMIT)
        self.assertGreater(report["bytes_d2h"], count * (4 << 20))

    def test_plain_copies(self):
        self.rows("linear", 24, "exact")

    def test_copies_of_two_and_three_dimensions(self):
        self.rows("pitched", 18, "exact")

    def test_sets(self):
        self.rows("sets", 24, "exact")

    def test_launches(self):
        self.rows("launches", 7, "none")

    def test_addresses_that_go_elsewhere(self):
        self.rows("pins", 29, "none")


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[4:]])
