#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Leaves one live block in each segment, then wants a large one.

A block of 100 MiB is given back and its place shared by two others: while one
of them lives, PyTorch cannot give the segment back. With --small blocks of
4 MiB share segments of 20 MiB, and one in each stays, in any place.
"""

import sys

import torch

from common import report

MIB = 1 << 20
SEGMENTS = 9
SMALL_SEGMENTS = 42


def block(mebibytes):
    return torch.ones(mebibytes * MIB // 4, device="cuda")


def small():
    blocks = [block(4) for _ in range(5 * SMALL_SEGMENTS)]
    kept = [blocks[5 * i + i % 5] for i in range(SMALL_SEGMENTS)]
    del blocks
    large = block(640)
    report(1, sum(each[0] for each in kept) + large[-1])


def main():
    kept, rest = [], []
    for _ in range(SEGMENTS):
        block(100)
        kept.append(block(12))
        rest.append(block(88))
    del rest
    large = block(400)
    report(1, sum(each[0] for each in kept) + large[-1])


if __name__ == "__main__":
    small() if "--small" in sys.argv else main()
