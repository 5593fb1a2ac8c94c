#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""What is said and written of programs that end early, or fail again and
again.

Usage: test_ends.py LIBRARY ENDS SIMGPU [TEST...]
"""

import json
import pathlib
import re
import signal
import sys
import tempfile
import unittest

import preloaded

LIBRARY, ENDS, SIMGPU = preloaded.arguments(3)

# Each call leads to the library as those of PyTorch do.
INTERRUPTED = """
import ctypes
cuda = ctypes.CDLL("libcuda.so.1")
context, block = ctypes.c_void_p(), ctypes.c_uint64()
assert not cuda.cuInit(0)
assert not cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0)
assert not cuda.cuCtxSetCurrent(context)
assert not cuda.cuMemAlloc_v2(ctypes.byref(block), ctypes.c_size_t(1 << 22))
for _ in range(2):
    assert not cuda.cuMemsetD8_v2(block, 1, ctypes.c_size_t(64))
raise KeyboardInterrupt
"""


class Ends(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def run_one(self, command, code=0, arguments=None, **settings):
        done = preloaded.run(
            [command, *arguments] if arguments else [ENDS, command],
            LIBRARY, SIMGPU, cwd=self.folder,
            **{
                "TAPESWAP_MODE": "cap",
                "TAPESWAP_STATUS": str(self.folder / "status.json"),
                **settings,
            },
        )
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        self.lines = [
            line
            for line in done.stderr.splitlines()
            if "tapeswap" in line
        ]
        for line in self.lines:
            self.assertRegex(line, r"^tapeswap\[\d+\]: ")
        return done

    def status(self):
        path = self.folder / "status.json"
        return json.loads(path.read_text(encoding="utf-8"))

    def with_words(self, words):
        return [line for line in self.lines if words in line]

    def test_signal_from_within_a_handler_of_another(self):
        for _ in range(5):
            self.run_one("watched", -signal.SIGTERM)
            self.assertEqual(self.lines, [])

    def test_signal_from_within_its_handler(self):
        self.run_one("handled", -signal.SIGINT)
        self.assertEqual(self.lines, [])

    def test_signals_that_end_nothing(self):
        self.run_one("unhurt")
        self.assertEqual(len(self.lines), 1)
        self.assertEqual(self.status()["totals"]["sets"], 5)

    def test_killed_program_leaves_a_status(self):
        for helper in "thread", "inline":
            with self.subTest(helper):
                self.run_one(
                    "killed", -signal.SIGKILL, TAPESWAP_HELPER=helper
                )
                status = self.status()
                self.assertIs(status["complete"], False)
                self.assertGreaterEqual(status["totals"]["sets"], 1000)
                (self.folder / "status.json").unlink()

    def test_refusals_are_told_once_a_cause(self):
        remedies = {
            "tiny-1g": r"Remedy: smaller tensors, as of a smaller batch$",
            "rtx4090": r"Remedy: TAPESWAP_LIMIT=\d+MiB at least, for later",
        }
        for device, remedy in remedies.items():
            with self.subTest(device):
                self.run_one(
                    "refused", TAPESWAP_LIMIT="512MiB", SIMGPU_DEVICE=device
                )
                told = self.with_words("out of memory: an allocation of")
                self.assertEqual(len(told), 2, self.lines)
                self.assertIn("2.00 GiB", told[0])
                self.assertIn("3.00 GiB", told[1])
                self.assertRegex(told[1], remedy)
                self.assertEqual(
                    len(self.with_words("out of memory 40 times")), 1
                )
                self.assertEqual(self.status()["shortages"], 40)
                self.assertEqual(self.status()["driver_errors"], 0)

    def test_unwritable_files_are_told_once(self):
        self.run_one(
            "killed",
            -signal.SIGKILL,
            TAPESWAP_STATUS="nowhere/status.json",
            TAPESWAP_HELPER="inline",
        )
        told = self.with_words("TAPESWAP_STATUS")
        self.assertEqual(len(told), 1, self.lines)
        self.assertIn("cannot be written", told[0])

    def test_errors_of_the_driver_name_call_and_remedy(self):
        done = self.run_one(
            "sticky",
            TAPESWAP_LIMIT="82MiB",
            SIMGPU_STICKY_ERROR="CUDA_ERROR_ILLEGAL_ADDRESS@12",
        )
        self.assertEqual(done.stdout, "700\n")
        told = self.with_words("driver error: ")
        self.assertEqual(len(told), 1, self.lines)
        self.assertRegex(
            told[0],
            r"MemsetD8 cannot be made resident: cu[A-Z]\w+ answers error "
            r"700, CUDA_ERROR_ILLEGAL_ADDRESS\. Remedy: ",
        )
        (last,) = self.with_words("driver errors ")
        count = int(re.search(r"driver errors (\d+) times", last)[1])
        self.assertEqual(self.with_words("out of memory"), [])
        self.assertEqual(self.status()["shortages"], 0)
        self.assertEqual(self.status()["driver_errors"], count)
        self.assertGreaterEqual(count, 2)

    def test_interrupted_python_says_and_writes_all(self):
        self.run_one(
            sys.executable, -signal.SIGINT, arguments=["-c", INTERRUPTED]
        )
        self.assertEqual(len(self.with_words(": ok: device 0 peak")), 1)
        self.assertTrue(self.status()["complete"])
        self.assertEqual(self.status()["totals"]["sets"], 2)


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[4:]])
