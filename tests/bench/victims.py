# SPDX-License-Identifier: LGPL-2.1-or-later
"""What the pager moves in a step, beside what could be known of the step.

The program is observed once without a limit: which blocks each op of a step
touches. Under half of its memory these are kept in by furthest next use
(Belady's rule), every byte that was written being copied out before it goes.
The agent's figure is from the fourth step on, by two runs of different length.
"""

import bisect

from capping import capped, check_capped, run_capped
from harness import TRAIN_GPT, WORKLOADS, Spec, checked, launch, run_once
from runner import Case, expect

SHARE = 0.5
FIRST, LAST = 4, 8  # steps: from after the first of these to the last
ALLOWED = 1.3
ROUNDS = 3  # of the step, of which the last one counts


class Block:
    """A live range of the allocator, and the ops that touch it."""

    def __init__(self, size):
        self.size = size
        self.persistent = False
        self.pinned = False
        self.born = self.died = None
        self.uses = {}  # op: whether it writes
        self.times = []
        self.resident = 0
        self.dirty = 0  # bytes of that which host memory does not have
        self.saved = False  # what is not resident is in host memory

    def next_use(self, now, period):
        """Ops from now to the next use; none is as far as can be."""
        at = bisect.bisect_right(self.times, now)
        if at < len(self.times):
            return self.times[at] - now
        if self.persistent and self.times:
            return self.times[0] + period - now
        return 1 << 60


def blocks_of(profile):
    blocks, of_value = {}, []
    for number, value in enumerate(profile["values"]):
        key = value.get("block", ("value", number))
        block = blocks.setdefault(key, Block(0))
        block.size = max(block.size, value["size_bytes"])
        block.persistent |= value.get("persistent", False)
        block.pinned |= value.get("pinned", False)
        if "born" in value:
            block.born = value["born"]
        if "died" in value:
            block.died = value["died"]
        of_value.append(block)
    for at, op in enumerate(profile["ops"]):
        for value in op.get("reads", []):
            of_value[value].uses.setdefault(at, False)
        for value in op.get("writes", []):
            of_value[value].uses[at] = True
    found = [block for block in blocks.values() if block.size]
    for block in found:
        block.times = sorted(block.uses)
    return found


class Belady:
    """Keeps blocks within a room; what goes may go in part."""

    def __init__(self, blocks, period, room):
        self.blocks, self.period, self.room = blocks, period, room
        self.used = self.moved = 0

    def evict(self, bytes_wanted, now, keep):
        chosen = sorted(
            (b for b in self.blocks if b.resident and not b.pinned),
            key=lambda b: -b.next_use(now, self.period),
        )
        for block in chosen:
            if bytes_wanted <= 0:
                return
            if block in keep:
                continue
            part = min(block.resident, bytes_wanted)
            # What is clean goes first.
            out = max(part - (block.resident - block.dirty), 0)
            self.moved += out
            block.dirty -= out
            block.saved = True
            block.resident -= part
            self.used -= part
            bytes_wanted -= part
        expect(bytes_wanted <= 0, "an op does not fit")

    def touch(self, block, writes, now, keep):
        missing = block.size - block.resident
        if missing:
            over = self.used + missing - self.room
            if over > 0:
                self.evict(over, now, keep)
            if block.saved:
                self.moved += missing
            block.resident = block.size
            self.used += missing
        if writes:
            block.dirty = block.size

    def drop(self, block):
        self.used -= block.resident
        block.resident = 0
        block.dirty = 0
        block.saved = False

    def step(self):
        touched = [[] for _ in range(self.period)]
        dead = [[] for _ in range(self.period + 1)]
        for block in self.blocks:
            for at in block.times:
                touched[at].append(block)
            if not block.persistent and block.times:
                last = block.times[-1] + 1
                dead[block.died if block.died else last].append(block)
        self.moved = 0
        for now in range(self.period):
            for block in dead[now]:
                self.drop(block)
            keep = set(touched[now])
            for block in touched[now]:
                self.touch(block, block.uses[now], now, keep)
        for block in dead[self.period]:
            self.drop(block)
        return self.moved


def known_step(profile, room):
    """Bytes that furthest next use moves in a step."""
    rule = Belady(blocks_of(profile), len(profile["ops"]), room)
    for _ in range(ROUNDS - 1):
        rule.step()
    return rule.step()


def with_steps(spec, steps, **more):
    return Spec(
        spec.script,
        (*spec.arguments, "--steps", steps),
        device=spec.device,
        timeout=spec.timeout,
        **more,
    )


def moved(outcome):
    (device,) = outcome.status["devices"]
    return device["moved"]["out_bytes"] + device["moved"]["in_bytes"]


def victims(name, spec):
    report = run_once(with_steps(spec, FIRST)).report
    context = report["context_bytes"]
    beside = report["physical_peak_bytes"] - context
    observed = checked(launch(with_steps(spec, LAST, observe=True)))
    expect(observed.profile, f"no profile\n{observed.err[-1000:]}")
    short, limit = run_capped(
        with_steps(spec, FIRST), context + int(beside * SHARE)
    )
    long = checked(launch(capped(with_steps(spec, LAST), limit)))
    check_capped(long, limit)
    seen = (moved(long) - moved(short)) / (LAST - FIRST)
    known = known_step(observed.profile, limit - context)
    expect(known > 0, "nothing has to be moved")
    ratio = seen / known
    print(
        f"  {name}: {seen / 2**20:.0f} MiB a step, furthest next use "
        f"{known / 2**20:.0f} MiB: {ratio:.2f}",
        flush=True,
    )
    expect(ratio <= ALLOWED, f"{ratio:.2f} times furthest next use")


def all_cases():
    language = WORKLOADS / "language_model.py"
    subjects = {
        "gpt": Spec(TRAIN_GPT),
        "bert-large": Spec(language, ("bert-large",), timeout=900),
    }
    return [
        Case(f"bench/victims/{name}", lambda n=name, s=s: victims(n, s),
             full=True)
        for name, s in subjects.items()
    ]
