# SPDX-License-Identifier: LGPL-2.1-or-later
"""Single operators by name: functions of an Inputs that return results."""

from . import elementwise, indices, layers, optimizers, order, products
from .registry import OPS, Inputs

__all__ = ["OPS", "Inputs"]
