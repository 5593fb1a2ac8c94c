#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""PyTorch with the shim: cuDNN is off, and the device knows PyTorch's blocks.

Run by the Python of an environment with PyTorch, on the simulated GPU.
"""

import atexit
import time
import unittest

import torch


def virtual_us(count):
    """What an elementwise kernel on count floats takes. Its cost is that of
    the blocks it is given, here two of one large driver allocation."""
    source = torch.empty(count, device="cuda")
    target = torch.empty(count, device="cuda")
    begin = torch.cuda.Event(enable_timing=True)
    end = torch.cuda.Event(enable_timing=True)
    torch.erf(source, out=target)
    begin.record()
    torch.erf(source, out=target)
    end.record()
    end.synchronize()
    return begin.elapsed_time(end) * 1000


class Shim(unittest.TestCase):
    def test_convolution_and_recurrent_layers_train(self):
        lstm = torch.nn.LSTM(8, 8).cuda()
        lstm(torch.randn(3, 2, 8, device="cuda"))[0].sum().backward()
        conv = torch.nn.Conv2d(3, 4, 3).cuda()
        conv(torch.randn(2, 3, 8, 8, device="cuda")).sum().backward()
        torch.cuda.synchronize()
        self.assertEqual(conv.weight.grad.shape, (4, 3, 3, 3))

    def test_cost_follows_the_blocks(self):
        small = virtual_us(1 << 19)
        large = virtual_us(1 << 21)
        self.assertGreater(small, 0)
        self.assertLess(small, 0.7 * large)

    def test_cudnn_is_off_once_there_is_a_context(self):
        torch.zeros(1, device="cuda")
        self.assertFalse(torch.backends.cudnn.enabled)


if __name__ == "__main__":
    # tests/torch/site/sitecustomize.py says why.
    atexit.register(time.sleep, 0.1)
    unittest.main()
