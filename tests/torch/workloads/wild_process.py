#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Training scripts that are more than one process.

Prints losses and a digest for each of the behaviours named as arguments; what
a child process prints comes in the order of the children.
"""

import argparse
import os
import sys
import tempfile

import torch
from torch import distributed, multiprocessing
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, Dataset

from wild_common import BATCH, WIDTH, Training, turns

CHILDREN = 2


class Rows(Dataset):
    """Rows that follow from their number."""

    def __len__(self):
        return 3 * BATCH // 4

    def __getitem__(self, number):
        return torch.full((WIDTH,), number / len(self))


def loader():
    """Workers forked after CUDA has started, batches through pinned memory."""
    training = Training("loader")
    training.step()
    batches = DataLoader(
        Rows(), batch_size=BATCH // 4, num_workers=2, pin_memory=True
    )
    for batch in batches:
        loss = training.loss(batch.to("cuda", non_blocking=True).repeat(4, 1))
        loss.backward()
        training.update()
        training.keep(loss)
    training.tell()


def forked():
    """A child forked after CUDA has started, which leaves it alone."""
    training = Training("forked")
    training.step()
    sys.stdout.flush()
    child = os.fork()
    if not child:
        print("child", torch.ones(8).sum().item(), flush=True)
        os._exit(3)
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    print("child ended with", status, flush=True)
    training.step()
    training.tell()


def child(rank, queue):
    training = Training(f"spawned {rank}", seed=rank)
    for _ in turns(3):
        training.step()
    queue.put((rank, training.lines()))


def run_children(function, *arguments):
    """Two processes; the parent only waits for them."""
    context = multiprocessing.get_context("spawn")
    queue = context.SimpleQueue()
    children = [
        context.Process(target=function, args=(rank, queue, *arguments))
        for rank in range(CHILDREN)
    ]
    for process in children:
        process.start()
    told = dict(queue.get() for _ in children)
    for process in children:
        process.join()
        if process.exitcode:
            raise SystemExit(f"a child ended with {process.exitcode}")
    for rank in range(CHILDREN):
        print("\n".join(told[rank]), flush=True)


def spawned():
    """A model in each of two processes."""
    run_children(child)


def rank_of_two(rank, queue, folder):
    """One of two processes that keep their models the same."""
    distributed.init_process_group(
        "gloo",
        init_method=f"file://{folder}/meet",
        rank=rank,
        world_size=CHILDREN,
    )
    training = Training(f"rank {rank}")
    wrapped = DistributedDataParallel(training.model)
    training.generator.manual_seed(rank)
    for _ in turns(3):
        batch = training.batch()
        loss = (wrapped(batch) - batch).square().mean()
        loss.backward()
        training.update()
        training.keep(loss)
    queue.put((rank, training.lines()))
    distributed.destroy_process_group()


def data_parallel():
    with tempfile.TemporaryDirectory() as folder:
        run_children(rank_of_two, folder)


BEHAVIOURS = {
    "loader": loader,
    "forked": forked,
    "spawned": spawned,
    "data-parallel": data_parallel,
}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("behaviours", nargs="+", choices=sorted(BEHAVIOURS))
    args = parser.parse_args()
    for name in args.behaviours:
        BEHAVIOURS[name]()


if __name__ == "__main__":
    main()
