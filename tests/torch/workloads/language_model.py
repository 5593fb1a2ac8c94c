#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Trains a Hugging Face language model, built from its configuration."""

import argparse

import torch
from transformers import (
    BertConfig,
    BertForMaskedLM,
    GPT2Config,
    GPT2LMHeadModel,
    LlamaConfig,
    LlamaForCausalLM,
)

from common import Laps, add_digest, add_laps, finish, report, tokens

# name: (class, configuration, dtype of the weights, batch, sequence)
MODELS = {
    "bert-large": (
        BertForMaskedLM,
        BertConfig(
            hidden_size=1024,
            num_hidden_layers=24,
            num_attention_heads=16,
            intermediate_size=4096,
        ),
        torch.float32,
        32,
        512,
    ),
    "gpt2-xl": (
        GPT2LMHeadModel,
        GPT2Config(n_embd=1600, n_layer=48, n_head=25),
        torch.float32,
        8,
        1024,
    ),
    "llama-7b": (
        LlamaForCausalLM,
        LlamaConfig(max_position_embeddings=4096),
        torch.bfloat16,
        2,
        4096,
    ),
    "bert-small": (
        BertForMaskedLM,
        BertConfig(
            vocab_size=4096,
            hidden_size=256,
            num_hidden_layers=2,
            num_attention_heads=4,
            intermediate_size=1024,
        ),
        torch.float32,
        8,
        128,
    ),
    "gpt2-small": (
        GPT2LMHeadModel,
        GPT2Config(
            vocab_size=4096,
            n_embd=256,
            n_layer=2,
            n_head=4,
            bos_token_id=0,
            eos_token_id=0,
        ),
        torch.float32,
        4,
        256,
    ),
    "llama-small": (
        LlamaForCausalLM,
        LlamaConfig(
            vocab_size=4096,
            hidden_size=256,
            intermediate_size=688,
            num_hidden_layers=2,
            num_attention_heads=4,
        ),
        torch.bfloat16,
        4,
        256,
    ),
}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model", choices=MODELS)
    parser.add_argument("--steps", type=int, default=3)
    parser.add_argument("--batch", type=int)
    parser.add_argument("--sequence", type=int)
    parser.add_argument("--layers", type=int)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument(
        "--checkpoint",
        action="store_true",
        help="each layer is computed again (torch.utils.checkpoint)",
    )
    add_digest(parser)
    add_laps(parser)
    args = parser.parse_args()
    kind, config, dtype, batch, sequence = MODELS[args.model]
    batch = args.batch or batch
    sequence = args.sequence or sequence

    if args.layers:
        config.num_hidden_layers = args.layers

    torch.manual_seed(args.seed)
    config.use_cache = False
    torch.set_default_dtype(dtype)
    with torch.device("cuda"):
        model = kind(config)
    torch.set_default_dtype(torch.float32)
    if args.checkpoint:
        model.gradient_checkpointing_enable()
    model.train()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
    generator = torch.Generator().manual_seed(args.seed)
    laps = Laps(args.laps)
    for step in range(1, args.steps + 1):
        ids = tokens(config.vocab_size, batch, sequence, generator)
        with torch.autocast("cuda", dtype=torch.bfloat16):
            loss = model(input_ids=ids, labels=ids).loss
        loss.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        report(step, loss, **laps.lap())
    finish(args, model, optimizer)


if __name__ == "__main__":
    main()
