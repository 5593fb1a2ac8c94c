# SPDX-License-Identifier: LGPL-2.1-or-later
"""Operators for kernel_operands.py, by family of kernels."""

from dataclasses import dataclass, field
from typing import Callable

import torch
import torch.nn.functional as F

aten = torch.ops.aten


@dataclass
class Case:
    """make() returns the arguments of run(), whose results are written."""

    name: str
    make: Callable
    run: Callable
    kernel: str = ""  # a pattern that one of the kernels' names fits
    unread: tuple = field(default=())  # arguments that are not read
    temporaries: bool = False  # memory of its own is touched besides
    gaps: bool = False  # strided: gaps may be touched


@dataclass
class Pair:
    """Two runs on the same arguments that must not give the same result."""

    name: str
    make: Callable
    first: Callable
    second: Callable


CASES = []
PAIRS = []


def case(name, run, *make, **more):
    """make: functions that make the arguments, or the arguments."""

    def arguments():
        return [m() if callable(m) else m for m in make]

    CASES.append(Case(name, arguments, run, **more))


def pair(name, first, second, *make):
    PAIRS.append(Pair(name, lambda: [m() for m in make], first, second))


def new(*shape, dtype=torch.float32):
    return lambda: torch.empty(shape, dtype=dtype, device="cuda")


def half(*shape):
    return new(*shape, dtype=torch.bfloat16)


def ints(*shape):
    return new(*shape, dtype=torch.int64)


def flags(*shape):
    return new(*shape, dtype=torch.bool)


def many(count, *shape, dtype=torch.float32):
    return lambda: [new(*shape, dtype=dtype)() for _ in range(count)]


# ------------------------------------------------------- elementwise, by shape

for kind in torch.float32, torch.bfloat16, torch.float16, torch.float64:
    name = str(kind).rpartition(".")[2]
    case(f"add/{name}", torch.add, new(1027, dtype=kind),
         new(1027, dtype=kind), kernel="*vectorized_elementwise_kernel*")
    case(f"fill/{name}", lambda a: a.fill_(2), new(777, dtype=kind),
         unread=(0,), kernel="*FillFunctor*")
    case(f"sum/{name}", lambda a: a.sum(1), new(37, 65, dtype=kind),
         kernel="*reduce_kernel*")
case("add_/in place", lambda a, b: a.add_(b), new(513), new(513))
case("add/long", torch.add, ints(130), ints(130))
case("add/scalar", lambda a: a + 1.5, new(99))
case("add/one element", torch.add, new(1), new(1))
case("mul/mixed types", torch.mul, new(64, 65), half(64, 65),
     kernel="*unrolled_elementwise_kernel*")
case("add/mixed types, strided", torch.add, new(64, 65),
     lambda: half(65, 64)().t(), kernel="*elementwise_kernel*")
case("add/broadcast", torch.add, new(31, 1, 7), new(31, 5, 7),
     kernel="*gpu_kernel_impl_nocast*")
case("mul/row", torch.mul, new(40, 24), new(24))
case("copy/transposed", lambda a: a.t().contiguous(), new(40, 24),
     kernel="*direct_copy_kernel_cuda*")
# Matrices of many elements, since PyTorch 2.15 or before.
TILED = "*" if torch.__version__ < "2.12" else "*transpose_copy_tiled_kernel*"
for kind in torch.float32, torch.bfloat16, torch.float64, torch.uint8:
    name = str(kind).rpartition(".")[2]
    case(f"copy/transposed, tiles/{name}", lambda a: a.t().contiguous(),
         new(2048, 512, dtype=kind), kernel=TILED)
    case(f"copy/transposed, tiles, part/{name}",
         lambda a: a[:1600, :768].t().contiguous(),
         new(2048, 1024, dtype=kind), kernel=TILED, unread=(0,), gaps=True)
case("copy/to rows apart", lambda a, b: a[::2].copy_(b),
     new(40, 24), new(20, 24), unread=(0,))
case("copy/to columns", lambda a, b: a[:, 3:9].copy_(b),
     new(400, 24), new(400, 6), unread=(0,), gaps=True)
