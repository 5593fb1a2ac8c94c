#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Trains a model whose halves lie on two devices; tells each one's peak."""

import argparse
import json

import torch
from torch import nn

from common import report


def half(width, layers, device):
    blocks = [
        nn.Sequential(nn.Linear(width, width), nn.GELU()) for _ in range(layers)
    ]
    return nn.Sequential(*blocks).to(device)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=8)
    args = parser.parse_args()
    torch.manual_seed(1)
    first, second = half(512, 4, "cuda:0"), half(1024, 6, "cuda:1")
    widen = nn.Linear(512, 1024, device="cuda:1")
    parameters = [
        p for part in (first, widen, second) for p in part.parameters()
    ]
    optimizer = torch.optim.AdamW(parameters, lr=1e-4)
    batch = torch.randn(256, 512, device="cuda:0")
    for step in range(1, args.steps + 1):
        loss = second(widen(first(batch).to("cuda:1"))).square().mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        report(step, loss)
    facts = {
        "steps": args.steps,
        "peaks": [torch.cuda.max_memory_allocated(d) for d in (0, 1)],
    }
    print(json.dumps({"facts": facts}), flush=True)


if __name__ == "__main__":
    main()
