#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""The report says where the bounds of blocks come from, and a shim that is
missing is named.

Run by the Python of an environment with PyTorch, with the folder of the
simulated GPU's libraries.
"""

import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

LIBRARIES = pathlib.Path(sys.argv.pop(1))
TORCH = """
import torch, time
torch.zeros(1, device="cuda").add_(1)
torch.cuda.synchronize()
time.sleep(0.1)
"""
NO_TORCH = """
import ctypes
cuda = ctypes.CDLL("libcuda.so.1")
context = ctypes.c_void_p()
assert cuda.cuInit(0) == 0
assert cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0) == 0
"""


def run(program, *left_out, **settings):
    """Bounds by the report, and stderr, without some of the libraries."""
    with tempfile.TemporaryDirectory() as folder:
        for path in LIBRARIES.iterdir():
            if not any(path.match(pattern) for pattern in left_out):
                os.symlink(path.resolve(), f"{folder}/{path.name}")
        done = subprocess.run(
            [sys.executable, "-c", program],
            env={
                **os.environ,
                "LD_LIBRARY_PATH": folder,
                "SIMGPU_REPORT": f"{folder}/report.json",
                **settings,
            },
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        if done.returncode:
            raise AssertionError(done.stderr)
        text = pathlib.Path(folder, "report.json").read_text(encoding="utf-8")
    return json.loads(text)["block_bounds"], done.stderr


class Bounds(unittest.TestCase):
    def check_missing(self, *left_out):
        bounds, stderr = run(TORCH, *left_out)
        self.assertEqual(bounds, "missing")
        told = [l for l in stderr.splitlines() if "blocks are missing" in l]
        self.assertEqual(len(told), 1, stderr)
        self.assertIn("scripts/setup", told[0])

    def test_with_the_shim_they_are_those_of_pytorch(self):
        bounds, stderr = run(TORCH)
        self.assertEqual(bounds, "pytorch")
        self.assertNotIn("missing", stderr)

    def test_without_a_shim_for_this_pytorch_that_is_said(self):
        self.check_missing("libsimgpu_torch-*.so")

    def test_without_any_shim_that_is_said(self):
        self.check_missing("libsimgpu_torch.so")

    def test_an_allocator_without_blocks_of_its_own_misses_nothing(self):
        bounds, stderr = run(
            TORCH, PYTORCH_CUDA_ALLOC_CONF="backend:cudaMallocAsync"
        )
        self.assertEqual(bounds, "allocations")
        self.assertNotIn("missing", stderr)

    def test_without_pytorch_they_are_the_allocations(self):
        bounds, stderr = run(NO_TORCH, "libsimgpu_torch*.so")
        self.assertEqual((bounds, stderr), ("allocations", ""))


if __name__ == "__main__":
    unittest.main()