case("copy/of columns", lambda a: a[:, 3:9].contiguous(), new(40, 24),
     unread=(0,), gaps=True)
for a, b in (
    (torch.float32, torch.bfloat16),
    (torch.bfloat16, torch.float32),
    (torch.float16, torch.float32),
    (torch.int64, torch.float32),
    (torch.bool, torch.int64),
    (torch.float32, torch.float64),
):
    case(f"convert/{a} to {b}".replace("torch.", ""),
         lambda x, to=b: x.to(to), new(345, dtype=a))

# ----------------------------------------------------- elementwise, by functor

for name in (
    "relu", "sigmoid", "tanh", "exp", "log", "sqrt", "rsqrt", "neg", "abs",
    "sin", "cos", "reciprocal", "floor", "erf", "sign", "square", "isnan",
):
    case(name, getattr(torch, name), new(771))
for name in "gelu", "silu", "softplus", "leaky_relu", "elu", "hardtanh", \
        "hardswish", "mish", "logsigmoid":
    case(name, getattr(F, name), new(771), temporaries=name == "logsigmoid")
for name in "maximum", "minimum", "div", "sub", "eq", "lt", "ne", "pow", \
        "atan2", "logical_and":
    case(name, getattr(torch, name), new(345), new(345))
case("gelu backward", aten.gelu_backward, new(771), new(771))
case("silu backward", aten.silu_backward, half(771), half(771))
case("tanh backward", aten.tanh_backward, new(771), new(771))
case("sigmoid backward", aten.sigmoid_backward, new(771), new(771))
case("relu backward", lambda g, x: aten.threshold_backward(g, x, 0),
     new(771), new(771))
case("prelu backward", aten._prelu_kernel_backward, new(771), new(771),
     new(771))
case("clamp", lambda a: a.clamp(0, 1), new(345))
case("clamp/max", lambda a: a.clamp(max=1), half(345))
case("pow/square", lambda a: a.pow(2), new(345))
case("pow/cube", lambda a: a.pow(3), new(345))
case("pow/2.5", lambda a: a.pow(2.5), new(345))
case("where", torch.where, flags(345), new(345), new(345))
case("masked_fill_", lambda a, m: a.masked_fill_(m, -1.0), half(7, 9),
     flags(7, 9))
case("masked_fill_/broadcast", lambda a, m: a.masked_fill_(m, -1.0),
     new(3, 7, 9), flags(7, 9))
case("addcmul", torch.addcmul, new(99), new(99), new(99))
case("addcdiv", torch.addcdiv, new(99), new(99), new(99))
case("lerp", lambda a, b: torch.lerp(a, b, 0.3), new(99), new(99))
case("mse", lambda a, b: aten.mse_loss(a, b, 0), new(99), new(99))
case("smooth l1", lambda a, b: aten.smooth_l1_loss(a, b, 0), new(99),
     new(99))
case("binary cross entropy",
     lambda a, b: F.binary_cross_entropy_with_logits(a, b), new(99), new(99),
     temporaries=True)
case("bitwise_not", torch.bitwise_not, flags(99))
case("triu", torch.triu, new(9, 11))
case("tril", torch.tril, half(9, 11))
case("arange/long", lambda: torch.arange(77, device="cuda"))
case("arange/float", lambda: torch.arange(0.5, 77, device="cuda"))
case("arange/int", lambda: torch.arange(
    77, device="cuda", dtype=torch.int32))
case("zeros", lambda: torch.zeros(2000, device="cuda").add_(1))

# ---------------------------------------------------------------- reductions

case("sum/all", torch.sum, new(5000))
case("sum/all, large", torch.sum, new(3000000), temporaries=True)
case("sum/first", lambda a: a.sum(0), half(300, 70))
case("sum/rows of many", lambda a: a.sum(0), new(20000, 70),
     temporaries=True)
