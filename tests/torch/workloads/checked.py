#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Trains a net whose backward looks whether activations are what they were.

Usage: checked.py [--library FILE] KIND...

Each layer has, beside a product and a dropout, what KIND names:
  norm     batch norm, which keeps statistics
  inplace  an addition and a ReLU in place, one upon the other
  leaf     a gate made from what is changed before the backward reads the gate
  atomics  rows that are added up by index_put, and an embedding
  hidden   a product whose addresses stand in tables on the device (--library)
  added    one that is added to what is there
  together what all ranks add up, by NCCL, of which there is one
  random   a GELU, for SIMGPU_UNSTABLE to make another thing of at each launch
What is printed of a step says whether all was the same. An activation that was
made again wrongly is not.
"""

import argparse
import ctypes

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch import distributed

import common

KINDS = (
    "norm", "inplace", "leaf", "atomics", "hidden", "added", "together",
    "random",
)
GROUP, SIDE = 4, 512


def digest(x):
    return x.sum().item()


class Look(torch.autograd.Function):
    """Remembers what a tensor held, and compares in the backward."""

    @staticmethod
    def forward(ctx, x, seen):
        ctx.save_for_backward(x)
        ctx.seen, ctx.was = seen, digest(x)
        return x.view_as(x)

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        ctx.seen.append(digest(x) == ctx.was)
        return grad, None


class Grouped(torch.autograd.Function):
    """Products of a group of matrices, by a library that is told of tables."""

    library = None

    @staticmethod
    def table(x):
        return torch.arange(
            x.data_ptr(),
            x.data_ptr() + x.nbytes,
            x.nbytes // GROUP,
            device="cuda",
        )

    @staticmethod
    def forward(ctx, x, weight, adds):
        y = x.clone() if adds else torch.empty_like(x)
        tables = [Grouped.table(each) for each in (x, weight, y)]
        status = Grouped.library.wild_grouped(
            *(ctypes.c_void_p(table.data_ptr()) for table in tables),
            SIDE,
            GROUP,
            adds,
        )
        if status:
            raise SystemExit(f"wild_grouped: {status}")
        return y

    @staticmethod
    def backward(ctx, grad):
        return grad, None, None


class Together(torch.autograd.Function):
    """The sum over all ranks."""

    @staticmethod
    def forward(ctx, x):
        y = torch.empty_like(x)
        distributed.all_gather_into_tensor(y, x)
        return y

    @staticmethod
    def backward(ctx, grad):
        return grad


class Layer(nn.Module):
    def __init__(self, args):
        super().__init__()
        self.kinds = args.kinds
        self.inner = nn.Linear(SIDE, SIDE)
        self.norm = nn.BatchNorm1d(SIDE)
        self.embed = nn.Embedding(args.rows, SIDE)
        self.register_buffer("marks", torch.zeros(args.rows, SIDE))
        self.register_buffer("group", torch.randn(GROUP, SIDE, SIDE))

    def forward(self, x, tokens, seen):
        def look(y):
            return Look.apply(y, seen)

        x = look(self.inner(x))
        if "norm" in self.kinds:
            # Channels first: no table knows the kernels for the other order.
            x = x.view(16, -1, SIDE).transpose(1, 2).contiguous()
            x = look(self.norm(x)).transpose(1, 2).reshape(-1, SIDE)
        if "inplace" in self.kinds:
            y = x * 1.5
            y += x
            x = look(F.relu(y, inplace=True))
        if "leaf" in self.kinds:
            gate = look(torch.sigmoid(self.marks))
            with torch.no_grad():
                self.marks.add_(0.01)
            x = x * gate
        if "atomics" in self.kinds:
            rows = torch.zeros_like(x)
            rows = look(rows.index_put((tokens,), x, accumulate=True))
            x = rows + look(self.embed(tokens))
        if "hidden" in self.kinds:
            x = x.view(GROUP, SIDE, SIDE)
            x = look(Grouped.apply(x, self.group, False)).view(-1, SIDE)
        if "added" in self.kinds:
            x = x.view(GROUP, SIDE, SIDE)
            x = look(Grouped.apply(x, self.group, True)).view(-1, SIDE)
        if "together" in self.kinds:
            x = look(Together.apply(x))
        if "random" in self.kinds:
            x = look(F.gelu(x))
        return look(F.dropout(x, 0.1))


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("kinds", nargs="+", choices=KINDS)
    parser.add_argument("--library")
    parser.add_argument("--layers", type=int, default=6)
    parser.add_argument("--steps", type=int, default=18)
    args = parser.parse_args()
    args.rows = GROUP * SIDE
    if args.library:
        Grouped.library = ctypes.CDLL(args.library)
    if "together" in args.kinds:
        torch.cuda.set_device(0)
        distributed.init_process_group(
            "nccl", store=distributed.HashStore(), rank=0, world_size=1
        )
    torch.manual_seed(1)
    layers = nn.ModuleList(Layer(args) for _ in range(args.layers)).cuda()
    optimizer = torch.optim.SGD(layers.parameters(), lr=0.01)
    data = torch.randn(args.rows, SIDE).cuda()
    tokens = torch.randint(args.rows, (args.rows,)).cuda()
    for step in range(1, args.steps + 1):
        optimizer.zero_grad()
        seen, x = [], data
        for layer in layers:
            x = layer(x, tokens, seen)
        loss = x.square().mean()
        loss.backward()
        optimizer.step()
        common.report(step, loss, same=all(seen), looked=len(seen))
    if "together" in args.kinds:
        distributed.destroy_process_group()


if __name__ == "__main__":
    main()
