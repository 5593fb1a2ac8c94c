#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Libraries above the driver: what their calls say reaches the ops.

Usage: test_libraries.py LIBRARY PROGRAM SIMGPU [TEST...]

PROGRAM's folder has the libraries that stand in for NCCL and cuDNN; they fail
where an operand is not on the device as their kernel starts.
"""

import json
import os
import pathlib
import sys
import tempfile
import unittest

import preloaded

LIBRARY, PROGRAM, SIMGPU = preloaded.arguments(3)
MIB = 1 << 20
BUFFER = 4 * MIB
# Context, NCCL's own table, and four of six buffers.
LIMIT = (64 + 2 + 4 * 4) * MIB


class Libraries(unittest.TestCase):
    def work(self, command, content="none", **settings):
        """Runs it: status, device's report, launches of the tape."""
        with tempfile.TemporaryDirectory() as folder:
            file = pathlib.Path(folder, "tape.json")
            done, status, report = preloaded.run_and_read(
                self, "done\n", [PROGRAM, command], LIBRARY,
                f"{os.path.dirname(PROGRAM)}:{SIMGPU}",
                **{
                    "SIMGPU_CONTENT": content,
                    "TAPESWAP_LIMIT": str(LIMIT),
                    "TAPESWAP_MODE": "cap",
                    "TAPESWAP_PLAN": str(file),
                    **settings,
                },
            )
            tape = json.loads(file.read_text("utf-8"))
        self.said = done.stderr
        self.assertLessEqual(report["physical_peak_bytes"], LIMIT)
        launches = [op for op in tape["ops"] if op["kind"] == "launch"]
        self.blocks = tape["blocks"]
        buffers = [b["serial"] for b in self.blocks if b["bytes"] == BUFFER]
        self.number = {serial: i for i, serial in enumerate(sorted(buffers))}
        return status, report, launches

    def uses(self, op):
        """Buffer number to access; other blocks by their size."""
        return {
            self.number.get(
                self.blocks[index]["serial"], self.blocks[index]["bytes"]
            ): access
            for index, access in op["uses"]
        }

    def test_operands_of_collectives(self):
        status, _, launches = self.work("collectives")
        self.assertTrue(all(op["collective"] for op in launches))
        self.assertEqual(
            [self.uses(op) for op in launches],
            [
                {MIB: "r", 0: "r", 1: "w"},
                {MIB: "r", 0: "rw"},
                {MIB: "r", 0: "r", 1: "w"},
                {MIB: "r", 1: "r"},
            ],
        )
        self.assertEqual(status["totals"]["collectives"], 4)
        self.assertEqual(status["devices"][0]["pinned_bytes"], 0)
        self.assertGreater(status["devices"][0]["moved"]["out_bytes"], 0)

    def test_group_is_launched_by_its_end(self):
        status, _, launches = self.work("groups")
        self.assertEqual(
            [self.uses(op) for op in launches],
            [{MIB: "r", 0: "r", 1: "w"}],
        )
        self.assertEqual(status["totals"]["collectives"], 1)

    def test_nccl_is_not_told_of_a_buffer_that_moves(self):
        status, _, _ = self.work("registered")
        self.assertEqual(status["devices"][0]["pinned_bytes"], 0)

    def test_tables_of_graphs_with_a_collective(self):
        for command in "captured", "captured-collective":
            status, _, _ = self.work(command)
            # At the first launch of five.
            self.assertEqual(status["tables"]["reads"], 1, command)
            self.assertEqual(status["totals"]["graph_launches"], 5)

    def test_graph_whose_peers_wait_for_the_program(self):
        """It is not held up for ever, nor at every launch."""
        status, _, _ = self.work("captured-without-peers")
        self.assertEqual(status["tables"]["reads"], 0)
        self.assertEqual(status["totals"]["graph_launches"], 5)
        told = [
            line for line in self.said.splitlines()
            if "graphs with collectives do not end" in line
        ]
        self.assertEqual(len(told), 1, self.said)

    def test_window_stays(self):
        status, _, _ = self.work("window")
        self.assertEqual(status["devices"][0]["pinned_bytes"], BUFFER)

    def test_buffers_of_communicator_that_does_not_block_stay(self):
        status, _, launches = self.work("elsewhere")
        self.assertEqual(len(launches), 1)
        self.assertEqual(status["devices"][0]["pinned_bytes"], 2 * BUFFER)

    def test_operands_of_a_cudnn_plan(self):
        _, _, launches = self.work("convolution")
        self.assertEqual(set(self.uses(launches[0])), {0, 1, 2})

    def test_operands_of_cudnn_layers(self):
        _, _, launches = self.work("layers")
        self.assertEqual(
            [self.uses(op) for op in launches],
            [
                {0: "r", 1: "r", 2: "rw", 3: "rw"},
                {0: "r", 1: "rw", 2: "r", 3: "rw"},
            ],
        )

    def test_names_that_nccl_has_for_tools(self):
        status, _, launches = self.work("tools")
        self.assertEqual(
            [self.uses(op) for op in launches],
            2 * [{MIB: "r", 0: "r", 1: "w"}],
        )
        self.assertEqual(status["totals"]["collectives"], 2)

    def test_vectors_and_matrices_of_cublas(self):
        _, _, launches = self.work("vectors")
        axpy, gemv, dot, scal = (
            {n: a for n, a in self.uses(op).items() if n in range(6)}
            for op in launches
        )
        self.assertEqual(axpy, {0: "r", 1: "rw"})
        self.assertEqual(gemv, {0: "r", 1: "rw", 2: "r"})
        self.assertEqual(dot, {0: "r", 1: "r"})
        self.assertEqual(scal, {0: "rw"})

    def test_what_tables_of_a_batch_name_stays(self):
        status, report, launches = self.work("batches", "exact")
        self.assertEqual(status["devices"][0]["pinned_bytes"], 3 * BUFFER)
        self.assertEqual(len(launches), 1)


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[4:]])