case("sum/outer and inner", lambda a: a.sum((0, 2)), new(9, 5, 7))
case("sum/strided", lambda a: a.t().sum(1), new(9, 50))
case("mean", lambda a: a.mean(-1), new(9, 50))
case("norm", lambda a: a.norm(), new(4000), temporaries=True)
case("var", lambda a: a.var(1), new(9, 50))
case("amax", lambda a: a.amax(1), new(9, 50))
case("max", lambda a: a.max(), new(900))
case("max/with index", lambda a: list(a.max(1)), new(9, 50))
case("argmax", lambda a: a.argmax(1), new(9, 50))
case("all", lambda a: a.all(), flags(900))
case("any", lambda a: a.any(1), flags(9, 100))
case("cumsum/inner", lambda a: a.cumsum(1), ints(9, 50))
case("cumsum/outer", lambda a: a.cumsum(0), new(9, 50))

# -------------------------------------------------------------------- random

case("normal_", lambda a: a.normal_(), new(999), unread=(0,),
     kernel="*distribution_elementwise_grid_stride_kernel*")
case("uniform_", lambda a: a.uniform_(-1, 2), half(999), unread=(0,))
case("bernoulli_", lambda a: a.bernoulli_(0.3), new(999), unread=(0,))
case("exponential_", lambda a: a.exponential_(), new(999), unread=(0,))
case("random_", lambda a: a.random_(10), ints(999), unread=(0,))
case("randint", lambda: torch.randint(5, (77,), device="cuda"))
case("randperm", lambda: torch.randperm(77, device="cuda"),
     temporaries=True)
case("dropout", lambda a: aten.native_dropout(a, 0.3, True), new(64, 64),
     kernel="*fused_dropout_kernel_vec*")
case("dropout/odd", lambda a: aten.native_dropout(a, 0.3, True),
     half(63, 7), kernel="*fused_dropout_kernel*")
case("dropout backward",
     lambda g, m: aten.native_dropout_backward(g, m, 1.5), half(64, 64),
     flags(64, 64), kernel="*masked_scale_kernel*")

# ------------------------------------------------------------- normalisation

case("layer_norm",
     lambda x, w, b: aten.native_layer_norm(x, (64,), w, b, 1e-5),
     new(9, 64), new(64), new(64), kernel="*vectorized_layer_norm_kernel*")
case("layer_norm/odd",
     lambda x, w, b: aten.native_layer_norm(x, (63,), w, b, 1e-5),
     new(9, 63), new(63), new(63), temporaries=True)


def layer_norm_backward(g, x, mean, rstd, w, b):
    return aten.native_layer_norm_backward(
        g, x, (x.shape[-1],), mean, rstd, w, b, (True, True, True)
    )


for rows, width in (9, 64), (300, 64), (5000, 128):
    case(f"layer_norm backward/{rows}x{width}", layer_norm_backward,
         new(rows, width), new(rows, width), new(rows, 1), new(rows, 1),
         new(width), new(width), unread=(5,), temporaries=rows > 100)
if hasattr(aten, "_fused_rms_norm"):
    case("rms_norm", lambda x, w: aten._fused_rms_norm(x, (64,), w, 1e-5),
         half(9, 64), half(64))
    case("rms_norm backward",
         lambda g, x, r, w: aten._fused_rms_norm_backward(
             g, x, (64,), r, w, (True, True)),
         half(9, 64), half(9, 64), new(9, 1), half(64))
case("batch_norm",
     lambda x, w, b, m, v: (
         *aten.native_batch_norm(x, w, b, m, v, True, 0.1, 1e-5), m, v),
     new(4, 8, 6, 6), new(8), new(8), new(8), new(8), temporaries=True)
case("batch_norm/eval",
     lambda x, w, b, m, v: aten.native_batch_norm(
         x, w, b, m, v, False, 0.1, 1e-5)[:1],
     new(4, 8, 6, 6), new(8), new(8), new(8), new(8), temporaries=True,
     unread=(3,))
case("batch_norm backward",
     lambda g, x, w, m, v, s, i: aten.native_batch_norm_backward(
         g, x, w, m, v, s, i, True, 1e-5, (True, True, True)),
     new(4, 8, 6, 6), new(4, 8, 6, 6), new(8), new(8), new(8), new(8),
     new(8))
