#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Every matrix and vector product PyTorch has, in every type cuBLAS has.

One JSON line a product: its name, the rate of the device it is bound by, its
floating-point operations and its milliseconds by CUDA events.
"""

import json

import torch
import torch.nn.functional as F

SIDE = 2048
BATCH = 4
RATES = {
    torch.float64: "f64",
    torch.float32: "f32",
    torch.float16: "f16",
    torch.bfloat16: "bf16",
    torch.complex64: "f32",
    torch.complex128: "f64",
}


def timed(name, rate, flops, function):
    function()  # the allocations of a first call are not part of it
    start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    start.record()
    function()
    end.record()
    end.synchronize()
    ms = start.elapsed_time(end)
    line = {"name": name, "rate": rate, "flops": flops, "ms": ms}
    print(json.dumps(line), flush=True)


def matrices(dtype, batch=None):
    shape = (SIDE, SIDE) if batch is None else (batch, SIDE, SIDE)
    return (torch.empty(shape, dtype=dtype, device="cuda") for _ in range(3))


def flops_of(dtype, batch=1):
    return (8 if dtype.is_complex else 2) * batch * SIDE**3


def products(prefix, dtype, rate):
    a, b, c = matrices(dtype)
    whole = flops_of(dtype)
    timed(f"{prefix}-mm", rate, whole, lambda: torch.mm(a, b.mT))
    timed(f"{prefix}-addmm", rate, whole, lambda: torch.addmm(c, a, b))
    a, b, c = matrices(dtype, BATCH)
    whole = flops_of(dtype, BATCH)
    timed(f"{prefix}-bmm", rate, whole, lambda: torch.bmm(a.mT, b))
    timed(f"{prefix}-baddbmm", rate, whole, lambda: torch.baddbmm(c, a, b))


def fused(prefix, dtype, rate):
    a, b, _ = matrices(dtype)
    bias = torch.empty(SIDE, dtype=dtype, device="cuda")
    whole = flops_of(dtype)
    timed(f"{prefix}-linear", rate, whole, lambda: F.linear(a, b, bias))
    timed(f"{prefix}-addmm-bias", rate, whole, lambda: torch.addmm(bias, a, b))
    for gelu in False, True:
        timed(
            f"{prefix}-{'gelu' if gelu else 'relu'}",
            rate,
            whole,
            lambda: torch._addmm_activation(bias, a, b, use_gelu=gelu),
        )


def cut_along_k(prefix, dtype, rate):
    """Few tiles and a long k: two kernels, and the workspace between."""
    side, length = 256, 1 << 18
    a, b = (
        torch.empty(side, length, dtype=dtype, device="cuda") for _ in "ab"
    )
    whole = 2 * side**2 * length
    timed(f"{prefix}-long", rate, whole, lambda: torch.mm(a, b.mT))


def vectors(prefix, dtype, rate):
    a, _, _ = matrices(dtype)
    x = torch.empty(SIDE, dtype=dtype, device="cuda")
    timed(f"{prefix}-mv", rate, 2 * SIDE**2, lambda: torch.mv(a, x))
    timed(f"{prefix}-dot", rate, 2 * SIDE, lambda: torch.dot(x, x))
    timed(f"{prefix}-outer", rate, SIDE**2, lambda: torch.outer(x, x))


def mixed():
    a = torch.empty(SIDE, SIDE, dtype=torch.bfloat16, device="cuda")
    whole = flops_of(a.dtype)
    timed(
        "bf16-to-f32-mm",
        "bf16",
        whole,
        lambda: torch.mm(a, a, out_dtype=torch.float32),
    )
    timed(
        "bf16-to-f32-bmm",
        "bf16",
        whole,
        lambda: torch.bmm(a[None], a[None], out_dtype=torch.float32),
    )
    a = torch.empty(SIDE, SIDE, dtype=torch.int8, device="cuda")
    timed("i8-mm", "i8", whole, lambda: torch._int_mm(a, a.mT))


def main():
    torch.backends.cuda.matmul.allow_tf32 = False
    for dtype, rate in RATES.items():
        name = str(dtype).removeprefix("torch.")
        products(name, dtype, rate)
        vectors(name, dtype, rate)
        if not dtype.is_complex:
            fused(name, dtype, rate)
            cut_along_k(name, dtype, rate)
    mixed()
    torch.backends.cuda.matmul.allow_tf32 = True
    products("tf32", torch.float32, "tf32")
    fused("tf32", torch.float32, "tf32")
    torch.backends.cuda.matmul.allow_fp16_accumulation = True
    products("float16-accumulated", torch.float16, "f16")
    torch.backends.cuda.preferred_blas_library("cublaslt")
    products("lt-float16", torch.float16, "f16")
    products("lt-bfloat16", torch.bfloat16, "bf16")
    products("lt-tf32", torch.float32, "tf32")


if __name__ == "__main__":
    main()
