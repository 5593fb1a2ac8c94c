#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""shifted.py SEED SCRIPT ARGUMENT...: the script with unused tensors in front.

Their sizes, their order and which of them are freed again follow from the
seed; nothing is ever written to them.
"""

import os
import random
import runpy
import sys

import torch


def clutter(seed):
    """Tensors to be kept as long as the script runs."""
    chance = random.Random(seed)
    sizes = [chance.choice((100, 5000, 300_000, 3_000_000, 30_000_000))
             for _ in range(40)]
    tensors = [
        torch.empty(size, dtype=torch.uint8, device="cuda") for size in sizes
    ]
    chance.shuffle(tensors)
    return tensors[:20]


def main():
    kept = clutter(int(sys.argv[1]))
    sys.argv = sys.argv[2:]
    sys.path.insert(0, os.path.dirname(sys.argv[0]))
    runpy.run_path(sys.argv[0], run_name="__main__")
    del kept


if __name__ == "__main__":
    main()
