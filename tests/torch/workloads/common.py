# SPDX-License-Identifier: LGPL-2.1-or-later
"""What the workload scripts share: one JSON line a step on stdout."""

import json

import torch


def report(step, loss, **more):
    """Print a step's loss (a tensor or a number) and PyTorch's memory peaks."""
    if torch.is_tensor(loss):
        loss = loss.item()
    line = {
        "step": step,
        "loss": loss,
        "max_memory_allocated": torch.cuda.max_memory_allocated(),
        "max_memory_reserved": torch.cuda.max_memory_reserved(),
    }
    line.update(more)
    print(json.dumps(line), flush=True)


class Laps:
    """Time of the device from one step's end to the next one's, if wanted."""

    def __init__(self, wanted):
        self.wanted = wanted
        self.last = None

    def lap(self):
        """What to report of the step that ends here."""
        if not self.wanted:
            return {}
        now = torch.cuda.Event(enable_timing=True)
        now.record()
        now.synchronize()
        last, self.last = self.last, now
        return {"ms": last.elapsed_time(now)} if last else {}


def add_laps(parser):
    parser.add_argument(
        "--laps", action="store_true", help="report the time of each step"
    )


def add_digest(parser):
    parser.add_argument(
        "--digest",
        action="store_true",
        help="print a hash of all tensors at the end (tests/torch/digest.py)",
    )


def finish(args, model, *optimizers):
    """What scripts do at their end: with --digest, print one."""
    if args.digest:
        from digest import digest

        print("digest", digest(model, *optimizers), flush=True)


def tokens(vocabulary, batch, length, generator):
    """Random token ids on the device, drawn on the CPU."""
    ids = torch.randint(vocabulary, (batch, length), generator=generator)
    return ids.cuda()
