# SPDX-License-Identifier: LGPL-2.1-or-later
"""One hash over everything a training script has on its device.

    from digest import digest
    print("digest", digest(model, optimizer))

Parameters, gradients, buffers and the optimizer's tensors are copied to the
CPU, in an order that does not depend on where anything lies.
"""

import hashlib

import torch


def _flatten(name, value):
    """The tensors in a nest of dictionaries, lists and tuples, named."""
    if torch.is_tensor(value):
        yield name, value
    elif isinstance(value, dict):
        for key in sorted(value, key=str):
            yield from _flatten(f"{name}.{key}", value[key])
    elif isinstance(value, (list, tuple)):
        for index, item in enumerate(value):
            yield from _flatten(f"{name}.{index}", item)


def tensors(model, *optimizers):
    """Every live tensor, with a name; one that has two names comes twice."""
    for name, parameter in model.named_parameters(remove_duplicate=False):
        yield f"parameter {name}", parameter
        if parameter.grad is not None:
            yield f"gradient {name}", parameter.grad
    for name, buffer in model.named_buffers(remove_duplicate=False):
        yield f"buffer {name}", buffer
    for number, optimizer in enumerate(optimizers):
        state = optimizer.state_dict()["state"]
        yield from _flatten(f"optimizer {number}", state)


def _bytes(tensor):
    flat = tensor.detach().cpu().contiguous().reshape(-1)
    return flat.view(torch.uint8).numpy()


def digest(model, *optimizers):
    """A hash, in hexadecimal, of all tensors' names, shapes and bytes."""
    total = hashlib.blake2b(digest_size=16)
    for name, tensor in tensors(model, *optimizers):
        what = f"{name} {tuple(tensor.shape)} {tensor.dtype};"
        total.update(what.encode())
        if tensor.numel():
            total.update(_bytes(tensor))
    return total.hexdigest()
