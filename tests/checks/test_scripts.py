#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""What scripts/setup and scripts/demo say before and while they work."""

import contextlib
import fcntl
import importlib.util
import io
import os
import pathlib
import shutil
import signal
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
    def put_tools(self, folder, texts):
        folder.mkdir(parents=True, exist_ok=True)
        for name, text in texts.items():
            tool = folder / name
            tool.write_text(f"#!/bin/sh\n{text}\n", encoding="utf-8")
            tool.chmod(0o755)

    def prepare(self, texts):
        """A tree of its own, and how to run its script with these tools."""
        tree, tools = self.root / "tree", self.root / "tools"
        shutil.rmtree(tree, ignore_errors=True)
        shutil.copytree(SCRIPTS, tree / "scripts")
        self.put_tools(tools, {
            # No package is looked for, and no Python made.
            "dpkg-query": "echo installed",
            "no-python": "exit 9",
            **texts,
        })
        return tree, {
            "args": [tree / "scripts/setup", "--no-build"],
            "env": {
                **os.environ,
                "PATH": f"{tools}:{os.environ['PATH']}",
                "PYTHON": str(tools / "no-python"),
            },
            "text": True,
        }

    def run_setup(self, free_mb):
        """On a disk with so much room."""
        _, how = self.prepare({
            "df": "echo Filesystem MB Used Available\n"
            f"echo disk 9999 0 {free_mb} 1% /",
        })
        return subprocess.run(**how, capture_output=True, timeout=60)

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

    def is_locked(self, tree):
        with open(tree / "build/setup.lock", "w", encoding="utf-8") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                return True
        return False

    def end_group(self, process):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.communicate()

    def test_nothing_holds_the_lock_once_it_was_killed(self):
        end = self.root / "end"
        os.mkfifo(end)
        tree, how = self.prepare({"sleep": "exec /bin/sleep 0.1"})
        self.put_tools(tree / "build/venv/bin", {
            "python": "exit 9",
            "pip": f"echo Downloading it\nread none <'{end}'",
        })
        setup = subprocess.Popen(
            **how, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            start_new_session=True,
        )
        self.addCleanup(self.end_group, setup)
        self.assertEqual(setup.stdout.readline(), "Downloading it\n")
        self.assertIn("installing", setup.stderr.readline())
        self.assertIn("still at it", setup.stderr.readline())
        os.kill(setup.pid, signal.SIGKILL)
        setup.wait()
        # What it began still changes the tree.
        self.assertTrue(self.is_locked(tree))
        end.write_text("", encoding="utf-8")
        # Nobody who waits for the end of what is said waits for ever.
        setup.communicate(timeout=60)
        self.assertFalse(self.is_locked(tree))


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
