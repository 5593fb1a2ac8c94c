#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Trains a GPT, the same in every run to the last bit.

Prints one JSON line: losses as hexadecimal floats, a sum over all parameters,
and what NVML says this process uses on its device, asked every 10 ms by a
thread: at first, with nothing but a context, and at most.
"""

import argparse
import ctypes
import json
import os
import pathlib
import sys
import threading

os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")

import torch  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "scripts/examples"))

import train_gpt  # noqa: E402

INTERVAL_SECONDS = 0.01
PROCESSES_MAX = 256


class ProcessInfo(ctypes.Structure):
    _fields_ = [
        ("pid", ctypes.c_uint),
        ("used", ctypes.c_ulonglong),
        ("instance", ctypes.c_uint),
        ("compute_instance", ctypes.c_uint),
    ]


class Watch(threading.Thread):
    """What this process uses of device 0, by NVML."""

    def __init__(self):
        super().__init__(daemon=True)
        self.nvml = ctypes.CDLL("libnvidia-ml.so.1")
        self.device = ctypes.c_void_p()
        self.call("nvmlInit_v2")
        self.call(
            "nvmlDeviceGetHandleByIndex_v2", 0, ctypes.byref(self.device)
        )
        self.over = threading.Event()
        self.samples = 0
        self.peak = self.first = self.used()

    def call(self, name, *arguments):
        rc = getattr(self.nvml, name)(*arguments)
        if rc:
            raise RuntimeError(f"{name}: {rc}")

    def used(self):
        infos = (ProcessInfo * PROCESSES_MAX)()
        count = ctypes.c_uint(PROCESSES_MAX)
        self.call(
            "nvmlDeviceGetComputeRunningProcesses_v3",
            self.device, ctypes.byref(count), infos,
        )
        pid = os.getpid()
        return sum(i.used for i in infos[: count.value] if i.pid == pid)

    def run(self):
        while not self.over.wait(INTERVAL_SECONDS):
            self.peak = max(self.peak, self.used())
            self.samples += 1

    def end(self):
        self.over.set()
        self.join()


def parse():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=6)
    steps = parser.parse_args().steps
    sys.argv[1:] = [
        "--layers", "8", "--width", "512", "--batch", "16",
        "--attention", "manual", "--dropout", "0.1",
        "--steps", str(steps),
    ]
    return train_gpt.parse()


def main():
    args = parse()
    torch.use_deterministic_algorithms(True)
    torch.manual_seed(args.seed)
    torch.zeros(1, device="cuda")
    watch = Watch()
    watch.start()
    model = train_gpt.GPT(args).cuda()
    # One tensor at a time: its working set is no floor then.
    optimizer = torch.optim.AdamW(
        model.parameters(), lr=args.lr, foreach=False
    )
    text = train_gpt.Text(args, args.seed + 1)
    losses = []
    for _ in range(args.steps):
        loss = model(*text.batch("cuda"))
        loss.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        losses.append(loss.item().hex())
    with torch.no_grad():
        total = sum(p.double().sum().item() for p in model.parameters())
    torch.cuda.synchronize()
    watch.end()
    print(
        json.dumps(
            {
                "losses": losses,
                "parameters": float(total).hex(),
                "first_bytes": watch.first,
                "peak_bytes": watch.peak,
                "samples": watch.samples,
            }
        )
    )


if __name__ == "__main__":
    main()
