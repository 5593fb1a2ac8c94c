#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Recorded profiles: a step by a plan in pages takes little longer than the
planner says of bytes, though no page ever changes its chunk.

Usage: test_packed.py PACKED_BENCH FOLDER
"""

import gzip
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

BENCH, FOLDER = sys.argv[1], pathlib.Path(sys.argv[2])
# By profile and share of the peak: times what the model says of bytes.
MOST = {
    ("llama-7b", 50): 1.03,
    ("gpt2-xl", 50): 1.03,
    ("bert-large", 50): 1.03,
    ("bert-large", 20): 1.10,
}
LINE = re.compile(
    r"predicted ([\d.]+) model ([\d.]+) .* chunks (\d+) of (\d+) .*"
    r" moving (\d+) %"
)


class Packed(unittest.TestCase):
    def test_pages_take_little_more_than_bytes(self):
        for (name, percent), most in MOST.items():
            packed = FOLDER / f"{name}.profile.json.gz"
            with tempfile.NamedTemporaryFile() as file:
                file.write(gzip.decompress(packed.read_bytes()))
                file.flush()
                done = subprocess.run(
                    [BENCH, file.name, str(percent)],
                    stdout=subprocess.PIPE,
                    check=True,
                    timeout=240,
                    text=True,
                )
            print(f"{name} {percent} %: {done.stdout.split(': ', 1)[1]}")
            with self.subTest(name=name, percent=percent):
                seen = LINE.search(done.stdout)
                self.assertIsNotNone(seen, done.stdout)
                predicted, model = float(seen[1]), float(seen[2])
                self.assertLessEqual(predicted, most * model)
                self.assertLessEqual(int(seen[3]), int(seen[4]))
                # The planner had all chunks, not less so that all fit.
                self.assertEqual(int(seen[5]), 100)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
