# SPDX-License-Identifier: LGPL-2.1-or-later
"""The profile's reads and writes against the accesses that the device saw."""

import bisect
import collections

from runner import expect, expect_equal

FOREVER = 1 << 60


class Blocks:
    """Which block of the profile an address lies in while an op runs."""

    def __init__(self, values):
        lives = {
            value["block"]: (
                int(value["address"], 16),
                int(value["address"], 16) + value["size_bytes"],
                value.get("born", -1),
                value.get("died", FOREVER),
            )
            for value in values
        }
        self.lives = sorted((life, block) for block, life in lives.items())
        self.starts = [life[0] for life, _ in self.lives]

    def find(self, address, op):
        at = bisect.bisect_right(self.starts, address)
        for (start, end, born, died), block in reversed(self.lives[:at]):
            if start <= address < end and born <= op < died:
                return block
        return None


def is_launch(profile, op):
    name = profile["signatures"][op["signature"]]["function"]
    return not name.startswith(("Memcpy", "Memset", "GraphLaunch"))


def compare(profile, trace):
    """Counts of operands: wanted, found, missed... and the worst kernels."""
    counts, worst = collections.Counter(), collections.Counter()
    values, blocks = profile["values"], Blocks(profile["values"])
    launches = iter(trace[profile["run"]["first_launch"] :])
    for index, op in enumerate(profile["ops"]):
        if not is_launch(profile, op):
            continue
        seen = next(launches)
        signature = profile["signatures"][op["signature"]]
        expect_equal(signature["grid"], seen["grid"], f"grid of op {index}")
        if not seen["known"]:
            counts["unknown"] += 1
            continue
        reads = {values[value]["block"] for value in op["reads"]}
        writes = {values[value]["block"] for value in op["writes"]}
        touched, written, maybe = set(), set(), set()
        for access in seen["accesses"]:
            block = blocks.find(access["va"], index)
            if not access["certain"]:
                maybe.add(block)
                continue
            touched.add(block)
            if access["write"]:
                written.add(block)
        found = reads | writes
        differences = {
            "missed": touched - found,
            "spurious": found - touched - maybe,
            "writes missed": written - writes,
            "writes invented": writes - written - maybe,
        }
        counts["wanted"] += len(touched)
        counts["found"] += len(found)
        counts["written"] += len(written)
        for what, items in differences.items():
            counts[what] += len(items)
            if items:
                worst[what, signature["function"]] += len(items)
    return counts, worst.most_common(6)


def check(profile, trace):
    counts, worst = compare(profile, trace)
    expect(counts["wanted"] > 300, f"operands {counts}")
    expect_equal(counts["missed"], 0, f"operands missed ({worst})")
    expect(
        counts["spurious"] <= 0.01 * counts["found"],
        f"spurious uses {counts}, {worst}",
    )
    expect_equal(counts["writes missed"], 0, f"writes missed ({worst})")
    expect(
        counts["writes invented"] <= 0.01 * counts["written"],
        f"writes invented {counts}, {worst}",
    )
