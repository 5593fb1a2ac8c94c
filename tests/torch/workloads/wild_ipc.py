#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Tries to share a tensor with other processes, then trains on."""

import torch

from wild_common import Training


def main():
    training = Training("ipc")
    training.step()
    shared = torch.ones(1 << 22, device="cuda")
    try:
        shared.untyped_storage()._share_cuda_()
        print("shared", flush=True)
    except RuntimeError:
        print("not shared", flush=True)
    training.step()
    training.tell()


if __name__ == "__main__":
    main()
