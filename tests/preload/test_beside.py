#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Steps are found and recorded without what other threads copy beside them.

Usage: test_beside.py LIBRARY PROGRAM SIMGPU [TEST...]
"""

import json
import pathlib
import sys
import tempfile
import unittest

import preloaded

LIBRARY, PROGRAM, SIMGPU = preloaded.arguments(3)
STEPS = 40
KERNELS = 6


class Beside(unittest.TestCase):
    def test_copies_are_no_ops_of_the_step(self):
        with tempfile.TemporaryDirectory() as folder:
            profile, status = (
                pathlib.Path(folder, f"{name}.json")
                for name in ("profile", "status")
            )
            done = preloaded.run(
                [PROGRAM], LIBRARY, SIMGPU, TAPESWAP_MODE="observe",
                TAPESWAP_PROFILE=str(profile), TAPESWAP_STATUS=str(status),
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
