#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Trains a net of wide layers; late steps do something between forward and
backward that no step before did.

  read    looks at every activation, the last one first
  change  changes the first layer's weight, which its output was made with
  empty   gives the allocator's cached memory back
  fail    ends without a backward
  free    frees a tensor the step works with and takes its memory for another

With --streams the layers run on two streams by turns, each after the other.
"""

import argparse

import torch
import torch.nn as nn
import torch.nn.functional as F

import common

FIRST = 20
WHAT = ("read", "change", "empty", "fail", "free")


class Net(nn.Module):
    def __init__(self, args):
        super().__init__()
        self.layers = nn.ModuleList(
            nn.Linear(args.width, args.width) for _ in range(args.layers)
        )
        self.streams = [torch.cuda.current_stream()]
        if args.streams:
            self.streams.append(torch.cuda.Stream())

    def forward(self, x, seen):
        last = self.streams[0]
        for number, layer in enumerate(self.layers):
            stream = self.streams[number % len(self.streams)]
            stream.wait_stream(last)
            x.record_stream(stream)
            with torch.cuda.stream(stream):
                inner = layer(x)
                x = F.gelu(inner)
            seen += [inner, x]
            last = stream
        x.record_stream(self.streams[0])
        self.streams[0].wait_stream(last)
        return x


def disturb(what, net, seen, extra):
    """What is printed of it, so that a wrong value shows."""
    if what == "read":
        return sum(x.detach().square().mean().item() for x in seen[::-1])
    if what == "change":
        net.layers[0].weight.data.add_(0.25)
    elif what == "empty":
        torch.cuda.empty_cache()
    elif what == "free":
        shape = extra.pop().shape
        other = torch.ones(shape, device="cuda")
        return other.sum().item()
    return 0.0


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--layers", type=int, default=8)
    parser.add_argument("--width", type=int, default=1024)
    parser.add_argument("--batch", type=int, default=2048)
    parser.add_argument("--steps", type=int, default=FIRST + 2 * len(WHAT) - 1)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--streams", action="store_true")
    args = parser.parse_args()
    torch.manual_seed(args.seed)
    net = Net(args).to("cuda")
    optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
    data = torch.randn(args.batch, args.width).to("cuda")
    for step in range(1, args.steps + 1):
        late = step - FIRST
        what = WHAT[late // 2] if late >= 0 and late % 2 == 0 else None
        seen, extra = [], [data * 1.5]
        optimizer.zero_grad()
        loss = net(extra[0], seen).square().mean()
        value = disturb(what, net, seen, extra) if what else 0.0
        seen.clear()
        if what != "fail":
            loss.backward()
            optimizer.step()
        line = {"what": what, "value": value}
        if args.streams:
            # When memory of two streams comes free depends on the clock.
            line["max_memory_reserved"] = None
        common.report(step, loss, **line)


if __name__ == "__main__":
    main()
