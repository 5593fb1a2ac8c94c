# SPDX-License-Identifier: LGPL-2.1-or-later
"""What observe mode must find out about PyTorch programs, and not change.

Every program is run plainly and observed. The profile is held against what
the program itself, PyTorch's allocator and the device know.
"""

import json
import os
import re
import statistics
import subprocess
import tempfile

import capping
import operands
import schema
import words
from harness import (
    ROOT,
    TRACE,
    TRAIN_GPT,
    WORKLOADS,
    Spec,
    environment,
    launch,
    run,
    run_once,
)
from runner import Case, expect, expect_equal

OBSERVED = WORKLOADS / "observed.py"
KINDS = WORKLOADS / "kinds_at_peak.py"
TWO_DEVICES = WORKLOADS / "two_devices.py"
MIB = 1 << 20
KIND_TOLERANCE = 0.01
TIME_TOLERANCE = 0.001
CPU_TOLERANCE = 0.05
# Pairs of so many steps at a time; the first ones are profiled.
PACE = 8
WARM_TURNS = 3
TURNS = 200
# Allowed for a step of so many ops; Llama-7B's has fewer.
OPS_OF_STEP = 4000
STEP_MIB_MAX = 64
FILE_MIB_MAX = 20
WRITE_MS_MAX = 1000


def pair(*arguments, script=OBSERVED, **more):
    """The same program plainly and observed, kinds told."""
    return (
        run_once(Spec(script, arguments, **more)),
        run_once(Spec(KINDS, (script, *arguments), observe=True, **more)),
    )


def told(outcome, key):
    """What a line of its own says at a program's end."""
    return [line[key] for line in outcome.steps() if key in line][-1]


def facts_of(outcome):
    return told(outcome, "facts")


def check_harmless(plain, seen):
    """Results are the same; once the profile is made so are step times."""
    before = [line for line in plain.steps() if "step" in line]
    after = [line for line in seen.steps() if "step" in line]
    expect_equal(
        [line["loss"] for line in after],
        [line["loss"] for line in before],
        "losses",
    )
    expect_equal(facts_of(seen), facts_of(plain), "facts")
    last, was = after[-1]["ms"], before[-1]["ms"]
    expect(
        abs(last / was - 1) <= TIME_TOLERANCE,
        f"last step {last:.4f} ms observed, {was:.4f} ms plainly",
    )


def check_counts(outcome):
    """The device has done what the agent saw and what the agent did."""
    report, status = outcome.report, outcome.status
    totals, own = status["totals"], outcome.profile["run"]["own_copies"]
    expect_equal(totals["launches"], report["launches"], "launches")
    expect_equal(totals["copies"] + own, report["copies"], "copies")
    expect_equal(totals["sets"], report["memsets"], "memory sets")


def near(found, wanted, what):
    expect(
        abs(found - wanted) <= KIND_TOLERANCE * wanted,
        f"{what}: {found} bytes found, {wanted} wanted",
    )


def kept_bytes(profile, kind):
    """Of values of the kind that live through the step."""
    return sum(
        value["size_bytes"]
        for value in profile["values"]
        if value["kind"] == kind and value.get("persistent")
    )


def made_bytes(profile, kind):
    """Of blocks of the kind that are made in the step."""
    blocks = {
        value["block"]: value["size_bytes"]
        for value in profile["values"]
        if value["kind"] == kind and "born" in value
    }
    return sum(blocks.values())


def check_profile(outcome, turns, keep_gradients=False):
    facts, profile = facts_of(outcome), outcome.profile
    found = profile["run"]
    schema.check(profile, "profile")
    expect_equal(outcome.status["steps"], facts["steps"], "steps")
    expect_equal(
        outcome.status["peak_block_bytes"],
        facts["peak_bytes"],
        "peak of blocks against torch.cuda.max_memory_allocated",
    )
    expect_equal(len(profile["turns"]), turns, "turns")
    expect_equal(
        len(profile["regions"]), turns * facts["layers"], "regions"
    )
    expect(
        all("backward_first_op" in r for r in profile["regions"]),
        "a region without its backward",
    )
    expect(found["timed_steps"] >= 2, f"timed steps: {found['timed_steps']}")
    busy = sum(op["duration_ns"] for op in profile["ops"])
    expect(
        0 < busy <= found["step_ns"],
        f"ops take {busy} ns of a step of {found['step_ns']} ns",
    )
    near(
        kept_bytes(profile, "parameter"),
        facts["parameter_bytes"],
        "parameters",
    )
    if facts["state_bytes"]:
        near(
            kept_bytes(profile, "optimizer"),
            facts["state_bytes"],
            "optimizer state",
        )
    gradients = kept_bytes if keep_gradients else made_bytes
    near(
        gradients(profile, "gradient"), facts["gradient_bytes"], "gradients"
    )
    check_kinds(outcome)


