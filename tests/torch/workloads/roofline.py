#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Times matrix products and attention with CUDA events.

One JSON line each: what was timed, its floating-point operations and its
milliseconds. The sizes are such that arithmetic, not memory, sets the time.
"""

import json

import torch
import torch.nn.functional as F

REPEAT = 10


def timed(name, flops, function):
    function()
    start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    start.record()
    for _ in range(REPEAT):
        function()
    end.record()
    end.synchronize()
    ms = start.elapsed_time(end) / REPEAT
    print(json.dumps({"name": name, "flops": flops, "ms": ms}), flush=True)


def products():
    side = 8192
    for name in "bfloat16", "float16", "float32":
        a, b = torch.empty(
            2, side, side, dtype=getattr(torch, name), device="cuda"
        )
        timed(f"gemm-{name}", 2 * side**3, lambda: a @ b)
    batch, side = 16, 2048
    a, b = torch.empty(
        2, batch, side, side, dtype=torch.bfloat16, device="cuda"
    )
    timed("bmm-bfloat16", 2 * batch * side**3, lambda: torch.bmm(a, b))


def attention():
    batch, heads, length, width = 4, 16, 4096, 64
    q, k, v = torch.empty(
        3,
        batch,
        heads,
        length,
        width,
        dtype=torch.bfloat16,
        device="cuda",
    )
    whole = 4 * batch * heads * length**2 * width
    timed(
        "flash-forward",
        whole,
        lambda: F.scaled_dot_product_attention(q, k, v),
    )
    timed(
        "flash-forward-causal",
        whole // 2,
        lambda: F.scaled_dot_product_attention(q, k, v, is_causal=True),
    )
    for tensor in q, k, v:
        tensor.requires_grad_()
    out = F.scaled_dot_product_attention(q, k, v)
    gradient = torch.empty_like(out)

    def backward():
        # Not torch.autograd.grad: what it returns may be freed by autograd's
        # thread while the interpreter ends, which aborts the process.
        out.backward(gradient, retain_graph=True)
        q.grad = k.grad = v.grad = None

    # The backward kernel computes five products where forward has two.
    timed("flash-backward", whole * 5 // 2, backward)


if __name__ == "__main__":
    products()
    attention()
