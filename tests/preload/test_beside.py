#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Steps are found and recorded without what other threads copy beside them.

Usage: test_beside.py LIBRARY PROGRAM SIMGPU [TEST...]
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
STEPS = 40
KERNELS = 6


class Beside(unittest.TestCase):
    def test_copies_are_no_ops_of_the_step(self):
        with tempfile.TemporaryDirectory() as folder:
            profile, status = (
                pathlib.Path(folder, f"{name}.json")
                for name in ("profile", "status")
            )
            done = subprocess.run(
                [PROGRAM],
                env={
                    "PATH": os.environ["PATH"],
                    "LD_PRELOAD": LIBRARY,
                    "LD_LIBRARY_PATH": SIMGPU,
                    "SIMGPU_DEVICE": "tiny-1g",
                    "TAPESWAP_MODE": "observe",
                    "TAPESWAP_PROFILE": str(profile),
                    "TAPESWAP_STATUS": str(status),
                },
                capture_output=True,
                text=True,
                timeout=100,
            )
            self.assertEqual(
                (done.returncode, done.stdout), (0, "done\n"), done.stderr
            )
            profile = json.loads(profile.read_text("utf-8"))
            status = json.loads(status.read_text("utf-8"))
        kinds = [profile["run"][kind] for kind in ("launches", "copies")]
        self.assertEqual(kinds, [KERNELS, 0])
        self.assertEqual(len(profile["ops"]), KERNELS)
        # Those of the first steps that show the period are not counted.
        self.assertLessEqual(status["steps"], STEPS)
        self.assertGreaterEqual(status["steps"], STEPS - 4)
        # They were seen all the same.
        self.assertEqual(status["totals"]["launches"], STEPS * KERNELS)
        self.assertGreaterEqual(status["totals"]["copies"], STEPS)


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[4:]])
