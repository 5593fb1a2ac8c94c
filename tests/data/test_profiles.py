#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""The recorded profiles are read by the planner and say what README.md says.

Usage: test_profiles.py TAPESWAP FOLDER
"""

import gzip
import json
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

TAPESWAP, FOLDER = sys.argv[1], pathlib.Path(sys.argv[2])
LAYERS = {"bert-large": 24, "gpt2-xl": 48, "llama-7b": 32}


def table():
    """name: (ops, peak in GiB), as README.md has them."""
    rows = {}
    for line in (FOLDER / "README.md").read_text().splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if len(cells) == 5 and cells[2].isdigit():
            peak = re.fullmatch(r"([\d.]+) GiB", cells[4])
            rows[cells[0]] = (int(cells[2]), float(peak.group(1)))
    return rows


class Profiles(unittest.TestCase):
    def test_every_file_is_described(self):
        files = {
            path.name.removesuffix(".profile.json.gz")
            for path in FOLDER.glob("*.gz")
        }
        self.assertEqual(files, set(table()))

    def test_planner_reads_them(self):
        for name in table():
            text = gzip.decompress(
                (FOLDER / f"{name}.profile.json.gz").read_bytes()
            )
            with self.subTest(name), tempfile.NamedTemporaryFile() as file:
                file.write(text)
                file.flush()
                done = subprocess.run(
                    [TAPESWAP, "bound", "--limit", "60%", file.name],
                    capture_output=True,
                    text=True,
                    timeout=60,
                )
                self.assertEqual(done.returncode, 0, done.stderr)

    def test_figures_of_the_readme(self):
        for name, (ops, peak) in table().items():
            with gzip.open(FOLDER / f"{name}.profile.json.gz") as file:
                profile = json.load(file)
            with self.subTest(name):
                self.assertEqual(len(profile["ops"]), ops)
                self.assertAlmostEqual(
                    profile["memory"]["peak_bytes"] / 2**30, peak, delta=0.06
                )
                self.assertEqual(len(profile["turns"]), 1)
                if name in LAYERS:
                    self.assertEqual(len(profile["regions"]), LAYERS[name])


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
