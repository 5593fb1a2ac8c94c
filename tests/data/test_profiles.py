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

    def inspect(self, name, *options):
        text = gzip.decompress(
            (FOLDER / f"{name}.profile.json.gz").read_bytes()
        )
        with tempfile.NamedTemporaryFile() as file:
            file.write(text)
            file.flush()
            done = subprocess.run(
                [TAPESWAP, "inspect", *options, file.name],
                capture_output=True,
                text=True,
                timeout=60,
            )
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout, json.loads(text)

    def test_inspect_says_what_the_file_says(self):
        out, profile = self.inspect("bert-large", "--json")
        said = json.loads(out)
        memory = profile["memory"]
        self.assertEqual(said["peak_bytes"], memory["peak_bytes"])
        self.assertEqual(said["kinds_at_peak"], memory["kinds_at_peak"])
        self.assertEqual(said["layers"], 24)
        self.assertEqual(said["step_ns"], profile["run"]["step_ns"])
        self.assertEqual(
            sum(row["count"] for row in said["families"]), said["ops"]
        )
        self.assertEqual(
            sum(row["busy_ns"] for row in said["kernels"]), said["busy_ns"]
        )
        idle = {row["name"]: row for row in said["idle"]}
        self.assertGreater(idle["optimizer"]["bytes"], 2 << 30)

    def test_inspect_is_a_page(self):
        out, profile = self.inspect("llama-7b")
        lines = out.splitlines()
        self.assertLessEqual(len(lines), 40)
        self.assertIn("peak 88.37 GiB", lines[1])
        self.assertIn("parameters 12.55", lines[2])
        self.assertIn("|forward", out)
        self.assertIn("|optimizer", out)
        self.assertIn("layers 32 of 1 types", out)

    def test_inspect_tables(self):
        out, _ = self.inspect("llama-7b", "--by", "kernel", "--top", "3")
        self.assertEqual(len(out.splitlines()), 4)
        self.assertIn("gemm", out.splitlines()[1])
        out, _ = self.inspect("llama-7b", "--by", "region")
        self.assertIn("layer type 0 backward", out)
        out, _ = self.inspect("llama-7b", "--by", "kind")
        self.assertEqual(len(out.splitlines()), 8)

    def test_inspect_refuses(self):
        for arguments in (
            ["--by", "colour", "x"], ["--top", "0", "x"], ["/nowhere"], []
        ):
            done = subprocess.run(
                [TAPESWAP, "inspect", *arguments],
                capture_output=True,
                text=True,
                timeout=60,
            )
            self.assertEqual(done.returncode, 2, arguments)
            self.assertEqual(done.stdout, "")

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
