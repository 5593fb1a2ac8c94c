# SPDX-License-Identifier: LGPL-2.1-or-later
"""Memory that fits, but not in one piece.

Blocks are freed so that every segment keeps a part that is in use: PyTorch can
give none of them back, and no hole is large enough for what is asked for next.
Prints a sum over what was kept. With --cap PyTorch is told the cap (bytes of
its own reserved memory).
"""

import argparse

import torch

MIB = 1 << 20


def block(mib, value):
    return torch.full((mib * MIB // 4,), value, device="cuda")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--cap", type=int)
    arguments = parser.parse_args()
    if arguments.cap:
        total = torch.cuda.get_device_properties(0).total_memory
        torch.cuda.set_per_process_memory_fraction(arguments.cap / total)
    kept = []
    for value in range(4):
        # No two fit in what one segment leaves.
        whole = block(256, 0.0)
        del whole
        kept.append(block(140, float(value)))
    # Four holes of 116 MiB each.
    kept.append(block(384, 4.0))
    print("kept", sum(part.mean().item() for part in kept))
    print("live", torch.cuda.memory_allocated() // MIB)


if __name__ == "__main__":
    main()
