# SPDX-License-Identifier: LGPL-2.1-or-later
"""Optimizers, lists of tensors, and what scales gradients."""

import torch
import torch.nn as nn

from .registry import OPS, op


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