case("group_norm",
     lambda x, w, b: aten.native_group_norm(x, w, b, 4, 8, 36, 2, 1e-5),
     new(4, 8, 6, 6), new(8), new(8), temporaries=True)

case("group_norm backward",
     lambda g, x, m, r, w: aten.native_group_norm_backward(
         g, x, m, r, w, 4, 8, 36, 2, (True, True, True)),
     new(4, 8, 6, 6), new(4, 8, 6, 6), new(4, 2), new(4, 2), new(8),
     temporaries=True)

# ------------------------------------------------------- softmax and losses

for width in 17, 500, 3000, 40000:
    case(f"softmax/{width}", lambda a: a.softmax(-1), new(7, width))
    case(f"log_softmax/{width}", lambda a: a.log_softmax(-1),
         half(7, width))
    case(f"softmax backward/{width}",
         lambda g, y: aten._softmax_backward_data(g, y, -1, g.dtype),
         new(7, width), new(7, width), temporaries=True)
    case(f"log_softmax backward/{width}",
         lambda g, y: aten._log_softmax_backward_data(g, y, -1, g.dtype),
         half(7, width), half(7, width))
case("softmax/to float",
     lambda a: a.softmax(-1, dtype=torch.float32), half(7, 100),
     temporaries=True)
case("softmax/spatial", lambda a: a.softmax(1), new(7, 9, 5))
case("softmax backward/spatial",
     lambda g, y: aten._softmax_backward_data(g, y, 1, g.dtype),
     new(7, 9, 5), new(7, 9, 5), temporaries=True)
case("nll_loss", lambda x, t: aten.nll_loss_forward(x, t, None, 1, -100),
     new(9, 50), ints(9))
case("nll_loss backward",
     lambda g, x, t, w: aten.nll_loss_backward(
         g, x, t, None, 1, -100, w),
     new(), new(9, 50), ints(9), new(), unread=(1,))
case("nll_loss/2d",
     lambda x, t: aten.nll_loss2d_forward(x, t, None, 1, -100),
     new(2, 5, 4, 4), ints(2, 4, 4), temporaries=True)

# ------------------------------------------------------------------ look-ups

case("embedding", lambda w, i: aten.embedding(w, i), new(50, 256),
     ints(4, 9), kernel="*vectorized_gather_kernel*")
case("embedding/odd", lambda w, i: aten.embedding(w, i), new(50, 63),
     ints(4, 9))
case("embedding backward",
     lambda g, i: aten.embedding_dense_backward(g, i, 50, -1, False),
     new(4, 9, 64), ints(4, 9), kernel="*embedding_backward_feature_kernel*")
case("embedding backward/many",
     lambda g, i: aten.embedding_dense_backward(g, i, 50, -1, False),
     new(4000, 64), ints(4000), temporaries=True)
case("index_select", lambda a, i: a.index_select(0, i), new(50, 63),
     ints(12))
case("index_select/inner", lambda a, i: a.index_select(1, i), new(50, 63),
     ints(12))
case("index_select/many", lambda a, i: a.index_select(1, i), new(50, 63),
     ints(300))
case("index", lambda a, i, j: a[i, j], new(20, 30), ints(77), ints(77),
     kernel="*index_elementwise_kernel*")
case("index/rows", lambda a, i: a[i], new(20, 30), ints(77))
case("index_put", lambda a, i, v: a.index_put_((i,), v), new(20, 30),
     ints(7), new(7, 30))
case("index_put/accumulate",
     lambda a, i, v: a.index_put_((i,), v, accumulate=True), new(20, 30),
     ints(7), new(7, 30), temporaries=True)
case("index_add", lambda a, i, v: a.index_add_(0, i, v), new(20, 30),
     ints(7), new(7, 30))
case("gather", lambda a, i: a.gather(1, i), new(20, 30), ints(20, 5))
case("scatter", lambda a, i, v: a.scatter_(1, i, v), new(20, 30),
     ints(20, 5), new(20, 5))
case("scatter/value", lambda a, i: a.scatter_(1, i, 1.0), new(20, 30),
     ints(20, 5))
case("scatter_add", lambda a, i, v: a.scatter_add_(1, i, v), new(20, 30),
     ints(20, 5), new(20, 5))
