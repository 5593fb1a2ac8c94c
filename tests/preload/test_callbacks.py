#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""A profiler takes device memory when it is called back from the driver.

Usage: test_callbacks.py LIBRARY PROGRAM SIMGPU [TEST...]
"""

import sys
import unittest

import preloaded

LIBRARY, PROGRAM, SIMGPU = preloaded.arguments(3)
MIB = 1 << 20
# The context, three of six buffers, and what the profiler takes: that is not
# tapeswap's to place.
LIMIT, PROFILER = (64 + 3 * 4) * MIB, 2 * MIB


class Callbacks(unittest.TestCase):
    def run_with(self, helper):
        done, status, report = preloaded.run_and_read(
            self, None, [PROGRAM], LIBRARY, SIMGPU, SIMGPU_CONTENT="exact",
            TAPESWAP_HELPER=helper, TAPESWAP_LIMIT=str(LIMIT),
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
