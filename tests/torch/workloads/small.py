#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Trains a small network: a multi-layer perceptron or a LeNet-like one."""

import argparse

import torch
import torch.nn as nn
import torch.nn.functional as F

from common import add_digest, finish, report


def perceptron(width):
    return nn.Sequential(
        nn.Flatten(),
        nn.Linear(784, width),
        nn.ReLU(),
        nn.Linear(width, width),
        nn.ReLU(),
        nn.Linear(width, 10),
    )


def lenet(width):
    return nn.Sequential(
        nn.Conv2d(1, width // 16, 5, padding=2),
        nn.BatchNorm2d(width // 16),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(width // 16, width // 8, 5),
        nn.BatchNorm2d(width // 8),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(25 * (width // 8), width),
        nn.ReLU(),
        nn.Linear(width, 10),
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model", choices=["mlp", "lenet"])
    parser.add_argument("--width", type=int, default=512)
    parser.add_argument("--batch", type=int, default=128)
    parser.add_argument("--steps", type=int, default=5)
    parser.add_argument("--seed", type=int, default=1)
    add_digest(parser)
    args = parser.parse_args()

    torch.manual_seed(args.seed)
    build = perceptron if args.model == "mlp" else lenet
    model = build(args.width).cuda()
    optimizer = torch.optim.Adam(model.parameters())
    generator = torch.Generator().manual_seed(args.seed)
    for step in range(1, args.steps + 1):
        images = torch.randn(args.batch, 1, 28, 28, generator=generator)
        labels = torch.randint(10, (args.batch,), generator=generator)
        loss = F.cross_entropy(model(images.cuda()), labels.cuda())
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        report(step, loss)
    finish(args, model, optimizer)


if __name__ == "__main__":
    main()
