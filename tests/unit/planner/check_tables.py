# SPDX-License-Identifier: LGPL-2.1-or-later
"""`tapeswap tables --json` against the numbers that the paper prints."""
import json
import subprocess
import sys
import unittest

TOOL = sys.argv.pop(1)

# Relative tolerance by policy where Table 2 gives a step time.
STEP = {
    "vdnn": 0.03,
    "superneurons": 0.08,
    "swapadvisor": 0.01,
    "checkpoint": 0.01,
    "tapeswap": 0.01,
}


class Tables(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        done = subprocess.run(
            [TOOL, "tables", "--json"], check=True, stdout=subprocess.PIPE
        )
        cls.rows = json.loads(done.stdout)["rows"]

    def select(self, table, **wanted):
        rows = [
            row
            for row in self.rows
            if row["table"] == table
            and row["paper"] is not None
            and all(row[key] == value for key, value in wanted.items())
        ]
        self.assertTrue(rows, (table, wanted))
        return rows

    def test_table1_to_rounding(self):
        digits = {"saved_gb": 1}
        for row in self.select("table1"):
            with self.subTest(row=row):
                self.assertEqual(
                    round(row["ours"], digits.get(row["metric"], 0)),
                    row["paper"],
                )

    def test_table2_steps(self):
        for row in self.select("table2", metric="step_ratio"):
            with self.subTest(row=row):
                self.assertLessEqual(
                    abs(row["ours"] / row["paper"] - 1), STEP[row["policy"]]
                )

    def test_table3_is_met(self):
        for row in self.select("table3", policy="tapeswap"):
            with self.subTest(row=row):
                self.assertGreaterEqual(round(row["ours"], 1), row["paper"])
                self.assertLessEqual(row["ours"], row["bound"] + 0.005)

    def test_figures_within_five_percent(self):
        rows = self.select("figure3") + self.select("figure5")
        rows += [r for r in self.select("figure6a") if r["paper"]]
        rows += self.select("figure6b", metric="hideable_percent")
        for row in rows:
            with self.subTest(row=row):
                self.assertLessEqual(abs(row["ours"] / row["paper"] - 1), 0.05)

    def test_planner_is_the_top_curve_of_figure4(self):
        best = {}
        for row in self.rows:
            if row["table"] != "figure4" or row["ours"] is None:
                continue
            key = (row["workload"], row["limit_percent"])
            best.setdefault(key, {})[row["policy"]] = row["ours"]
        self.assertGreater(len(best), 50)
        for key, policies in best.items():
            with self.subTest(key=key):
                self.assertGreaterEqual(
                    policies["tapeswap"] + 1e-9, max(policies.values())
                )


if __name__ == "__main__":
    unittest.main()
