#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""What training scripts do besides plain steps, each on a small model.

Loss scaling, gradient accumulation, evaluation between steps, checkpointing
and a layer of experts whose sizes depend on data. Prints losses and a digest
for each.
"""

import argparse

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.checkpoint import checkpoint

from common import tokens
from digest import digest

VOCABULARY = 512


class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.up = nn.Linear(width, 4 * width)
        self.down = nn.Linear(4 * width, width)
        self.drop = nn.Dropout(0.1)

    def forward(self, x):
        return x + self.drop(self.down(F.gelu(self.up(self.norm(x)))))


class Experts(nn.Module):
    """Each token goes to the two experts that score highest."""

    def __init__(self, width, experts=4, chosen=2):
        super().__init__()
        self.chosen = chosen
        self.router = nn.Linear(width, experts, bias=False)
        self.experts = nn.ModuleList(Block(width) for _ in range(experts))

    def forward(self, x):
        rows = x.flatten(0, 1)
        weights, picks = self.router(rows).softmax(-1).topk(self.chosen)
        out = torch.zeros_like(rows)
        sizes = []
        for number, expert in enumerate(self.experts):
            row, rank = torch.where(picks == number)
            sizes.append(row.numel())
            out.index_add_(
                0, row, expert(rows[row]) * weights[row, rank, None]
            )
        self.sizes = sizes
        self.limits = picks.min().item(), picks.max().item(), len(rows)
        return out.view_as(x)


class SortedExperts(Experts):
    """The same with tokens sorted by expert, as large mixtures do it."""

    def forward(self, x):
        rows = x.flatten(0, 1)
        weights, picks = self.router(rows).softmax(-1).topk(self.chosen)
        order = picks.flatten().argsort(stable=True)
        counts = picks.flatten().bincount(minlength=len(self.experts))
        row = order // self.chosen
        parts = rows[row].split(counts.tolist())
        out = torch.cat(
            [expert(part) for expert, part in zip(self.experts, parts)]
        )
        out = out * weights.flatten()[order, None]
        self.sizes = counts.tolist()
        self.limits = row.min().item(), row.max().item(), len(rows)
        return torch.zeros_like(rows).index_add_(0, row, out).view_as(x)


class Model(nn.Module):
    def __init__(self, width, layers, again=False, experts=None):
        super().__init__()
        self.again = again
        self.tokens = nn.Embedding(VOCABULARY, width)
        blocks = [Block(width) for _ in range(layers)]
        if experts:
            blocks[1:1] = [experts(width)]
        self.blocks = nn.ModuleList(blocks)
        self.head = nn.Linear(width, VOCABULARY)

    def forward(self, ids):
        x = self.tokens(ids)
        for block in self.blocks:
            if self.again:
                x = checkpoint(block, x, use_reentrant=False)
            else:
                x = block(x)
        logits = self.head(x[:, :-1])
        return F.cross_entropy(logits.flatten(0, 1), ids[:, 1:].flatten())


class Training:
    def __init__(self, args, **model):
        torch.manual_seed(args.seed)
        self.args = args
        self.generator = torch.Generator().manual_seed(args.seed)
        with torch.device("cuda"):
            self.model = Model(args.width, args.layers, **model)
        self.optimizer = torch.optim.AdamW(self.model.parameters())

    def batch(self):
        shape = self.args.batch, self.args.sequence
        return tokens(VOCABULARY, *shape, self.generator)

    def step(self):
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)

    def plain(self):
        loss = self.model(self.batch())
        loss.backward()
        self.step()
        return loss.item()


def plain(args):
    training = Training(args)
    for _ in range(args.steps):
        yield training.plain()
    yield training


def scaled(args):
    """Steps that the scaler skips say so."""
    training = Training(args)
    scaler = torch.amp.GradScaler()
    for _ in range(args.steps):
        with torch.autocast("cuda", dtype=torch.float16):
            loss = training.model(training.batch())
        scaler.scale(loss).backward()
        scaler.unscale_(training.optimizer)
        before = training.model.head.weight._version
        scaler.step(training.optimizer)
        stepped = training.model.head.weight._version > before
        print("stepped", int(stepped), "scale", scaler.get_scale())
        scaler.update()
        training.optimizer.zero_grad(set_to_none=True)
        yield loss.item()
    yield training


def accumulated(args):
    training = Training(args)
    for _ in range(args.steps):
        total = 0.0
        for _ in range(3):
            loss = training.model(training.batch()) / 3
            loss.backward()
            total += loss.item()
        training.step()
        yield total
    yield training


def evaluated(args):
    training = Training(args)
    for _ in range(args.steps):
        yield training.plain()
        training.model.eval()
        with torch.no_grad():
            yield training.model(training.batch()).item()
        training.model.train()
    yield training


def checkpointed(args):
    training = Training(args, again=True)
    for _ in range(args.steps):
        yield training.plain()
    yield training


def mixed(args, experts):
    training = Training(args, experts=experts)
    for _ in range(args.steps):
        yield training.plain()
        layer = training.model.blocks[1]
        print("sizes", *layer.sizes, "limits", *layer.limits)
    yield training


FEATURES = {
    "plain": plain,
    "scaler": scaled,
    "accumulate": accumulated,
    "evaluate": evaluated,
    "checkpoint": checkpointed,
    "experts": lambda args: mixed(args, Experts),
    "sorted-experts": lambda args: mixed(args, SortedExperts),
}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("features", nargs="*", default=list(FEATURES))
    parser.add_argument("--width", type=int, default=64)
    parser.add_argument("--layers", type=int, default=2)
    parser.add_argument("--batch", type=int, default=4)
    parser.add_argument("--sequence", type=int, default=32)
    parser.add_argument("--steps", type=int, default=3)
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    for name in args.features:
        print("feature", name)
        *losses, training = FEATURES[name](args)
        print("losses", *losses)
        print("digest", digest(training.model, training.optimizer))


if __name__ == "__main__":
    main()
