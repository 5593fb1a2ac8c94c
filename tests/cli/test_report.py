#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""`tapeswap report`: one page that needs nothing beside it and says what the
plan says. Usage: test_report.py TAPESWAP.
"""

import json
import re
import subprocess
import sys
import unittest
from html.parser import HTMLParser

from profiled import TAPESWAP, Profiled

VOID = {"meta", "path", "rect"}


class Page(HTMLParser):
    """Elements in their order, with attributes and the text right in them."""

    def __init__(self, text):
        super().__init__()
        self.elements, self.open = [], []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attributes):
        self.elements.append([tag, dict(attributes), ""])
        if tag not in VOID:
            self.open.append(len(self.elements) - 1)

    handle_startendtag = handle_starttag

    def handle_endtag(self, tag):
        if tag in VOID:
            return
        found = self.elements[self.open.pop()][0]
        assert found == tag, f"{found} ends as {tag}"

    def handle_data(self, data):
        if self.open:
            self.elements[self.open[-1]][2] += data

    def all(self, tag):
        return [e for e in self.elements if e[0] == tag]


class Report(Profiled):
    LIMIT = "40%"

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.text = cls.put_out("report", cls.profile, cls.plan_path)
        with open(cls.plan_path, encoding="utf-8") as file:
            cls.planned = json.load(file)

    def test_needs_nothing_beside_it(self):
        page = Page(self.text)
        self.assertEqual(page.open, [])
        for tag, attributes, _ in page.elements:
            self.assertNotIn(tag, ("script", "link", "img", "iframe"))
            self.assertFalse({"src", "href"} & set(attributes), tag)
        self.assertNotIn("url(", self.text)
        self.assertNotIn("@import", self.text)

    def test_decisions_are_those_of_the_plan(self):
        counts = {}
        for decision in self.planned["decisions"]:
            action = decision["action"]
            counts[action] = counts.get(action, 0) + 1
        rows = re.findall(
            r'class="total"><td>(\w+)</td><td>(\d+)</td>', self.text
        )
        self.assertEqual(len(rows), 3)
        for action, count in rows:
            self.assertEqual(int(count), counts.get(action, 0), action)
        self.assertGreater(counts.get("swap", 0) + counts.get("replay", 0), 0)

    def test_memory_stays_below_the_limit(self):
        page = Page(self.text)
        curve, limit = (
            next(e[1]["d"] for e in page.all("path") if e[1]["class"] == name)
            for name in ("memory", "limit")
        )
        heights = [float(y) for y in re.findall(r"V([\d.]+)", curve)]
        line = float(re.match(r"M\d+ ([\d.]+)", limit)[1])
        self.assertGreater(len(heights), 100)
        # Downwards is less.
        self.assertGreaterEqual(min(heights), line - 0.2)
        self.assertLess(min(heights), line + 40)

    def test_memory_of_a_step_ends_as_it_began(self):
        """What leaves comes back, what is dropped is made again."""
        resident = 300 << 20
        with open(self.profile, encoding="utf-8") as file:
            profile = json.load(file)
        profile["resident_bytes"] = resident
        path, plan = f"{self.folder}/resident.json", f"{self.folder}/x.json"
        with open(path, "w", encoding="utf-8") as file:
            json.dump(profile, file)
        for options, made in ([], True), (["--no-replay"], False):
            self.put_out(
                "plan", path, "--limit", "40%", "-o", plan, *options
            )
            trace = json.loads(self.put_out("trace", path, plan))
            with open(plan, encoding="utf-8") as file:
                planned = json.load(file)
            self.assertEqual(bool(planned["replays"]), made)
            used = [
                e["args"]["GiB"] * (1 << 30) for e in trace["traceEvents"]
                if e["ph"] == "C" and e["name"] == "memory"
            ]
            self.assertAlmostEqual(used[0], used[-1], delta=1 << 20)
            self.assertGreaterEqual(min(used), 0.9 * resident)
            self.assertAlmostEqual(
                max(used), planned["predicted"]["peak_bytes"], delta=1
            )

    def test_nothing_is_cut_off(self):
        page = Page(self.text)
        texts = page.all("text")
        self.assertGreater(len(texts), 20)
        for _, attributes, text in texts:
            x, width = float(attributes["x"]), 7 * len(text)
            left = x - width if attributes.get("class") == "end" else x
            self.assertGreaterEqual(left, 0, text)
            self.assertLessEqual(left + width, 1116, text)
        # Numbers have units, and lines say what they are.
        for _, _, text in texts:
            if re.search(r"\d", text):
                self.assertRegex(text, r"\d (ms|[KMG]iB)$")
        said = " ".join(text for _, _, text in texts)
        for words in "by this planner", "bound of any plan", "least limit":
            self.assertIn(words, said)

    def test_timeline_has_compute_and_copies(self):
        rows = {e[1]["class"].split()[0] for e in Page(self.text).all("rect")}
        self.assertIn("lane0", rows)
        self.assertTrue({"lane2", "lane3"} <= rows or "lane1" in rows, rows)

    def test_sweep_begins_at_the_peak(self):
        page = Page(self.text)
        step = next(
            e[1]["d"] for e in page.all("path") if e[1]["class"] == "step"
        )
        self.assertTrue(step.startswith("M1096.0 "), step)
        self.assertGreaterEqual(step.count("L"), 3)

    def test_another_plan_is_refused(self):
        other = f"{self.folder}/other.json"
        self.put_out("workload", "vgg-16", "-o", other)
        done = subprocess.run(
            [TAPESWAP, "report", other, self.plan_path],
            capture_output=True, text=True, timeout=60,
        )
        self.assertEqual(done.returncode, 2)
        self.assertEqual(done.stdout, "")
        self.assertIn("error: ", done.stderr)


if __name__ == "__main__":
    sys.argv = sys.argv[:1]
    unittest.main()