def check_kinds(outcome):
    """What the peak is made of, kind by kind, as the program knows it."""
    memory = outcome.profile["memory"]
    found, known = memory["kinds_at_peak"], told(outcome, "kinds")
    print(f"kinds at the peak {found}, known {known}")
    expect_equal(sum(found.values()), memory["peak_bytes"], "sum of kinds")
    for kind in "parameter", "optimizer", "gradient":
        near(found[kind], known.get(kind, 0), f"{kind} at the peak")
    # Not what they were made for but when is known of these.
    for kind in "activation", "scratch":
        apart = abs(found[kind] - known.get(kind, 0))
        expect(
            apart <= KIND_TOLERANCE * memory["peak_bytes"],
            f"{kind} at the peak: {found}, known {known}",
        )


def observed(*arguments, turns=1, keep_gradients=False, **more):
    plain, seen = pair(*arguments, **more)
    check_harmless(plain, seen)
    check_counts(seen)
    check_profile(seen, turns, keep_gradients)


def alternating():
    """Two shapes take turns: both are steps, the larger is written."""
    plain, seen = pair("gpt2-small", "--alternate", "--steps", 10)
    check_harmless(plain, seen)
    check_counts(seen)
    check_profile(seen, 1)
    expect_equal(
        seen.profile["memory"]["peak_bytes"],
        facts_of(seen)["peak_bytes"],
        "peak of the shape in the file",
    )


def longer():
    """Steps get longer long after the profile was made: it is made again."""
    plain, seen = pair("gpt2-small", "--longer-at", 10, "--steps", 18)
    check_harmless(plain, seen)
    check_counts(seen)
    check_profile(seen, 1)
    expect_equal(
        seen.profile["memory"]["peak_bytes"],
        facts_of(seen)["peak_bytes"],
        "peak of the shape in the file",
    )


def trainer():
    """The example, as it is: accumulation of 4, evaluation each 3 steps."""
    arguments = ("--steps", 9, "--accumulate", 4, "--eval-every", 3)
    plain, seen = pair(*arguments, script=TRAIN_GPT)
    expect_equal(
        [l.split()[3] for l in seen.out.splitlines() if l.startswith("step")],
        [l.split()[3] for l in plain.out.splitlines() if l.startswith("step")],
        "losses",
    )
    check_counts(seen)
    expect_equal(seen.status["steps"], 9, "steps")
    expect_equal(len(seen.profile["turns"]), 4, "turns")
    expect_equal(len(seen.profile["regions"]), 4 * 4, "regions")
    peak = int(seen.out.split("peak allocated ")[1].split()[0])
    expect_equal(seen.status["peak_block_bytes"], peak, "peak of blocks")
    check_kinds(seen)


def marked(way, **more):
    """The program tells its steps: two of what else would be found each."""
    plain, seen = pair(
        "gpt2-small", "--mark", way, "--mark-every", 2, "--steps", 14, **more
    )
    check_harmless(plain, seen)
    check_counts(seen)
    # Seven calls, and what is before the first is no step.
    expect_equal(seen.status["steps"], 6, "steps")
    expect_equal(len(seen.profile["turns"]), 2, "turns")
    expect_equal(len(seen.profile["regions"]), 2 * 2, "regions")


def two_devices():
    """Each device has a profile: its own blocks, the same ops."""
    settings = (("SIMGPU_DEVICES", "2"),)
    plain, seen = (
        run_once(Spec(TWO_DEVICES, observe=on, settings=settings))
        for on in (False, True)
    )
    expect_equal(seen.steps(), plain.steps(), "losses and peaks")
    expect_equal(seen.status["steps"], facts_of(seen)["steps"], "steps")
    # The one with most bytes has the file's name.
    main = seen.profile["run"]["device"]
    expect_equal(main, 1, "device of the first file")
    profiles = {main: seen.profile, **seen.device_profiles}
    expect_equal(sorted(profiles), [0, 1], "devices with a profile")
    for device, profile in profiles.items():
        peak = facts_of(seen)["peaks"][device]
        schema.check(profile, "profile")
        expect_equal(profile["run"]["devices"], 2, "devices of the step")
        expect_equal(profile["run"]["peak_bytes"], peak, f"peak of {device}")
        expect_equal(
            sum(profile["memory"]["kinds_at_peak"].values()),
            profile["memory"]["peak_bytes"],
            "kinds at the peak",
        )
        expect_equal(len(profile["turns"]), 1, "turns")
    busy = {
        device: {i for i, op in enumerate(profile["ops"]) if op["duration_ns"]}
        for device, profile in profiles.items()
    }
    both = busy[0] & busy[1]
    expect(busy[0] and busy[1], "a device without ops")
    # The activation, its gradient, and no more are handed over.
    expect(len(both) <= 2, f"ops of both devices: {both}")


