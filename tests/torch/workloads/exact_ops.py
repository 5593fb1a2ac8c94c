#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Single operators with exact content, each held against the CPU.

One JSON line an operator: the largest error of its results and gradients,
relative to the largest element of each, or the message of what failed. Each
runs in a process of its own, since a kernel that is missing ends the device.
"""

import argparse
import json
import os
import sys

import torch
import torch.nn as nn
import torch.nn.functional as F

OPS = {}


def op(function):
    OPS[function.__name__] = function
    return function


class Inputs:
    """Makes tensors, the same on every device, from one seed."""

    def __init__(self, device, dtype):
        self.device, self.dtype = device, dtype
        self.generator = torch.Generator().manual_seed(7)
        self.leaves = []

    def real(self, *shape, grad=True, dtype=None):
        x = torch.randn(shape, generator=self.generator)
        x = x.to(dtype or self.dtype).to(self.device)
        if grad:
            self.leaves.append(x.requires_grad_())
        return x

    def index(self, high, *shape):
        x = torch.randint(high, shape, generator=self.generator)
        return x.to(self.device)

    def truth(self, *shape):
        return self.index(2, *shape).bool()

    def permutation(self, n):
        return torch.randperm(n, generator=self.generator).to(self.device)

    def module(self, module):
        module = module.to(self.dtype).to(self.device)
        self.leaves += list(module.parameters())
        return module


# ------------------------------------------------------------------- indices


@op
def embedding_small(x):
    return F.embedding(x.index(50, 64), x.real(50, 24))


@op
def embedding_many(x):
    return F.embedding(x.index(300, 4096), x.real(300, 24))


@op
def embedding_very_many(x):
    return F.embedding(x.index(100, 8, 1500), x.real(100, 40), padding_idx=3)


@op
def embedding_scaled(x):
    return F.embedding(
        x.index(40, 4000), x.real(40, 8), scale_grad_by_freq=True
    )


@op
def embedding_bag(x):
    return F.embedding_bag(x.index(60, 32, 6), x.real(60, 8), mode="sum")


@op
def gather(x):
    return x.real(30, 20).gather(1, x.index(20, 30, 7))


@op
def scatter(x):
    where = torch.stack([x.permutation(20)[:9] for _ in range(30)])
    return x.real(30, 20).scatter(1, where, x.real(30, 9))


@op
def scatter_value(x):
    return x.real(30, 20).scatter(1, x.index(20, 30, 1), 2.5)


@op
def scatter_add(x):
    return x.real(30, 20).scatter_add(1, x.index(20, 30, 9), x.real(30, 9))


@op
def scatter_reduce(x):
    return x.real(30, 20, grad=False).scatter_reduce(
        1, x.index(20, 30, 9), x.real(30, 9, grad=False), "amax"
    )


@op
def index_select(x):
    return x.real(30, 20).index_select(0, x.index(30, 50))


@op
def index_select_inner(x):
    return x.real(30, 20).index_select(1, x.index(20, 11))


@op
def index_add(x):
    return x.real(30, 20).index_add(0, x.index(30, 50), x.real(50, 20))


@op
def index_copy(x):
    return x.real(30, 20).index_copy(0, x.permutation(30)[:9], x.real(9, 20))


@op
def index_fill(x):
    return x.real(30, 20).index_fill(0, x.index(30, 5), 1.5)


@op
def index_get(x):
    return x.real(30, 20)[x.index(30, 12), x.index(20, 12)]


@op
def index_get_rows(x):
    return x.real(30, 4, 5)[x.index(30, 40)]


@op
def index_get_inner(x):
    return x.real(6, 30, 5)[:, x.index(30, 40)]


@op
def index_put(x):
    y = x.real(30, 20, grad=False)
    y[x.permutation(30)[:9]] = x.real(9, 20, grad=False)
    return y


@op
def index_put_accumulate(x):
    y = x.real(30, 20, grad=False)
    return y.index_put(
        (x.index(30, 50),), x.real(50, 20, grad=False), accumulate=True
    )


@op
def index_put_scalar(x):
    y = x.real(30, 20, grad=False)
    y[x.permutation(30)[:9], 3] = 2.0
    return y


@op
def masked_select(x):
    return x.real(30, 20)[x.truth(30, 20)]


@op
def masked_assign(x):
    y = x.real(30, 20, grad=False)
    y[x.truth(30, 20)] = 4.0
    return y


@op
def masked_scatter(x):
    return x.real(30, 20).masked_scatter(
        x.truth(30, 20), x.real(600, grad=False)
    )


@op
def masked_fill(x):
    return x.real(30, 20).masked_fill(x.truth(30, 1), -3.0)


@op
def nonzero(x):
    return x.truth(30, 20).nonzero()


@op
def one_hot(x):
    return F.one_hot(x.index(9, 40), 9)


@op
def take_along(x):
    return torch.take_along_dim(x.real(30, 20), x.index(20, 30, 4), 1)


@op
def take(x):
    return torch.take(x.real(30, 20), x.index(600, 40))


@op
def triangles(x):
    y = x.real(3, 20, 30)
    return y.tril(1), y.triu(-2)


@op
def flip_and_roll(x):
    y = x.real(6, 20, 30)
    return y.flip(1), y.flip(0, 2), y.roll(3, 1), y.roll((1, 2), (0, 2))


@op
def repeat(x):
    y = x.real(6, 20)
    return y.repeat(2, 3), y.repeat_interleave(3, 1)


@op
def repeat_by_tensor(x):
    return x.real(6, 20).repeat_interleave(x.index(4, 6), 0)


@op
def bincount(x):
    return torch.bincount(x.index(9, 200), minlength=12)


@op
def searchsorted(x):
    edges = torch.linspace(-2, 2, 9).to(x.device)
    return torch.bucketize(x.real(50, grad=False, dtype=torch.float32), edges)


# ------------------------------------------------------- sorting and scanning


@op
def sort_rows(x):
    return x.real(20, 50).sort(1)


@op
def sort_columns(x):
    return x.real(50, 20).sort(0, descending=True)


@op
def sort_long(x):
    return x.real(9000).sort()


@op
def sort_long_rows(x):
    return x.real(3, 5000).sort(1, descending=True)


@op
def sort_stable(x):
    return torch.sort(x.index(9, 20, 60), stable=True, dim=1)


@op
def argsort(x):
    return x.real(20, 50, grad=False).argsort(1)


@op
def topk(x):
    return x.real(20, 200).topk(5, 1)


@op
def topk_long(x):
    return x.real(2, 6000).topk(20, 1, largest=False)


@op
def kthvalue(x):
    return x.real(20, 31).kthvalue(7, 1)


@op
def median(x):
    return x.real(20, 31).median(1)


@op
def unique(x):
    return torch.unique(x.index(9, 200), return_counts=True)


@op
def cumsum(x):
    return x.real(20, 50).cumsum(1)


@op
def cumsum_outer(x):
    return x.real(50, 20).cumsum(0)


@op
def cumsum_long(x):
    return x.real(9000).cumsum(0)


@op
def cumsum_bool(x):
    return x.truth(20, 50).cumsum(1), x.truth(30).long().cumsum(0)


@op
def cumprod(x):
    return x.real(20, 12).cumprod(1)


@op
def cummax(x):
    return x.real(20, 12).cummax(1)


@op
def logcumsumexp(x):
    return x.real(20, 12).logcumsumexp(1)


# ----------------------------------------------------------------- reductions


@op
def sums(x):
    y = x.real(6, 20, 30)
    return y.sum(), y.sum(0), y.sum(1), y.sum((0, 2)), y.sum(2, keepdim=True)


@op
def sums_long(x):
    return x.real(40000).sum(), x.real(3, 20000).sum(1)


@op
def sum_of_integers(x):
    return x.index(9, 30, 20).sum(1), x.truth(30, 20).sum()


@op
def means(x):
    y = x.real(6, 20, 30)
    return y.mean(), y.mean(0), y.mean((1, 2))


@op
def variances(x):
    y = x.real(6, 20, 30)
    return y.var(), y.std(1), y.var(2, correction=0)


@op
def var_mean(x):
    return torch.var_mean(x.real(6, 20, 30), 1)


@op
def norms(x):
    y = x.real(20, 30)
    return y.norm(), y.norm(dim=1), y.norm(p=1, dim=0)


@op
def norms_other(x):
    y = x.real(20, 30)
    return y.norm(p=float("inf"), dim=1), y.norm(p=3, dim=0)


@op
def extremes(x):
    y = x.real(20, 30)
    return (*y.max(1), *y.min(0), y.amax(1), y.amin(0), y.max(), y.min())


@op
def arg_extremes(x):
    y = x.real(20, 30, grad=False)
    return y.argmax(1), y.argmin(0), y.argmax()


@op
def min_and_max(x):
    return x.real(20, 30, grad=False).aminmax()


@op
def products_of_all(x):
    y = x.real(20, 6)
    return y.prod(1), y.prod(1).prod()


@op
def any_and_all(x):
    y = x.truth(20, 30)
    return y.any(1), y.all(1), y.any(), y.all(), (y.long() * 3).any(0)


@op
def logsumexp(x):
    return x.real(20, 30).logsumexp(1)


@op
def count_nonzero(x):
    return x.index(3, 20, 30).count_nonzero(1)


# --------------------------------------------------------------- element-wise


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


# -------------------------------------------------------------- normalization


@op
def softmaxes(x):
    y = x.real(9, 50)
    return F.softmax(y, 1), F.log_softmax(y, 1)


@op
def softmaxes_long(x):
    y = x.real(4, 3000)
    return F.softmax(y, 1), F.log_softmax(y, 1)


@op
def softmaxes_inner(x):
    y = x.real(9, 50, 6)
    return F.softmax(y, 1), F.log_softmax(y, 1)


@op
def softmax_wide(x):
    return F.softmax(x.real(9, 50), 1, dtype=torch.float32)


@op
def layer_norms(x):
    y = x.real(40, 64)
    return F.layer_norm(y, (64,), x.real(64), x.real(64)), F.layer_norm(y, (64,))


@op
def layer_norms_odd(x):
    y = x.real(300, 37)
    return F.layer_norm(y, (37,), x.real(37), x.real(37))


@op
def layer_norms_tall(x):
    return F.layer_norm(x.real(3000, 32), (32,), x.real(32), x.real(32))


@op
def rms_norms(x):
    y = x.real(40, 64)
    return F.rms_norm(y, (64,), x.real(64)), F.rms_norm(y, (64,))


@op
def group_norms(x):
    return F.group_norm(x.real(3, 8, 5, 6), 4, x.real(8), x.real(8))


@op
def instance_norms(x):
    return F.instance_norm(x.real(3, 8, 5, 6))


@op
def batch_norm_image(x):
    layer = x.module(nn.BatchNorm2d(8))
    return layer(x.real(5, 8, 6, 7)), layer.running_mean, layer.running_var


@op
def batch_norm_rows(x):
    layer = x.module(nn.BatchNorm1d(8))
    return layer(x.real(50, 8)), layer.running_mean, layer.running_var


@op
def batch_norm_eval(x):
    layer = x.module(nn.BatchNorm2d(8).eval())
    return layer(x.real(5, 8, 6, 7))


@op
def batch_norm_plain(x):
    return F.batch_norm(x.real(5, 8, 6, 7), None, None, training=True)


@op
def batch_norm_channels_last(x):
    y = x.real(5, 8, 6, 7).to(memory_format=torch.channels_last)
    return x.module(nn.BatchNorm2d(8))(y)


# --------------------------------------------------------------------- images


@op
def convolution(x):
    return F.conv2d(x.real(3, 4, 9, 8), x.real(6, 4, 3, 3), x.real(6))


@op
def convolution_strided(x):
    return F.conv2d(
        x.real(3, 4, 9, 8), x.real(6, 4, 3, 3), stride=2, padding=1, dilation=2
    )


@op
def convolution_groups(x):
    return F.conv2d(x.real(3, 4, 9, 8), x.real(6, 2, 3, 3), x.real(6), groups=2)


@op
def convolution_depthwise(x):
    return F.conv2d(
        x.real(3, 4, 9, 8), x.real(4, 1, 3, 3), x.real(4), padding=1, groups=4
    )


@op
def convolution_pointwise(x):
    return F.conv2d(x.real(3, 4, 9, 8), x.real(6, 4, 1, 1), x.real(6))


@op
def convolution_line(x):
    return F.conv1d(x.real(3, 4, 30), x.real(6, 4, 5), x.real(6), padding=2)


@op
def convolution_volume(x):
    return F.conv3d(x.real(2, 3, 5, 6, 7), x.real(4, 3, 2, 3, 3), padding=1)


@op
def convolution_transposed(x):
    return F.conv_transpose2d(
        x.real(3, 4, 5, 6), x.real(4, 6, 3, 3), x.real(6), stride=2, padding=1
    )


@op
def unfold(x):
    return F.unfold(x.real(3, 4, 9, 8), 3, padding=1)


@op
def max_pool(x):
    y = x.real(3, 4, 9, 8)
    return F.max_pool2d(y, 2), F.max_pool2d(y, 3, 2, 1)


@op
def max_pool_channels_last(x):
    y = x.real(3, 4, 9, 8).to(memory_format=torch.channels_last)
    return F.max_pool2d(y, 3, 2, 1)


@op
def max_pool_line(x):
    return F.max_pool1d(x.real(3, 4, 20), 3, 2)


@op
def max_pool_volume(x):
    return F.max_pool3d(x.real(2, 3, 6, 6, 6), 2)


@op
def average_pool(x):
    y = x.real(3, 4, 9, 8)
    return F.avg_pool2d(y, 2), F.avg_pool2d(
        y, 3, 2, 1, count_include_pad=False
    )


@op
def average_pool_channels_last(x):
    y = x.real(3, 4, 9, 8).to(memory_format=torch.channels_last)
    return F.avg_pool2d(y, 3, 2, 1)


@op
def average_pool_line(x):
    return F.avg_pool1d(x.real(3, 4, 20), 3, 2)


@op
def adaptive_average_pool(x):
    y = x.real(3, 4, 9, 8)
    return F.adaptive_avg_pool2d(y, 1), F.adaptive_avg_pool2d(y, (3, 5))


@op
def adaptive_average_pool_channels_last(x):
    y = x.real(3, 4, 9, 8).to(memory_format=torch.channels_last)
    return F.adaptive_avg_pool2d(y, (3, 5))


@op
def adaptive_max_pool(x):
    return F.adaptive_max_pool2d(x.real(3, 4, 9, 8), (3, 5))


@op
def upsample(x):
    y = x.real(3, 4, 5, 6)
    return F.interpolate(y, scale_factor=2, mode="nearest")


@op
def upsample_smooth(x):
    y = x.real(3, 4, 5, 6)
    return F.interpolate(y, scale_factor=2, mode="bilinear")


# --------------------------------------------------------------------- losses


@op
def cross_entropy(x):
    return F.cross_entropy(x.real(40, 9), x.index(9, 40))


@op
def cross_entropy_smooth(x):
    return F.cross_entropy(x.real(40, 9), x.index(9, 40), label_smoothing=0.1)


@op
def cross_entropy_ignored(x):
    return F.cross_entropy(
        x.real(40, 9), x.index(9, 40), x.real(9, grad=False).abs(),
        ignore_index=2,
    )


@op
def cross_entropy_each(x):
    return F.cross_entropy(x.real(40, 9), x.index(9, 40), reduction="none")


@op
def cross_entropy_image(x):
    return F.cross_entropy(x.real(3, 9, 5, 6), x.index(9, 3, 5, 6))


@op
def cross_entropy_soft(x):
    return F.cross_entropy(x.real(40, 9), F.softmax(x.real(40, 9), 1))


@op
def squared_error(x):
    return F.mse_loss(x.real(40, 9), x.real(40, 9))


@op
def absolute_error(x):
    return F.l1_loss(x.real(40, 9), x.real(40, 9)), F.smooth_l1_loss(
        x.real(40, 9), x.real(40, 9)
    )


@op
def huber(x):
    return F.huber_loss(x.real(40, 9), x.real(40, 9))


@op
def binary_cross_entropy(x):
    truth = x.truth(40, 9).to(x.dtype)
    y = x.real(40, 9)
    return F.binary_cross_entropy_with_logits(y, truth)


@op
def binary_cross_entropy_of_shares(x):
    truth = x.truth(40, 9).to(x.dtype)
    return F.binary_cross_entropy(x.real(40, 9).sigmoid(), truth)


@op
def divergence(x):
    return F.kl_div(
        F.log_softmax(x.real(40, 9), 1), F.softmax(x.real(40, 9), 1),
        reduction="batchmean",
    )


@op
def cosine(x):
    return F.cosine_similarity(x.real(40, 9), x.real(40, 9))


@op
def normalize(x):
    return F.normalize(x.real(40, 9), dim=1)


@op
def distances(x):
    return torch.cdist(x.real(4, 9, 5), x.real(4, 7, 5))


# ------------------------------------------------------------------- products


@op
def linear(x):
    return F.linear(x.real(20, 32), x.real(48, 32), x.real(48))


@op
def linear_activated(x):
    y = F.linear(x.real(20, 32), x.real(48, 32), x.real(48))
    return F.gelu(y), F.relu(y)


@op
def addmm_activation(x):
    return torch._addmm_activation(
        x.real(48, grad=False), x.real(20, 32, grad=False),
        x.real(32, 48, grad=False),
    )


@op
def matrix_products(x):
    a, b = x.real(4, 20, 16), x.real(4, 16, 24)
    return a @ b, a @ b[0], a[0] @ b[0, :, 0], torch.baddbmm(
        x.real(20, 24), a, b, beta=0.5, alpha=2
    )


@op
def einsum(x):
    return torch.einsum("bhqd,bkhd->bhqk", x.real(2, 3, 5, 8), x.real(2, 7, 3, 8))


@op
def outer_and_dot(x):
    a, b = x.real(30), x.real(30)
    return torch.outer(a, b), a.dot(b), x.real(20, 30).mv(a)


@op
def attention(x):
    q, k, v = (x.real(2, 4, 24, 16) for _ in range(3))
    return F.scaled_dot_product_attention(q, k, v, is_causal=True)


@op
def attention_masked(x):
    q, k, v = (x.real(2, 4, 24, 16) for _ in range(3))
    mask = x.truth(2, 1, 24, 24) | torch.eye(24, device=x.device).bool()
    return F.scaled_dot_product_attention(q, k, v, attn_mask=mask)


@op
def attention_grouped(x):
    q, k, v = x.real(2, 4, 24, 16), x.real(2, 2, 24, 16), x.real(2, 2, 24, 16)
    return F.scaled_dot_product_attention(q, k, v, enable_gqa=True)


@op
def attention_layer(x):
    layer = x.module(nn.MultiheadAttention(32, 4, batch_first=True))
    y = x.real(3, 10, 32)
    return layer(y, y, y)[0]


@op
def transformer_layer(x):
    layer = nn.TransformerEncoderLayer(32, 4, 64, 0.0, batch_first=True)
    return x.module(layer)(x.real(3, 10, 32))


@op
def recurrent(x):
    return x.module(nn.LSTM(16, 24, batch_first=True))(x.real(3, 7, 16))[0]


@op
def recurrent_gated(x):
    return x.module(nn.GRU(16, 24, batch_first=True))(x.real(3, 7, 16))[0]


# ----------------------------------------------------------------- optimizers


def optimized(x, make):
    """Parameters after three steps with given gradients."""
    shapes = ((30, 20), (30,), (7, 3, 5), (1,))
    parameters = [nn.Parameter(x.real(*s, grad=False)) for s in shapes]
    optimizer = make(parameters)
    for _ in range(3):
        for parameter in parameters:
            parameter.grad = x.real(*parameter.shape, grad=False)
        nn.utils.clip_grad_norm_(parameters, 2.0)
        optimizer.step()
    return tuple(p.detach() for p in parameters)


OPTIMIZERS = {
    "sgd": lambda p: torch.optim.SGD(p, 0.1),
    "sgd_momentum": lambda p: torch.optim.SGD(
        p, 0.1, momentum=0.9, weight_decay=0.01, nesterov=True
    ),
    "sgd_fused": lambda p: torch.optim.SGD(p, 0.1, momentum=0.9, fused=True),
    "sgd_single": lambda p: torch.optim.SGD(
        p, 0.1, momentum=0.9, foreach=False
    ),
    "adam": lambda p: torch.optim.Adam(p, 0.01, weight_decay=0.01),
    "adam_amsgrad": lambda p: torch.optim.Adam(p, 0.01, amsgrad=True),
    "adam_fused": lambda p: torch.optim.Adam(p, 0.01, fused=True),
    "adamw": lambda p: torch.optim.AdamW(p, 0.01),
    "adamw_fused": lambda p: torch.optim.AdamW(p, 0.01, fused=True),
    "adamw_single": lambda p: torch.optim.AdamW(p, 0.01, foreach=False),
    "adamax": lambda p: torch.optim.Adamax(p, 0.01),
    "nadam": lambda p: torch.optim.NAdam(p, 0.01),
    "radam": lambda p: torch.optim.RAdam(p, 0.01),
    "rmsprop": lambda p: torch.optim.RMSprop(p, 0.01, momentum=0.9),
    "adagrad": lambda p: torch.optim.Adagrad(p, 0.1),
    "adagrad_fused": lambda p: torch.optim.Adagrad(p, 0.1, fused=True),
    "adadelta": lambda p: torch.optim.Adadelta(p),
}
for _name, _make in OPTIMIZERS.items():
    OPS[f"optimizer_{_name}"] = lambda x, make=_make: optimized(x, make)


@op
def foreach(x):
    a = [x.real(30, grad=False), x.real(5, 6, grad=False)]
    b = [x.real(30, grad=False), x.real(5, 6, grad=False)]
    return (
        *torch._foreach_add(a, b), *torch._foreach_mul(a, 2.0),
        *torch._foreach_div(a, [2.0, 3.0]), *torch._foreach_abs(a),
        *torch._foreach_lerp(a, b, 0.3), *torch._foreach_neg(a),
        *torch._foreach_maximum(a, 0.1), *torch._foreach_addcmul(a, b, b, 2.0),
    )


@op
def foreach_norms(x):
    a = [x.real(70000, grad=False), x.real(5, 6, grad=False)]
    return (
        *torch._foreach_norm(a), *torch._foreach_norm(a, 1),
        *torch._foreach_norm(a, float("inf")),
    )


@op
def foreach_max(x):
    return torch._foreach_max([x.real(70000, grad=False), x.real(9, grad=False)])


@op
def foreach_copy(x):
    a = [torch.zeros(30, device=x.device), torch.zeros(5, device=x.device)]
    torch._foreach_copy_(a, [x.real(30, grad=False), x.real(5, grad=False)])
    torch._foreach_zero_([a[1]])
    return tuple(a)


@op
def gradient_scaler(x):
    """Finite gradients, then one that is not; the CPU has a scaler as well."""
    weight = nn.Parameter(x.real(30, 20, grad=False, dtype=torch.float32))
    optimizer = torch.optim.SGD([weight], 0.1)
    scaler = torch.amp.GradScaler(x.device, init_scale=2.0**10)
    out = []
    for step in range(3):
        loss = (x.real(40, 30, grad=False, dtype=torch.float32) @ weight).sum()
        if step == 1:
            loss = loss * float("inf")
        optimizer.zero_grad()
        scaler.scale(loss).backward()
        scaler.unscale_(optimizer)
        nn.utils.clip_grad_norm_([weight], 1.0)
        scaler.step(optimizer)
        scaler.update()
        out += [weight.detach().clone(), torch.tensor(scaler.get_scale())]
    return tuple(out)


@op
def averaged_model(x):
    model = nn.Linear(6, 5)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.copy_(x.real(*parameter.shape, grad=False).cpu())
    model.to(x.device)
    average = torch.optim.swa_utils.AveragedModel(model)
    average.update_parameters(model)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.mul_(2)
    average.update_parameters(model)
    return tuple(p.detach() for p in average.module.parameters())


# ------------------------------------------------------------------- the runs


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
    """compare() in a child; its line, or what it said last."""
    read, write = os.pipe()
    child = os.fork()
    if not child:
        os.close(read)
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
    return json.loads(text) if text else {"failed": f"wait status {status}"}


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
