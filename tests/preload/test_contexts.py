#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Programs with several contexts and devices under a limit.

Usage: test_contexts.py LIBRARY PROGRAM SIMGPU [TEST...]
"""

import sys
import unittest

import preloaded

LIBRARY, PROGRAM, SIMGPU = preloaded.arguments(3)
MIB = 1 << 20


class Contexts(unittest.TestCase):
    def run_program(self, command, word, limit_mib, **settings):
        _, status, report = preloaded.run_and_read(
            self, word + "\n", [PROGRAM, command], LIBRARY, SIMGPU,
            SIMGPU_CONTENT="exact", TAPESWAP_LIMIT=f"{limit_mib}MiB",
            **settings,
        )
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