class Paced:
    """A program that makes some steps at a time, when it is told to."""

    def __init__(self, folder, model, steps, observe):
        os.mkdir(folder)
        self.process = subprocess.Popen(
            [
                ROOT / "build/venv/bin/python", OBSERVED, model,
                "--paced", str(PACE), "--steps", str(steps),
            ],
            env=environment(Spec(OBSERVED, observe=observe), folder),
            cwd=folder, text=True, stdin=subprocess.PIPE,
            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
        )

    def step_ms(self):
        """Processor time of a step, of the next ones but the first."""
        self.process.stdin.write("\n")
        self.process.stdin.flush()
        lines = [self.process.stdout.readline() for _ in range(PACE)]
        expect(all(lines), "the program ended before its last step")
        return statistics.median(json.loads(l)["cpu_ms"] for l in lines[1:])


def cpu_time(model="bert-small"):
    """Host time of a step once the profile is made. Both programs are there
    at once and make their steps by turns, so that whatever else the machine
    does slows both; processor time, for the same reason."""
    turns = WARM_TURNS + TURNS
    with tempfile.TemporaryDirectory() as folder:
        programs = [
            Paced(f"{folder}/{on}", model, turns * PACE, on)
            for on in (False, True)
        ]
        try:
            times = []
            for turn in range(turns):
                order = programs if turn % 2 else programs[::-1]
                took = {program: program.step_ms() for program in order}
                times.append([took[program] for program in programs])
        finally:
            for program in programs:
                program.process.kill()
                program.process.communicate()
    plain, seen = zip(*times[WARM_TURNS:])
    ratios = [after / before for before, after in zip(plain, seen)]
    ratio = statistics.median(ratios)
    print(
        f"processor time of a step: {statistics.median(plain):.2f} ms plainly,"
        f" {statistics.median(seen):.2f} observed; x{ratio:.4f}"
        f" ({min(ratios):.2f} to {max(ratios):.2f}, {TURNS} pairs)"
    )
    expect(ratio <= 1 + CPU_TOLERANCE, f"x{ratio:.3f}")


def check_operands(script, *arguments):
    """Every operand the device knows is in the profile, and little else; so
    are the classes of the words that lead to them."""
    settings = (("SIMGPU_TRACE", TRACE),)
    outcome = run(
        Spec(script, arguments, observe=True, settings=settings)
    )
    operands.check(outcome.profile, outcome.trace)
    words.check(outcome.profile, outcome.trace, "--dropout" in arguments)


def exception():
    """A program that fails leaves the profile of its last whole step."""
    outcome = launch(
        Spec(
            OBSERVED,
            ("bert-small", "--steps", 6, "--fail-at", 5),
            observe=True,
        )
    )
    expect_equal(outcome.code, 1, "exit status")
    expect("told to fail" in outcome.err, outcome.err[-500:])
    expect_equal(outcome.status["steps"], 4, "steps")
    expect_equal(len(outcome.profile["regions"]), 2, "regions")
    expect(outcome.profile["run"]["same_steps"] >= 2, "same steps")
    schema.check(outcome.profile, "profile")


def terminated():
    """SIGTERM ends the program; the profile of an earlier step stays."""
    outcome = launch(
        Spec(
            OBSERVED,
            ("bert-small", "--steps", 6, "--terminate-at", 5),
            observe=True,
            settings=(("TAPESWAP_HELPER", "inline"),),
        )
    )
    expect_equal(outcome.code, -15, "exit status")
    expect_equal(len(outcome.profile["regions"]), 2, "regions")
    expect(outcome.profile["run"]["timed_steps"] >= 1, "timed steps")
    schema.check(outcome.profile, "profile")
    expect_equal(outcome.status["complete"], False, "complete")
    expect(outcome.status["totals"]["launches"] > 0, "launches in the status")
    capping.check_schema(outcome.status)


def gpu_check():
    """The check for real GPUs, dry: on the simulated one, and without any."""
    python = ROOT / "build/venv/bin/python"
    command = [python, ROOT / "scripts/gpu-check", "--output", "result.json"]
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run(
            [*command, "--sim", "a100-80g-pcie4"],
            cwd=folder, capture_output=True, text=True, timeout=300,
        )
        expect_equal(done.returncode, 0, f"exit status\n{done.stdout}")
        with open(f"{folder}/result.json", encoding="utf-8") as file:
            result = json.load(file)
        expect(result["simulated"], "not marked as simulated")
        expect(len(result["checks"]) >= 8, "checks")
        done = subprocess.run(
            command, cwd=folder, capture_output=True, text=True, timeout=60
        )
        expect_equal(done.returncode, 77, f"without a GPU\n{done.stdout}")


