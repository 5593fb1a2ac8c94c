# SPDX-License-Identifier: LGPL-2.1-or-later
"""No error of an agent goes unseen: mutations of training steps.

Copies dropped or cut short, launches skipped and event waits left out, drawn
with a seed over a training script's steps. Each must change the printed losses
or the digest, or be reported as a race, or be harmless by the device's own
liveness and order; and what the device calls harmless must change nothing.
"""

import json
import pathlib
import random
from dataclasses import dataclass, replace

from harness import REMEDY, ROOT, TRAIN_GPT, WORKLOADS
from repeat import Runner
from runner import Case, expect, expect_equal

SEED = 20
# Kind of mutation: the count in the report that bounds it.
KINDS = {
    "copy": "copies",
    "truncate": "copies",
    "launch": "launches",
    "wait": "event_waits",
}
# Under the cap: what the agent moves goes through page-locked memory. Its looks
# at what kernels wrote do not, and a wrong byte there comes to nothing where
# there are no tables, which the device cannot know.
KINDS_CAPPED = {
    "move": "locked_copies",
    "shorten": "locked_copies",
    "launch": "launches",
    "wait": "event_waits",
}
# Of the peak beside the context: what is left to a capped subject.
CAP = 0.5


@dataclass(frozen=True)
class Subject:
    name: str
    script: pathlib.Path
    arguments: tuple
    steps: int = 2
    capped: bool = False  # under tapeswap at half of its peak

    def run(self, runner, *more, steps=None, mutation=""):
        steps = self.steps if steps is None else steps
        return runner.run(self.script, *self.arguments, "--steps", steps,
                          *more, SIMGPU_MUTATE=mutation)


def with_cap(subject):
    return replace(subject, name=f"{subject.name}-cap", capped=True)


SMALL = (
    Subject(
        "gpt",
        TRAIN_GPT,
        ("--layers", 1, "--width", 64, "--heads", 2, "--sequence", 64,
         "--batch", 2, "--vocabulary", 512),
    ),
    Subject(
        "resnet",
        WORKLOADS / "vision.py",
        ("resnet18", "--batch", 2, "--size", 32, "--classes", 10,
         "--prefetch"),
    ),
    Subject(
        "bert",
        WORKLOADS / "language_model.py",
        ("bert-small", "--batch", 2, "--sequence", 32),
    ),
)
# Small, and yet more than a few pages.
SMALL_CAPPED = Subject(
    "gpt-wide",
    TRAIN_GPT,
    ("--layers", 2, "--width", 512, "--sequence", 128, "--batch", 4,
     "--vocabulary", 1024),
)
LARGE = (
    Subject("gpt", TRAIN_GPT, ()),
    Subject(
        "resnet50",
        WORKLOADS / "vision.py",
        ("resnet50", "--batch", 8, "--prefetch"),
    ),
    Subject(
        "bert-large-2",
        WORKLOADS / "language_model.py",
        ("bert-large", "--layers", 2, "--batch", 2, "--sequence", 128),
    ),
)


# By subject: what became of its mutations, for tests/results.
results = {}


def write_results():
    path = ROOT / "tests/results/mutations.json"
    kept = {}
    if path.exists():
        kept = json.loads(path.read_text(encoding="utf-8"))
    kept.update(results)
    text = json.dumps(kept, indent=1, sort_keys=True) + "\n"
    path.write_text(text, encoding="utf-8")


def outcome(run):
    return run.losses(), run.digests()


def draw(kinds, before, after, samples):
    """Mutations over the operations of the steps, those before left out."""
    ranges = {
        kind: (before[count] + 1, after[count])
        for kind, count in kinds.items()
        if after[count] > before[count]
    }
    expect(len(ranges) >= 3, f"kinds that can be drawn: {sorted(ranges)}")
    chance = random.Random(SEED)
    drawn = []
    for _ in range(samples):
        kind = chance.choice(sorted(ranges))
        drawn.append(f"{kind}:{chance.randint(*ranges[kind])}")
    return drawn


def judge(seen, wanted, report):
    """What became of a mutation: a word, and whether that is all right."""
    (verdict,) = report["mutations"]
    changed = seen != wanted
    race = report["races"] or report["possible_races"]
    if not verdict["done"]:
        return "not done", False
    if verdict["harmless"]:
        # The device must not contradict itself either.
        harmful = changed or race
        return ("harmful after all", False) if harmful else ("harmless", True)
    if changed:
        return "changed", True
    if race:
        return "race", True
    return "missed", False


def limit_of(subject):
    """TAPESWAP_LIMIT of a capped subject: a share of its peak or, where an
    operation needs more, the least that does."""
    if not subject.capped:
        return None
    with Runner() as runner:
        report = subject.run(runner, "--digest").report
    context, peak = report["context_bytes"], report["physical_peak_bytes"]
    limit = context + int((peak - context) * CAP)
    while True:
        with Runner(limit=limit) as runner:
            run = subject.run(runner, "--digest")
        named = [int(mib) << 20 for mib in REMEDY.findall(run.out)]
        if run.code == 0 or not named:
            more = run.report["copies"] - report["copies"]
            expect(more > 0, "the cap makes no copies")
            return limit
        expect(limit < max(named) < peak, f"{max(named)} for {limit}")
        limit = max(named)


def try_all(subject, samples, runner):
    """(counts by what became of a mutation, lines on bad ones)"""
    before = subject.run(runner, steps=0).report
    after = subject.run(runner).report
    plain = subject.run(runner, "--digest")
    expect_equal(plain.code, 0, f"exit status\n{plain.out[-2000:]}\n")
    for name in "races", "possible_races", "memory_errors":
        expect_equal(plain.report[name], 0, f"{name} without a mutation")
    wanted = outcome(plain)
    expect_equal(len(wanted[0]), subject.steps, "losses")
    expect_equal(len(wanted[1]), 1, "digests")
    again = subject.run(runner, "--digest")
    expect_equal(outcome(again), wanted, "losses and digest, run again")
    bad, counts = [], {}
    kinds = KINDS_CAPPED if subject.capped else KINDS
    for mutation in draw(kinds, before, after, samples):
        run = subject.run(runner, "--digest", mutation=mutation)
        word, fine = judge(outcome(run), wanted, run.report)
        kind = mutation.split(":")[0]
        counts.setdefault(kind, {}).setdefault(word, 0)
        counts[kind][word] += 1
        if not fine:
            (told,) = run.report["mutations"]
            bad.append(f"{mutation}: {word}; {told['what']}; {told['why']}")
    return counts, bad


def mutations(subject, samples):
    with Runner(limit=limit_of(subject)) as runner:
        counts, bad = try_all(subject, samples, runner)
    results[subject.name] = {"samples": samples, "by_kind": counts}
    print(f"  {subject.name}: {counts}", flush=True)
    expect(not bad, f"{counts}\n" + "\n".join(bad))


def all_cases():
    cases = [
        Case(f"torch/mutation/{s.name}", lambda s=s, n=n: mutations(s, n))
        for s, n in (*((s, 10) for s in SMALL), (with_cap(SMALL_CAPPED), 5))
    ]
    for subject in (*LARGE, *map(with_cap, LARGE)):
        cases.append(
            Case(
                f"torch/mutation/100/{subject.name}",
                lambda s=subject: mutations(s, 100),
                full=True,
            )
        )
    return cases
