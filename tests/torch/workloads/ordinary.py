#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Training loops as people write them: nothing is arranged for tapeswap.

Usage: ordinary.py HOW [--steps N]

mlp         a batch from the host each step; its tensors live one step longer
loader      a convolutional net, DataLoader with pinned memory, SGD, momentum
lstm        truncated backpropagation: hidden state goes from step to step
vit         a small vision transformer, zero_grad() right before backward()
scaler      autocast, GradScaler and gradients of four micro-batches
gan         two networks and two optimizers in one step
evaluate    an evaluation pass every third step
zeroed      gradients are zeroed, not freed; Adam with foreach=False
fused       AdamW with fused=True; the loss is printed every fourth step only
dropout     GPT-2 of transformers with its dropout
averaged    an exponential average of the weights, gradients clipped
kept        what the last steps gave is kept in a list of three
wide        little but weights: gradients are freed together, after the step
"""

import argparse
import copy

import torch
import torch.nn as nn
import torch.nn.functional as F

CUDA = torch.device("cuda")


def say(step, loss):
    print(f"step {step} loss {loss.item():.6f}", flush=True)


class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.norm1 = nn.LayerNorm(width)
        self.qkv = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)
        self.norm2 = nn.LayerNorm(width)
        self.mlp = nn.Sequential(
            nn.Linear(width, 4 * width),
            nn.GELU(),
            nn.Linear(4 * width, width),
        )

    def forward(self, x):
        n, length, width = x.shape
        q, k, v = (
            self.qkv(self.norm1(x))
            .view(n, length, 3, self.heads, width // self.heads)
            .permute(2, 0, 3, 1, 4)
        )
        scores = (q @ k.transpose(-1, -2) * k.shape[-1] ** -0.5).softmax(-1)
        x = x + self.out((scores @ v).transpose(1, 2).flatten(2))
        return x + self.mlp(self.norm2(x))


class Vit(nn.Module):
    def __init__(self, width=256, heads=4, depth=4, patch=8):
        super().__init__()
        self.patches = nn.Conv2d(3, width, patch, patch)
        self.place = nn.Parameter(torch.zeros(1, (64 // patch) ** 2, width))
        self.blocks = nn.Sequential(
            *(Block(width, heads) for _ in range(depth))
        )
        self.head = nn.Linear(width, 100)

    def forward(self, x):
        x = self.patches(x).flatten(2).transpose(1, 2) + self.place
        return self.head(self.blocks(x).mean(1))


class Lstm(nn.Module):
    def __init__(self, words=2000, width=1024, layers=2):
        super().__init__()
        self.embedding = nn.Embedding(words, width)
        self.lstm = nn.LSTM(width, width, layers, batch_first=True)
        self.head = nn.Linear(width, words)

    def forward(self, ids, state):
        out, state = self.lstm(self.embedding(ids), state)
        return self.head(out), state


def mlp_net():
    layers = [nn.Linear(512, 1024), nn.GELU()]
    for _ in range(5):
        layers += [nn.Linear(1024, 1024), nn.GELU()]
    return nn.Sequential(*layers, nn.Linear(1024, 10)).to(CUDA)


def conv_net():
    layers = []
    for before, after in ((3, 64), (64, 64), (64, 128), (128, 128)):
        layers += [
            nn.Conv2d(before, after, 3, padding=1),
            nn.BatchNorm2d(after),
            nn.ReLU(),
        ]
        if before == after:
            layers.append(nn.MaxPool2d(2))
    net = nn.Sequential(
        *layers, nn.AdaptiveAvgPool2d(4), nn.Flatten(), nn.Linear(2048, 10)
    )
    return net.to(CUDA)


def vectors(steps, generator, batch=4096, width=512):
    for _ in range(steps):
        x = torch.randn(batch, width, generator=generator)
        y = torch.randint(0, 10, (batch,), generator=generator)
        yield x.to(CUDA), y.to(CUDA)


def images(steps, batch, size, classes):
    data = torch.utils.data.TensorDataset(
        torch.randn(steps * batch, 3, size, size),
        torch.randint(0, classes, (steps * batch,)),
    )
    return torch.utils.data.DataLoader(
        data, batch_size=batch, shuffle=True, pin_memory=True
    )


def train_mlp(steps, generator):
    net = mlp_net()
    optimizer = torch.optim.AdamW(net.parameters(), lr=1e-3)
    for i in range(steps):
        x = torch.randn(4096, 512, generator=generator).to(CUDA)
        y = torch.randint(0, 10, (4096,), generator=generator).to(CUDA)
        optimizer.zero_grad()
        loss = F.cross_entropy(net(x), y)
        loss.backward()
        optimizer.step()
        say(i, loss)


def train_loader(steps, generator):
    net = conv_net()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.9)
    for i, (x, y) in enumerate(images(steps, 64, 48, 10)):
        x = x.to(CUDA, non_blocking=True)
        y = y.to(CUDA, non_blocking=True)
        optimizer.zero_grad()
        loss = F.cross_entropy(net(x), y)
        loss.backward()
        optimizer.step()
        say(i, loss)


def train_lstm(steps, generator):
    net = Lstm().to(CUDA)
    optimizer = torch.optim.Adam(net.parameters(), lr=1e-3)
    text = torch.randint(0, 2000, (512, 8 * steps + 1), generator=generator)
    state = None
    for i in range(steps):
        ids = text[:, 8 * i : 8 * i + 9].to(CUDA)
        if state is not None:
            state = tuple(part.detach() for part in state)
        optimizer.zero_grad()
        out, state = net(ids[:, :-1], state)
        loss = F.cross_entropy(out.flatten(0, 1), ids[:, 1:].flatten())
        loss.backward()
        nn.utils.clip_grad_norm_(net.parameters(), 1.0)
        optimizer.step()
        say(i, loss)


def train_vit(steps, generator):
    net = Vit().to(CUDA)
    optimizer = torch.optim.AdamW(net.parameters(), lr=1e-3)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, steps)
    for i, (x, y) in enumerate(images(steps, 64, 64, 100)):
        loss = F.cross_entropy(
            net(x.to(CUDA)), y.to(CUDA), label_smoothing=0.1
        )
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
        say(i, loss)


def train_scaler(steps, generator):
    net = mlp_net()
    optimizer = torch.optim.AdamW(net.parameters(), lr=1e-3)
    scaler = torch.amp.GradScaler("cuda")
    batches = vectors(4 * steps, generator)
    for i in range(steps):
        for _ in range(4):
            x, y = next(batches)
            with torch.autocast("cuda", torch.float16):
                loss = F.cross_entropy(net(x), y) / 4
            scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
        optimizer.zero_grad()
        say(i, loss)


def train_gan(steps, generator):
    width = 1024
    maker = nn.Sequential(
        nn.Linear(128, width),
        nn.ReLU(),
        nn.Linear(width, width),
        nn.ReLU(),
        nn.Linear(width, 784),
        nn.Tanh(),
    ).to(CUDA)
    judge = nn.Sequential(
        nn.Linear(784, width),
        nn.LeakyReLU(0.2),
        nn.Dropout(0.3),
        nn.Linear(width, width),
        nn.LeakyReLU(0.2),
        nn.Linear(width, 1),
    ).to(CUDA)
    first = torch.optim.Adam(maker.parameters(), lr=2e-4, betas=(0.5, 0.999))
    second = torch.optim.Adam(judge.parameters(), lr=2e-4, betas=(0.5, 0.999))
    rule = nn.BCEWithLogitsLoss()
    ones = torch.ones(4096, 1, device=CUDA)
    zeros = torch.zeros(4096, 1, device=CUDA)
    for i in range(steps):
        real = torch.randn(4096, 784, generator=generator).to(CUDA)
        second.zero_grad()
        made = maker(torch.randn(4096, 128, device=CUDA))
        lost = rule(judge(real), ones) + rule(judge(made.detach()), zeros)
        lost.backward()
        second.step()
        first.zero_grad()
        loss = rule(judge(made), ones)
        loss.backward()
        first.step()
        say(i, loss + lost)


def train_evaluate(steps, generator):
    net = mlp_net()
    optimizer = torch.optim.AdamW(net.parameters(), lr=1e-3)
    held, wanted = next(vectors(1, generator, batch=2048))
    for i, (x, y) in enumerate(vectors(steps, generator)):
        net.train()
        optimizer.zero_grad()
        loss = F.cross_entropy(net(x), y)
        loss.backward()
        optimizer.step()
        say(i, loss)
        if i % 3 == 2:
            net.eval()
            with torch.no_grad():
                out = net(held)
                right = (out.argmax(1) == wanted).float().mean()
            print(f"of them right {right.item():.4f}", flush=True)


def train_zeroed(steps, generator):
    net = mlp_net()
    optimizer = torch.optim.Adam(net.parameters(), lr=1e-3, foreach=False)
    for i, (x, y) in enumerate(vectors(steps, generator)):
        optimizer.zero_grad(set_to_none=False)
        loss = F.cross_entropy(net(x), y)
        loss.backward()
        optimizer.step()
        say(i, loss)


def train_fused(steps, generator):
    net = mlp_net()
    optimizer = torch.optim.AdamW(net.parameters(), lr=1e-3, fused=True)
    for i, (x, y) in enumerate(vectors(steps, generator)):
        loss = F.cross_entropy(net(x), y)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        if i % 4 == 3:
            say(i, loss)


def train_dropout(steps, generator):
    from transformers import GPT2Config, GPT2LMHeadModel

    config = GPT2Config(
        vocab_size=2048, n_positions=256, n_embd=256, n_layer=4, n_head=4
    )
    net = GPT2LMHeadModel(config).to(CUDA)
    net.train()
    optimizer = torch.optim.AdamW(net.parameters(), lr=1e-3)
    for i in range(steps):
        ids = torch.randint(0, 2048, (16, 256), generator=generator)
        batch = {"input_ids": ids.to(CUDA), "labels": ids.to(CUDA)}
        loss = net(**batch).loss
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        say(i, loss)


def train_averaged(steps, generator):
    net = mlp_net()
    average = copy.deepcopy(net)
    optimizer = torch.optim.RMSprop(net.parameters(), lr=1e-4)
    for i, (x, y) in enumerate(vectors(steps, generator)):
        optimizer.zero_grad()
        loss = F.cross_entropy(net(x), y)
        loss.backward()
        nn.utils.clip_grad_norm_(net.parameters(), 1.0)
        optimizer.step()
        with torch.no_grad():
            for old, new in zip(average.parameters(), net.parameters()):
                old.lerp_(new, 0.01)
        say(i, loss)


def train_kept(steps, generator):
    net = mlp_net()
    optimizer = torch.optim.SGD(net.parameters(), lr=1e-2)
    outs = []
    for i, (x, y) in enumerate(vectors(steps, generator)):
        optimizer.zero_grad()
        hidden = net[:-1](x)
        loss = F.cross_entropy(net[-1](hidden), y)
        loss.backward()
        optimizer.step()
        outs = [*outs[-2:], hidden.detach()]
        say(i, loss)
    print(f"kept {torch.stack(outs).mean().item():.6f}", flush=True)


def train_wide(steps, generator):
    layers = [m for _ in range(24) for m in (nn.Linear(1024, 1024), nn.GELU())]
    net = nn.Sequential(*layers).to(CUDA)
    optimizer = torch.optim.AdamW(net.parameters(), lr=1e-3, foreach=False)
    x = torch.randn(256, 1024, generator=generator).to(CUDA)
    for i in range(steps):
        loss = net(x).square().mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        say(i, loss)


HOW = {
    name[len("train_") :]: train
    for name, train in list(globals().items())
    if name.startswith("train_")
}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("how", choices=HOW)
    parser.add_argument("--steps", type=int, default=16)
    args = parser.parse_args()
    torch._C._set_cudnn_enabled(False)
    torch.manual_seed(0)
    HOW[args.how](args.steps, torch.Generator().manual_seed(1))


if __name__ == "__main__":
    main()
