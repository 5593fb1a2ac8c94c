#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Trains a small net with what must not be launched again, and what may be.

Batch norm keeps statistics, a ReLU works in place, an embedding's gradient and
index_put with accumulate add by atomics, a tensor is changed between forward
and backward; dropout takes its random state from its parameters.
"""

import argparse

import torch
import torch.nn as nn
import torch.nn.functional as F

import common


class Net(nn.Module):
    def __init__(self, args):
        super().__init__()
        self.embed = nn.Embedding(args.rows, args.width)
        self.inner = nn.Linear(args.width, args.width)
        self.norm = nn.BatchNorm1d(args.width)
        self.outer = nn.Linear(args.width, args.width)
        self.rows = args.rows

    def forward(self, tokens, marks):
        x = self.embed(tokens)
        x = self.inner(x).view(16, -1, x.shape[1]).transpose(1, 2)
        x = self.norm(x.contiguous())
        x = F.relu(x, inplace=True)
        x = x.transpose(1, 2).reshape(tokens.shape[0], -1)
        x = F.dropout(x, 0.1)
        # Made from `marks`, which changes before the backward reads it.
        gate = torch.sigmoid(marks)
        x = x * gate
        with torch.no_grad():
            marks.add_(0.01)
        y = self.outer(x)
        spread = torch.zeros(self.rows, y.shape[1], device=y.device)
        return spread.index_put((tokens,), y, accumulate=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=12)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--rows", type=int, default=512)
    parser.add_argument("--width", type=int, default=512)
    parser.add_argument("--batch", type=int, default=2048)
    args = parser.parse_args()
    torch.manual_seed(args.seed)
    device = torch.device("cuda")
    net = Net(args).to(device)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
    tokens = torch.randint(args.rows, (args.batch,)).to(device)
    marks = torch.zeros(args.batch, args.width, device=device)
    for step in range(1, args.steps + 1):
        optimizer.zero_grad()
        loss = net(tokens, marks).square().mean()
        loss.backward()
        optimizer.step()
        common.report(step, loss)


if __name__ == "__main__":
    main()
