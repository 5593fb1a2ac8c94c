#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""A part of a model as a graph, beside training that is none.

Prints losses and a digest for each of the behaviours named as arguments.
"""

import argparse
import gc

import torch

from wild_common import BATCH, WIDTH, Training, turns


def graphed_callables():
    """Two blocks run as graphs, forward and backward; the others do not."""
    training = Training("graphed")
    samples = torch.zeros(BATCH, WIDTH, device="cuda", requires_grad=True)
    for number in (1, 2):
        training.model[number] = torch.cuda.make_graphed_callables(
            training.model[number], (samples,)
        )
    for _ in turns(4):
        training.step()
    training.tell()


def replayed():
    """Inference as a graph that is replayed between steps of training."""
    training = Training("replayed")
    for _ in range(2):
        training.step()
    still = torch.zeros(BATCH // 4, WIDTH, device="cuda")
    graph = torch.cuda.CUDAGraph()
    with torch.no_grad(), torch.cuda.graph(graph):
        loss = training.loss(still)
    for turn in turns(3):
        training.step()
        still.fill_(turn + 1)
        graph.replay()
        print("replayed inference", loss.item(), flush=True)
    training.tell()
    graph.reset()


def compiled():
    """Forward and backward as graphs that torch.compile captures."""
    training = Training("compiled", layers=3)
    plain, training.model = training.model, torch.compile(
        training.model, mode="reduce-overhead"
    )
    for _ in turns(5):
        torch.compiler.cudagraph_mark_step_begin()
        training.step()
    training.model = plain
    training.tell()


BEHAVIOURS = {
    "compiled": compiled,
    "graphed-callables": graphed_callables,
    "replayed-inference": replayed,
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
