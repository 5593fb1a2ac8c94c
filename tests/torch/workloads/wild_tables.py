#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Addresses of tensors in device memory, followed by a library's kernel.

Products of a group of matrices, as in a mixture of experts, beside training
that needs the memory in which they lie. Prints digests.
"""

import argparse
import ctypes
import hashlib
import os
import struct

import torch

from wild_common import Training, turns

SIZE, COUNT = 512, 8
STRIDE = SIZE * SIZE * 4


def stepped(first, step):
    return torch.arange(first, first + COUNT * step, step, device="cuda")


def made_on_device(group):
    """A kernel writes the table: nothing is copied up."""
    return stepped(group.data_ptr(), STRIDE)


class MadeInGraphs:
    """A graph for each group moves its table to where it belongs: what is
    copied up has no address where one may stand, nor has a launch one."""

    def __init__(self):
        self.graphs = {}

    def __call__(self, group):
        if group.data_ptr() not in self.graphs:
            words = [matrix.data_ptr() for matrix in group]
            packed = torch.frombuffer(
                bytearray(struct.pack(f"=x{COUNT}q", *words)),
                dtype=torch.uint8,
            ).cuda()
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph):
                table = torch.cat([packed[1:9], packed[9:]])
            self.graphs[group.data_ptr()] = graph, table, packed
        graph, table, _ = self.graphs[group.data_ptr()]
        graph.replay()
        return table


def copied_up(group):
    return torch.tensor([matrix.data_ptr() for matrix in group]).cuda()


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("library", help="has wild_grouped()")
    parser.add_argument("table", choices=("made", "copied", "graph"))
    parser.add_argument(
        "--unknown",
        action="store_true",
        help="nothing but the kernel's launch shows what it uses",
    )
    args = parser.parse_args()
    mode = os.RTLD_NOW | (os.RTLD_DEEPBIND if args.unknown else 0)
    library = ctypes.CDLL(args.library, mode=mode)
    make = {
        "made": made_on_device,
        "copied": copied_up,
        "graph": MadeInGraphs(),
    }[args.table]

    # Plain numbers first, by the kernel that makes the table later.
    numbers = torch.arange(COUNT, device="cuda")
    print("numbers", numbers.tolist(), flush=True)
    training = Training("tables")
    torch.manual_seed(3)
    left, right, product = (
        (torch.randn(COUNT, SIZE, SIZE) * scale).cuda()
        # Products stay as large as their left sides, however many.
        for scale in (1, SIZE**-0.5, 1)
    )
    for turn in turns(3):
        # Pushed out, and again once the tables are there.
        training.step()
        tables = [make(group) for group in (left, right, product)]
        training.step()
        status = library.wild_grouped(
            *(ctypes.c_void_p(table.data_ptr()) for table in tables),
            SIZE,
            COUNT,
            False,
        )
        if status:
            raise SystemExit(f"wild_grouped: {status}")
        training.step()
        digest = hashlib.blake2b(
            product.cpu().numpy().tobytes(), digest_size=16
        )
        print("product digest", digest.hexdigest(), flush=True)
        left, product = product, left
    training.tell()


if __name__ == "__main__":
    main()
