#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Checks the simulated GPU's kernel table against real PyTorch operators.

Each case runs one operator on tensors whose addresses are known and compares
the accesses that the simulated driver recorded (SIMGPU_TRACE) with them: what
is given is read, what comes back is written, each from its first to its last
byte, and nothing else is touched. Of pairs of runs the values that enter the
result must differ, and those of one run made twice must not. Prints one line a
case; ends with 1 if any of them fails.
"""

import fnmatch
import json
import os
import sys
import tempfile

TRACE = os.path.join(tempfile.mkdtemp(prefix="kernel-operands-"), "trace")
os.environ["SIMGPU_TRACE"] = TRACE

import torch  # noqa: E402

from operand_cases import CASES, PAIRS  # noqa: E402


# ------------------------------------------------------------- byte intervals


def union(intervals):
    """Sorted, disjoint intervals that cover the same bytes."""
    joined = []
    for start, end in sorted(intervals):
        if joined and start <= joined[-1][1]:
            joined[-1][1] = max(joined[-1][1], end)
        else:
            joined.append([start, end])
    return [tuple(interval) for interval in joined]


def minus(intervals, others):
    """The bytes of intervals that are in none of the others."""
    rest = []
    others = union(others)
    for start, end in union(intervals):
        for low, high in others:
            if high <= start or low >= end:
                continue
            if low > start:
                rest.append((start, low))
            start = max(start, high)
        if start < end:
            rest.append((start, end))
    return rest


def overlap(intervals, others):
    return minus(intervals, minus(intervals, others))


def bytes_of(tensor):
    """The bytes a tensor's elements lie in."""
    if not tensor.numel():
        return []
    offsets = torch.zeros((), dtype=torch.int64)
    for size, stride in zip(tensor.shape, tensor.stride()):
        steps = torch.arange(size) * stride
        offsets = (offsets.unsqueeze(-1) + steps).flatten()
    size = tensor.element_size()
    starts = offsets.unique() * size + tensor.data_ptr()
    return union((at, at + size) for at in starts.tolist())


# ------------------------------------------------------------------ recording


class Recorder:
    """The launches since the last look."""

    def __init__(self):
        self.offset = 0

    def take(self):
        torch.cuda.synchronize()
        if not os.path.exists(TRACE):
            return []
        with open(TRACE, encoding="utf-8") as file:
            file.seek(self.offset)
            lines = file.readlines()
            self.offset = file.tell()
        return [json.loads(line) for line in lines]


def ranges(launches, role):
    return [
        (access["va"], access["va"] + access["bytes"])
        for launch in launches
        for access in launch["accesses"]
        if access[role]
    ]


# --------------------------------------------------------------------- checks


def tensors_in(value):
    if isinstance(value, torch.Tensor):
        return [value]
    if isinstance(value, (list, tuple)):
        return [tensor for item in value for tensor in tensors_in(item)]
    return []


def spans(tensors):
    return [part for tensor in tensors for part in bytes_of(tensor)]


def problems(case, launches, given, results):
    """What is wrong with the accesses of one case, in words."""
    if not launches:
        yield "nothing was launched"
    for launch in launches:
        if not launch["known"]:
            yield f"unknown: {launch['name'][:300]}"
    if case.kernel and not any(
        fnmatch.fnmatchcase(launch["name"], case.kernel)
        for launch in launches
    ):
        names = [launch["name"][:200] for launch in launches]
        yield f"no kernel like {case.kernel} among {names}"
    if not case.gaps and not all(
        access["certain"]
        for launch in launches
        for access in launch["accesses"]
    ):
        yield "an access is uncertain"
    written = ranges(launches, "write")
    read = ranges(launches, "read")
    inputs, outputs = spans(given), spans(results)
    if minus(outputs, written):
        yield f"not written: {minus(outputs, written)[:4]} of {outputs[:4]}"
    if minus(inputs, read):
        yield f"not read: {minus(inputs, read)[:4]} of {inputs[:4]}"
    if case.gaps:
        return
    untouched = minus(inputs, outputs)
    if overlap(written, untouched):
        yield f"inputs written: {overlap(written, untouched)[:4]}"
    if case.temporaries:
        return
    more = minus(written, outputs)
    if more:
        yield f"written besides: {more[:4]}, outputs {outputs[:4]}"
    more = minus(read, inputs + outputs)
    if more:
        yield f"read besides: {more[:4]}, inputs {inputs[:4]}"


def run(case, recorder):
    given = case.make()
    recorder.take()
    try:
        results = case.run(*given)
    except RuntimeError as error:
        print(f"FAIL {case.name}\n     {error}")
        return False
    launches = recorder.take()
    read = [
        tensor
        for i, value in enumerate(given)
        for tensor in tensors_in(value)
        if i not in case.unread and tensor.is_cuda
    ]
    found = list(problems(case, launches, read, tensors_in(results)))
    print(f"{'FAIL' if found else 'ok  '} {case.name}")
    for line in found:
        print(f"     {line}")
    return not found


def values(function, given, recorder):
    """What enters the result of a run, kernel by kernel."""
    torch.manual_seed(1)
    recorder.take()
    function(*given)
    return [launch["scalars"] for launch in recorder.take()]


def run_pair(pair, recorder):
    given = pair.make()
    first, again, second = (
        values(function, given, recorder)
        for function in (pair.first, pair.first, pair.second)
    )
    found = []
    if first != again:
        found.append("a second run differs")
    if first == second:
        found.append("both are the same")
    print(f"{'FAIL' if found else 'ok  '} values: {pair.name}")
    for line in found:
        print(f"     {line}")
    return not found


def main():
    torch.cuda.init()
    torch._C._set_cudnn_enabled(False)
    recorder = Recorder()
    wanted = sys.argv[1:]

    def chosen(cases):
        return [
            case
            for case in cases
            if not wanted
            or any(fnmatch.fnmatch(case.name, name) for name in wanted)
        ]

    results = [run(case, recorder) for case in chosen(CASES)]
    results += [run_pair(pair, recorder) for pair in chosen(PAIRS)]
    print(f"{sum(results)} of {len(results)} cases")
    return not all(results)


if __name__ == "__main__":
    sys.exit(main())
