#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Trains small models on the simulated GPU with exact content.

With --compare each is trained on the CPU as well, from the same weights. One
JSON line a model: losses, a hash of the weights in the end, and, compared, the
losses on the CPU and the largest relative errors.
"""

import argparse
import hashlib
import json
import pathlib
import sys

import torch
import torch.nn as nn
import torch.nn.functional as F

sys.path.insert(0, str(pathlib.Path(__file__).parents[3] / "scripts/examples"))
import train_gpt  # noqa: E402

# Errors are relative to a parameter's gradient, but at least to this share of
# the gradient of all: some gradients are zero but for rounding, as that of a
# bias before a batch norm.
FLOOR = 1e-2
CLASSES, VOCABULARY = 10, 512


class Classifier(nn.Module):
    """Layers and a cross-entropy loss on images of digits."""

    def __init__(self, *layers):
        super().__init__()
        self.layers = nn.Sequential(*layers)

    def draw(self, batch, generator):
        images = torch.randn(batch, 1, 28, 28, generator=generator)
        labels = torch.randint(CLASSES, (batch,), generator=generator)
        self.register_buffer("images", images)
        self.register_buffer("labels", labels)

    def forward(self):
        return F.cross_entropy(self.layers(self.images), self.labels)


def perceptron(dropout):
    return Classifier(
        nn.Flatten(),
        nn.Linear(784, 64),
        nn.ReLU(),
        nn.Dropout(dropout),
        nn.Linear(64, 64),
        nn.Tanh(),
        nn.Linear(64, CLASSES),
    )


def lenet(dropout):
    return Classifier(
        nn.Conv2d(1, 6, 5, padding=2),
        nn.BatchNorm2d(6),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(6, 16, 5),
        nn.BatchNorm2d(16),
        nn.ReLU(),
        nn.AvgPool2d(2),
        nn.Flatten(),
        nn.Dropout(dropout),
        nn.Linear(400, CLASSES),
    )


def convolutions(dropout):
    """Deep enough for most of its memory to be activations."""
    width, layers = 24, []
    for index in range(12):
        layers += [
            nn.Conv2d(width if index else 1, width, 3, padding=1),
            nn.BatchNorm2d(width),
            nn.ReLU(),
        ]
    return Classifier(
        *layers,
        nn.Dropout(dropout),
        nn.AvgPool2d(28),
        nn.Flatten(),
        nn.Linear(width, CLASSES),
    )


class Language(nn.Module):
    """A language model and a batch of tokens for it."""

    def __init__(self, model):
        super().__init__()
        self.model = model

    def draw(self, batch, generator):
        ids = torch.randint(VOCABULARY - 2, (batch, 32), generator=generator)
        self.register_buffer("ids", ids)

    def forward(self):
        if isinstance(self.model, train_gpt.GPT):
            return self.model(self.ids, self.ids.roll(-1, 1))
        return self.model(input_ids=self.ids, labels=self.ids).loss


def gpt(attention, dropout):
    args = argparse.Namespace(
        layers=2,
        width=64,
        heads=2,
        sequence=32,
        vocabulary=VOCABULARY,
        dropout=dropout,
        attention=attention,
    )
    return Language(train_gpt.GPT(args))


def gpt2(dropout):
    from transformers import GPT2Config, GPT2LMHeadModel

    config = GPT2Config(
        n_layer=2,
        n_embd=64,
        n_head=2,
        vocab_size=VOCABULARY,
        n_positions=64,
        bos_token_id=None,
        eos_token_id=None,
        resid_pdrop=dropout,
        embd_pdrop=dropout,
        attn_pdrop=dropout,
    )
    return Language(GPT2LMHeadModel(config))


SIZES = {
    "num_hidden_layers": 2,
    "hidden_size": 64,
    "num_attention_heads": 2,
    "intermediate_size": 128,
    "vocab_size": VOCABULARY,
}


def bert(dropout):
    from transformers import BertConfig, BertForMaskedLM

    config = BertConfig(
        **SIZES,
        hidden_dropout_prob=dropout,
        attention_probs_dropout_prob=dropout,
    )
    return Language(BertForMaskedLM(config))


def llama(dropout):
    from transformers import LlamaConfig, LlamaForCausalLM

    config = LlamaConfig(**SIZES, attention_dropout=dropout)
    return Language(LlamaForCausalLM(config))


MODELS = {
    "mlp": perceptron,
    "lenet": lenet,
    "convolutions": convolutions,
    "gpt-manual": lambda dropout: gpt("manual", dropout),
    "gpt-fused": lambda dropout: gpt("flash", dropout),
    "gpt2": gpt2,
    "bert": bert,
    "llama": llama,
}


def make_optimizer(name, parameters):
    """Each kind that has kernels of its own is some model's."""
    if name == "mlp":
        return torch.optim.SGD(parameters, 0.1, momentum=0.9)
    return torch.optim.AdamW(parameters, fused=name == "lenet")


