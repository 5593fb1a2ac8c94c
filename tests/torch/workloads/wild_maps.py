#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Tensors that a library's kernel reaches through tensor maps alone.

The maps are made once and change their addresses later; between their uses
training needs the memory in which the tensors lie. Prints digests.
"""

import argparse
import ctypes
import hashlib

import torch

from wild_common import Training, turns

ROWS, COLUMNS = 4096, 512


def must(status):
    if status:
        raise SystemExit(f"status {status}")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("library", help="has wild_maps_encode()")
    args = parser.parse_args()
    library = ctypes.CDLL(args.library)
    training = Training("maps")
    torch.manual_seed(3)
    tensors = [torch.randn(ROWS, COLUMNS).cuda() for _ in range(4)]
    for which in range(2):
        must(
            library.wild_maps_encode(
                which,
                ctypes.c_void_p(tensors[which].data_ptr()),
                ctypes.c_uint64(ROWS),
                ctypes.c_uint64(COLUMNS),
            )
        )
    for turn in turns(4):
        training.step()
        must(library.wild_maps_launch())
        training.step()
        for tensor in tensors:
            digest = hashlib.blake2b(
                tensor.cpu().numpy().tobytes(), digest_size=16
            )
            print("tensor digest", digest.hexdigest(), flush=True)
        tensors = tensors[1:] + tensors[:1]
        for which in range(2):
            must(
                library.wild_maps_replace(
                    which, ctypes.c_void_p(tensors[which].data_ptr())
                )
            )
    training.tell()


if __name__ == "__main__":
    main()
