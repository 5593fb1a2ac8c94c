#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Bad profiles and plans given to the command: a path, and exit status 2.

Usage: test_directed.py TAPESWAP
"""

import copy
import json
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

TAPESWAP = sys.argv[1]
BIG = 2**32 - 2


def profile(n_ops=4):
    """A chain: op i reads value i and writes value i + 1."""
    return {
        "schema": "tapeswap-profile",
        "schema_version": "1.0",
        "device": {
            "d2h_bytes_per_s": 10**10,
            "h2d_bytes_per_s": 10**10,
        },
        "signatures": [{"name": "layer", "class": "gemm"}],
        "values": [
            {"size_bytes": 1 << 22, "kind": "activation"}
            for _ in range(n_ops + 1)
        ],
        "ops": [
            {
                "signature": 0,
                "duration_ns": 1000,
                "reads": [i],
                "writes": [i + 1],
            }
            for i in range(n_ops)
        ],
    }


def set_at(document, path, value):
    *way, last = path
    for key in way:
        document = document[key]
    document[last] = value


class Directed(unittest.TestCase):
    def run_tool(self, *arguments):
        return subprocess.run(
            [TAPESWAP, *map(str, arguments)],
            capture_output=True,
            timeout=120,
        )

    def refused(self, text, path=None, command=None):
        """The file is refused with a path that begins with @path."""
        with tempfile.TemporaryDirectory() as folder:
            file = pathlib.Path(folder, "input")
            file.write_bytes(text if isinstance(text, bytes) else text.encode())
            command = command or (lambda f: ("bound", "--limit", "50%", f))
            done = self.run_tool(*command(file))
        said = done.stderr.decode(errors="replace")
        self.assertEqual(done.returncode, 2, said)
        self.assertEqual(done.stdout, b"")
        found = re.search(r": (\$[^:]*): ", said)
        self.assertTrue(found, said)
        if path is not None:
            self.assertEqual(found.group(1), path)

    def test_the_chain_itself_is_accepted(self):
        with tempfile.NamedTemporaryFile("w") as file:
            json.dump(profile(), file)
            file.flush()
            done = self.run_tool("bound", "--limit", "100%", file.name)
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_inconsistent(self):
        cases = {
            "$.ops[1].reads[0]": (("ops", 1, "reads"), [99]),
            "$.ops[1].reads": (("ops", 1, "reads"), "all"),
            "$.ops[1]": (("ops", 1, "signature"), 7),
            "$.ops[2].duration_ns": (("ops", 2, "duration_ns"), -1),
            "$.values[0].size_bytes": (("values", 0, "size_bytes"), 1.5),
            "$.values[1].kind": (("values", 1, "kind"), "colour"),
            "$.values[1].address": (("values", 1, "address"), "0xz"),
            "$.device": (("device", "d2h_bytes_per_s"), 0),
            "$.schema": (("schema",), "tapeswap-plan"),
            "$.schema_version": (("schema_version",), "2.0"),
            "$.values": (("values",), {}),
        }
        for path, (way, value) in cases.items():
            document = profile()
            set_at(document, way, value)
            with self.subTest(path):
                self.refused(json.dumps(document), path)

    def test_cyclic(self):
        for chain in ([(1, 1)], [(1, 2), (2, 1)], [(1, 2), (2, 3), (3, 1)]):
            document = profile()
            for value, older in chain:
                document["values"][value]["in_place_of"] = older
            with self.subTest(chain=chain):
                self.refused(json.dumps(document))
        document = profile()
        document["ops"][0]["reads"] = [4]
        self.refused(json.dumps(document))
        document["ops"][0]["reads"] = [1]
        self.refused(json.dumps(document))
        document = profile()
        document["ops"][1]["writes"] = [1]
        self.refused(json.dumps(document))
        document = profile()
        for a, b in (1, 2), (2, 1):
            document["values"][a]["rebuild"] = {
                "duration_ns": 1,
                "reads": [b],
            }
        self.refused(json.dumps(document))

    def test_huge(self):
        cases = [
            (("values", 0, "size_bytes"), 2**63 - 1),
            (("values", 0, "size_bytes"), 2**70),
            (("values", 0, "signature"), 2**40),
            (("values", 0, "address"), "0xffffffffffffffff"),
            (("ops", 0, "duration_ns"), 2**62),
            (("ops", 0, "reads"), [BIG]),
            (("device", "h2d_bytes_per_s"), 2**60),
            (("name",), "x" * 5000),
        ]
        for way, value in cases:
            document = profile()
            set_at(document, way, value)
            with self.subTest(way=way):
                self.refused(json.dumps(document))
        long = profile(16384)
        for op in long["ops"]:
            op["duration_ns"] = 2**50
        self.refused(json.dumps(long), "$.ops[1]")
        self.refused("[" * 100000)
        self.refused('{"a":' * 50000)

    def plan(self, document, limit):
        """The plan that is made of a profile, as JSON."""
        with tempfile.TemporaryDirectory() as folder:
            tape = pathlib.Path(folder, "tape")
            tape.write_text(json.dumps(document))
            made = pathlib.Path(folder, "plan")
            done = self.run_tool("plan", tape, "--limit", limit, "-o", made)
            self.assertEqual(done.returncode, 0, done.stderr)
            return json.loads(made.read_text())

    def test_gaps_that_wrap_are_offered_once(self):
        """Those of parameters are open when the step begins already."""
        n = 100
        document = profile(0)
        document["signatures"][0]["replayable"] = False
        document["device"] |= {"d2h_bytes_per_s": 10**6}
        document["device"] |= {"h2d_bytes_per_s": 10**6}
        document["values"] = [
            {"size_bytes": 4 << 20, "kind": "parameter", "persistent": True}
            for _ in range(n)
        ] + [{"size_bytes": 2000 << 20, "kind": "activation"}]
        uses = [([i], []) for i in range(n)]
        uses += [([], [n]), ([n], []), ([], []), ([], [])]
        document["ops"] = [
            {
                "signature": 0,
                "duration_ns": 10**6,
                "reads": reads,
                "writes": writes,
            }
            for reads, writes in uses
        ]
        plan = self.plan(document, "2200MiB")
        self.assertLessEqual(plan["predicted"]["peak_bytes"], 2200 << 20)
        # 2,400 MiB live at the peak, so 200 MiB must be away then.
        self.assertGreaterEqual(len(plan["decisions"]), 50)

    def test_bound_where_a_replay_serves_another(self):
        """
        Value 2 is made again for value 3, before value 1, which it is made
        of, dies: that takes 1 ms, at its own next use it would take 101.
        """
        mib = 1 << 20
        document = profile(0)
        document["device"] |= {"d2h_bytes_per_s": 10**6}
        document["device"] |= {"h2d_bytes_per_s": 10**6}
        document["signatures"] = [
            {"name": "layer", "class": "gemm", "replayable": True},
            {"name": "other", "class": "other", "replayable": False},
        ]
        document["values"] = [
            {"size_bytes": size * mib, "kind": kind}
            for size, kind in (
                (1, "input"),
                (1, "activation"),
                (100, "activation"),
                (100, "activation"),
                (200, "activation"),
            )
        ]
        ms = 10**6
        document["ops"] = [
            {
                "signature": signature,
                "duration_ns": duration,
                "reads": reads,
                "writes": writes,
            }
            for signature, duration, reads, writes in (
                (0, 100 * ms, [0], [1]),
                (0, ms, [1], [2]),
                (0, ms, [2], [3]),
                (1, ms, [], [4]),
                (1, ms, [4], []),
                (1, ms, [3], []),
                (1, ms, [1], []),
                (1, ms, [2, 0], []),
            )
        ]
        plan = self.plan(document, "202MiB")
        self.assertLessEqual(
            plan["bound"]["step_ns"], plan["predicted"]["step_ns"]
        )

    def test_small_values_that_matter_together(self):
        """Large values where the peak is, many small ones elsewhere."""
        mib, ms = 1 << 20, 10**6
        document = profile(0)
        document["signatures"] = [
            {"name": "layer", "class": "gemm", "replayable": True},
            {"name": "other", "class": "other", "replayable": False},
        ]
        values = document["values"] = [{"size_bytes": mib, "kind": "input"}]
        ops = document["ops"] = []

        def value(size):
            values.append({"size_bytes": size, "kind": "activation"})
            return len(values) - 1

        def op(signature, ns, reads, writes=()):
            ops.append(
                {
                    "signature": signature,
                    "duration_ns": ns,
                    "reads": list(reads),
                    "writes": list(writes),
                }
            )

        def produce(count, size, ns):
            made = [value(size) for _ in range(count)]
            for one in made:
                op(0, ns, [0], [one])
            return made

        large = produce(12, 100 * mib, 1000)
        op(1, ms, [])
        for one in large:
            op(1, 1000, [one])
        dear = produce(5, 100 * mib, 50 * ms)
        small = produce(600, mib, 1000)
        op(1, ms, [])
        op(1, 1000, [0])
        for one in small + dear + [0]:
            op(1, 1000, [one])
        policies = "tapeswap,two-pass,recompute-only,swap-first,lru,vdnn-all"
        with tempfile.TemporaryDirectory() as folder:
            tape = pathlib.Path(folder, "tape")
            tape.write_text(json.dumps(document))
            done = self.run_tool(
                "sweep",
                tape,
                "--limits",
                "20%:60%:10%",
                "--policies",
                policies,
                "--json",
            )
        self.assertEqual(done.returncode, 0, done.stderr)
        rows = json.loads(done.stdout)["rows"]
        for limit in {row["limit_bytes"] for row in rows}:
            plan = self.plan(document, str(limit))
            for row in rows:
                if row["limit_bytes"] == limit and row["fits"]:
                    with self.subTest(limit=limit, policy=row["policy"]):
                        self.assertLessEqual(
                            plan["predicted"]["step_ns"], row["step_ns"]
                        )

    def test_what_may_not_be_replayed_is_not(self):
        """By value, as a proof refuses them one by one; others still are."""
        document = profile(8)
        document["signatures"][0]["replayable"] = True
        document["ops"] += [
            {"signature": 0, "duration_ns": 1000, "reads": [k], "writes": []}
            for k in (6, 5, 4, 3, 2, 1, 0)
        ]

        def replayed():
            plan = self.plan(document, "65%")
            values = {replay["value"] for replay in plan["replays"]}
            for decision in plan["decisions"]:
                if decision["action"] == "replay":
                    self.assertIn(decision["value"], values)
            return values

        free = replayed()
        self.assertTrue(free)
        refused = min(free)
        document["values"][refused]["replayable"] = False
        self.assertNotIn(refused, replayed())
        for value in document["values"]:
            value["replayable"] = False
        self.assertEqual(replayed(), set())

    def test_replays_that_the_decisions_do_not_ask_for(self):
        """Missing, in another order, too many: a plan must say them all."""
        document = profile(8)
        document["signatures"][0]["replayable"] = True
        document["ops"] += [
            {"signature": 0, "duration_ns": 1000, "reads": [k], "writes": []}
            for k in (6, 4, 2, 0)
        ]
        plan = self.plan(document, "65%")
        self.assertGreaterEqual(len(plan["replays"]), 2)
        with tempfile.TemporaryDirectory() as folder:
            tape = pathlib.Path(folder, "tape")
            tape.write_text(json.dumps(document))
            for path, replays in (
                ("$.replays", []),
                ("$.replays", plan["replays"][:-1]),
                ("$.replays", plan["replays"] + plan["replays"][-1:]),
                ("$.replays[0]", plan["replays"][1:] + plan["replays"][-1:]),
            ):
                bad = dict(plan, replays=replays)
                with self.subTest(path, n=len(replays)):
                    self.refused(
                        json.dumps(bad),
                        path,
                        lambda f: ("simulate", tape, f),
                    )

    def test_malformed_and_truncated(self):
        text = json.dumps(profile())
        for cut in range(0, len(text) - 1, 37):
            self.refused(text[:cut], "$")
        for text in b"", b"\0" * 100, b"\x1f\x8b\x08", b"\xff\xfe{", b"null":
            self.refused(text, "$")

    def test_plans(self):
        with tempfile.TemporaryDirectory() as folder:
            tape = pathlib.Path(folder, "tape")
            tape.write_text(json.dumps(profile()))
            made = pathlib.Path(folder, "plan")
            done = self.run_tool(
                "plan", tape, "--limit", "100%", "-o", made
            )
            self.assertEqual(done.returncode, 0, done.stderr)
            plan = json.loads(made.read_text())
            plan["decisions"] = [
                {
                    "value": 1,
                    "action": "swap",
                    "from_op": 1,
                    "to_op": 3,
                    "prefetch_op": 2,
                    "due_op": 3,
                }
            ]
            cases = {
                "$.limit_bytes": (("limit_bytes",), 2**62),
                "$.n_ops": (("n_ops",), 9),
                "$.decisions[0].value": (("decisions", 0, "value"), BIG),
                "$.decisions[0].to_op": (("decisions", 0, "to_op"), 1),
                "$.decisions[0].due_op": (("decisions", 0, "due_op"), 0),
                "$.decisions[0]": (("decisions", 0, "value"), 1),
                "$.replays": (("replays",), None),
            }
            for path, (way, value) in cases.items():
                bad = copy.deepcopy(plan)
                set_at(bad, way, value)
                with self.subTest(path):
                    self.refused(
                        json.dumps(bad),
                        path,
                        lambda f: ("simulate", tape, f),
                    )


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
