#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Trains a torchvision classifier on random images."""

import argparse

import torch
import torch.nn.functional as F
import torchvision

from common import Laps, add_digest, add_laps, finish, report


class Prefetcher:
    """Uploads the next step's images while this one computes."""

    def __init__(self, shape):
        self.host = torch.randn(shape).pin_memory()
        self.stream = torch.cuda.Stream()
        self.copy()

    def copy(self):
        with torch.cuda.stream(self.stream):
            self.images = self.host.to("cuda", non_blocking=True)

    def next(self):
        main = torch.cuda.current_stream()
        main.wait_stream(self.stream)
        images = self.images
        images.record_stream(main)
        self.copy()
        return images


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model", help="a name in torchvision.models")
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--size", type=int, default=224)
    parser.add_argument("--classes", type=int, default=1000)
    parser.add_argument("--steps", type=int, default=3)
    parser.add_argument(
        "--prefetch",
        action="store_true",
        help="new images each step, from pinned memory on a second stream",
    )
    parser.add_argument("--seed", type=int, default=1)
    add_digest(parser)
    add_laps(parser)
    args = parser.parse_args()

    torch.manual_seed(args.seed)
    with torch.device("cuda"):
        model = torchvision.models.get_model(
            args.model, weights=None, num_classes=args.classes
        )
        images = torch.randn(args.batch, 3, args.size, args.size)
    if args.prefetch:
        prefetcher = Prefetcher(images.shape)
    generator = torch.Generator().manual_seed(args.seed)
    optimizer = torch.optim.SGD(
        model.parameters(), lr=0.01, momentum=0.9, weight_decay=1e-4
    )
    model.train()
    laps = Laps(args.laps)
    for step in range(1, args.steps + 1):
        labels = torch.randint(
            args.classes, (args.batch,), generator=generator
        ).cuda()
        optimizer.zero_grad(set_to_none=True)
        if args.prefetch:
            images = prefetcher.next()
        loss = F.cross_entropy(model(images), labels)
        loss.backward()
        optimizer.step()
        report(step, loss, **laps.lap())
    finish(args, model, optimizer)


if __name__ == "__main__":
    main()
