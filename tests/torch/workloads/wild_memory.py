#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""What scripts do to memory itself, each beside a small model's training.

Prints losses and a digest for each of the behaviours named as arguments.
"""

import argparse
import ctypes
import gc

import torch

from wild_common import Training, turns

MIB = 1 << 20


def plain():
    training = Training("plain")
    for _ in turns(3):
        training.step()
    training.tell()


def empty_cache():
    training = Training("empty-cache")
    for _ in turns(3):
        training.step()
        torch.cuda.empty_cache()
    training.tell()


def memory_pool():
    """A model's activations in a pool of their own, another's outside."""
    inside = Training("pool", layers=3)
    outside = Training("beside-pool", seed=2, layers=3)
    pool = torch.cuda.MemPool()
    for _ in turns(3):
        with torch.cuda.use_mem_pool(pool):
            inside.step()
        outside.step()
    inside.tell()
    outside.tell()


def fraction():
    """PyTorch's own limit is met, the error caught and less asked for."""
    training = Training("fraction")
    total = torch.cuda.mem_get_info()[1]
    torch.cuda.set_per_process_memory_fraction(0.9)
    try:
        torch.empty(total, dtype=torch.uint8, device="cuda")
        print("fraction: no error")
    except torch.OutOfMemoryError:
        print("fraction: refused")
    for _ in turns(2):
        training.step(512)
    training.tell()


def retry():
    """Batches too large for the device, then one that fits."""
    training = Training("retry")
    total = torch.cuda.mem_get_info()[1]
    for _ in turns(3):
        try:
            torch.empty(2 * total, dtype=torch.uint8, device="cuda")
        except torch.OutOfMemoryError:
            print("retry: out of memory", flush=True)
            torch.cuda.empty_cache()
        training.step()
    training.tell()


def rebuilt():
    """A model deleted, and built and trained again."""
    for turn in range(2):
        training = Training(f"rebuilt {turn}", seed=turn)
        for _ in turns(2):
            training.step()
        training.tell()
        del training
        gc.collect()
        if turn:
            torch.cuda.empty_cache()


def by_hand():
    """The script's own allocation, through ctypes, beside PyTorch's."""
    cudart = ctypes.CDLL("libcudart.so.13")
    # Copies that the simulated GPU keeps byte by byte.
    part, parts = MIB // 2, 64

    def call(name, *arguments):
        code = getattr(cudart, name)(*arguments)
        if code:
            raise RuntimeError(f"{name}: {code}")

    def copy(target, source, kind):
        for at in range(0, part * parts, part):
            call(
                "cudaMemcpy",
                ctypes.c_void_p(target + at),
                ctypes.c_void_p(source + at),
                ctypes.c_size_t(part),
                kind,
            )

    training = Training("by-hand")
    source = torch.arange(part * parts // 8, dtype=torch.int64)
    for turn in turns(3):
        address = ctypes.c_void_p()
        size = ctypes.c_size_t(part * parts)
        call("cudaMalloc", ctypes.byref(address), size)
        copy(address.value, source.data_ptr(), 1)
        training.step()
        back = torch.zeros_like(source)
        copy(back.data_ptr(), address.value, 2)
        call("cudaFree", address)
        print("by-hand equal", torch.equal(source, back), flush=True)
        source += turn + 1
    training.tell()


BEHAVIOURS = {
    "plain": plain,
    "empty-cache": empty_cache,
    "memory-pool": memory_pool,
    "fraction": fraction,
    "retry": retry,
    "rebuilt": rebuilt,
    "by-hand": by_hand,
}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("behaviours", nargs="+", choices=sorted(BEHAVIOURS))
    parser.add_argument(
        "--allocator", help="a library with wild_malloc and wild_free"
    )
    parser.add_argument(
        "--segments",
        action="store_true",
        help="say whether PyTorch's segments are expandable",
    )
    args = parser.parse_args()
    if args.allocator:
        torch.cuda.memory.change_current_allocator(
            torch.cuda.memory.CUDAPluggableAllocator(
                args.allocator, "wild_malloc", "wild_free"
            )
        )
    for name in args.behaviours:
        BEHAVIOURS[name]()
        gc.collect()
        torch.cuda.empty_cache()
    if args.segments:
        kept = torch.empty(MIB, device="cuda")
        print(
            "expandable",
            all(s["is_expandable"] for s in torch.cuda.memory_snapshot()),
            flush=True,
        )
        del kept
    if args.allocator:
        library = ctypes.CDLL(args.allocator)
        print("calls", library.wild_calls() > 0, flush=True)


if __name__ == "__main__":
    main()
