#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""What commands of `tapeswap` say of the files they write, of sizes, and of
how far they have come. Usage: test_outputs.py TAPESWAP.
"""

import itertools
import json
import os
import pty
import shutil
import stat
import subprocess
import sys
import tempfile
import unittest

TAPESWAP = os.path.abspath(sys.argv[1])
FEW = ["--limits", "60:100:40%"]


class Outputs(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.folder)
        self.profile = self.path("profile.json")
        self.run_tapeswap("workload", "bert-large", "-o", self.profile)

    def path(self, name):
        return os.path.join(self.folder, name)

    def run_tapeswap(self, *arguments, status=0):
        done = subprocess.run(
            [TAPESWAP, *arguments], capture_output=True, text=True,
            timeout=120,
        )
        self.assertEqual(done.returncode, status, done.stderr)
        return done

    def plan(self, path, *options, status=0):
        return self.run_tapeswap(
            "plan", self.profile, "--limit", "50%", "-o", path, *options,
            status=status,
        )

    def test_commands_say_what_they_wrote(self):
        plan, page = self.path("plan.json"), self.path("page.html")
        said = self.plan(plan).stderr.splitlines()
        self.assertEqual(said[0], f"tapeswap: wrote {plan}")
        self.assertEqual(len(said), 2, said)
        with open(plan, encoding="utf-8") as file:
            step_ms = json.load(file)["predicted"]["step_ns"] / 1e6
        self.assertTrue(
            said[1].startswith(f"tapeswap: step {step_ms:.3f} ms "), said
        )
        self.assertEqual(
            self.plan(plan).stderr.splitlines()[0],
            f"tapeswap: replaced {plan}",
        )
        for command in "report", "trace":
            done = self.run_tapeswap(command, self.profile, plan, "-o", page)
            self.assertEqual(done.stdout, "")
            self.assertRegex(
                done.stderr, rf"^tapeswap: (wrote|replaced) {page}\n$"
            )
        table = self.path("table.csv")
        done = self.run_tapeswap(
            "sweep", self.profile, *FEW, "--export-csv", table
        )
        self.assertEqual(done.stderr, f"tapeswap: wrote {table}\n")

    def test_what_goes_to_stdout_is_not_told(self):
        done = self.plan("-")
        self.assertEqual(done.stderr, "")
        self.assertIn("predicted", json.loads(done.stdout))

    def test_what_is_read_is_not_written_over(self):
        plan = self.path("plan.json")
        self.plan(plan)
        alias = self.path("alias.json")
        os.symlink(self.profile, alias)
        before = {}
        for name in self.profile, plan:
            with open(name, "rb") as file:
                before[name] = file.read()
        for name in self.profile, alias:
            for option in ["-o", name], ["--stats", name]:
                done = self.run_tapeswap(
                    "plan", self.profile, "--limit", "50%", *option, status=2
                )
                self.assertIn("would be written over", done.stderr)
            done = self.run_tapeswap(
                "sweep", self.profile, "--export-json", name, status=2
            )
            self.assertIn("would be written over", done.stderr)
        for command in "report", "trace":
            for name in self.profile, plan:
                self.run_tapeswap(
                    command, self.profile, plan, "-o", name, status=2
                )
        for name, content in before.items():
            with open(name, "rb") as file:
                self.assertEqual(file.read(), content, name)

    def test_two_exports_do_not_go_to_one_file(self):
        table, alias = self.path("table"), self.path("alias")
        exports = "--export-json", "--export-csv", "--export-svg"
        os.symlink(table, alias)
        for there in False, True:
            if there:
                with open(table, "w", encoding="utf-8") as file:
                    file.write("before\n")
            for a, b in itertools.combinations(exports, 2):
                other = alias if there else table
                done = self.run_tapeswap(
                    "sweep", self.profile, *FEW, a, table, b, other, status=2
                )
                self.assertIn(
                    f"two exports would go to {table}\n",
                    done.stderr.replace(alias, table),
                )
        with open(table, encoding="utf-8") as file:
            self.assertEqual(file.read(), "before\n")
        self.run_tapeswap(
            "sweep", self.profile, "--json", "--export-csv", "-", status=2
        )

    def test_what_is_no_file_is_written_to_itself(self):
        pipe = self.path("pipe")
        os.mkfifo(pipe)
        reader = subprocess.Popen(["cat", pipe], stdout=subprocess.PIPE)
        self.addCleanup(reader.kill)
        self.plan(pipe)
        written, _ = reader.communicate(timeout=60)
        self.assertIn("predicted", json.loads(written))
        self.assertTrue(stat.S_ISFIFO(os.stat(pipe).st_mode))

    def test_links_stay(self):
        os.mkdir(self.path("beside"))
        for link, target in (
            ("open", "/proc/self/fd/2"), ("device", "/dev/stderr"),
            ("file", "beside/plan.json"), ("chain", "file"),
        ):
            with self.subTest(link=link):
                os.symlink(target, self.path(link))
                with open(self.path("log"), "w", encoding="utf-8") as log:
                    log.write("before\n")
                    log.flush()
                    subprocess.run(
                        [TAPESWAP, "plan", self.profile, "--limit", "50%",
                         "-o", self.path(link)],
                        stderr=log, check=True, timeout=120,
                    )
                self.assertEqual(os.readlink(self.path(link)), target)
                with open(self.path("log"), encoding="utf-8") as log:
                    said = log.read()
                self.assertTrue(said.startswith("before\n"), said)
                if target.startswith("/"):
                    self.assertIn('"predicted"', said)
                    self.assertNotIn("wrote", said)
                    continue
                self.assertIn(f"wrote {self.path(link)}\n", said)
                written = self.path("beside/plan.json")
                with open(written, encoding="utf-8") as file:
                    self.assertIn("predicted", json.load(file))
                os.unlink(written)

    def test_sizes_are_given_in_what_they_are_of(self):
        """The same profile, its values a thousand times smaller."""
        with open(self.profile, encoding="utf-8") as file:
            profile = json.load(file)
        for value in profile["values"]:
            value["size_bytes"] = max(value["size_bytes"] >> 10, 1)
        profile["resident_bytes"] = profile.get("resident_bytes", 0) >> 10
        small = self.path("small.json")
        with open(small, "w", encoding="utf-8") as file:
            json.dump(profile, file)
        plan = self.path("plan.json")
        said = [
            self.run_tapeswap("inspect", small).stdout,
            self.run_tapeswap("inspect", small, "--by", "kind").stdout,
            self.run_tapeswap("sweep", small, *FEW).stdout,
            self.run_tapeswap(
                "plan", small, "--limit", "50%", "-o", plan
            ).stderr,
            self.run_tapeswap("simulate", small, plan).stdout,
            self.run_tapeswap(
                "plan", small, "--limit", "10", status=1
            ).stderr,
            self.run_tapeswap(
                "bound", small, "--limit", "10", status=1
            ).stderr,
            self.run_tapeswap("report", small, plan).stdout,
        ]
        for text in said:
            self.assertNotRegex(text, r"GiB")
            self.assertNotRegex(text, r"\b0\.00? [KMG]iB")
            self.assertRegex(text, r"\d [KM]iB|\b[KM]iB\b")

    def test_verdicts_are_counted_by_op(self):
        """A kernel of which some ops were proved counts for both."""
        with open(self.profile, encoding="utf-8") as file:
            profile = json.load(file)
        proved = ("proved", "is", 3, 3, 0, 0)
        some = ("refused by proof", "is not", 11, 6, 2, 3)
        keys = (
            "verdict", "reason", "ops", "proved", "refused_by_rule",
            "refused_by_proof",
        )
        for signature, said in zip(profile["signatures"], (proved, some)):
            signature["replay"] = dict(zip(keys, said))
        profile["proof"] = {"shadow_steps": 4}
        path = self.path("proved.json")
        for older in False, True:
            if older:
                for key in keys[4:]:
                    for signature in profile["signatures"][:2]:
                        del signature["replay"][key]
            with open(path, "w", encoding="utf-8") as file:
                json.dump(profile, file)
            said = self.run_tapeswap("inspect", path, "--verdicts").stdout
            self.assertEqual(
                said.splitlines()[-1],
                "proved: 9 ops of 2 kernels; not tried: 0 ops of 0 kernels; "
                "refused by rule: 0 ops of 0 kernels; refused by proof: 5 ops "
                "of 1 kernels"
                if older
                else "proved: 9 ops of 2 kernels; not tried: 0 ops of 0 "
                "kernels; refused by rule: 2 ops of 1 kernels; refused by "
                "proof: 3 ops of 1 kernels",
            )

    def test_why_nothing_could_be_written(self):
        """Nothing else is said, by none of those who write files."""
        full = "-o", "/dev/full"
        plan = self.path("plan.json")
        self.plan(plan)
        for arguments in (
            ("plan", self.profile, "--limit", "50%", *full),
            ("workload", "bert-large", *full),
            ("report", self.profile, plan, *full),
            ("trace", self.profile, plan, *full),
            ("sweep", self.profile, *FEW, "--export-csv", "/dev/full"),
        ):
            said = self.run_tapeswap(*arguments, status=2)
            self.assertEqual(
                said.stderr,
                "tapeswap: error: /dev/full cannot be written: No space left "
                "on device\n",
            )
            self.assertEqual(said.stdout, "")

    def test_why_a_limit_cannot_be_read(self):
        for text, why in (
            ("6GB", "cannot read '6GB': did you mean 5.58GiB?"),
            ("0.5GB", "cannot read '0.5GB': did you mean 0.46GiB?"),
            ("-1", "cannot read '-1': less than nothing"),
            ("much", "cannot read 'much'\n"),
        ):
            done = self.run_tapeswap(
                "plan", self.profile, "--limit", text, status=2
            )
            self.assertIn(why, done.stderr)

    def test_a_terminal_has_figures_alone(self):
        main, side = pty.openpty()
        self.addCleanup(os.close, main)
        with os.fdopen(side, "w") as terminal:
            done = subprocess.run(
                [TAPESWAP, "plan", self.profile, "--limit", "50%"],
                stdout=terminal, stderr=subprocess.PIPE, text=True,
                timeout=120,
            )
            self.assertEqual(done.returncode, 0, done.stderr)
            print("end", file=terminal)
        self.assertEqual(os.read(main, 4096), b"end\r\n")
        said = done.stderr.splitlines()
        self.assertTrue(said[0].startswith("tapeswap: step "), said)
        self.assertEqual(said[1:], ["tapeswap: -o FILE writes the plan"])

    def test_progress_on_a_terminal(self):
        main, side = pty.openpty()
        with subprocess.Popen(
            [TAPESWAP, "sweep", self.profile, *FEW], stderr=side,
            stdout=subprocess.PIPE, text=True,
            env={**os.environ, "TERM": "xterm"},
        ) as sweep:
            out, _ = sweep.communicate(timeout=120)
        os.close(side)
        said = b""
        try:
            while chunk := os.read(main, 4096):
                said += chunk
        except OSError:
            pass  # how a terminal without the other side ends
        os.close(main)
        self.assertEqual(sweep.returncode, 0)
        # Which of them there was time for; unit_progress has the rest.
        self.assertRegex(
            said,
            rb"^(((\r\033\[Ktapeswap: sweep: [0-3] of 4 done after \d+ s)+)"
            rb"\r\033\[K)?$",
        )
        self.assertTrue(out.startswith("limit "), out)

    def test_no_progress_in_a_file(self):
        done = self.run_tapeswap("sweep", self.profile, *FEW)
        self.assertNotIn("\033", done.stderr)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