case("cat", lambda a, b: torch.cat((a, b)), new(20, 30), new(7, 30),
     kernel="*CatArrayBatchedCopy*")
case("cat/inner", lambda a, b: torch.cat((a, b), 1), half(20, 30),
     half(20, 9))
case("cat/long", lambda a, b: torch.cat((a, b)), ints(20), ints(9))
case("cat/many", lambda a: torch.cat(a), many(200, 7, 9))
case("cat/three dimensions", lambda a, b: torch.cat((a, b), 1),
     new(3, 4, 7), new(3, 2, 7))
case("cat/strided", lambda a, b: torch.cat((a.t(), b.t())), new(9, 20),
     new(9, 5))
case("stack", lambda a, b: torch.stack((a, b)), new(20, 30), new(20, 30))
case("topk", lambda a: list(a.topk(5)), new(20, 300), temporaries=True)
case("sort", lambda a: list(a.sort(1)), new(20, 300), temporaries=True,
     unread=(0,))  # copied first
case("sort/device-wide", lambda a: list(a.sort(stable=True)), ints(5000),
     temporaries=True)
case("nonzero", lambda a: a.nonzero(), flags(20, 30), temporaries=True)
case("bincount", lambda a: a.bincount(minlength=9), ints(500),
     temporaries=True)
case("flip", lambda a: a.flip(0), new(20, 30))
case("roll", lambda a: a.roll(3, 0), new(20, 30))
case("repeat_interleave", lambda a: a.repeat_interleave(3, 0), new(5, 7))

# --------------------------------------------------- convolution and pooling

case("convolution", lambda x, w, b: F.conv2d(x, w, b, padding=1),
     new(2, 3, 9, 9), new(4, 3, 3, 3), new(4), temporaries=True)
case("convolution backward",
     lambda g, x, w: aten.convolution_backward(
         g, x, w, (4,), (1, 1), (1, 1), (1, 1), False, (0, 0), 1,
         (True, True, True)),
     new(2, 4, 9, 9), new(2, 3, 9, 9), new(4, 3, 3, 3), temporaries=True)
case("convolution/depthwise",
     lambda x, w: F.conv2d(x, w, padding=1, groups=4), new(2, 4, 9, 9),
     new(4, 1, 3, 3))
case("max_pool",
     lambda x: aten.max_pool2d_with_indices(x, (3, 3), (2, 2), (1, 1)),
     new(2, 3, 9, 9), kernel="*max_pool_forward_nchw*")
case("max_pool backward",
     lambda g, x, i: aten.max_pool2d_with_indices_backward(
         g, x, (3, 3), (2, 2), (1, 1), (1, 1), False, i),
     new(2, 3, 5, 5), new(2, 3, 9, 9), ints(2, 3, 5, 5), unread=(1,),
     kernel="*max_pool_backward_nchw*")
case("avg_pool", lambda x: F.avg_pool2d(x, 2), new(2, 3, 8, 8))
case("avg_pool backward",
     lambda g, x: aten.avg_pool2d_backward(
         g, x, (2, 2), (2, 2), (0, 0), False, True, None),
     new(2, 3, 4, 4), new(2, 3, 8, 8), unread=(1,))
case("adaptive_avg_pool", lambda x: aten._adaptive_avg_pool2d(x, (7, 7)),
     new(2, 3, 14, 14), kernel="*adaptive_average_pool*")
case("adaptive_avg_pool backward",
     lambda g, x: aten._adaptive_avg_pool2d_backward(g, x),
     new(2, 3, 7, 7), new(2, 3, 14, 14), unread=(1,))
case("upsample/nearest", lambda x: F.interpolate(x, scale_factor=2),
     new(2, 3, 5, 5))
case("upsample/nearest backward",
     lambda g: aten.upsample_nearest2d_backward(
         g, (10, 10), (2, 3, 5, 5), 2.0, 2.0),
     new(2, 3, 10, 10))
case("upsample/bilinear",
     lambda x: F.interpolate(x, scale_factor=2, mode="bilinear"),
     new(2, 3, 5, 5))
