#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Trains a language model in one of several ways and tells what it did.

One JSON line a step; the last line, "facts", holds what only the program
knows for sure: how many steps and layers there were, what parameters, their
gradients and the optimizer's state take on the device.
"""

import argparse
import ctypes
import json
import os
import signal
import sys

import torch

from common import report, tokens
from language_model import MODELS


def block_sizes():
    """Sizes of the allocator's blocks by address."""
    sizes = {}
    for segment in torch.cuda.memory_snapshot():
        address = segment["address"]
        for block in segment["blocks"]:
            sizes[address] = block["size"]
            address += block["size"]
    return sizes


def bytes_of(tensors):
    """What the blocks of tensors take, each counted once."""
    sizes = block_sizes()
    starts = {
        tensor.untyped_storage().data_ptr()
        for tensor in tensors
        if tensor.is_cuda
    }
    return sum(sizes[start] for start in starts)


def layers_of(config):
    return getattr(config, "num_hidden_layers", None) or config.n_layer


class DeviceInfo(ctypes.Structure):
    """As tests/simgpu/driver/simgpu_private.h has it."""

    _fields_ = [
        ("name", ctypes.c_char * 96),
        ("uuid", ctypes.c_ubyte * 16),
        ("bytes", ctypes.c_uint64 * 3),
        ("times_ns", ctypes.c_uint64 * 2),
        ("numbers", ctypes.c_int * 5),
        ("launches", ctypes.c_uint64),
    ]


def launches():
    """How many kernels the device was given so far, by its own count."""
    info = DeviceInfo()
    driver = ctypes.CDLL("libcuda.so.1")
    if driver.simgpu_device_get_info(0, ctypes.byref(info)):
        sys.exit("no simulated device 0")
    return info.launches


def mark(way):
    """A step begins here, for tapeswap if it is there."""
    if way == "range":
        torch.cuda.nvtx.range_push("train step")
        torch.cuda.nvtx.range_pop()
    elif way == "step":
        tell = getattr(ctypes.CDLL(None), "tapeswap_step", lambda: None)
        tell()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("model", choices=MODELS)
    parser.add_argument("--steps", type=int, default=8)
    parser.add_argument("--accumulate", type=int, default=1)
    parser.add_argument("--eval-every", type=int, default=0)
    parser.add_argument("--alternate", action="store_true")
    parser.add_argument(
        "--longer-at", type=int, default=0,
        help="the step from which on sequences are twice as long",
    )
    parser.add_argument("--keep-gradients", action="store_true")
    parser.add_argument(
        "--optimizer", choices=["adamw", "fused", "single", "sgd"],
        default="adamw",
    )
    parser.add_argument(
        "--mark", choices=["step", "range"],
        help="tell tapeswap of steps: by tapeswap_step(), by an NVTX range",
    )
    parser.add_argument("--mark-every", type=int, default=1)
    parser.add_argument("--fail-at", type=int, default=0)
    parser.add_argument("--terminate-at", type=int, default=0)
    args = parser.parse_args()
    kind, config, dtype, batch, sequence = MODELS[args.model]

    torch.manual_seed(1)
    config.use_cache = False
    torch.set_default_dtype(dtype)
    with torch.device("cuda"):
        model = kind(config)
    torch.set_default_dtype(torch.float32)
    model.train()
    parameters = list(model.parameters())
    optimizer = {
        "adamw": lambda: torch.optim.AdamW(parameters, lr=1e-4),
        "fused": lambda: torch.optim.AdamW(parameters, lr=1e-4, fused=True),
        "single": lambda: torch.optim.AdamW(
            parameters, lr=1e-4, foreach=False
        ),
        "sgd": lambda: torch.optim.SGD(parameters, lr=1e-4, momentum=0.9),
    }[args.optimizer]()
    generator = torch.Generator().manual_seed(1)
    facts = {"steps": 0, "layers": layers_of(config)}

    def loss_of(length):
        ids = tokens(config.vocab_size, batch, length, generator)
        with torch.autocast("cuda", dtype=torch.bfloat16):
            return model(input_ids=ids, labels=ids).loss

    for step in range(1, args.steps + 1):
        if step % args.mark_every == 0:
            mark(args.mark)
        length = sequence
        if (args.alternate and step % 2) or step < args.longer_at:
            length = sequence // 2
        before = launches()
        started = torch.cuda.Event(enable_timing=True)
        ended = torch.cuda.Event(enable_timing=True)
        started.record()
        for _ in range(args.accumulate):
            loss = loss_of(length) / args.accumulate
            loss.backward()
        facts["gradient_bytes"] = bytes_of(p.grad for p in parameters)
        if step == args.fail_at:
            raise RuntimeError("told to fail")
        if step == args.terminate_at:
            os.kill(os.getpid(), signal.SIGTERM)
        optimizer.step()
        optimizer.zero_grad(set_to_none=not args.keep_gradients)
        ended.record()
        ended.synchronize()
        report(
            step, loss,
            ms=started.elapsed_time(ended),
            launches=before,
        )
        facts["steps"] += 1
        if args.eval_every and step % args.eval_every == 0:
            model.eval()
            with torch.no_grad():
                loss_of(sequence).item()
            model.train()
    state = [
        tensor
        for values in optimizer.state.values()
        for tensor in values.values()
        if torch.is_tensor(tensor) and tensor.is_cuda
    ]
    facts["parameter_bytes"] = bytes_of(parameters)
    facts["state_bytes"] = bytes_of(state)
    facts["peak_bytes"] = torch.cuda.max_memory_allocated()
    print(json.dumps({"facts": facts}), flush=True)


if __name__ == "__main__":
    main()
