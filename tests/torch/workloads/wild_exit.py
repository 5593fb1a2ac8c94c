#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Trains, says so, and ends in the way named."""

import argparse
import atexit
import ctypes
import os
import signal
import threading

import torch

from wild_common import Training


def at_exit(training):
    """What runs at the interpreter's end trains once more."""

    def last():
        training.step()
        training.tell()

    atexit.register(last)


def daemon(training):
    """A thread goes on issuing work while the interpreter ends.

    Through ctypes: a thread of Python that ends within PyTorch's own code
    takes the process with it, tapeswap or not.
    """
    cudart = ctypes.CDLL("libcudart.so.13")
    room = torch.empty(1 << 22, dtype=torch.uint8, device="cuda")
    address, size = ctypes.c_void_p(room.data_ptr()), ctypes.c_size_t(1 << 22)
    started = threading.Event()

    def go_on():
        while not cudart.cudaMemset(address, 1, size):
            started.set()

    training.tell()
    threading.Thread(target=go_on, daemon=True).start()
    if not started.wait(60):
        raise SystemExit("cudaMemset failed")
    training.room = room


def at_once(training):
    training.tell()
    os._exit(7)


def killed(training):
    training.tell()
    os.kill(os.getpid(), signal.SIGKILL)


def interrupted(training):
    training.tell()
    os.kill(os.getpid(), signal.SIGINT)


def raised(training):
    training.tell()
    raise RuntimeError("on purpose")


WAYS = {
    "atexit": at_exit,
    "daemon": daemon,
    "os-exit": at_once,
    "sigkill": killed,
    "sigint": interrupted,
    "exception": raised,
}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("way", choices=sorted(WAYS))
    args = parser.parse_args()
    training = Training("exit")
    for _ in range(2):
        training.step()
    WAYS[args.way](training)


if __name__ == "__main__":
    main()
