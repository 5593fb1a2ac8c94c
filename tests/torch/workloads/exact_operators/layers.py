# SPDX-License-Identifier: LGPL-2.1-or-later
"""Normalization, images and losses: what layers are made of."""

import torch
import torch.nn as nn
import torch.nn.functional as F

from .registry import op


# --------------------------------------------------------------- normalization


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


# ---------------------------------------------------------------------- images


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


# ---------------------------------------------------------------------- losses


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
