#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""`tapeswap plan --tokens`: one plan for all steps of a bucket.

Usage: test_tokens.py TAPESWAP
"""

import json
import os
import shutil
import subprocess
import sys
import tempfile
import unittest

TAPESWAP = os.path.abspath(sys.argv[1])
LIMIT = "6GiB"
STATE = 64 << 20


class Tokens(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.mkdtemp()
        cls.addClassCleanup(shutil.rmtree, cls.folder)
        cls.profile = f"{cls.folder}/profile.json"
        done = subprocess.run(
            [
                TAPESWAP, "workload", "bert-large", "--batch", "16", "-o",
                cls.profile
            ],
            capture_output=True,
            text=True,
            timeout=60,
        )
        assert done.returncode == 0, done.stderr
        with open(cls.profile, encoding="utf-8") as file:
            cls.document = json.load(file)
        cls.tokens = cls.document["tokens"]

    def run_plan(self, *options, profile=None, limit=LIMIT):
        return subprocess.run(
            [
                TAPESWAP, "plan", profile or self.profile, "--limit", limit,
                "--search", "0", *options
            ],
            capture_output=True,
            text=True,
            timeout=60,
        )

    def plan(self, *options, **settings):
        done = self.run_plan(*options, **settings)
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout)

    def write(self, name, **changes):
        path = f"{self.folder}/{name}.json"
        with open(path, "w", encoding="utf-8") as file:
            json.dump({**self.document, **changes}, file)
        return path

    def test_the_profile_tells_tokens(self):
        self.assertEqual(self.tokens, 16 * 512)

    def test_all_of_a_bucket_share_a_plan(self):
        plans = {}
        for tokens in range(self.tokens, 2 * self.tokens, 128):
            done = self.run_plan("--tokens", str(tokens))
            self.assertEqual(done.returncode, 0, done.stderr)
            plans.setdefault(done.stdout, []).append(tokens)
        # Edges are a tenth apart: eight in a doubling, and the rest of one.
        self.assertIn(len(plans), (7, 8, 9))
        for text, counts in plans.items():
            self.assertEqual(counts, sorted(counts))
            self.assertLess(counts[-1] / counts[0], 1.11)
            # It is for at least as many as any of them.
            peak = json.loads(text)["unlimited"]["peak_bytes"]
            own = self.plan(limit="100%")["unlimited"]["peak_bytes"]
            self.assertGreaterEqual(
                peak, own * counts[-1] // self.tokens
            )

    def test_more_tokens_take_more(self):
        plan = self.plan()
        longer = self.plan("--tokens", str(self.tokens * 3 // 2))
        for total, key in (("unlimited", "peak_bytes"), ("unlimited",
                           "step_ns"), ("predicted", "step_ns")):
            with self.subTest(total=total, key=key):
                times = longer[total][key] / plan[total][key]
                self.assertGreater(times, 1.5)
                self.assertLess(times, 1.5 * 1.1 + 0.3)
        self.assertLessEqual(
            longer["predicted"]["peak_bytes"], longer["limit_bytes"]
        )
        swapped = [
            sum(x["action"] != "keep" for x in p["decisions"])
            for p in (plan, longer)
        ]
        self.assertGreater(swapped[1], swapped[0])

    def test_optimizer_state_does_not_grow(self):
        """One more value that lives on adds its bytes, and no more."""
        values = self.document["values"] + [
            {"size_bytes": STATE, "kind": "optimizer", "persistent": True}
        ]
        path = self.write("state", values=values)
        options = "--tokens", str(self.tokens * 3 // 2)
        with_it, without = (
            self.plan(*options, profile=p, limit="100%")
            for p in (path, self.profile)
        )
        self.assertEqual(
            with_it["unlimited"]["peak_bytes"],
            without["unlimited"]["peak_bytes"] + STATE,
        )

    def test_beyond_twice_it_asks_for_another_profile(self):
        done = self.run_plan("--tokens", str(self.tokens * 3 // 2))
        self.assertNotIn("more than twice", done.stderr)
        done = self.run_plan(
            "--tokens", str(self.tokens * 2 + 1), limit="20GiB"
        )
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("more than twice", done.stderr)

    def test_what_is_refused(self):
        mute = self.write("mute", tokens=0)
        for profile, tokens, words in (
            (mute, "100", "does not say"),
            (self.profile, "0", "cannot read '0'"),
            (self.profile, "many", "cannot read 'many'"),
            (self.profile, "5x", "cannot read '5x'"),
            (self.profile, str(10**14), "too many"),
        ):
            with self.subTest(tokens=tokens, profile=profile):
                done = self.run_plan("--tokens", tokens, profile=profile)
                self.assertEqual(done.returncode, 2)
                self.assertIn(words, done.stderr)
                self.assertEqual(done.stdout, "")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
