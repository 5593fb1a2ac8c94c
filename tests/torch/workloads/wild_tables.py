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

import torch

from wild_common import Training, turns

SIZE, COUNT = 512, 8


def made_on_device(group):
    """A kernel writes the table: nothing is copied up."""
    stride = SIZE * SIZE * 4
    first = group.data_ptr()
    return torch.arange(
        first, first + COUNT * stride, stride, device="cuda"
    )


def copied_up(group):
    return torch.tensor([matrix.data_ptr() for matrix in group]).cuda()


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("library", help="has wild_grouped()")
    parser.add_argument("table", choices=("made", "copied"))
    parser.add_argument(
        "--unknown",
        action="store_true",
        help="nothing but the kernel's launch shows what it uses",
    )
    args = parser.parse_args()
    mode = os.RTLD_NOW | (os.RTLD_DEEPBIND if args.unknown else 0)
    library = ctypes.CDLL(args.library, mode=mode)
    make = made_on_device if args.table == "made" else copied_up

    # Plain numbers first, by the kernel that makes the table later.
    numbers = torch.arange(COUNT, device="cuda")
    print("numbers", numbers.tolist(), flush=True)
    training = Training("tables")
    torch.manual_seed(3)
    left, right, product = (
        torch.randn(COUNT, SIZE, SIZE).cuda() for _ in range(3)
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
