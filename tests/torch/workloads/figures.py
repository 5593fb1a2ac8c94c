# SPDX-License-Identifier: LGPL-2.1-or-later
"""What PyTorch and NVML say of the device's memory, as JSON."""

import ctypes
import json

import torch


class Memory(ctypes.Structure):
    _fields_ = [
        (name, ctypes.c_ulonglong) for name in ("total", "free", "used")
    ]


def nvml():
    """Of the first device: total, free and used bytes."""
    library = ctypes.CDLL("libnvidia-ml.so.1")
    device, memory = ctypes.c_void_p(), Memory()
    for status in (
        library.nvmlInit_v2(),
        library.nvmlDeviceGetHandleByIndex_v2(0, ctypes.byref(device)),
        library.nvmlDeviceGetMemoryInfo(device, ctypes.byref(memory)),
    ):
        assert status == 0, f"NVML answers {status}"
    return [memory.total, memory.free, memory.used]


def main():
    kept = torch.ones(1 << 24, device="cuda")
    torch.cuda.synchronize()
    print(
        json.dumps(
            {
                "properties": torch.cuda.get_device_properties(0).total_memory,
                "info": torch.cuda.mem_get_info(),
                "nvml": nvml(),
                "kept": kept.numel() * kept.element_size(),
            }
        )
    )


if __name__ == "__main__":
    main()
