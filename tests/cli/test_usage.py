#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""What all commands of `tapeswap` have in common: help, errors, exit status,
files that cannot be read or written. Usage: test_usage.py TAPESWAP.
"""

import json
import os
import re
import subprocess
import sys
import unittest

from profiled import TAPESWAP, Profiled

MANUAL = os.path.join(
    os.path.dirname(os.path.abspath(__file__)), "../../man/tapeswap.1"
)
PAIR = ("simulate", "trace", "report")
ONE = ("inspect", "plan", "bound", "sweep")


class Usage(Profiled):
    LIMIT = "50%"

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        listed = cls.put_out("--help")
        cls.commands = re.findall(r"^  (\w+) ", listed, re.M)

    def run_tapeswap(self, *arguments, **more):
        return subprocess.run(
            [TAPESWAP, *arguments],
            **{
                "stdout": subprocess.PIPE, "stderr": subprocess.PIPE,
                "text": True, "timeout": 120, "cwd": self.folder, **more,
            },
        )

    def check_error(self, done, words, status=2, hint=True):
        """One line of what is wrong, and at most one of what to do."""
        self.assertEqual(done.returncode, status, done.stderr)
        self.assertEqual(done.stdout or "", "")
        lines = done.stderr.splitlines()
        self.assertTrue(lines[0].startswith("tapeswap: error: "), lines)
        self.assertIn(words, lines[0])
        self.assertLessEqual(len(lines), 2, lines)
        if len(lines) == 2:
            self.assertTrue(lines[1].startswith("tapeswap: hint: "), lines)
        self.assertGreaterEqual(len(lines), 1 + hint, lines)

    def test_help(self):
        self.assertGreater(len(self.commands), 10)
        for command in self.commands:
            for option in "--help", "-h":
                done = self.run_tapeswap(command, option)
                self.assertEqual((done.returncode, done.stderr), (0, ""))
                self.assertTrue(
                    done.stdout.startswith(f"usage: tapeswap {command}"),
                    done.stdout,
                )
        for option in "--help", "-h", "help":
            done = self.run_tapeswap(option)
            self.assertEqual((done.returncode, done.stderr), (0, ""))

    def test_manual_has_each_option(self):
        with open(MANUAL, encoding="utf-8") as file:
            manual = file.read().replace("\\-", "-")
        parts = {}
        for part in re.split(r"^\.TP$", manual, flags=re.M)[1:]:
            title = part.strip().splitlines()[0]
            name = re.match(r'\.BI? "?([\w-]+)', title)[1]
            # Of `run` the variables say what its options do.
            option = f"--{name[9:].lower().replace('_', '-')}"
            if name.startswith("TAPESWAP_"):
                parts["run"] += f"{option}\n"
            else:
                parts[name] = part
        for command in self.commands:
            text = self.run_tapeswap(command, "--help").stdout
            text = text.split("examples:")[0].replace("`tapeswap run --sim`", "")
            named = set(re.findall(r"(?<![\w-])--?[a-z][a-z-]*", text))
            for option in named - {"--help"}:
                self.assertRegex(
                    parts[command], rf"(?<![\w-]){option}(?![\w-])",
                    f"man/tapeswap.1: {command}",
                )

    def test_options_that_there_are_not(self):
        for command in self.commands:
            status = 125 if command == "run" else 2
            for option in "--no-such", "-Z":
                self.check_error(
                    self.run_tapeswap(command, option, "x"),
                    f"unknown option '{option}'", status,
                )
        self.check_error(
            self.run_tapeswap("bound", "--json=3", "x"),
            "option '--json=3' takes no value",
        )
        self.check_error(
            self.run_tapeswap("run", "--sim-exact=3", "x"),
            "option '--sim-exact=3' takes no value", 125,
        )
        # What is named is the one that is wrong, not the one before it.
        for command, before, status in (
            ("bound", ["--limit=5GiB"], 2), ("bound", ["--limit", "--json=3"], 2),
            ("bound", ["x", "--json"], 2), ("bound", ["--json", "x"], 2),
            ("run", ["--limit=5GiB"], 125), ("run", ["--limit", "5GiB"], 125),
        ):
            self.check_error(
                self.run_tapeswap(command, *before, "-lh", "x"),
                "unknown option '-l'", status,
            )
        self.check_error(
            self.run_tapeswap("bound", "--limit=5GiB", "--json=3", "x"),
            "option '--json=3' takes no value",
        )
        for option in "--export", "--export=x":
            self.check_error(
                self.run_tapeswap("sweep", option, "x"),
                f"option '{option}' may be any of --export-json, "
                "--export-csv, --export-svg",
            )
        self.check_error(
            self.run_tapeswap("run", "--st", "x"),
            "option '--st' may be any of ", 125,
        )
        self.check_error(
            self.run_tapeswap("plan", "x", "--limit"),
            "option '--limit' wants a value",
        )
        self.check_error(
            self.run_tapeswap("trace", "x", "y", "-o"),
            "option '-o' wants a value",
        )

    def test_names_that_are_missing_or_too_many(self):
        for command in ONE + PAIR:
            names = 2 if command in PAIR else 1
            self.check_error(
                self.run_tapeswap(command), f"{command} wants PROFILE"
            )
            self.check_error(
                self.run_tapeswap(command, *["x"] * names, "more"),
                "'more' is one argument too many",
            )
        for command in "doctor", "tables":
            self.check_error(
                self.run_tapeswap(command, "more"), "'more' is one argument"
            )
        for command in "workload", "schema":
            self.check_error(self.run_tapeswap(command), "wants NAME")

    def test_files_that_cannot_be_read(self):
        for command in ONE:
            for path, why in (
                (self.folder, "Is a directory"), ("none", "No such file"),
                (self.plan_path, "want 'tapeswap-profile', not 'tapeswap-plan'"),
            ):
                self.check_error(
                    self.run_tapeswap(command, path, *self.limit(command)), why
                )

    def test_step_without_ops(self):
        with open(self.profile, encoding="utf-8") as file:
            profile = json.load(file)
        profile.update(ops=[], values=[], signatures=[], regions=[], turns=[])
        empty = f"{self.folder}/empty.json"
        with open(empty, "w", encoding="utf-8") as file:
            json.dump(profile, file)
        for command in ONE + PAIR:
            names = [empty] + [self.plan_path] * (command in PAIR)
            self.check_error(
                self.run_tapeswap(command, *names, *self.limit(command)),
                "$.ops: the step is empty", hint=False,
            )
        os.unlink(empty)

    def test_steps_of_no_time(self):
        with open(self.profile, encoding="utf-8") as file:
            profile = json.load(file)
        for op in profile["ops"]:
            op["duration_ns"] = 0
        idle = f"{self.folder}/idle.json"
        with open(idle, "w", encoding="utf-8") as file:
            json.dump(profile, file)
        for command in (
            ["sweep", idle, "--limits", "90:100:10%"],
            ["bound", idle, "--limit", "100%"], ["inspect", idle],
        ):
            done = self.run_tapeswap(*command)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertNotIn("nan", done.stdout)
        os.unlink(idle)

    def limit(self, command):
        return ["--limit", "50%"] if command in ("plan", "bound") else []

    def test_pipes_are_read(self):
        """Once: nobody can read them again."""
        for command in (
            ["inspect", "/dev/stdin"], ["bound", "/dev/stdin", "--limit", "9%"],
            ["report", "/dev/stdin", self.plan_path],
            ["trace", "/dev/stdin", self.plan_path],
        ):
            with subprocess.Popen(
                ["cat", self.profile], stdout=subprocess.PIPE
            ) as cat:
                done = self.run_tapeswap(*command, stdin=cat.stdout)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertTrue(done.stdout)

    def test_places_that_cannot_be_written_are_told_first(self):
        """Not after the time that planning takes, and nothing is left."""
        makers = (
            ["plan", self.profile, "--limit", "50%", "-o"],
            ["plan", self.profile, "--limit", "50%", "--stats"],
            ["sweep", self.profile, "--export-csv"],
            ["sweep", self.profile, "--export-json"],
            ["sweep", self.profile, "--export-svg"],
            ["trace", self.profile, self.plan_path, "-o"],
            ["report", self.profile, self.plan_path, "-o"],
            ["workload", "bert-large", "-o"],
        )
        for maker in makers:
            for path, why in (
                ("no/such", "No such file or directory"),
                (self.folder, "Is a directory"),
                (f"{self.plan_path}/x", "Not a directory"),
            ):
                self.check_error(
                    self.run_tapeswap(*maker, path),
                    f"{path} cannot be written: {why}", hint=False,
                )
        self.assertEqual(
            sorted(os.listdir(self.folder)), ["plan.json", "profile.json"]
        )

    def test_standard_output_without_room_or_closed(self):
        for arguments in (
            ["--help"], ["--version"], ["inspect", self.profile],
            ["inspect", self.profile, "--json"], ["schema", "plan"],
            ["bound", self.profile, "--limit", "50%"],
            ["simulate", self.profile, self.plan_path], ["plan", "--help"],
            ["report", self.profile, self.plan_path],
        ):
            with open("/dev/full", "w", encoding="utf-8") as full:
                done = self.run_tapeswap(*arguments, stdout=full)
            self.check_error(
                done, "standard output cannot be written: ", hint=False
            )
            self.check_error(
                self.run_tapeswap(
                    *arguments, preexec_fn=lambda: os.close(1)
                ),
                "standard output cannot be written: ", hint=False,
            )

    def test_files_take_the_place_of_no_stream(self):
        """What is said does not end in the file that is made."""
        page = f"{self.folder}/page.html"
        done = self.run_tapeswap(
            "report", self.profile, self.plan_path, "-o", page,
            preexec_fn=lambda: (os.close(0), os.close(1), os.close(2)),
        )
        self.assertEqual(done.returncode, 0)
        with open(page, encoding="utf-8") as file:
            text = file.read()
        os.unlink(page)
        self.assertTrue(text.startswith("<!doctype html>"))
        self.assertTrue(text.endswith("</html>\n"))
        # A program that is run finds them as they were.
        done = self.run_tapeswap(
            "run", "--mode", "off", "--", "sh", "-c",
            "test -e /proc/self/fd/1 && echo open >&2",
            preexec_fn=lambda: os.close(1),
        )
        self.assertEqual(done.stderr, "")

    def test_limits_that_nothing_has(self):
        for command in (
            ["plan", self.profile], ["bound", self.profile],
            ["simulate", self.profile, self.plan_path],
        ):
            self.check_error(
                self.run_tapeswap(*command, "--limit", "10MiB"),
                "does not fit: ", status=1, hint=False,
            )

    def test_numbers(self):
        """As settings are read: whatever one takes the other takes, too."""
        for text in "1e9", "0x1000", "0", "", "12", "7 GiB", "7GiB", "nan":
            done = self.run_tapeswap("bound", self.profile, "--limit", text)
            if text.endswith("GiB"):
                self.assertEqual(done.returncode, 0, done.stderr)
            elif text == "12":
                self.check_error(done, "does not fit: ", status=1, hint=False)
            else:
                self.check_error(done, f"--limit: cannot read '{text}'")
        for top in "-1", "+1", "0", "", "2x", " 2":
            self.check_error(
                self.run_tapeswap("inspect", self.profile, "--top", top),
                f"--top: cannot read '{top}'",
            )


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[2:]])
