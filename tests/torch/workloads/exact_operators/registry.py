# SPDX-License-Identifier: LGPL-2.1-or-later
"""The table of operators, and what makes their inputs."""

import torch

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
