#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Memory that code takes when it is loaded keeps within the limit.

Usage: test_late_code.py LIBRARY PROGRAM SIMGPU [TEST...]
"""

import json
import pathlib
import sys
import tempfile
import unittest

import preloaded

LIBRARY, PROGRAM, SIMGPU = preloaded.arguments(3)
MIB = 1 << 20


class LateCode(unittest.TestCase):
    def report(self, way, when="alone", **settings):
        with tempfile.TemporaryDirectory() as folder:
            report = pathlib.Path(folder) / "report.json"
            done = preloaded.run(
                [PROGRAM, way, when],
                LIBRARY,
                SIMGPU,
                SIMGPU_CONTENT="tags",
                SIMGPU_REPORT=str(report),
                **settings,
            )
            self.assertEqual(done.returncode, 0, done.stderr)
            return json.loads(report.read_text(encoding="utf-8"))

    def check(self, way):
        alone = self.report(way, TAPESWAP_MODE="off")
        code = alone["physical_peak_bytes"] - 9 * 32 * MIB
        self.assertGreater(code, alone["context_bytes"], "no memory for code")
        for limit in 288 * MIB, 289 * MIB - 4096:
            seen = self.report(way, TAPESWAP_LIMIT=str(limit))
            self.assertLessEqual(seen["physical_peak_bytes"], limit)
            # All of it but what was kept free for code.
            self.assertGreater(seen["physical_peak_bytes"], limit - 3 * MIB)

    def test_module(self):
        self.check("module")

    def test_kernel(self):
        self.check("kernel")

    def test_instance_of_a_graph(self):
        alone = self.report("instance", TAPESWAP_MODE="off")
        # Eight of the nine blocks, and nothing for the instance.
        limit = alone["physical_peak_bytes"] - (32 + 2) * MIB
        seen = self.report("instance", TAPESWAP_LIMIT=str(limit))
        self.assertLessEqual(seen["physical_peak_bytes"], limit)
        self.assertGreater(seen["physical_peak_bytes"], limit - 3 * MIB)

    def calls(self, way, when):
        """Of the driver's for mapping, under a limit that leaves nothing."""
        seen = self.report(way, when, TAPESWAP_LIMIT=str(288 * MIB))
        self.assertEqual((seen["races"], seen["memory_errors"]), (0, 0))
        return seen["vmm_calls"]

    def test_captured(self):
        for way in "module", "kernel":
            self.calls(way, "captured")

    def test_nothing_is_unmapped_while_a_stream_captures(self):
        for way in "module", "library", "kernel":
            with self.subTest(way):
                self.assertEqual(
                    self.calls(way, "capturing"),
                    self.calls("nothing", "capturing"),
                )

    def test_room_is_made_where_the_capture_goes_with_its_stream(self):
        for way in "module", "kernel":
            with self.subTest(way):
                self.assertGreater(
                    self.calls(way, "destroyed"),
                    self.calls("nothing", "destroyed"),
                )


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[4:]])
