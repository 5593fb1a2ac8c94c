# SPDX-License-Identifier: LGPL-2.1-or-later
"""Operators that look up, place and rearrange by index."""

import torch
import torch.nn.functional as F

from .registry import op


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
def transposed_in_tiles(x):
    """Matrices of a million elements, which have a kernel of their own."""
    y = x.real(2048, 512)
    kinds = torch.bfloat16, torch.float64, torch.int8
    return (
        y.t().contiguous(),
        y[:1600, :396].t().contiguous(),
        *((y * 20).to(kind).t().contiguous() for kind in kinds),
    )


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
