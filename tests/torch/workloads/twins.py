#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Processor time of training steps with the agent off and on, by turns.

What is imported is imported once; then this process, which has started no
device, forks pairs of twins. They have the same memory at the same addresses
and the same order in every set and dictionary: TAPESWAP_MODE is what they
differ by. One JSON line a pair: milliseconds of the steps of either.
"""

import argparse
import json
import os
import sys
import time

import torch

from common import tokens
from language_model import MODELS

MODES = "off", "observe"
WARM_TURNS = 4
GO = "go\n"


def trainer(name):
    """A function that makes one step."""
    kind, config, dtype, batch, sequence = MODELS[name]
    torch.manual_seed(1)
    config.use_cache = False
    torch.set_default_dtype(dtype)
    with torch.device("cuda"):
        model = kind(config)
    torch.set_default_dtype(torch.float32)
    model.train()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
    generator = torch.Generator().manual_seed(1)

    def step():
        ids = tokens(config.vocab_size, batch, sequence, generator)
        with torch.autocast("cuda", dtype=torch.bfloat16):
            loss = model(input_ids=ids, labels=ids).loss
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        loss.item()

    return step


def live(args, mode, orders, answers):
    """A twin's: makes steps when it is told to, and tells what each took."""
    os.environ["TAPESWAP_MODE"] = mode
    step = trainer(args.model)
    while orders.readline() == GO:
        took = []
        for _ in range(args.pace):
            started = time.process_time()
            step()
            took.append(1e3 * (time.process_time() - started))
        print(json.dumps(took), file=answers, flush=True)


class Twin:
    def __init__(self, args, mode):
        theirs, self.orders = (os.fdopen(f, m) for f, m in zip(os.pipe(), "rw"))
        self.answers, mine = (os.fdopen(f, m) for f, m in zip(os.pipe(), "rw"))
        self.pid = os.fork()
        if not self.pid:
            self.orders.close()
            self.answers.close()
            live(args, mode, theirs, mine)
            sys.exit(0)
        theirs.close()
        mine.close()

    def turn(self):
        self.orders.write(GO)
        self.orders.flush()
        return json.loads(self.answers.readline())

    def end(self):
        # The younger twin has this end open too: closing it tells nothing.
        self.orders.write("end\n")
        self.orders.close()
        self.answers.close()
        return os.waitpid(self.pid, 0)[1]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("model", choices=MODELS)
    parser.add_argument("--pairs", type=int, default=7)
    parser.add_argument("--turns", type=int, default=40)
    parser.add_argument("--pace", type=int, default=6)
    args = parser.parse_args()
    for _ in range(args.pairs):
        twins = {mode: Twin(args, mode) for mode in MODES}
        took = {mode: [] for mode in MODES}
        for turn in range(WARM_TURNS + args.turns):
            for mode in MODES if turn % 2 else MODES[::-1]:
                # The first step of a turn finds the caches as others left them.
                steps = twins[mode].turn()[1:]
                took[mode] += steps if turn >= WARM_TURNS else []
        ends = [twin.end() for twin in twins.values()]
        if any(ends):
            sys.exit(f"twins ended with {ends}")
        print(json.dumps(took), flush=True)


if __name__ == "__main__":
    main()
