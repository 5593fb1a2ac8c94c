#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Single operators with exact content, each held against the CPU.

One JSON line an operator: the largest error of its results and gradients,
relative to the largest element of each, or the message of what failed and the
kernel or function that is missing. Each runs in a process of its own, since a
kernel that is missing ends the device.
"""

import argparse
import json
import os
import re
import sys
import tempfile

import torch

from exact_operators import OPS, Inputs

REFUSED = re.compile(
    r"no implementation of kernel .*|simgpu: \w+ is not supported"
)


def run(name, device, dtype):
    """Results, then gradients, on the CPU in double."""
    torch.manual_seed(5)
    inputs = Inputs(device, dtype)
    out = OPS[name](inputs)
    out = [out] if torch.is_tensor(out) else list(out)
    generator = torch.Generator().manual_seed(9)
    parts = [t for t in out if t.requires_grad]
    leaves = [leaf for leaf in inputs.leaves if leaf.requires_grad]
    if parts and leaves:
        loss = 0
        for t in parts:
            weight = torch.randn(t.shape, generator=generator)
            loss = loss + (t * weight.to(t.dtype).to(device)).sum()
        grads = torch.autograd.grad(loss, leaves, allow_unused=True)
        out += [g for g in grads if g is not None]
    return [t.detach().cpu() for t in out]


def difference(seen, wanted):
    if seen.shape != wanted.shape or seen.dtype != wanted.dtype:
        raise ValueError(f"{seen.shape} {seen.dtype}, not {wanted.shape}"
                         f" {wanted.dtype}")
    seen, wanted = seen.double(), wanted.double()
    odd = ~wanted.isfinite()
    if not torch.equal(seen[odd].nan_to_num(), wanted[odd].nan_to_num()):
        return float("inf")
    if not wanted[~odd].numel():
        return 0.0
    largest = max(wanted[~odd].abs().max().item(), 1e-3)
    return (seen - wanted)[~odd].abs().max().item() / largest


def compare(name, dtype):
    seen = run(name, "cuda", dtype)
    wanted = run(name, "cpu", dtype)
    if len(seen) != len(wanted):
        raise ValueError(f"{len(seen)} results, not {len(wanted)}")
    errors = [difference(a, b) for a, b in zip(seen, wanted)]
    return {"error": max(errors), "results": len(errors)}


def apart(name, dtype):
    """compare() in a child; its line, or what it said last. A kernel or a
    function that it was refused is named."""
    read, write = os.pipe()
    with tempfile.TemporaryFile("w+", errors="replace") as said:
        child = os.fork()
        if not child:
            os.close(read)
            os.dup2(said.fileno(), sys.stderr.fileno())
            try:
                line = compare(name, dtype)
            except Exception as error:  # whatever it is, the parent reports it
                line = {"failed": f"{type(error).__name__}: {error}"[:300]}
            os.write(write, json.dumps(line).encode())
            os._exit(0)
        os.close(write)
        with os.fdopen(read, "rb") as pipe:
            text = pipe.read()
        status = os.waitpid(child, 0)[1]
        said.seek(0)
        errors = said.read()
    sys.stderr.write(errors)
    line = json.loads(text) if text else {"failed": f"wait status {status}"}
    if refused := REFUSED.search(errors):
        line["refused"] = refused[0]
    return line


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("ops", nargs="*", metavar="OP", help="default: all")
    parser.add_argument("--dtype", default="float32")
    args = parser.parse_args()
    dtype = getattr(torch, args.dtype)
    for name in args.ops or OPS:
        line = {"op": name, **apart(name, dtype)}
        print(json.dumps(line), flush=True)
        sys.stderr.flush()


if __name__ == "__main__":
    main()
