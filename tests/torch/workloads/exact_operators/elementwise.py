# SPDX-License-Identifier: LGPL-2.1-or-later
"""Element-wise operators, and tensors made from nothing."""

import torch
import torch.nn.functional as F

from .registry import op


@op
def activations(x):
    y = x.real(40, 30)
    return (
        F.relu(y), F.gelu(y), F.gelu(y, approximate="tanh"), F.silu(y),
        y.tanh(), y.sigmoid(),
    )


@op
def activations_leaky(x):
    y = x.real(40, 30)
    return F.leaky_relu(y, 0.1), F.elu(y), F.softplus(y)


@op
def activations_hard(x):
    y = x.real(40, 30)
    return F.relu6(y), F.hardtanh(y), F.hardswish(y), F.hardsigmoid(y)


@op
def activations_smooth(x):
    y = x.real(40, 30)
    return F.mish(y), F.logsigmoid(y)


@op
def glu(x):
    return F.glu(x.real(40, 30), 1)


@op
def prelu(x):
    return F.prelu(x.real(4, 6, 10), x.real(6))


@op
def powers(x):
    y = x.real(40, 30).abs() + 0.5
    return y**2, y**3, y**-1, y**-2, y**0.5, y**1.7, 2**y, y.square()


@op
def exponentials(x):
    y = x.real(40, 30).abs() + 0.5
    return y.exp(), y.log(), y.log2(), y.log1p(), y.expm1(), y.rsqrt()


@op
def trigonometry(x):
    y = x.real(40, 30)
    return y.sin(), y.cos(), y.erf(), y.neg(), y.abs(), y.reciprocal()


@op
def rounding(x):
    y = x.real(40, 30, grad=False) * 4
    return y.floor(), y.ceil(), y.round(), y.trunc(), y.sign(), y.frac()


@op
def arithmetic(x):
    a, b = x.real(40, 30), x.real(30)
    return a + b, a - 2 * b, a * b, a / (b.abs() + 1), 1 - a, 2 / (a.abs() + 1)


@op
def arithmetic_of_integers(x):
    a, b = x.index(40, 30, 20), x.index(9, 30, 20) + 1
    return a + b, a - b, a * b, a // b, a % b, a // 7, a % 7, a / b, -a


@op
def remainders(x):
    a = x.real(30, 20, grad=False)
    return a.remainder(0.7), a.fmod(0.7)


@op
def bits(x):
    a, b = x.index(40, 30, 20), x.index(9, 30, 20)
    return a & b, a | b, a ^ b, ~a, a << 2, a >> 1


@op
def comparisons(x):
    a, b = x.real(40, 30, grad=False), x.real(40, 30, grad=False)
    return a < b, a >= b, a == b, a != 0, a > 0.5, a.isnan(), a.isfinite()


@op
def infinities(x):
    a = x.real(40, 30, grad=False) / x.index(2, 40, 30)
    return a.isinf(), a.isfinite(), torch.nan_to_num(a)


@op
def truth(x):
    a, b = x.truth(40, 30), x.truth(40, 30)
    return a & b, a | b, a ^ b, ~a, a.logical_xor(b), a.logical_not()


@op
def clamps(x):
    y = x.real(40, 30)
    return y.clamp(-1, 0.5), y.clamp(min=0.1), y.clamp(max=0)


@op
def clamps_by_tensor(x):
    return x.real(40, 30).clamp(x.real(40, 30, grad=False) - 1, None)


@op
def pairs(x):
    a, b = x.real(40, 30), x.real(40, 30)
    return torch.maximum(a, b), torch.minimum(a, b), torch.fmax(a, b)


@op
def where(x):
    a, b = x.real(40, 30), x.real(1, 30)
    return torch.where(x.truth(40, 30), a, b), torch.where(a > 0, a, 0.0)


@op
def mixed(x):
    a, b, c = x.real(40, 30), x.real(40, 30), x.real(40, 30)
    return (
        torch.addcmul(a, b, c, value=0.5),
        torch.addcdiv(a, b, c.abs() + 1),
        torch.lerp(a, b, 0.3),
    )


@op
def lerp_by_tensor(x):
    return torch.lerp(x.real(40, 30), x.real(40, 30), x.real(40, 30))


@op
def angles(x):
    a, b = x.real(40, 30), x.real(40, 30)
    return torch.atan2(a, b), torch.hypot(a, b)


@op
def casts(x):
    y = x.real(40, 30, grad=False) * 5
    return (
        y.float(), y.half(), y.bfloat16(), y.double(), y.long(), y.int(),
        y.bool(), x.index(9, 40).float(), x.truth(40).float(), x.truth(9).int(),
    )


@op
def layouts(x):
    y = x.real(6, 20, 30)
    return (
        y.transpose(0, 2).contiguous() * 2, y[:, ::2] + 1, y.permute(1, 2, 0)
        * y[0, 0, :6], y[1:, 3:9].contiguous(), y.expand(2, 6, 20, 30) * 3,
    )


@op
def joins(x):
    a, b = x.real(6, 20), x.real(6, 11)
    return (
        torch.cat([a, b], 1), torch.cat([a, a, a]), torch.stack([a, a], 1),
        torch.cat([a.t(), b.t()]),
    )


@op
def joins_many(x):
    return torch.cat([x.real(5, 1 + i % 3) for i in range(150)], 1)


@op
def splits(x):
    a, b, c = x.real(6, 20, 30).split([5, 10, 15], 2)
    return a, b * 2, c.contiguous()


@op
def paddings(x):
    y = x.real(2, 3, 6, 8)
    return F.pad(y, (1, 2, 0, 3)), F.pad(y, (1, 1), value=2.0)


@op
def paddings_reflect(x):
    y = x.real(2, 3, 6, 8)
    return F.pad(y, (1, 2, 2, 1), "reflect"), F.pad(
        y, (1, 2, 2, 1), "replicate"
    )


@op
def ranges(x):
    d = x.device
    return (
        torch.arange(2000, device=d), torch.arange(0, 3, 0.25, device=d),
        torch.ones(40, device=d), torch.full((9,), 3, device=d),
        torch.eye(7, device=d),
    )


@op
def linspace(x):
    return torch.linspace(0, 1, 33, device=x.device)


@op
def complex_numbers(x):
    a = torch.view_as_complex(x.real(6, 8, 2, dtype=torch.float32))
    b = torch.polar(torch.ones(8, device=x.device), x.real(8).float())
    return torch.view_as_real(a * b)
