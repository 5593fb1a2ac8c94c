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
import re
import subprocess
import tempfile
from dataclasses import dataclass

from harness import BIG_DEVICE, ROOT, TRAIN_GPT, WORKLOADS, Spec, environment
from runner import Case, expect, expect_equal

SEED = 20
# Kind of mutation: the count in the report that bounds it.
KINDS = {
    "copy": "copies",
    "truncate": "copies",
    "launch": "launches",
    "wait": "event_waits",
}
SECONDS = 120  # the longest run, on a busy machine


@dataclass(frozen=True)
class Subject:
    name: str
    script: pathlib.Path
    arguments: tuple
    steps: int = 2


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


class Runner:
    """Runs one subject again and again; a context manager."""

    def __init__(self, subject):
        self.subject = subject
        self.folder = tempfile.TemporaryDirectory(prefix="tapeswap-mutation-")
        spec = Spec(
            subject.script,
            device=BIG_DEVICE,
            settings=(("SIMGPU_CONTENT", "tags"), ("SIMGPU_RACES", "on")),
        )
        self.log = open(f"{self.folder.name}/log", "w+")
        self.process = subprocess.Popen(
            [str(ROOT / "build/venv/bin/python"),
             str(ROOT / "tests/torch/many.py")],
            env=environment(spec, self.folder.name),
            cwd=self.folder.name,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self.log,
            text=True,
        )

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.stdin.close()
        try:
            self.process.wait(SECONDS)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.process.stdout.close()
        self.log.close()
        self.folder.cleanup()

    def run(self, *arguments, steps=None, mutation=""):
        """(exit status, output, report) of one run."""
        report = pathlib.Path(f"{self.folder.name}/report.json")
        output = pathlib.Path(f"{self.folder.name}/out")
        report.unlink(missing_ok=True)
        steps = self.subject.steps if steps is None else steps
        argv = [
            self.subject.script, *self.subject.arguments,
            "--steps", steps, *arguments,
        ]
        request = {
            "argv": [str(word) for word in argv],
            "environment": {"SIMGPU_MUTATE": mutation},
            "output": str(output),
        }
        self.process.stdin.write(json.dumps(request) + "\n")
        self.process.stdin.flush()
        answer = self.process.stdout.readline()
        if not answer:
            self.log.seek(0)
            expect(False, f"many.py ended\n{self.log.read()[-2000:]}")
        text = output.read_text(errors="replace")
        expect(report.exists(), f"{mutation}: no report\n{text[-2000:]}")
        return int(answer), text, json.loads(report.read_text())


def outcome(text):
    """Losses and digest of a run, as printed."""
    losses = re.findall(r'(?:"loss": |  loss )([-+\w.]+)', text)
    return losses, re.findall(r"^digest (\w+)$", text, re.M)


def draw(before, after, samples):
    """Mutations over the operations of the steps, those before left out."""
    ranges = {
        kind: (before[count] + 1, after[count])
        for kind, count in KINDS.items()
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
    if not verdict["done"]:
        return "not done", False
    if verdict["harmless"]:
        return ("harmful after all", False) if changed else ("harmless", True)
    if changed:
        return "changed", True
    if report["races"] or report["possible_races"]:
        return "race", True
    return "missed", False


def mutations(subject, samples):
    with Runner(subject) as runner:
        _, _, before = runner.run(steps=0)
        _, _, after = runner.run()
        code, text, report = runner.run("--digest")
        expect_equal(code, 0, "exit status without a mutation")
        expect_equal(report["races"], 0, "races without a mutation")
        wanted = outcome(text)
        expect_equal(len(wanted[0]), subject.steps, "losses")
        expect_equal(len(wanted[1]), 1, "digests")
        _, text, _ = runner.run("--digest")
        expect_equal(outcome(text), wanted, "losses and digest, run again")
        bad, counts = [], {}
        for mutation in draw(before, after, samples):
            _, text, report = runner.run("--digest", mutation=mutation)
            word, fine = judge(outcome(text), wanted, report)
            counts[word] = counts.get(word, 0) + 1
            if not fine:
                (told,) = report["mutations"]
                bad.append(f"{mutation}: {word}; {told['what']}; {told['why']}")
    print(f"  {subject.name}: {counts}", flush=True)
    expect(not bad, f"{counts}\n" + "\n".join(bad))


def all_cases():
    cases = [
        Case(f"torch/mutation/{s.name}", lambda s=s: mutations(s, 10))
        for s in SMALL
    ]
    for subject in LARGE:
        cases.append(
            Case(
                f"torch/mutation/100/{subject.name}",
                lambda s=subject: mutations(s, 100),
                full=True,
            )
        )
    return cases
