#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""What training scripts do with streams, threads and saved tensors.

Prints losses and a digest for each of the behaviours named as arguments.
"""

import argparse
import gc
import threading

import torch
from torch.utils.checkpoint import checkpoint

from wild_common import BATCH, WIDTH, Training, turns


def side_stream():
    """Batches made ready on a stream of their own, given over for good."""
    training = Training("side-stream")
    side = torch.cuda.Stream()
    for _ in turns(4):
        with torch.cuda.stream(side):
            batch = training.batch() * 0.5 + 0.25
            spare = batch.sin()
        torch.cuda.current_stream().wait_stream(side)
        batch.record_stream(torch.cuda.current_stream())
        spare.record_stream(torch.cuda.current_stream())
        loss = training.loss(batch) + spare.mean()
        del batch, spare
        loss.backward()
        training.update()
        training.keep(loss)
    training.tell()


def threads():
    """Two threads train models of their own on streams of their own."""
    trainings = [Training(f"thread {n}", n, layers=3) for n in range(2)]
    torch.cuda.synchronize()
    failures = []

    def train(training):
        try:
            with torch.cuda.stream(torch.cuda.Stream()):
                for _ in turns(3):
                    training.step()
                torch.cuda.current_stream().synchronize()
        except Exception as error:
            failures.append(error)

    running = [
        threading.Thread(target=train, args=(training,))
        for training in trainings
    ]
    for thread in running:
        thread.start()
    for thread in running:
        thread.join()
    if failures:
        raise failures[0]
    for training in trainings:
        training.tell()


def checkpointing():
    training = Training("checkpointing", layers=16)
    for turn in turns(3):
        batch = training.batch()
        hidden = batch.requires_grad_()
        for block in training.model:
            hidden = checkpoint(block, hidden, use_reentrant=turn % 2 == 1)
        loss = (hidden - batch).square().mean()
        loss.backward()
        training.update()
        training.keep(loss)
    training.tell()


def save_on_cpu():
    training = Training("save-on-cpu")
    for turn in turns(3):
        with torch.autograd.graph.save_on_cpu(pin_memory=turn > 0):
            loss = training.loss(training.batch())
        loss.backward()
        training.update()
        training.keep(loss)
    training.tell()


def scaler():
    """Half precision with a scaler, which leaves out what overflows."""
    training = Training("scaler")
    scaler = torch.amp.GradScaler("cuda", init_scale=2.0**10)
    for _ in turns(4):
        with torch.autocast("cuda", dtype=torch.float16):
            loss = training.loss(training.batch())
        scaler.scale(loss).backward()
        scaler.step(training.optimizer)
        scaler.update()
        training.optimizer.zero_grad(set_to_none=True)
        training.keep(loss)
        print("scale", scaler.get_scale(), flush=True)
    training.tell()


def inference():
    training = Training("inference")
    for turn in turns(4):
        training.step()
        if turn % 2:
            training.model.eval()
            with torch.inference_mode():
                batch = torch.ones(BATCH, WIDTH, device="cuda")
                print("inference", training.loss(batch).item(), flush=True)
            training.model.train()
    training.tell()


def two_models():
    """One model learns what the other makes, and the other way round."""
    first = Training("first", layers=3)
    second = Training("second", seed=2, layers=3)
    for _ in turns(3):
        made = first.model(first.batch())
        loss = second.loss(made)
        loss.backward()
        first.update()
        second.update()
        second.keep(loss)
    first.tell()
    second.tell()


BEHAVIOURS = {
    "side-stream": side_stream,
    "threads": threads,
    "checkpointing": checkpointing,
    "save-on-cpu": save_on_cpu,
    "scaler": scaler,
    "inference": inference,
    "two-models": two_models,
}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("behaviours", nargs="+", choices=sorted(BEHAVIOURS))
    args = parser.parse_args()
    for name in args.behaviours:
        BEHAVIOURS[name]()
        gc.collect()
        torch.cuda.empty_cache()


if __name__ == "__main__":
    main()
