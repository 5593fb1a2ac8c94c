#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Trains a small network under torch's profiler from the first CUDA call on.

Prints one JSON line: device operations as the profiler counted them, and
what PyTorch's allocator says of its peak.
"""

import collections
import json

import torch


def main():
    activities = [torch.profiler.ProfilerActivity.CUDA]
    with torch.profiler.profile(activities=activities) as profiler:
        model = torch.nn.Sequential(
            torch.nn.Linear(512, 2048), torch.nn.ReLU(),
            torch.nn.Linear(2048, 512),
        ).cuda()
        optimizer = torch.optim.AdamW(model.parameters())
        for _ in range(8):
            batch = torch.ones(256, 512).cuda()
            loss = model(batch).square().mean()
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()
            loss.item()
        torch.cuda.synchronize()
    counts = collections.Counter()
    for event in profiler.events():
        if event.device_type == torch.autograd.DeviceType.CUDA:
            kind = event.name.split(" ")[0]
            counts[kind if kind in ("Memcpy", "Memset") else "kernel"] += 1
    print(
        json.dumps(
            {
                "device": torch.cuda.get_device_name(),
                "torch": torch.__version__,
                "counts": counts,
                "peak_bytes": torch.cuda.max_memory_allocated(),
            }
        )
    )


if __name__ == "__main__":
    main()
