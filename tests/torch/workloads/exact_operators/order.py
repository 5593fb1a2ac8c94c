# SPDX-License-Identifier: LGPL-2.1-or-later
"""Sorting, scans and reductions."""

import torch

from .registry import op


# -------------------------------------------------------- sorting and scanning


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


# ------------------------------------------------------------------ reductions


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
