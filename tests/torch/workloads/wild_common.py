# SPDX-License-Identifier: LGPL-2.1-or-later
"""The small model that the scripts about programs in the wild train.

Its activations are far larger than its parameters and lie in pages of their
own, so that a limit on memory is felt in every one of them.
"""

import os

import torch
from torch import nn

from digest import digest

WIDTH, LAYERS = 512, 6
BATCH = int(os.environ.get("WILD_BATCH", 4096))


def turns(few):
    """So many turns of a loop, or what WILD_STEPS says."""
    return range(int(os.environ.get("WILD_STEPS", few)))


class Training:
    """A model with its optimizer and its batches, the same ones each time."""

    def __init__(self, name, seed=1, device="cuda", layers=LAYERS):
        self.name, self.device, self.steps = name, device, 0
        torch.manual_seed(seed)
        blocks = [
            nn.Sequential(nn.Linear(WIDTH, WIDTH), nn.GELU())
            for _ in range(layers)
        ]
        self.model = nn.Sequential(*blocks).to(device)
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=1e-3)
        self.generator = torch.Generator().manual_seed(seed)
        self.losses = []

    def batch(self, size=BATCH):
        batch = torch.randn(size, WIDTH, generator=self.generator)
        return batch.to(self.device)

    def loss(self, batch):
        return (self.model(batch) - batch).square().mean()

    def update(self):
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)

    def step(self, size=BATCH):
        loss = self.loss(self.batch(size))
        loss.backward()
        self.update()
        self.keep(loss)

    def keep(self, loss):
        self.losses.append(loss.item())

    def lines(self):
        """What it came to, as text: losses and a hash of all its tensors."""
        hashed = digest(self.model, self.optimizer)
        return [f"{self.name} loss {loss!r}" for loss in self.losses] + [
            f"{self.name} digest {hashed}"
        ]

    def tell(self):
        print("\n".join(self.lines()), flush=True)
