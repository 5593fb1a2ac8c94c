#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""A rank as torchrun starts it: data parallel or sharded, over gloo or nccl.

Each rank writes its losses and a digest to a file of its own beside it, and
rank 0 prints them all at the end.
"""

import argparse
import os

import torch
from torch import distributed
from torch.nn.parallel import DistributedDataParallel

from wild_common import Training


def data_parallel(training, _rank):
    training.model = DistributedDataParallel(training.model)


def sharded(training, _rank):
    from torch.distributed.fsdp import fully_shard

    for block in training.model:
        fully_shard(block)
    fully_shard(training.model)
    training.optimizer = torch.optim.AdamW(
        training.model.parameters(), lr=1e-3, foreach=False
    )


class Graphed:
    """Data parallel, forward and backward with its collectives as a graph;
    beside it another model that is trained without one."""

    WARM_UP = 11  # as many as DDP asks for before a capture

    def __init__(self, training, rank):
        self.inner = Training(training.name + " graphed", seed=2, layers=2)
        side = torch.cuda.Stream()
        with torch.cuda.stream(side):
            data_parallel(self.inner, rank)
            for _ in range(self.WARM_UP):
                self.inner.loss(self.inner.batch()).backward()
        torch.cuda.current_stream().wait_stream(side)
        self.inner.optimizer.zero_grad(set_to_none=True)
        self.batch = self.inner.batch()
        self.inner.generator.manual_seed(rank)
        self.graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(self.graph):
            self.loss = self.inner.loss(self.batch)
            self.loss.backward()
        data_parallel(training, rank)

    def step(self):
        self.batch.copy_(self.inner.batch())
        self.graph.replay()
        self.inner.optimizer.step()
        self.inner.keep(self.loss)


def lines_of(training, wrapped):
    """With shards as plain tensors: each rank has its own part."""
    if wrapped != "sharded":
        return training.lines()
    for parameter in training.model.parameters():
        training.losses.append(
            parameter.to_local().detach().double().sum().item()
        )
    return [f"{training.name} loss {loss!r}" for loss in training.losses]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("wrapped", choices=("data-parallel", "sharded", "graphed"))
    parser.add_argument(
        "--devices", type=int, default=1, help="ranks take turns on them"
    )
    parser.add_argument("--steps", type=int, default=3)
    parser.add_argument("--backend", default="gloo")
    args = parser.parse_args()
    rank = int(os.environ["RANK"])
    torch.cuda.set_device(rank % args.devices)
    distributed.init_process_group(args.backend)
    training = Training(f"rank {rank}")
    wrapped = {
        "data-parallel": data_parallel,
        "sharded": sharded,
        "graphed": Graphed,
    }[args.wrapped](training, rank)
    training.generator.manual_seed(rank)
    lines = []
    for _ in range(args.steps):
        training.step()
        if args.wrapped == "graphed":
            wrapped.step()
    if args.wrapped == "graphed":
        lines = wrapped.inner.lines()
        # Before the communicator that its collectives are of.
        wrapped.graph.reset()
    lines += lines_of(training, args.wrapped)
    told = [None] * distributed.get_world_size()
    distributed.all_gather_object(told, lines)
    if rank == 0:
        for lines in told:
            print("\n".join(lines), flush=True)
        print("digest of all is above", flush=True)
    distributed.destroy_process_group()


if __name__ == "__main__":
    main()
