#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Captures one training step of a small network and replays it."""

import argparse

import torch
import torch.nn as nn
import torch.nn.functional as F

from common import add_digest, finish, report


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--width", type=int, default=512)
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--steps", type=int, default=5)
    parser.add_argument("--seed", type=int, default=1)
    add_digest(parser)
    args = parser.parse_args()

    torch.manual_seed(args.seed)
    model = nn.Sequential(
        nn.Linear(args.width, 4 * args.width),
        nn.GELU(),
        nn.Linear(4 * args.width, args.width),
    ).cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    images = torch.zeros(args.batch, args.width, device="cuda")
    target = torch.zeros(args.batch, args.width, device="cuda")

    # As the manual has it: warm up on a side stream, then capture.
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(3):
            optimizer.zero_grad(set_to_none=True)
            F.mse_loss(model(images), target).backward()
            optimizer.step()
    torch.cuda.current_stream().wait_stream(side)

    graph = torch.cuda.CUDAGraph()
    optimizer.zero_grad(set_to_none=True)
    with torch.cuda.graph(graph):
        loss = F.mse_loss(model(images), target)
        loss.backward()
        optimizer.step()

    generator = torch.Generator().manual_seed(args.seed)
    for step in range(1, args.steps + 1):
        batch = torch.randn(args.batch, args.width, generator=generator)
        images.copy_(batch)
        target.copy_(batch.flip(1))
        graph.replay()
        report(step, loss)
    finish(args, model, optimizer)


if __name__ == "__main__":
    main()
