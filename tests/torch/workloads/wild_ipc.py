#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Shares a tensor with another process, where it may, and trains on."""

import argparse

import torch
from torch import multiprocessing

from wild_common import Training


def child(queue, answers):
    """Reads what the parent sends, writes to it, and says what it saw."""
    shared = queue.get()
    answers.put(shared.double().sum().item())
    shared.mul_(2)
    torch.cuda.synchronize()
    answers.put("written")
    queue.get()
    del shared
    torch.cuda.ipc_collect()
    answers.put("done")


def exchange(shared):
    """The parent's values reach the child, and the child's the parent."""
    context = multiprocessing.get_context("spawn")
    queue, answers = context.SimpleQueue(), context.SimpleQueue()
    process = context.Process(target=child, args=(queue, answers))
    process.start()
    queue.put(shared)
    print("child saw", answers.get(), flush=True)
    print(answers.get(), shared.double().sum().item(), flush=True)
    queue.put("end")
    print(answers.get(), flush=True)
    process.join()
    print("child ended with", process.exitcode, flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--exchange", action="store_true", help="with a child process"
    )
    args = parser.parse_args()
    training = Training("ipc")
    training.step()
    shared = torch.ones(1 << 20, device="cuda")
    if args.exchange:
        exchange(shared)
    else:
        try:
            shared.untyped_storage()._share_cuda_()
            print("shared", flush=True)
        except RuntimeError:
            print("not shared", flush=True)
    training.step()
    training.tell()


if __name__ == "__main__":
    main()
