#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""What scripts/setup and scripts/demo say before and while they work."""

import contextlib
import importlib.util
import io
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

SCRIPTS = pathlib.Path(__file__).resolve().parents[2] / "scripts"

# Trains nothing: says and leaves what the example and the libraries would.
STAND_IN = """
import json, os, pathlib, sys
def write(path, **content):
    pathlib.Path(path).write_text(json.dumps(content))
for step in (1, 2):
    print(f"step {step} loss 2.5 time 3.0 ms")
print("peak allocated 100 bytes, reserved 200 bytes")
limit = int(os.environ.get("TAPESWAP_LIMIT", 0))
write(os.environ["SIMGPU_REPORT"], context_bytes=1000, races=0,
      physical_peak_bytes=limit or 2000, possible_races=0, memory_errors=0,
      block_bounds="exact")
if limit:
    write(os.environ["TAPESWAP_STATUS"], out_bytes=5, in_bytes=5)
"""


class Folder(unittest.TestCase):
    def setUp(self):
        self.root = pathlib.Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, self.root)


class Setup(Folder):
    def run_setup(self, free_mb):
        """In a tree of its own, on a disk with so much room."""
        tree, tools = self.root / "tree", self.root / "tools"
        shutil.rmtree(tree, ignore_errors=True)
        tools.mkdir(exist_ok=True)
        shutil.copytree(SCRIPTS, tree / "scripts")
        for name, text in {
            # No package is looked for, and no Python made.
            "dpkg-query": "echo installed",
            "df": "echo Filesystem MB Used Available\n"
            f"echo disk 9999 0 {free_mb} 1% /",
            "no-python": "exit 9",
        }.items():
            tool = tools / name
            tool.write_text(f"#!/bin/sh\n{text}\n", encoding="utf-8")
            tool.chmod(0o755)
        return subprocess.run(
            [tree / "scripts/setup", "--no-build"],
            env={
                **os.environ,
                "PATH": f"{tools}:{os.environ['PATH']}",
                "PYTHON": str(tools / "no-python"),
            },
            capture_output=True, text=True, timeout=60,
        )

    def test_too_little_disk_is_told_before_anything_is_fetched(self):
        done = self.run_setup(3599)
        self.assertEqual(done.returncode, 1)
        self.assertEqual(
            done.stderr,
            "setup: error: build/venv takes 3600 MB in build/, and there are "
            "3599 MB free\n",
        )

    def test_enough_disk_goes_on(self):
        done = self.run_setup(3600)
        self.assertNotIn("takes", done.stderr)
        self.assertIn("no-python is older than 3.11", done.stderr)


class Demo(Folder):
    def test_says_which_run_it_is_at(self):
        spec = importlib.util.spec_from_file_location(
            "demo", SCRIPTS / "demo.py"
        )
        demo = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(demo)
        demo.ROOT = self.root
        demo.TRAIN = (sys.executable, "-c", STAND_IN)
        said, before = io.StringIO(), os.getcwd()
        self.addCleanup(os.chdir, before)
        with contextlib.redirect_stdout(said):
            demo.sys.argv = ["demo"]
            demo.main()
        heads = [
            line for line in said.getvalue().splitlines()
            if line.startswith("[")
        ]
        self.assertEqual(
            [head.split(";")[0] for head in heads],
            [
                "[1/3] without a limit",
                "[2/3] inside the limit, by the pager alone",
                "[3/3] inside the limit, by a plan",
            ],
        )
        self.assertNotIn("about", heads[0])
        for head in heads[1:]:
            self.assertRegex(head, r"; about \d+ s, as the last one$")
        self.assertIn("three runs of a GPT", said.getvalue().split("\n")[0])


if __name__ == "__main__":
    unittest.main()
