#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Random numbers depend on the seed alone: not on what was left in recycled
memory, nor on what is left on the stack of the thread that launches.

Usage: random_numbers.py
"""

import concurrent.futures

import torch

FLOATS = torch.float32, torch.float64, torch.float16, torch.bfloat16
FILLS = {
    "bernoulli_": ((0.98,), (*FLOATS, torch.bool, torch.int64)),
    "uniform_": ((2, 5), FLOATS),
    "normal_": ((2, 5), FLOATS),
    "log_normal_": ((1, 2), FLOATS),
    "cauchy_": ((1, 2), FLOATS),
    "exponential_": ((2,), FLOATS),
    "geometric_": ((0.5,), FLOATS),
    "random_": ((3, 99), (torch.float32, torch.int64)),
}


def numbers(used):
    """By name: a sum of each, in memory that held something of @used."""
    torch.manual_seed(0)
    found = {}
    for name, (arguments, kinds) in FILLS.items():
        for kind in kinds:
            old = torch.full((64, 1, 1), used, device="cuda", dtype=kind)
            del old
            made = torch.empty(64, 1, 1, device="cuda", dtype=kind)
            getattr(made, name)(*arguments)
            found[f"{name} {kind}"] = made.double().sum().item()
    made = torch.bernoulli(torch.rand(64, device="cuda"))
    found["bernoulli"] = made.sum().item()
    return found


def main():
    first = numbers(1)
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        second = pool.submit(numbers, 0).result()
    for name, value in first.items():
        print(name, value, flush=True)
    differ = [name for name in first if second[name] != first[name]]
    if differ:
        raise SystemExit("differ: " + ", ".join(differ))


if __name__ == "__main__":
    main()