def train(name, device, args):
    """Losses, gradients of the first step, a hash of the weights and, where
    gradients are scaled, what by after each step."""
    torch.manual_seed(1)
    model = MODELS[name](args.dropout).train()
    model.draw(args.batch, torch.Generator().manual_seed(3))
    model.to(device)
    optimizer = make_optimizer(name, model.parameters())
    # So large that it is halved at first, then soon doubled.
    scaler = torch.amp.GradScaler(
        device, 2.0**24, growth_interval=2, enabled=args.scaler
    )
    narrow = torch.float16 if args.scaler else torch.bfloat16
    losses, gradients, scales = [], {}, []
    for _ in range(args.steps):
        with torch.autocast(device, narrow, enabled=args.amp or args.scaler):
            loss = model()
        scaler.scale(loss).backward()
        scaler.unscale_(optimizer)
        grads = {
            key: parameter.grad.cpu().clone()
            for key, parameter in model.named_parameters()
        }
        # The first gradients that are all finite.
        if not gradients and all(g.isfinite().all() for g in grads.values()):
            gradients = grads
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        scaler.step(optimizer)
        scaler.update()
        optimizer.zero_grad()
        losses.append(loss.item())
        scales.append(scaler.get_scale())
    digest = hashlib.sha256()
    for parameter in model.parameters():
        digest.update(parameter.detach().cpu().numpy().tobytes())
    return losses, gradients, digest.hexdigest(), scales


def largest_error(seen, wanted):
    """The parameter whose gradient is furthest off, and how far."""
    total = torch.stack([g.norm() for g in wanted.values()]).norm()
    return max(
        (
            (seen[key] - g).norm().item()
            / max(g.norm(), FLOOR * total).item(),
            key,
        )
        for key, g in wanted.items()
    )


def drop_rate():
    """The share that dropout leaves out, and what it makes of a one."""
    torch.manual_seed(1)
    left = F.dropout(torch.ones(1 << 18, device="cuda"), 0.1).cpu()
    print(
        json.dumps(
            {
                "dropped": (left == 0).float().mean().item(),
                "kept": left.max().item(),
                "values": left.unique().numel(),
            }
        )
    )


def missing():
    """A kernel that has no implementation."""
    print(torch.atan(torch.zeros(8, device="cuda")).cpu())


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("models", nargs="*", metavar="MODEL")
    parser.add_argument("--amp", action="store_true")
    parser.add_argument(
        "--scaler", action="store_true", help="float16 with a GradScaler"
    )
    parser.add_argument("--compare", action="store_true")
    parser.add_argument("--dropout", type=float, default=0.0)
    parser.add_argument("--batch", type=int, default=8)
    parser.add_argument("--steps", type=int, default=3)
    parser.add_argument("--drop-rate", action="store_true")
    parser.add_argument("--missing", action="store_true")
    args = parser.parse_args()
    if args.drop_rate:
        drop_rate()
    if args.missing:
        missing()
    for name in args.models:
        losses, gradients, digest, scales = train(name, "cuda", args)
        line = {"model": name, "losses": losses, "weights": digest}
        if args.compare:
            wanted, wanted_gradients, _, cpu_scales = train(name, "cpu", args)
            error, worst = largest_error(gradients, wanted_gradients)
            line.update(
                cpu_losses=wanted,
                loss_error=max(
                    abs(a / b - 1) for a, b in zip(losses, wanted)
                ),
                gradient_error=error,
                worst_gradient=worst,
                scales=scales,
                cpu_scales=cpu_scales,
            )
        print(json.dumps(line), flush=True)


if __name__ == "__main__":
    main()
