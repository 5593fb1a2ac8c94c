#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Trains the GPT of scripts/examples/train_gpt.py, and does something else.

Usage: changing.py HOW BEFORE OTHER AFTER [ARGUMENTS of train_gpt.py]

BEFORE plain steps, OTHER ones that differ, AFTER plain ones again:
lengths     the other ones have half the sequence length
alternate   every second step of all that follow has half the length
skipped     the optimizer's step is skipped, as a gradient scaler does
exception   the forward pass stops in the middle, and is tried again
accumulate  four micro-batches instead of one
second      another model is trained beside this one from then on
"""

import importlib.util
import pathlib
import sys

import torch
import torch.nn as nn

SCRIPT = pathlib.Path(__file__).parents[3] / "scripts/examples/train_gpt.py"


def load():
    spec = importlib.util.spec_from_file_location("train_gpt", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class Stop(Exception):
    """What stops a forward pass."""


class Training:
    """A model, its optimizer and its text."""

    def __init__(self, gpt, args):
        self.args = args
        self.gpt = gpt
        self.device = torch.device("cuda")
        torch.manual_seed(args.seed)
        self.model = gpt.GPT(args).to(self.device)
        self.optimizer = torch.optim.AdamW(
            self.model.parameters(), lr=args.lr
        )
        self.text = gpt.Text(args, args.seed + 1)

    def forward(self, length):
        ids, targets = self.text.batch(self.device)
        return self.model(ids[:, :length], targets[:, :length])

    def step(self, length=None, accumulate=1, skip=False):
        length = length or self.args.sequence
        total = 0.0
        for _ in range(accumulate):
            loss = self.forward(length)
            (loss / accumulate).backward()
            total += loss.item() / accumulate
        nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
        if not skip:
            self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)
        return total

    def broken_step(self):
        def stop(*_):
            raise Stop

        middle = self.model.blocks[len(self.model.blocks) // 2]
        handle = middle.register_forward_hook(stop)
        try:
            self.step()
        except Stop:
            print("stopped", flush=True)
        finally:
            handle.remove()
        return self.step()


def main():
    how, counts = sys.argv[1], [int(n) for n in sys.argv[2:5]]
    del sys.argv[1:5]
    gpt = load()
    args = gpt.parse()
    half = args.sequence // 2
    training, second = Training(gpt, args), None
    done = 0

    def plain():
        return training.step()

    def other(number):
        nonlocal second
        if how == "lengths":
            return training.step(length=half)
        if how == "alternate":
            return training.step(length=half if number % 2 else None)
        if how == "skipped":
            return training.step(skip=True)
        if how == "exception":
            return training.broken_step()
        if how == "accumulate":
            return training.step(accumulate=4)
        if how != "second":
            sys.exit(f"changing.py: error: what is '{how}'?")
        second = second or Training(gpt, args)
        return training.step() + second.step()

    for count, kind in zip(counts, ("plain", "other", "plain")):
        for number in range(count):
            done += 1
            timer = gpt.StepTimer(training.device)
            loss = plain() if kind == "plain" else other(number)
            print(f"step {done:4d}  {kind}  loss {loss:.6f}{timer}", flush=True)
    if args.digest:
        from digest import digest

        print("digest", digest(training.model, training.optimizer))


if __name__ == "__main__":
    main()
