#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Trains the GPT of scripts/examples/train_gpt.py while other memory comes
and goes: a pool's, which tapeswap counts and does not place.

Usage: beside.py MIB STEPS... -- [ARGUMENTS of train_gpt.py]

The memory is taken before the first step; after each of STEPS it is given
back, or taken anew, by turns.
"""

import ctypes
import sys

import torch

from changing import Training, load


class Pool:
    """Memory of the device's pool, by the driver itself."""

    def __init__(self, mib):
        self.cuda = ctypes.CDLL("libcuda.so.1")
        self.bytes = mib << 20
        self.address = ctypes.c_uint64()
        self.taken = False
        self.pool = ctypes.c_void_p()
        self.check(
            self.cuda.cuDeviceGetDefaultMemPool(ctypes.byref(self.pool), 0)
        )

    def check(self, result):
        if result:
            sys.exit(f"beside.py: error: CUDA error {result}")

    def turn(self):
        if self.taken:
            self.check(self.cuda.cuMemFreeAsync(self.address, None))
            torch.cuda.synchronize()
            self.check(
                self.cuda.cuMemPoolTrimTo(self.pool, ctypes.c_size_t(0))
            )
        else:
            self.check(
                self.cuda.cuMemAllocAsync(
                    ctypes.byref(self.address),
                    ctypes.c_size_t(self.bytes),
                    None,
                )
            )
        self.taken = not self.taken


def main():
    split = sys.argv.index("--")
    mib, *turns = [int(word) for word in sys.argv[1:split]]
    del sys.argv[1 : split + 1]
    gpt = load()
    args = gpt.parse()
    training = Training(gpt, args)
    pool = Pool(mib)
    pool.turn()
    for step in range(1, args.steps + 1):
        timer = gpt.StepTimer(training.device)
        loss = training.step()
        print(f"step {step:4d}  loss {loss:.6f}{timer}", flush=True)
        if step in turns:
            pool.turn()
    if args.digest:
        from digest import digest

        print("digest", digest(training.model, training.optimizer))


if __name__ == "__main__":
    main()