case("upsample/bilinear backward",
     lambda g: aten.upsample_bilinear2d_backward(
         g, (10, 10), (2, 3, 5, 5), False, 2.0, 2.0),
     new(2, 3, 10, 10), temporaries=True)
case("pad/reflect", lambda x: F.pad(x, (1, 1, 1, 1), mode="reflect"),
     new(2, 3, 5, 5), temporaries=True)

# ------------------------------------------------------------ foreach, fused

for kind in torch.float32, torch.bfloat16:
    name = str(kind).rpartition(".")[2]
    case(f"foreach mul/{name}",
         lambda a: (torch._foreach_mul_(a, 0.5), a)[1],
         many(5, 70001, dtype=kind), kernel="*multi_tensor_apply_kernel*")
    case(f"foreach add/{name}", torch._foreach_add,
         many(3, 333, dtype=kind), many(3, 333, dtype=kind))
case("foreach add_/list",
     lambda a, b: (torch._foreach_add_(a, b, alpha=0.5), a)[1],
     many(300, 33), many(300, 33))
case("foreach lerp_",
     lambda a, b: (torch._foreach_lerp_(a, b, 0.1), a)[1], many(3, 333),
     many(3, 333))
case("foreach addcmul_",
     lambda a, b: (torch._foreach_addcmul_(a, b, b, 0.1), a)[1],
     many(3, 333), many(3, 333))
case("foreach addcdiv_/list",
     lambda a, b, c: (
         torch._foreach_addcdiv_(a, b, c, [0.1, 0.2, 0.3]), a)[1],
     many(3, 333), many(3, 333), many(3, 333))
case("foreach sqrt", torch._foreach_sqrt, many(3, 333))
case("foreach zero_", lambda a: (torch._foreach_zero_(a), a)[1],
     many(3, 333), unread=(0,))
case("foreach copy_",
     lambda a, b: (torch._foreach_copy_(a, b), a)[1],
     many(3, 333, dtype=torch.bfloat16), many(3, 333), unread=(0,))
case("foreach norm", torch._foreach_norm, many(3, 70001), temporaries=True)
case("foreach mul_/tensor",
     lambda a, t: (torch._foreach_mul_(a, t), a)[1], many(3, 333), new())
case("foreach div_/list",
     lambda a: (torch._foreach_div_(a, [1.0, 2.0, 3.0]), a)[1],
     many(3, 333))


def fused_adamw(p, g, m, v, steps):
    torch._fused_adamw_(
        p, g, m, v, [], steps, lr=0.1, beta1=0.9, beta2=0.99,
        weight_decay=0.1, eps=1e-8, amsgrad=False, maximize=False,
    )
    return p, m, v


def fused_sgd(p, g, m):
    torch._fused_sgd_(
        p, g, m, weight_decay=0.1, momentum=0.9, lr=0.1, dampening=0.0,
        nesterov=False, maximize=False, is_first_step=False,
    )
    return p, m


case("fused adamw", fused_adamw, many(3, 333), many(3, 333), many(3, 333),
     many(3, 333), many(3), kernel="*FusedAdamMathFunctor*")
case("fused sgd", fused_sgd, many(3, 333), many(3, 333), many(3, 333),
     kernel="*FusedSgdMathFunctor*")


def unscale(a, found, scale):
    torch._amp_foreach_non_finite_check_and_unscale_(a, found, scale)
    return a, found


case("amp unscale", unscale, many(3, 333), new(1), new(1))
case("amp update",
     lambda s, g, f: (
         aten._amp_update_scale_(s, g, f, 2.0, 0.5, 2000), g),
     new(1), new(1, dtype=torch.int32), new(1))

# -------------------------------------------------------- recurrent, attention


def lstm_cell(i, h, c, b1, b2):
    return aten._thnn_fused_lstm_cell(i, h, c, b1, b2)


case("lstm cell", lstm_cell, new(5, 128), new(5, 128), new(5, 32), new(128),
     new(128))
case("lstm cell backward",
     lambda gh, gc, cx, cy, w: aten._thnn_fused_lstm_cell_backward_impl(
         gh, gc, cx, cy, w, False)[:2],
     new(5, 32), new(5, 32), new(5, 32), new(5, 32), new(5, 128))
