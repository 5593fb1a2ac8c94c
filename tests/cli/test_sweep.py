#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""`tapeswap sweep` recommends what a run does; `bound` says what it bounds.

Usage: test_sweep.py TAPESWAP [TEST...]
"""

import gzip
import json
import pathlib
import re
import subprocess
import sys
import unittest

from profiled import TAPESWAP, Profiled

MIB = 2**20
RECORDED = (
    pathlib.Path(__file__).parents[1] / "data/bert-large.profile.json.gz"
)
CONVOLUTIONS = (
    pathlib.Path(__file__).parents[1] / "data/resnet50.profile.json.gz"
)
FEW = "--limits", "20%:100%:20%"


class Sweep(Profiled):
    def sweep(self, *options):
        """{(policy, limit): step or None} and the document."""
        document = json.loads(
            self.put_out(
                "sweep", self.profile, "--json", *FEW, *options
            )
        )
        return document, {
            (row["policy"], row["limit_bytes"]): row["step_ns"]
            for row in document["rows"]
        }

    def plan(self, limit, *options):
        return json.loads(
            self.put_out(
                "plan", self.profile, "--limit", str(limit), *options
            )
        )["predicted"]["step_ns"]

    def recommended(self, *options):
        """Limit of the line to paste, in bytes."""
        out = self.put_out("sweep", self.profile, *FEW, *options)
        line = next(x for x in out.splitlines() if x.startswith("use: "))
        return int(re.search(r"LIMIT=(\d+)MiB", line)[1]) * MIB

    def test_both_ways_stand_beside_each_other(self):
        _, steps = self.sweep()
        policies = {policy for policy, _ in steps}
        self.assertEqual(policies, {"no-replay", "tapeswap"})
        limit = sorted({limit for _, limit in steps})[2]
        ways = ("no-replay", ["--no-replay"]), ("tapeswap", [])
        for policy, options in ways:
            self.assertEqual(
                steps[policy, limit], self.plan(limit, *options), policy
            )
        out = self.put_out("sweep", self.profile, *FEW).splitlines()
        self.assertRegex(out[0], r"host [GM]iB  with replay  means$")

    def test_recommends_what_a_run_does(self):
        limit = self.recommended()
        document, _ = self.sweep()
        ideal = document["unlimited_step_ns"]
        fits = [
            row["run_bytes"] for row in document["rows"]
            if row["policy"] == "no-replay" and row["fits"]
            and row["step_ns"] < 1.1 * ideal
        ]
        self.assertGreaterEqual(limit, min(fits))
        self.assertLess(limit, min(fits) + MIB)

    def test_a_run_takes_pages(self):
        """As many as the plan file says, and a margin of two in a hundred."""
        document, _ = self.sweep()
        for row in document["rows"]:
            options = [] if row["policy"] == "tapeswap" else ["--no-replay"]
            self.assertTrue(row["fits"])
            self.assertGreater(row["run_bytes"], row["peak_bytes"])
            pages = json.loads(
                self.put_out(
                    "plan", self.profile, "--limit", str(row["limit_bytes"]),
                    *options
                )
            )["pages"]
            taken = pages["static_chunks"] * pages["page_bytes"]
            self.assertAlmostEqual(
                row["run_bytes"] / taken, 1 / 0.98, delta=0.001
            )

    def recorded_plan(self, limit, more_resident_bytes=0, recorded=RECORDED):
        """Steps that are said of a recorded one, with more beside it."""
        path = f"{self.folder}/recorded.json"
        profile = json.loads(gzip.decompress(recorded.read_bytes()))
        profile["resident_bytes"] += more_resident_bytes
        with open(path, "w", encoding="utf-8") as file:
            json.dump(profile, file)
        said = subprocess.run(
            [
                TAPESWAP, "plan", path, "-o", "/dev/null", "--no-replay",
                "--limit", limit,
            ],
            capture_output=True, text=True, timeout=120, check=True,
        ).stderr
        by_bytes = re.search(r": step ([0-9.]+) ms", said)
        by_pages = re.search(r"moves whole pages: step ([0-9.]+) ms", said)
        self.assertTrue(by_bytes and by_pages, said)
        return by_bytes, by_pages

    def test_what_others_have_is_not_for_pages(self):
        """With so much more of that under the limit nothing is otherwise."""
        limit, more = 9 << 30, 12 << 30
        _, one = self.recorded_plan(str(limit))
        _, other = self.recorded_plan(str(limit + more), more)
        self.assertAlmostEqual(
            float(other[1]) / float(one[1]), 1, delta=0.02
        )

    def test_copies_wait_where_chunks_are_short(self):
        """ResNet-50's would take 4 % more if the planner had less instead."""
        _, by_pages = self.recorded_plan("40%", recorded=CONVOLUTIONS)
        self.assertLess(float(by_pages[1]), 390)

    def test_plan_says_what_a_run_does(self):
        """Of BERT-Large as recorded, by the run's own search."""
        for limit in "50%", "20%":
            by_bytes, by_pages = self.recorded_plan(limit)
            self.assertGreater(float(by_pages[1]), float(by_bytes[1]))
            self.assertLess(float(by_pages[1]), 1.2 * float(by_bytes[1]))

    def test_what_no_op_uses_has_its_memory(self):
        """Of a profile that tells where values lay."""
        with open(self.profile, encoding="utf-8") as file:
            profile = json.load(file)
        at = 1 << 40
        for value in profile["values"]:
            if "in_place_of" not in value:
                value["address"] = hex(at)
                at += -(-value["size_bytes"] // (2 * MIB)) * 2 * MIB
        path, least = f"{self.folder}/lay.json", []
        block = {"size_bytes": 1024 * MIB, "address": hex(at)}
        for idle in [], [block], [{**block, "died": 0}]:
            profile["idle"] = idle
            with open(path, "w", encoding="utf-8") as file:
                json.dump(profile, file)
            # As far as a run goes: values never freed take more than 100 %.
            document = json.loads(self.put_out("sweep", path, "--json"))
            least.append(document["least_planned_limit_bytes"])
            planned = [r for r in document["rows"] if r["step_ns"]]
            self.assertTrue(planned)
            for row in planned:
                self.assertLessEqual(row["bound_step_ns"], row["step_ns"])
        self.assertEqual(least[1] - least[0], 1024 * MIB)
        self.assertEqual(least[2], least[0])

    def test_baselines_have_no_pages(self):
        document, _ = self.sweep("--policies", "swapadvisor")
        for row in document["rows"]:
            self.assertIsNone(row["run_bytes"])

    def test_replay_is_recommended_where_it_is_asked_for(self):
        without = self.recommended()
        limit = self.recommended("--replay")
        self.assertLess(limit, without)
        _, steps = self.sweep("--replay")
        self.assertEqual({policy for policy, _ in steps}, {"tapeswap"})

    def test_no_plan_is_under_the_bound(self):
        document, _ = self.sweep()
        for row in document["rows"]:
            if row["step_ns"]:
                self.assertLessEqual(row["bound_step_ns"], row["step_ns"])
        # One bound for all plans, whatever the policy may do.
        bounds = {}
        for row in document["rows"]:
            bounds.setdefault(row["limit_bytes"], set()).add(
                row["bound_step_ns"]
            )
        self.assertEqual({len(found) for found in bounds.values()}, {1})

    def test_other_policies_are_no_advice(self):
        out = self.put_out(
            "sweep", self.profile, "--policies", "swapadvisor"
        )
        self.assertNotIn("use: ", out)
        self.assertNotIn("with replay", out)

    def test_bound_says_of_what(self):
        arguments = "bound", self.profile, "--limit", "50%"
        self.assertIn(
            "that plan.json can express", self.put_out(*arguments)
        )
        document = json.loads(self.put_out(*arguments, "--json"))
        self.assertIn(
            "that plan.json can express", document["bound"]["scope"]
        )


if __name__ == "__main__":
    del sys.argv[1]
    unittest.main()
