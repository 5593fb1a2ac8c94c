#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Trains the GPT of scripts/examples/train_gpt.py on texts of many lengths.

Usage: lengths.py LEAST MOST STRIDE [ARGUMENTS of train_gpt.py]

Each step's length is drawn from LEAST to MOST, in steps of STRIDE; --sequence
is the most there may be. Of "A,B" A holds for the first half of the steps and B
from then on.
"""

import random
import sys

from changing import Training, load


def main():
    least, most, stride = sys.argv[1:4]
    del sys.argv[1:4]
    gpt = load()
    args = gpt.parse()
    training = Training(gpt, args)
    draw = random.Random(args.seed)
    ranges = [
        range(int(a), int(b) + 1, int(stride))
        for a, b in zip(least.split(","), most.split(","))
    ]
    for step in range(1, args.steps + 1):
        length = draw.choice(ranges[(step - 1) * len(ranges) // args.steps])
        timer = gpt.StepTimer(training.device)
        loss = training.step(length=length)
        print(
            f"step {step:4d}  length {length}  loss {loss:.6f}{timer}",
            flush=True,
        )
    if args.digest:
        from digest import digest

        print("digest", digest(training.model, training.optimizer))


if __name__ == "__main__":
    main()
