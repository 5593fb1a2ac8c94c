#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Runs a training script as it is and tells what its peak was made of.

Usage: kinds_at_peak.py SCRIPT ARGUMENT...

What a block holds is known from the model and its optimizer, when it was made
from the order of the allocator's events: nothing comes from what tapeswap
sees. The last line, "kinds", holds the bytes of each kind at the peak of the
last step, from one update's end to the next one's.
"""

import json
import runpy
import sys

import torch
from torch.optim import optimizer as optim

ENTRIES_MAX = 1 << 20


# What the allocator rounds requests up to.
ROUNDING = 512


class Step:
    """What is known of the step that is going on."""

    def __init__(self):
        self.marks = []  # (how many events before, part that begins)
        self.live = live_blocks()  # when it began
        self.gradients = {}  # bytes by address, before the update


def live_blocks():
    """Bytes of the allocator's blocks by address."""
    return {
        block["address"]: block["size"]
        for segment in torch.cuda.memory_snapshot()
        for block in segment["blocks"]
        if block["state"] == "active_allocated"
    }


def events():
    """Allocations and frees, in order, since the step began."""
    traces = torch.cuda.memory._snapshot()["device_traces"]
    return [
        entry
        for entry in traces[torch.cuda.current_device()]
        if entry["action"] in ("alloc", "free_requested")
    ]


def starts(tensors):
    return {
        tensor.untyped_storage().data_ptr()
        for tensor in tensors
        if torch.is_tensor(tensor) and tensor.is_cuda
    }


class Watch:
    """Follows one optimizer's steps."""

    def __init__(self):
        self.step = None
        self.kinds = None
        optim.register_optimizer_step_pre_hook(self.before_update)
        optim.register_optimizer_step_post_hook(self.after_update)
        backward = torch.Tensor.backward

        def marked(tensor, *arguments, **more):
            self.mark("backward")
            backward(tensor, *arguments, **more)
            self.mark("forward")

        torch.Tensor.backward = marked

    def mark(self, part):
        if self.step:
            self.step.marks.append((len(events()), part))

    def before_update(self, optimizer, *_):
        self.mark("update")
        if self.step:
            sizes = live_blocks()
            self.step.gradients = {
                start: sizes[start]
                for start in starts(
                    parameter.grad
                    for group in optimizer.param_groups
                    for parameter in group["params"]
                )
            }

    def after_update(self, optimizer, *_):
        if self.step:
            self.kinds = self.tell(optimizer)
        # Turned off and on it forgets what was.
        torch.cuda.memory._record_memory_history(None)
        torch.cuda.memory._record_memory_history(
            "all", context=None, max_entries=ENTRIES_MAX
        )
        self.step = Step()

    def tell(self, optimizer):
        """Bytes of each kind when the step held most."""
        happened = events()
        parameters = starts(
            parameter
            for group in optimizer.param_groups
            for parameter in group["params"]
        )
        state = starts(
            tensor
            for values in optimizer.state.values()
            for tensor in values.values()
        )
        # The last block made at its address before the update is a gradient.
        update = self.step.marks[-1][0]
        gradients = dict.fromkeys(self.step.gradients, -1)
        for number, entry in enumerate(happened[:update]):
            if entry["action"] == "alloc" and entry["addr"] in gradients:
                gradients[entry["addr"]] = number

        def kind_of(address, number):
            """Of the block that event number made; -1: it is older."""
            if gradients.get(address) == number:
                return "gradient"
            if number < 0 and address in parameters:
                return "parameter"
            if number < 0 and address in state:
                return "optimizer"
            if number < 0:
                return "older"
            begun = [part for count, part in self.step.marks if count <= number]
            forward = not begun or begun[-1] == "forward"
            return "activation" if forward else "scratch"

        live = {
            address: (size, kind_of(address, -1))
            for address, size in self.step.live.items()
        }
        total = sum(size for size, _ in live.values())
        peak, at_peak = total, dict(live)
        for number, entry in enumerate(happened):
            address = entry["addr"]
            if entry["action"] != "alloc":
                total -= live.pop(address)[0]
                continue
            kind = kind_of(address, number)
            size = -(-entry["size"] // ROUNDING) * ROUNDING
            if kind == "gradient":
                size = self.step.gradients[address]
            live[address] = (size, kind)
            total += size
            if total > peak:
                peak, at_peak = total, dict(live)
        kinds = {}
        for size, kind in at_peak.values():
            kinds[kind] = kinds.get(kind, 0) + size
        return kinds


def main():
    sys.argv = sys.argv[1:]
    watch = Watch()
    runpy.run_path(sys.argv[0], run_name="__main__")
    print(json.dumps({"kinds": watch.kinds}), flush=True)


if __name__ == "__main__":
    main()
