#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Runs scripts/examples/train_gpt.py with PyTorch's own means to save memory.

Usage: saved.py none|cpu|checkpoint [ARGUMENTS of train_gpt.py]

cpu         what backward needs waits in pinned host memory (save_on_cpu)
checkpoint  each layer is computed again (torch.utils.checkpoint)
"""

import functools
import importlib.util
import pathlib
import sys

import torch
from torch.utils.checkpoint import checkpoint

SCRIPT = pathlib.Path(__file__).parents[3] / "scripts/examples/train_gpt.py"


def load():
    spec = importlib.util.spec_from_file_location("train_gpt", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def on_cpu(forward):
    @functools.wraps(forward)
    def wrapped(*args, **kwargs):
        with torch.autograd.graph.save_on_cpu(pin_memory=True):
            return forward(*args, **kwargs)

    return wrapped


def again(forward):
    @functools.wraps(forward)
    def wrapped(self, *args):
        return checkpoint(forward, self, *args, use_reentrant=False)

    return wrapped


def main():
    how = sys.argv.pop(1)
    train_gpt = load()
    if how == "cpu":
        train_gpt.GPT.forward = on_cpu(train_gpt.GPT.forward)
    elif how == "checkpoint":
        train_gpt.Block.forward = again(train_gpt.Block.forward)
    elif how != "none":
        sys.exit(f"saved.py: error: unknown means '{how}'")
    train_gpt.main()


if __name__ == "__main__":
    main()
