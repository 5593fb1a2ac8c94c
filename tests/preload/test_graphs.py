#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""What graphs use stays on the device as long as there are graphs.

Usage: test_graphs.py LIBRARY PROGRAM SIMGPU [TEST...]
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
BUFFER = 4 * MIB
# The context and two of five buffers.
LIMIT = (64 + 2 * 4) * MIB


class Graphs(unittest.TestCase):
    def pinned(self, made, left):
        """Bytes that are pinned in the end."""
        with tempfile.TemporaryDirectory() as folder:
            done = subprocess.run(
                [PROGRAM, made, left],
                env={
                    "PATH": os.environ["PATH"],
                    "LD_PRELOAD": LIBRARY,
                    "LD_LIBRARY_PATH": SIMGPU,
                    "SIMGPU_CONTENT": "exact",
                    "SIMGPU_DEVICE": "tiny-1g",
                    "SIMGPU_REPORT": f"{folder}/report.json",
                    "TAPESWAP_LIMIT": str(LIMIT),
                    "TAPESWAP_STATUS": f"{folder}/status.json",
                },
                capture_output=True,
                text=True,
                timeout=100,
            )
            self.assertEqual(
                (done.returncode, done.stdout), (0, "kept\n"), done.stderr
            )
            status, report = (
                json.loads(pathlib.Path(folder, name).read_text("utf-8"))
                for name in ("status.json", "report.json")
            )
        self.assertEqual(
            (report["memory_errors"], report["races"]), (0, 0), done.stderr
        )
        self.assertLessEqual(report["physical_peak_bytes"], LIMIT)
        self.assertGreater(status["out_bytes"], 0)
        return status["devices"][0]["pinned_bytes"]

    def test_last_one_gone(self):
        for made in "captured", "built":
            with self.subTest(made):
                self.assertEqual(self.pinned(made, "none"), 0)

    def test_instance_is_left(self):
        for made in "captured", "built":
            with self.subTest(made):
                self.assertEqual(self.pinned(made, "instance"), BUFFER)

    def test_other_graph_is_left(self):
        self.assertEqual(self.pinned("built", "clone"), BUFFER)


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[4:]])
