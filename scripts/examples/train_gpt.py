#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Trains a small GPT on synthetic text with plain PyTorch.

The text is made of a fixed set of phrases in random order, so there is
something to learn: within a phrase the next token is certain.
"""

import argparse
import contextlib
import math

import torch
import torch.nn as nn
import torch.nn.functional as F


class Attention(nn.Module):
    def __init__(self, args):
        super().__init__()
        self.heads = args.heads
        self.dropout = args.dropout
        self.flash = args.attention == "flash"
        self.qkv = nn.Linear(args.width, 3 * args.width)
        self.proj = nn.Linear(args.width, args.width)
        self.attn_drop = nn.Dropout(args.dropout)
        self.resid_drop = nn.Dropout(args.dropout)
        if not self.flash:
            mask = torch.ones(args.sequence, args.sequence, dtype=torch.bool)
            self.register_buffer("mask", mask.tril(), persistent=False)

    def forward(self, x):
        batch, length, width = x.shape
        q, k, v = (
            t.view(batch, length, self.heads, -1).transpose(1, 2)
            for t in self.qkv(x).split(width, dim=2)
        )
        if self.flash:
            dropout = self.dropout if self.training else 0.0
            y = F.scaled_dot_product_attention(
                q, k, v, dropout_p=dropout, is_causal=True
            )
        else:
            scores = q @ k.transpose(-2, -1) / math.sqrt(q.size(-1))
            mask = self.mask[:length, :length]
            scores = scores.masked_fill(~mask, float("-inf"))
            y = self.attn_drop(F.softmax(scores, dim=-1)) @ v
        y = y.transpose(1, 2).reshape(batch, length, width)
        return self.resid_drop(self.proj(y))


class Block(nn.Module):
    def __init__(self, args):
        super().__init__()
        self.ln_1 = nn.LayerNorm(args.width)
        self.attn = Attention(args)
        self.ln_2 = nn.LayerNorm(args.width)
        self.mlp = nn.Sequential(
            nn.Linear(args.width, 4 * args.width),
            nn.GELU(),
            nn.Linear(4 * args.width, args.width),
            nn.Dropout(args.dropout),
        )

    def forward(self, x):
        x = x + self.attn(self.ln_1(x))
        return x + self.mlp(self.ln_2(x))


class GPT(nn.Module):
    def __init__(self, args):
        super().__init__()
        self.tokens = nn.Embedding(args.vocabulary, args.width)
        self.positions = nn.Embedding(args.sequence, args.width)
        self.drop = nn.Dropout(args.dropout)
        self.blocks = nn.ModuleList(Block(args) for _ in range(args.layers))
        self.ln_f = nn.LayerNorm(args.width)
        self.head = nn.Linear(args.width, args.vocabulary, bias=False)
        self.apply(self.init_weights)
        self.head.weight = self.tokens.weight

    @staticmethod
    def init_weights(module):
        if isinstance(module, (nn.Linear, nn.Embedding)):
            nn.init.normal_(module.weight, std=0.02)
        if isinstance(module, nn.Linear) and module.bias is not None:
            nn.init.zeros_(module.bias)

    def forward(self, ids, targets):
        where = torch.arange(ids.size(1), device=ids.device)
        x = self.drop(self.tokens(ids) + self.positions(where))
        for block in self.blocks:
            x = block(x)
        logits = self.head(self.ln_f(x))
        return F.cross_entropy(logits.flatten(0, 1), targets.flatten())


class Text:
    """Batches of token ids, drawn on the CPU from one seed."""

    def __init__(self, args, seed, phrases=64, phrase_length=16):
        # Training and evaluation share the phrases, not their order.
        shared = torch.Generator().manual_seed(args.seed)
        self.phrases = torch.randint(
            args.vocabulary, (phrases, phrase_length), generator=shared
        )
        self.generator = torch.Generator().manual_seed(seed)
        self.shape = (args.batch, args.sequence)

    def batch(self, device):
        rows, length = self.shape
        count, size = self.phrases.shape
        picks = torch.randint(
            count, (rows, length // size + 2), generator=self.generator
        )
        text = self.phrases[picks].flatten(1)
        ids = text[:, :length].contiguous()
        targets = text[:, 1 : length + 1].contiguous()
        return ids.to(device), targets.to(device)


def parse():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    add = parser.add_argument
    add("--layers", type=int, default=4)
    add("--width", type=int, default=256)
    add("--heads", type=int, default=4)
    add("--sequence", type=int, default=256)
    add("--batch", type=int, default=8)
    add("--vocabulary", type=int, default=4096)
    add("--steps", type=int, default=10)
    add("--lr", type=float, default=3e-4)
    add("--dropout", type=float, default=0.0)
    add("--attention", choices=["flash", "manual"], default="flash")
    add("--amp", action="store_true", help="bfloat16 autocast")
    add("--compile", action="store_true", help="torch.compile the model")
    add("--accumulate", type=int, default=1, metavar="N",
        help="micro-batches per optimizer step")
    add("--eval-every", type=int, default=0, metavar="N",
        help="evaluate after every N steps")
    add("--seed", type=int, default=1)
    add("--digest", action="store_true",
        help="print a hash of all tensors at the end (tests/torch/digest.py)")
    add("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    args = parser.parse_args()
    if args.width % args.heads:
        parser.error("--width must be a multiple of --heads")
    return args


def memory(device):
    if device.type != "cuda":
        return ""
    mib = 2**20
    return (
        f"  memory {torch.cuda.memory_allocated(device) / mib:.1f} MiB"
        f"  peak {torch.cuda.max_memory_allocated(device) / mib:.1f} MiB"
        f"  reserved {torch.cuda.max_memory_reserved(device) / mib:.1f} MiB"
    )


class StepTimer:
    """Time of a step on the device; nothing on the CPU."""

    def __init__(self, device):
        self.events = None
        if device.type == "cuda":
            self.events = [
                torch.cuda.Event(enable_timing=True) for _ in range(2)
            ]
            self.events[0].record()

    def __str__(self):
        if not self.events:
            return ""
        start, end = self.events
        end.record()
        end.synchronize()
        return f"  time {start.elapsed_time(end):.3f} ms"


def main():
    args = parse()
    torch.manual_seed(args.seed)
    device = torch.device(args.device)
    model = GPT(args).to(device)
    count = sum(p.numel() for p in model.parameters())
    print(f"{count / 1e6:.2f} M parameters on {device}", flush=True)
    optimizer = torch.optim.AdamW(model.parameters(), lr=args.lr)
    step_model = torch.compile(model) if args.compile else model
    train = Text(args, args.seed + 1)
    held_out = Text(args, args.seed + 2)
    if args.amp:
        autocast = torch.autocast(device.type, dtype=torch.bfloat16)
    else:
        autocast = contextlib.nullcontext()

    for step in range(1, args.steps + 1):
        timer = StepTimer(device)
        total = 0.0
        for _ in range(args.accumulate):
            ids, targets = train.batch(device)
            with autocast:
                loss = step_model(ids, targets)
            (loss / args.accumulate).backward()
            total += loss.item() / args.accumulate
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        print(
            f"step {step:4d}  loss {total:.6f}{timer}{memory(device)}",
            flush=True,
        )

        if args.eval_every and step % args.eval_every == 0:
            model.eval()
            with torch.no_grad(), autocast:
                loss = step_model(*held_out.batch(device))
            print(f"evaluation  loss {loss.item():.6f}", flush=True)
            model.train()

    if args.digest:
        from digest import digest

        print("digest", digest(model, optimizer), flush=True)
    if device.type == "cuda":
        print(
            f"peak allocated {torch.cuda.max_memory_allocated(device)} bytes,"
            f" reserved {torch.cuda.max_memory_reserved(device)} bytes"
        )


if __name__ == "__main__":
    main()