case("gru cell",
     lambda i, h, x, a, b: aten._thnn_fused_gru_cell(i, h, x, a, b),
     new(5, 96), new(5, 96), new(5, 32), new(96), new(96))
case("attention/flash",
     lambda q, k, v: aten._scaled_dot_product_flash_attention(
         q, k, v, 0.0, True)[:2],
     half(2, 4, 64, 32), half(2, 4, 64, 32), half(2, 4, 64, 32),
     temporaries=True)
case("attention/efficient",
     lambda q, k, v: aten._scaled_dot_product_efficient_attention(
         q, k, v, None, True)[:2],
     new(2, 4, 64, 32), new(2, 4, 64, 32), new(2, 4, 64, 32),
     temporaries=True)

# --------------------------------------------- values that enter the result

pair("fill", lambda a: a.fill_(1), lambda a: a.fill_(2), new(99))
pair("add/alpha", lambda a, b: torch.add(a, b, alpha=2),
     lambda a, b: torch.add(a, b, alpha=3), new(99), new(99))
pair("add/scalar", lambda a: a + 1, lambda a: a + 2, half(99))
pair("mul/scalar", lambda a: a * 2, lambda a: a * 3, half(99))
pair("mul/scalar, strided", lambda a: a.t() * 2, lambda a: a.t() * 3,
     lambda: new(9, 20)()[:, ::2])
pair("eq/scalar", lambda a: a == 2, lambda a: a == 3, ints(99))
pair("lt, gt", lambda a, b: a < b, lambda a, b: a > b, new(99), new(99))
pair("clamp", lambda a: a.clamp(0, 1), lambda a: a.clamp(0, 2), new(99))
pair("pow", lambda a: a.pow(2.5), lambda a: a.pow(3.5), new(99))
pair("masked_fill", lambda a, m: a.masked_fill_(m, 1),
     lambda a, m: a.masked_fill_(m, 2), half(99), flags(99))
pair("leaky_relu", lambda a: F.leaky_relu(a, 0.1),
     lambda a: F.leaky_relu(a, 0.2), new(99))
pair("mean", lambda a: a[:, :9].mean(1), lambda a: a[:, :10].mean(1),
     new(9, 50))
pair("layer_norm/epsilon",
     lambda x: aten.native_layer_norm(x, (64,), None, None, 1e-5),
     lambda x: aten.native_layer_norm(x, (64,), None, None, 1e-6),
     new(9, 64))
pair("dropout/probability", lambda a: aten.native_dropout(a, 0.3, True),
     lambda a: aten.native_dropout(a, 0.4, True), new(64, 64))
pair("normal/deviation", lambda a: a.normal_(0, 1),
     lambda a: a.normal_(0, 2), new(99))
pair("uniform/range", lambda a: a.uniform_(0, 1),
     lambda a: a.uniform_(0, 2), half(99))
pair("arange/step", lambda: torch.arange(0, 77, 1, device="cuda"),
     lambda: torch.arange(0, 154, 2, device="cuda"))
pair("triu/diagonal", lambda a: a.triu(1), lambda a: a.triu(2), new(9, 9))
pair("foreach add/alpha", lambda a, b: torch._foreach_add(a, b, alpha=2),
     lambda a, b: torch._foreach_add(a, b, alpha=3), many(3, 33),
     many(3, 33))
pair("foreach div/list", lambda a: torch._foreach_div(a, [1.0, 2.0]),
     lambda a: torch._foreach_div(a, [1.0, 3.0]), many(2, 33))
pair("attention/scale",
     lambda q: aten._scaled_dot_product_flash_attention(q, q, q, scale=1.0),
     lambda q: aten._scaled_dot_product_flash_attention(q, q, q, scale=2.0),
     half(2, 4, 64, 32))
pair("attention/dropout",
     lambda q: aten._scaled_dot_product_flash_attention(q, q, q, 0.1),
     lambda q: aten._scaled_dot_product_flash_attention(q, q, q, 0.2),
     half(2, 4, 64, 32))
