#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""What graphs use stays on the device as long as there are graphs.

Usage: test_graphs.py LIBRARY PROGRAM SIMGPU [TEST...]
"""

import sys
import unittest

import preloaded

LIBRARY, PROGRAM, SIMGPU = preloaded.arguments(3)
MIB = 1 << 20
BUFFER = 4 * MIB
# The context and two of five buffers.
LIMIT = (64 + 2 * 4) * MIB


class Graphs(unittest.TestCase):
    def pinned(self, made, left):
        """Bytes that are pinned in the end."""
        _, status, report = preloaded.run_and_read(
            self, "kept\n", [PROGRAM, made, left], LIBRARY, SIMGPU,
            SIMGPU_CONTENT="exact", TAPESWAP_LIMIT=str(LIMIT),
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
