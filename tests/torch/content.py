# SPDX-License-Identifier: LGPL-2.1-or-later
"""Tagged content depends on what a program computes and on nothing else.

Runs again, with its memory anywhere or with unused tensors in front, a script
gives the same losses and digests; with another seed it gives others. Scripts
that do more than plain steps behave sanely, integers that kernels compute make
sense.
"""

import re

from harness import ROOT, TRAIN_GPT, WORKLOADS
from repeat import Runner
from runner import Case, expect, expect_equal

SHIFTED = ROOT / "tests/torch/shifted.py"
FEATURES = WORKLOADS / "features.py"
SMALL_GPT = ("--layers", 1, "--width", 64, "--heads", 2, "--sequence", 64,
             "--batch", 2, "--vocabulary", 512)


def result(run):
    return run.losses(), run.digests()


def independent(*argv, seed=2):
    """Losses and digests follow from the script and its seed alone."""
    with Runner() as runner:
        first = result(runner.good(*argv))
        expect(first[0] and first[1], f"losses and digests {first}")
        again = {
            "run again": runner.good(*argv),
            "with memory elsewhere":
                runner.good(*argv, SIMGPU_RANDOM_ADDRESS=7),
            "with unused tensors in front": runner.good(SHIFTED, 3, *argv),
            "with them in another order": runner.good(SHIFTED, 4, *argv),
        }
        for what, run in again.items():
            expect_equal(result(run), first, what)
        other = result(runner.good(*argv, "--seed", seed))
    for number, (one, two) in enumerate(zip(first[0], other[0]), start=1):
        expect(one != two, f"loss {number} is {one} for both seeds")
    expect(not set(first[1]) & set(other[1]), "digests of both seeds")


def feature_results(run):
    """By feature: its losses, its digest and its other lines."""
    results = {}
    for part in run.out.split("feature ")[1:]:
        name, *lines = part.splitlines()
        losses = next(l for l in lines if l.startswith("losses")).split()[1:]
        digest = next(l for l in lines if l.startswith("digest"))
        more = [l for l in lines if not l.startswith(("losses", "digest"))]
        results[name] = losses, digest, more
    return results


def check_scaler(lines, skipped):
    """Steps are skipped where an infinity was found, and the scale halves."""
    scale = 65536.0
    for number, line in enumerate(lines, start=1):
        wanted = f"stepped {int(number != skipped)} scale {scale}"
        expect_equal(line, wanted, f"step {number} of the scaler")
        if number == skipped:
            scale /= 2


def check_experts(name, lines, rows):
    """Every token goes where there is something, and no more than there are."""
    seen = set()
    for line in lines:
        words = line.split()
        sizes = [int(w) for w in words[1 : words.index("limits")]]
        low, high, limit = map(int, words[words.index("limits") + 1 :])
        expect_equal(limit, rows, f"{name}: rows")
        expect(0 <= low and 0 <= high < limit, line)
        expect(all(0 <= n <= 2 * rows for n in sizes), line)
        expect(sum(sizes) > 0, line)
        if name == "sorted-experts":
            expect_equal(sum(sizes), 2 * rows, f"{name}: tokens in {line}")
        seen.add(tuple(sizes))
    expect(len(seen) == len(lines), f"{name}: sizes repeat: {lines}")


def features(*arguments, rows):
    argv = (FEATURES, *arguments)
    with Runner() as runner:
        first = runner.good(*argv)
        again = {
            "run again": runner.good(*argv),
            "with memory elsewhere":
                runner.good(*argv, SIMGPU_RANDOM_ADDRESS=7),
            "with unused tensors in front": runner.good(SHIFTED, 3, *argv),
        }
        other = runner.good(*argv, "--seed", 2)
        infinite = runner.good(*argv, "scaler", SIMGPU_FOUND_INF=2)
    for what, run in again.items():
        expect_equal(run.out, first.out, what)
    seen, others = feature_results(first), feature_results(other)
    for name, (losses, digest, _) in seen.items():
        common = set(losses) & set(others[name][0])
        expect(not common, f"{name}: losses {common} for both seeds")
        expect(digest != others[name][1], f"{name}: digests of both seeds")
        expect(len(set(losses)) == len(losses), f"{name}: {losses}")
    # Recomputing activations changes no result.
    expect_equal(seen["checkpoint"], seen["plain"], "with checkpointing")
    # Evaluation draws no random numbers: the first step is the same.
    expect_equal(seen["evaluate"][0][0], seen["plain"][0][0], "first loss")
    check_scaler(seen["scaler"][2], 0)
    with_infinity = feature_results(infinite)["scaler"]
    check_scaler(with_infinity[2], 2)
    expect_equal(with_infinity[0][:2], seen["scaler"][0][:2], "losses before")
    expect(with_infinity[0][2:] != seen["scaler"][0][2:], "losses after")
    for name in "experts", "sorted-experts":
        check_experts(name, seen[name][2], rows)


def integers():
    with Runner() as runner:
        runner.good(WORKLOADS / "integers.py")


def compiled():
    """Two runs that compile give the same, though kernels are unknown.

    Both start without cached kernels: trying variants out counts as writing.
    """
    argv = (TRAIN_GPT, *SMALL_GPT, "--steps", 2, "--compile", "--digest")
    with Runner() as runner:
        first, second = (
            runner.run(
                *argv,
                TORCHINDUCTOR_CACHE_DIR=f"{runner.folder.name}/{name}",
                TRITON_CACHE_DIR=f"{runner.folder.name}/{name}-triton",
            )
            for name in ("first", "second")
        )
    for run in first, second:
        expect_equal(run.code, 0, f"exit status\n{run.out[-2000:]}")
        expect_equal(run.report["races"], 0, "races")
        expect_equal(run.report["memory_errors"], 0, "memory errors")
    printed = [re.sub(r"  time [0-9.]+ ms", "", r.out) for r in (first, second)]
    expect_equal(printed[1], printed[0], "output of the second run")
    expect(first.digests(), "no digest")


def all_cases():
    language, vision = WORKLOADS / "language_model.py", WORKLOADS / "vision.py"
    small = {
        "gpt": (TRAIN_GPT, *SMALL_GPT, "--dropout", 0.1, "--steps", 2),
        "resnet": (vision, "resnet18", "--batch", 2, "--size", 32, "--steps",
                   2, "--prefetch"),
    }
    large = {
        "gpt": (TRAIN_GPT, "--steps", 3),
        "bert-large": (language, "bert-large"),
        "gpt2-xl": (language, "gpt2-xl"),
        "llama-7b": (language, "llama-7b"),
        "vgg16": (vision, "vgg16", "--batch", 128),
        "resnet50": (vision, "resnet50", "--prefetch"),
    }
    cases = [
        Case("torch/content/features", lambda: features(rows=128)),
        Case("torch/content/integers", integers),
        Case("torch/content/compile", compiled, full=True),
    ]
    for name, argv in small.items():
        cases.append(Case(f"torch/content/small/{name}",
                          lambda a=argv: independent(*a, "--digest")))
    large_features = ("--width", 1024, "--layers", 8, "--batch", 8,
                      "--sequence", 512)
    cases.append(
        Case("torch/content/features-large",
             lambda: features(*large_features, rows=4096), full=True)
    )
    for name, argv in large.items():
        cases.append(Case(f"torch/content/large/{name}",
                          lambda a=argv: independent(*a, "--digest"),
                          full=True, alone=True))
    return cases
