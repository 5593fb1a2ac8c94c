#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Carries agent/checksum.ptx out and holds it to a model written apart from it.

Knows the instructions that stand there, thread by thread, with barriers; no
more of PTX than that. Where the text uses something else it fails by name.
"""

import pathlib
import random
import re
import sys

MASK = (1 << 64) - 1
FILL1, FILL2 = 0x5A5A5A5A5A5A5A5A, 0xA5A5A5A5A5A5A5A5


class Memory:
    """Bytes from one address on."""

    def __init__(self, base, data):
        self.base, self.data = base, bytearray(data)

    def read(self, address, count):
        at = address - self.base
        assert 0 <= at and at + count <= len(self.data), "outside of memory"
        assert at % count == 0, "not aligned"
        return int.from_bytes(self.data[at : at + count], "little")

    def write(self, address, value, count=8):
        self.read(address, count)
        at = address - self.base
        self.data[at : at + count] = (value & MASK).to_bytes(count, "little")


def parse(text):
    """Entries by name: parameters, instructions, labels."""
    text = re.sub(r"//[^\n]*", "", text)
    entries = {}
    for name, params, body in re.findall(
        r"\.entry (\w+)\((.*?)\)\s*\{(.*?)\n\}", text, re.S
    ):
        code, labels = [], {}
        for line in re.split(r"[;\n]", body):
            line = line.strip()
            if line.endswith(":"):
                labels[line[:-1]] = len(code)
            elif line and not line.startswith("."):
                code.append(line)
        entries[name] = (re.findall(r"\.u64 (\w+)", params), code, labels)
    return entries


class Thread:
    """One thread; run() stops at barriers."""

    def __init__(self, entry, args, special, shared, memory):
        names, self.code, self.labels = entry
        assert len(names) == len(args), "number of parameters"
        self.params = dict(zip(names, args))
        self.registers = dict(special)
        self.shared, self.memory = shared, memory

    def value(self, operand):
        if operand.startswith("%"):
            return self.registers[operand]
        return int(operand, 0)

    def address(self, operand):
        """(place, is it in shared memory?)"""
        base, _, offset = operand.strip("[]").partition("+")
        place = int(offset or "0")
        if base.startswith("%"):
            return place + self.registers[base], False
        return place, True

    def run(self):
        at = 0
        while True:
            line = self.code[at]
            at += 1
            guard = re.match(r"@(%p\d+) (.*)", line)
            if guard:
                if not self.registers[guard[1]]:
                    continue
                line = guard[2]
            name, _, rest = line.partition(" ")
            operands = [o.strip() for o in rest.split(",")] if rest else []
            if name == "bra":
                at = self.labels[operands[0]]
            elif name == "ret":
                return
            elif name == "bar.sync":
                yield
            else:
                self.step(name, operands)

    def step(self, name, operands):
        if name == "ld.param.u64":
            result = self.params[operands[1].strip("[]")]
        elif name in ("ld.global.u64", "ld.global.u8", "ld.shared.u64"):
            place, shared = self.address(operands[1])
            assert shared == ("shared" in name)
            memory = self.shared if shared else self.memory
            result = memory.read(place, 1 if name.endswith("u8") else 8)
        elif name in ("st.shared.u64",):
            place, shared = self.address(operands[0])
            assert shared
            self.shared.write(place, self.value(operands[1]))
            return
        elif name in ("red.shared.add.u64", "red.global.add.u64"):
            place, shared = self.address(operands[0])
            assert shared == ("shared" in name)
            memory = self.shared if shared else self.memory
            memory.write(
                place, memory.read(place, 8) + self.value(operands[1])
            )
            return
        else:
            result = self.compute(name, [self.value(o) for o in operands[1:]])
        self.registers[operands[0]] = result

    def compute(self, name, values):
        a = values[0]
        b = values[1] if len(values) > 1 else 0
        if name in ("mov.u32", "mov.u64", "cvta.to.global.u64", "cvt.u64.u32"):
            return a
        if name == "cvt.u32.u64":
            return a & 0xFFFFFFFF
        if name == "add.u64":
            return (a + b) & MASK
        if name == "mul.wide.u32":
            return a * b
        if name == "mul.lo.u64":
            return a * b & MASK
        if name == "shl.b64":
            return a << b & MASK if b < 64 else 0
        if name == "shr.u64":
            return a >> b if b < 64 else 0
        if name in ("and.b64", "or.b64", "xor.b64"):
            return {"a": a & b, "o": a | b, "x": a ^ b}[name[0]]
        if name == "not.b64":
            return ~a & MASK
        if name == "popc.b64":
            return bin(a).count("1")
        if name == "bfi.b64":
            mask = (1 << values[3]) - 1
            return (b & ~(mask << values[2]) | (a & mask) << values[2]) & MASK
        if name.startswith("setp."):
            return {
                "ne": a != b, "eq": a == b, "gt": a > b, "lt": a < b,
            }[name.split(".")[1]]
        raise AssertionError(f"unknown instruction {name}")


def launch(entry, args, blocks, threads, memory):
    for block in range(blocks):
        shared = Memory(0, random.randbytes(16))
        running = []
        for thread in range(threads):
            special = {
                "%tid.x": thread, "%ntid.x": threads, "%ctaid.x": block,
                "%nctaid.x": blocks,
            }
            running.append(Thread(entry, args, special, shared, memory).run())
        while running:
            random.shuffle(running)
            ended = [next(t, "ended") == "ended" for t in running]
            assert all(ended) or not any(ended), "a barrier not all reach"
            if all(ended):
                break


def words_of(data):
    data = bytes(data) + bytes(-len(data) % 8)
    return [
        int.from_bytes(data[i : i + 8], "little")
        for i in range(0, len(data), 8)
    ]


def checksum(data):
    """The model of ts_checksum."""
    first = second = 0
    for n, word in enumerate(words_of(data), 1):
        x = (word + n * 0x9E3779B97F4A7C15) & MASK
        x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9 & MASK
        x = (x ^ x >> 27) * 0x94D049BB133111EB & MASK
        first += x ^ x >> 31
        y = word ^ n * 0xC2B2AE3D27D4EB4F & MASK
        y = (y ^ y >> 32) * 0xD6E8FEB86659FD93 & MASK
        y = (y ^ y >> 32) * 0xD6E8FEB86659FD93 & MASK
        second += y ^ y >> 32
    return first & MASK, second & MASK


def compare(before, after, first, second):
    """The model of ts_compare, byte by byte."""
    bad, written = set(), 0
    for i, (b, a, f, s) in enumerate(zip(before, after, first, second)):
        if f == FILL1 & 0xFF and s == FILL2 & 0xFF:
            agrees = b == a
        else:
            written += 1
            agrees = a == f == s
        if not agrees:
            bad.add(i // 8)
    return len(bad), written


RESULT = 0x1000
DATA = 0x2000


def run_checksum(entries, data, blocks, threads):
    memory = Memory(RESULT, bytes(DATA - RESULT) + data)
    launch(
        entries["ts_checksum"], [DATA, len(data), RESULT], blocks, threads,
        memory,
    )
    return memory.read(RESULT, 8), memory.read(RESULT + 8, 8)


def run_compare(entries, parts, blocks, threads):
    room = (len(parts[0]) + 7) // 8 * 8
    memory = Memory(
        RESULT,
        bytes(DATA - RESULT)
        + b"".join(part + bytes(room - len(part)) for part in parts),
    )
    args = [DATA + i * room for i in range(4)]
    args += [len(parts[0]), FILL1, FILL2, RESULT]
    launch(entries["ts_compare"], args, blocks, threads, memory)
    return memory.read(RESULT, 8), memory.read(RESULT + 8, 8)


def compared(length):
    """Blocks as a kernel leaves them that writes most of one, now and then
    with a byte that is wrong."""
    before = random.randbytes(length)
    after = bytearray(before)
    first = bytearray(b"\x5a" * length)
    second = bytearray(b"\xa5" * length)
    for i in range(length):
        if random.random() < 0.7:
            after[i] = first[i] = second[i] = random.randrange(256)
        if random.random() < 0.05:
            wrong = random.choice((after, first, second))
            wrong[i] ^= random.randrange(1, 256)
    return before, bytes(after), bytes(first), bytes(second)


def main():
    text = pathlib.Path(sys.argv[1]).read_text()
    entries = parse(text)
    assert set(entries) == {"ts_checksum", "ts_compare"}
    random.seed(11)
    for length in [0, 1, 7, 8, 9, 64, 65, 200, 1021]:
        data = random.randbytes(length)
        for blocks, threads in [(1, 1), (1, 32), (3, 8), (2, 256)]:
            got = run_checksum(entries, data, blocks, threads)
            assert got == checksum(data), (length, blocks, threads)
            parts = compared(length)
            got = run_compare(entries, parts, blocks, threads)
            assert got == compare(*parts), (length, blocks, threads, got)
    # What tests/simgpu/clients/proof_kernels.c holds the simulated GPU to.
    data = bytes((i * 7 + i // 256) % 256 for i in range(100_003))
    print("0x%016x 0x%016x" % checksum(data))
    # Words that change places change the sums, one bit does.
    assert checksum(data[8:16] + data[:8]) != checksum(data[:16])
    flipped = bytearray(data)
    flipped[5000] ^= 1
    assert all(a != b for a, b in zip(checksum(flipped), checksum(data)))
    print("checksum.ptx agrees with its model")


if __name__ == "__main__":
    main()
