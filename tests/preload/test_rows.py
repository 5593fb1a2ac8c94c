#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Every family of hooked functions on memory that is not on the device.

Usage: test_rows.py LIBRARY ROWS SIMGPU [TEST...]
"""

import sys
import unittest

import preloaded

LIBRARY, ROWS, SIMGPU = preloaded.arguments(3)

# 64 MiB of context, and four buffers of 4 MiB.
LIMIT = 80 << 20


class Rows(unittest.TestCase):
    def rows(self, group, count, content, **settings):
        _, _, report = preloaded.run_and_read(
            self, f"{count} rows\n", [ROWS, group], LIBRARY, SIMGPU,
            SIMGPU_CONTENT=content, TAPESWAP_LIMIT=str(LIMIT), timeout=250,
            **settings,
        )
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
