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


def data_parallel(training):
    training.model = DistributedDataParallel(training.model)


def sharded(training):
    from torch.distributed.fsdp import fully_shard

    for block in training.model:
        fully_shard(block)
    fully_shard(training.model)
    training.optimizer = torch.optim.AdamW(
        training.model.parameters(), lr=1e-3, foreach=False
    )


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
    parser.add_argument("wrapped", choices=("data-parallel", "sharded"))
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
    {"data-parallel": data_parallel, "sharded": sharded}[args.wrapped](
        training
    )
    training.generator.manual_seed(rank)
    for _ in range(args.steps):
        training.step()
    told = [None] * distributed.get_world_size()
    distributed.all_gather_object(told, lines_of(training, args.wrapped))
    if rank == 0:
        for lines in told:
            print("\n".join(lines), flush=True)
        print("digest of all is above", flush=True)
    distributed.destroy_process_group()


if __name__ == "__main__":
    main()