def check_cost(plain, seen):
    """What recording and writing a large step takes on the host. A step of
    very many ops, as of convolutions image by image, may take more."""
    more = (seen.host_bytes - plain.host_bytes) / MIB
    took = [float(ms) for ms in re.findall(r"written in (\S+) ms", seen.err)]
    ops = len(seen.profile["ops"])
    share = max(1, ops / OPS_OF_STEP)
    print(
        f"{ops} ops, host memory +{more:.1f} MiB, file"
        f" {seen.profile_bytes / MIB:.2f} MiB written in {took} ms"
    )
    expect(more < share * STEP_MIB_MAX, f"host memory +{more:.1f} MiB")
    expect(
        0 < seen.profile_bytes < share * FILE_MIB_MAX * MIB,
        f"a file of {seen.profile_bytes} bytes",
    )
    expect(
        took and max(took) < share * WRITE_MS_MAX, f"written in {took} ms"
    )


def big(name, script, *arguments, layers=None):
    """Peak, counts and layers of a reference workload."""
    arguments = (name, *arguments, "--steps", 5)
    # Plainly, as other cases run it too.
    plain = run_once(Spec(script, arguments))
    seen = run_once(
        Spec(
            KINDS,
            (script, *arguments),
            observe=True,
            settings=(("TAPESWAP_LOG", "debug"),),
        )
    )
    check_cost(plain, seen)
    check_kinds(seen)
    steps = [line for line in seen.steps() if "step" in line]
    expect_equal(
        [s["loss"] for s in steps], [s["loss"] for s in plain.steps()], "losses"
    )
    check_counts(seen)
    expect_equal(seen.status["steps"], 5, "steps")
    expect_equal(
        seen.status["peak_block_bytes"],
        steps[-1]["max_memory_allocated"],
        "peak of blocks against torch.cuda.max_memory_allocated",
    )
    expect_equal(len(seen.profile["turns"]), 1, "turns")
    if layers:
        expect_equal(len(seen.profile["regions"]), layers, "regions")


def all_cases():
    language = WORKLOADS / "language_model.py"
    vision = WORKLOADS / "vision.py"
    prefix = "torch/observe/"

    def case(name, run_it, **more):
        return Case(prefix + name, run_it, **more)

    small = [
        case(model, lambda m=f"{model}-small": observed(m))
        for model in ("bert", "gpt2", "llama")
    ]
    ways = {
        "fused": ("--optimizer", "fused"),
        "one-by-one": ("--optimizer", "single"),
        "sgd": ("--optimizer", "sgd"),
        "eval-every-3": ("--eval-every", 3, "--steps", 10),
    }
    small += [
        case(name, lambda a=arguments: observed("gpt2-small", *a))
        for name, arguments in ways.items()
    ]
    return [
        *small,
        case(
            "accumulate-4",
            lambda: observed("gpt2-small", "--accumulate", 4, turns=4),
        ),
        case(
            "kept-gradients",
            lambda: observed(
                "gpt2-small", "--keep-gradients", keep_gradients=True
            ),
        ),
        case("alternating", alternating),
        case("longer", longer),
        case(
            "mark-range",
            lambda: marked(
                "range", settings=(("TAPESWAP_STEP_RANGE", "train step"),)
            ),
        ),
        case("mark-step", lambda: marked("step"), full=True),
        case("two-devices", two_devices),
        case("cpu-time", cpu_time, full=True, alone=True),
        case("train_gpt", trainer),
        case("exception", exception),
        case("terminated", terminated),
        case("gpu-check", gpu_check),
        *(
            case(f"operands-{name}", lambda a=arguments: check_operands(*a))
            for name, arguments in {
                "bert": (language, "bert-small", "--steps", 5),
                "llama": (language, "llama-small", "--steps", 5),
                "gpt": (
                    TRAIN_GPT, "--steps", 5, "--amp", "--dropout", 0.1,
                    "--attention", "manual",
                ),
                "resnet18": (
                    vision, "resnet18", "--batch", 4, "--size", 64,
                    "--steps", 5,
                ),
            }.items()
        ),
        case("bert-large", lambda: big("bert-large", language, layers=24)),
        case(
            "gpt2-xl", lambda: big("gpt2-xl", language, layers=48), full=True
        ),
        case(
            "llama-7b",
            lambda: big("llama-7b", language, layers=32),
            full=True,
        ),
        case(
            "vgg16", lambda: big("vgg16", vision, "--batch", 128), full=True
        ),
        case(
            "resnet50",
            lambda: big("resnet50", vision, "--batch", 64),
            full=True,
        ),
    ]
