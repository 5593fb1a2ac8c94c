#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Trains beside another tool: a profiler, NVTX ranges, preloaded libraries.

Prints losses, a digest, and what the tool saw, for the behaviour named.
"""

import argparse
import collections
import time

import torch
from torch.profiler import ProfilerActivity, profile

from wild_common import Training

STEPS = 6


def profiled():
    """Kernels by torch.profiler, in two of the steps."""
    training = Training("profiler")
    for _ in range(2):
        training.step()
    with profile(
        activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]
    ) as seen:
        for _ in range(2):
            training.step()
        torch.cuda.synchronize()
    for _ in range(STEPS - 4):
        training.step()
    # Copies may be the agent's, ranges are shown once for each stream.
    others = "Memcpy", "Memset", "Optimizer."
    kernels = collections.Counter(
        event.name
        for event in seen.events()
        if event.device_type == torch.autograd.DeviceType.CUDA
        and not event.name.startswith(others)
    )
    print("kernels", sum(kernels.values()), flush=True)
    for name, count in sorted(kernels.items()):
        print("kernel", count, name, flush=True)
    training.tell()


def ranges():
    """Ranges around each step and within it."""
    training = Training("nvtx")
    for number in range(STEPS):
        with torch.cuda.nvtx.range("training-step"):
            torch.cuda.nvtx.mark(f"step {number}")
            with torch.cuda.nvtx.range("inner"):
                training.step()
    training.tell()


def preloaded(names):
    """Says which of the libraries named are loaded, and what the year is."""
    training = Training("preloaded")
    for _ in range(3):
        training.step()
    with open("/proc/self/maps", encoding="utf-8") as maps:
        mapped = maps.read()
    for name in names:
        print("loaded", name, name in mapped, flush=True)
    print("year", time.gmtime().tm_year, flush=True)
    training.tell()


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "behaviour", choices=("profiler", "nvtx", "preloaded")
    )
    parser.add_argument("names", nargs="*")
    args = parser.parse_args()
    if args.behaviour == "profiler":
        profiled()
    elif args.behaviour == "nvtx":
        ranges()
    else:
        preloaded(args.names)


if __name__ == "__main__":
    main()
