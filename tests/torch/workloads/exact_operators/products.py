# SPDX-License-Identifier: LGPL-2.1-or-later
"""Matrix products, attention and recurrent layers."""

import torch
import torch.nn as nn
import torch.nn.functional as F

from .registry import op


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
