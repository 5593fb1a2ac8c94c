#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""The checkers in scripts/ find what they are there to find."""

import json
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

SCRIPTS = pathlib.Path(__file__).resolve().parents[2] / "scripts"
SPDX = "/* SPDX-License-Identifier: LGPL-2.1-or-later */\n"


class Checkers(unittest.TestCase):
    def setUp(self):
        self.root = pathlib.Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, self.root)

    def write(self, name, text):
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        return path

    def run_checker(self, name, *arguments):
        return subprocess.run(
            [sys.executable, SCRIPTS / name, *arguments],
            capture_output=True,
            text=True,
        )

    def accepts(self, name, *arguments):
        done = self.run_checker(name, *arguments)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def refuses(self, words, name, *arguments):
        done = self.run_checker(name, *arguments)
        self.assertEqual(done.returncode, 1, done.stdout + done.stderr)
        self.assertIn(words, done.stdout)

    def test_file_of_800_lines_is_accepted_and_801_refused(self):
        path = self.write("a.c", SPDX + "\n" * 799)
        self.accepts("check_sizes.py", path)
        path = self.write("a.c", SPDX + "\n" * 800)
        self.refuses("801 lines", "check_sizes.py", path)

    def test_missing_licence(self):
        path = self.write("a.c", "int x;\n")
        self.refuses("no SPDX", "check_sizes.py", path)

    def test_clean_layers(self):
        self.write("planner/a.c", '#include "agent/base/map.h"\n')
        self.write("agent/cli/run.c", "simgpu\n")
        self.accepts("check_layers.py", self.root)

    def test_library_that_knows_the_simulated_gpu(self):
        self.write("runtime/a.c", 'getenv("SIMGPU_DEVICE")\n')
        self.refuses("runtime/a.c", "check_layers.py", self.root)

    def test_planner_that_includes_the_runtime(self):
        self.write("planner/a.c", ' # include "runtime/pager.h"\n')
        self.refuses("runtime/pager.h", "check_layers.py", self.root)

    def test_runtime_that_includes_the_agent(self):
        self.write("runtime/a.h", '#include "agent/blocks.h"\n')
        self.refuses("agent/blocks.h", "check_layers.py", self.root)

    def settings(self):
        """A tree that has one setting of each kind, and tells of it."""
        self.write(
            "agent/config.c",
            '{"TAPESWAP_HOST_LIMIT", offsetof(struct ts_config, host)},',
        )
        self.write("agent/a.c", "config->host")
        self.write("agent/cli/main.c", '{"run", ts_cli_run, "runs"},')
        self.write(
            "README.md", "| `TAPESWAP_HOST_LIMIT` | `--host-limit` | x |\n"
            "`tapeswap run`\n",
        )
        self.write("man/tapeswap.1", ".TP\n.B TAPESWAP_HOST_LIMIT\nx\n")
        self.write("tests/simgpu/driver/settings.c", '{"SIMGPU_DEVICE", x},')
        self.write("tests/simgpu/README.md", "| `SIMGPU_DEVICE` | x |\n")

    def test_settings_that_are_told_as_they_are(self):
        self.settings()
        self.accepts("check_settings.py", self.root)

    def test_settings_that_are_told_wrongly(self):
        row = "| `TAPESWAP_HOST_LIMIT` | `--host-limit` | x |\n"
        for name, text, words in (
            ("README.md", "", "README.md's table: lacks TAPESWAP_HOST_LIMIT"),
            ("README.md", row.replace("--host-", "--"), "is --host-limit, not"),
            ("README.md", row + "`TAPESWAP_X`", "names TAPESWAP_X"),
            ("README.md", row + "`tapeswap fly`", "names the command fly"),
            ("man/tapeswap.1", "", "man/tapeswap.1: lacks TAPESWAP_HOST"),
            ("man/tapeswap.1", ".TP\n.B TAPESWAP_X\n", "has TAPESWAP_X"),
            ("agent/a.c", "", "nothing reads TAPESWAP_HOST_LIMIT"),
            ("agent/b.c", 'getenv("TAPESWAP_X")', "reads TAPESWAP_X"),
            ("tests/simgpu/README.md", "", "lacks SIMGPU_DEVICE"),
        ):
            with self.subTest(words):
                self.settings()
                self.write(name, text)
                self.refuses(words, "check_settings.py", self.root)

    def schema(self, name="a.schema.json", **more):
        text = {
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            "type": "object",
            "required": ["size_bytes"],
            "properties": {"size_bytes": {"type": "integer"}},
            **more,
        }
        self.write(name, json.dumps(text))

    def test_schema_with_good_example(self):
        self.schema()
        self.write("examples/a.json", '{"size_bytes": 1}')
        self.accepts("check_schemas.py", self.root)

    def test_schema_that_is_none(self):
        self.schema(type="number-like")
        self.write("examples/a.json", '{"size_bytes": 1}')
        self.refuses("number-like", "check_schemas.py", self.root)

    def test_schema_without_example(self):
        self.schema()
        self.refuses("no example", "check_schemas.py", self.root)

    def test_example_that_breaks_its_schema(self):
        self.schema()
        self.write("examples/a.json", '{"size_bytes": "1 GiB"}')
        self.refuses("$.size_bytes", "check_schemas.py", self.root)

    def test_file_against_the_schema_that_it_names(self):
        self.schema()
        self.write("examples/a.json", '{"size_bytes": 1}')
        good = self.write("good.json", '{"schema": "a", "size_bytes": 1}')
        self.accepts("check_schemas.py", self.root, good)
        bad = self.write("bad.json", '{"schema": "a"}')
        self.refuses("'size_bytes'", "check_schemas.py", self.root, bad)
        lost = self.write("lost.json", '{"schema": "b"}')
        self.refuses("no schema", "check_schemas.py", self.root, lost)


if __name__ == "__main__":
    unittest.main()
