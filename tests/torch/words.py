# SPDX-License-Identifier: LGPL-2.1-or-later
"""Classes of parameter words against the parameters that the device saw."""

import collections

from operands import Blocks, is_launch
from runner import expect, expect_equal


def pieces(params):
    """Bytes of each word, or None: offsets follow from sizes as a rule."""
    words, offset = [], 0
    for text in params:
        data = bytes.fromhex(text)
        align = next(a for a in (8, 4, 2, 1) if len(data) % a == 0)
        offset += -offset % align
        at = 0
        while at < len(data):
            size = min(8 - (offset + at) % 8, len(data) - at)
            words.append(data[at : at + size])
            at += size
        offset += len(data)
    return words


def same(launch, other):
    return all(launch[key] == other[key] for key in ("name", "grid", "block"))


def compare(profile, trace):
    """Each launch of the step in the file, and the same one a step before."""
    counts, wrong = collections.Counter(), []
    blocks = Blocks(profile["values"])
    run = profile["run"]
    first, length = run["first_launch"], run["launches"]
    now = iter(trace[first : first + length])
    before = iter(trace[first - length : first])
    for index, op in enumerate(profile["ops"]):
        if not is_launch(profile, op):
            continue
        launch, earlier = next(now), next(before)
        signature = profile["signatures"][op["signature"]]
        words = pieces(launch["params"])
        counts["launches"] += 1
        if len(words) != len(op.get("words", "")) or not same(launch, earlier):
            counts["other"] += 1
            continue
        varying = False
        for letter, word, was in zip(
            op["words"], words, pieces(earlier["params"])
        ):
            counts[letter] += 1
            value = int.from_bytes(word, "little")
            inside = len(word) == 8 and blocks.find(value, index) is not None
            varying |= letter == "v" and not inside
            if letter == "c" and word != was:
                wrong.append((index, signature["function"], "is no constant"))
            if letter == "p" and not inside:
                wrong.append((index, signature["function"], "is no pointer"))
            if letter != "v" and inside != (letter == "p"):
                wrong.append((index, signature["function"], letter, "inside"))
        if "dropout" in signature["name"]:
            counts["dropouts"] += 1
            if not varying:
                wrong.append((index, signature["function"], "has no offset"))
    return counts, wrong


def check(profile, trace, dropout=False):
    counts, wrong = compare(profile, trace)
    expect_equal(wrong, [], "words")
    expect(counts["p"] > 200 and counts["c"] > 500, f"words {counts}")
    expect(counts["other"] < 0.2 * counts["launches"], f"words {counts}")
    expect(counts["dropouts"] > 0 or not dropout, f"dropouts {counts}")
