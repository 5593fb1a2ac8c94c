#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""What driver calls and copies cost here, for the device models.

Prints one JSON line: medians in ns of host time of each call on a chunk of
the device's granularity, and bytes per second of pinned copies by events. The
driver alone is used, by its public names. On the simulated GPU the times of
calls are those of the simulator's code and mean nothing.
"""

import ctypes
import json
import statistics
import time

ROUNDS = 100
COPY_BYTES = 64 << 20
PINNED, DEVICE, READWRITE = 1, 1, 3


class Properties(ctypes.Structure):
    """CUmemAllocationProp."""

    _fields_ = [
        ("type", ctypes.c_int),
        ("handle_types", ctypes.c_int),
        ("location_type", ctypes.c_int),
        ("location_id", ctypes.c_int),
        ("win32", ctypes.c_void_p),
        ("flags", ctypes.c_ubyte * 8),
    ]


class Access(ctypes.Structure):
    """CUmemAccessDesc."""

    _fields_ = [
        ("location_type", ctypes.c_int),
        ("location_id", ctypes.c_int),
        ("flags", ctypes.c_int),
    ]


driver = ctypes.CDLL("libcuda.so.1")
taken = {}


def call(name, *arguments):
    """Calls it and notes what it took."""
    function = getattr(driver, name)
    started = time.perf_counter_ns()
    result = function(*arguments)
    taken.setdefault(name, []).append(time.perf_counter_ns() - started)
    if result:
        raise SystemExit(f"{name}: error {result}")


def start():
    context, device = ctypes.c_void_p(), ctypes.c_int()
    call("cuInit", 0)
    call("cuDeviceGet", ctypes.byref(device), 0)
    call("cuDevicePrimaryCtxRetain", ctypes.byref(context), device)
    call("cuCtxSetCurrent", context)


def map_and_unmap():
    where = Properties(type=PINNED, location_type=DEVICE)
    access = Access(location_type=DEVICE, flags=READWRITE)
    granule, at = ctypes.c_size_t(), ctypes.c_uint64()
    handle = ctypes.c_uint64()
    call("cuMemGetAllocationGranularity", ctypes.byref(granule),
         ctypes.byref(where), 0)
    call("cuMemAddressReserve", ctypes.byref(at), granule,
         ctypes.c_size_t(0), ctypes.c_uint64(0), ctypes.c_uint64(0))
    for _ in range(ROUNDS):
        call("cuMemCreate", ctypes.byref(handle), granule,
             ctypes.byref(where), ctypes.c_uint64(0))
        call("cuMemMap", at, granule, ctypes.c_size_t(0), handle,
             ctypes.c_uint64(0))
        call("cuMemSetAccess", at, granule, ctypes.byref(access),
             ctypes.c_size_t(1))
        call("cuMemsetD8Async", at, ctypes.c_ubyte(0), ctypes.c_size_t(1),
             None)
        call("cuCtxSynchronize")
        call("cuMemUnmap", at, granule)
        call("cuMemRelease", handle)
    call("cuMemAddressFree", at, granule)
    return granule.value


def copies():
    """Bytes per second to the host and to the device, by turns."""
    host, at = ctypes.c_void_p(), ctypes.c_uint64()
    events = [ctypes.c_void_p(), ctypes.c_void_p()]
    bytes_, ms = ctypes.c_size_t(COPY_BYTES), ctypes.c_float()
    rates = {"d2h_bytes_per_s": [], "h2d_bytes_per_s": []}
    call("cuMemHostAlloc", ctypes.byref(host), bytes_, 0)
    call("cuMemAlloc_v2", ctypes.byref(at), bytes_)
    for event in events:
        call("cuEventCreate", ctypes.byref(event), 0)
    for _ in range(5):
        for way, name, to, source in (
            ("d2h_bytes_per_s", "cuMemcpyDtoHAsync_v2", host, at),
            ("h2d_bytes_per_s", "cuMemcpyHtoDAsync_v2", at, host),
        ):
            call("cuEventRecord", events[0], None)
            call(name, to, source, bytes_, None)
            call("cuEventRecord", events[1], None)
            call("cuEventSynchronize", events[1])
            call("cuEventElapsedTime", ctypes.byref(ms), *events)
            rates[way].append(COPY_BYTES / (ms.value * 1e-3))
    call("cuMemFree_v2", at)
    call("cuMemFreeHost", host)
    return {way: round(statistics.median(r)) for way, r in rates.items()}


def main():
    start()
    granule, rates = map_and_unmap(), copies()
    calls = {
        name: {"calls": len(ns), "median_ns": round(statistics.median(ns))}
        for name, ns in sorted(taken.items())
    }
    print(json.dumps({"chunk_bytes": granule, "calls": calls, **rates}))


if __name__ == "__main__":
    main()
