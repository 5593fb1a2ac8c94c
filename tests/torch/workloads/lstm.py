#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Trains a word language model on nn.LSTM, state carried between steps."""

import argparse

import torch
import torch.nn as nn
import torch.nn.functional as F

from common import add_digest, finish, report, tokens


class LanguageModel(nn.Module):
    def __init__(self, vocabulary, width, layers, dropout):
        super().__init__()
        self.embedding = nn.Embedding(vocabulary, width)
        self.drop = nn.Dropout(dropout)
        self.lstm = nn.LSTM(width, width, layers, dropout=dropout)
        self.head = nn.Linear(width, vocabulary)

    def forward(self, ids, state):
        out, state = self.lstm(self.drop(self.embedding(ids)), state)
        return self.head(self.drop(out)), state


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--vocabulary", type=int, default=10000)
    parser.add_argument("--width", type=int, default=650)
    parser.add_argument("--layers", type=int, default=2)
    parser.add_argument("--batch", type=int, default=20)
    parser.add_argument("--length", type=int, default=35)
    parser.add_argument("--steps", type=int, default=3)
    parser.add_argument("--seed", type=int, default=1)
    add_digest(parser)
    args = parser.parse_args()

    torch.manual_seed(args.seed)
    model = LanguageModel(args.vocabulary, args.width, args.layers, 0.5).cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=1.0)
    generator = torch.Generator().manual_seed(args.seed)
    state = None
    for step in range(1, args.steps + 1):
        text = tokens(
            args.vocabulary, args.length + 1, args.batch, generator
        )
        if state is not None:
            state = tuple(s.detach() for s in state)
        logits, state = model(text[:-1], state)
        loss = F.cross_entropy(logits.flatten(0, 1), text[1:].flatten())
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 0.25)
        optimizer.step()
        report(step, loss)
    finish(args, model, optimizer)


if __name__ == "__main__":
    main()
