# SPDX-License-Identifier: LGPL-2.1-or-later
"""A generator and a discriminator, with an optimizer each."""

import torch
import torch.nn as nn

from common import report

CUDA = torch.device("cuda")
STEPS, BATCH, NOISE, PIXELS = 3, 1024, 128, 3072


def main():
    torch.manual_seed(0)
    generator = nn.Sequential(
        nn.Linear(NOISE, 1024),
        nn.ReLU(),
        nn.Linear(1024, 2048),
        nn.ReLU(),
        nn.Linear(2048, 4096),
        nn.ReLU(),
        nn.Linear(4096, PIXELS),
        nn.Tanh(),
    ).to(CUDA)
    discriminator = nn.Sequential(
        nn.Linear(PIXELS, 4096),
        nn.LeakyReLU(0.2),
        nn.Dropout(0.3),
        nn.Linear(4096, 2048),
        nn.LeakyReLU(0.2),
        nn.Dropout(0.3),
        nn.Linear(2048, 1),
    ).to(CUDA)
    makes = torch.optim.Adam(generator.parameters(), lr=2e-4)
    judges = torch.optim.Adam(discriminator.parameters(), lr=2e-4)
    told = nn.BCEWithLogitsLoss()
    yes, no = torch.ones(BATCH, 1, device=CUDA), torch.zeros(BATCH, 1).to(CUDA)
    for step in range(1, STEPS + 1):
        real = torch.randn(BATCH, PIXELS, device=CUDA)
        fake = generator(torch.randn(BATCH, NOISE, device=CUDA))
        judges.zero_grad()
        loss = told(discriminator(real), yes)
        loss = loss + told(discriminator(fake.detach()), no)
        loss.backward()
        judges.step()
        makes.zero_grad()
        other = told(discriminator(fake), yes)
        other.backward()
        makes.step()
        report(step, loss.item() + other.item())


if __name__ == "__main__":
    main()
