#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Trains two nets of wide layers side by side, each on a stream of its own.

Their layers take turns, and their streams wait for each other at the ends of
a pass alone. What a layer makes of its inner value takes memory on the way.
"""

import argparse

import torch
import torch.nn as nn
import torch.nn.functional as F

import common


class Net(nn.Module):
    def __init__(self, args):
        super().__init__()
        self.sides = nn.ModuleList(
            nn.ModuleList(
                nn.Linear(args.width, args.width) for _ in range(args.layers)
            )
            for _ in range(2)
        )
        self.streams = [torch.cuda.Stream(), torch.cuda.Stream()]

    def forward(self, data):
        now = torch.cuda.current_stream()
        values = [data, data]
        for stream in self.streams:
            stream.wait_stream(now)
        for layers in zip(*self.sides):
            for side, layer in enumerate(layers):
                with torch.cuda.stream(self.streams[side]):
                    values[side] = F.gelu(layer(values[side])) * 1.5
        for side, stream in enumerate(self.streams):
            now.wait_stream(stream)
        return values


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--layers", type=int, default=10)
    parser.add_argument("--width", type=int, default=1024)
    parser.add_argument("--batch", type=int, default=8192)
    parser.add_argument("--steps", type=int, default=30)
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    torch.manual_seed(args.seed)
    net = Net(args).to("cuda")
    optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
    data = torch.randn(args.batch, args.width).to("cuda")
    for step in range(1, args.steps + 1):
        optimizer.zero_grad()
        # Kept until both streams are done with them.
        values = net(data)
        loss = (values[0] + values[1]).square().mean()
        loss.backward()
        for stream in net.streams:
            torch.cuda.current_stream().wait_stream(stream)
        optimizer.step()
        # When memory of two streams comes free depends on the clock.
        common.report(step, loss, max_memory_reserved=None)
        # What the next step makes lies where it does in this one.
        del values, loss


if __name__ == "__main__":
    main()
