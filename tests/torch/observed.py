# SPDX-License-Identifier: LGPL-2.1-or-later
"""What observe mode must find out about PyTorch programs, and not change.

Every program is run plainly and observed. The profile is held against what
the program itself, PyTorch's allocator and the device know.
"""

import json
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
    launch,
    run,
    run_once,
)
from runner import Case, expect, expect_equal

OBSERVED = WORKLOADS / "observed.py"
KINDS = WORKLOADS / "kinds_at_peak.py"
SAYS = {"settings": (("TAPESWAP_LOG", "debug"),)}
TWINS = WORKLOADS / "twins.py"
TWO_DEVICES = WORKLOADS / "two_devices.py"
MIB = 1 << 20
KIND_TOLERANCE = 0.01
TIME_TOLERANCE = 0.001
CPU_TOLERANCE = 0.05
# Pairs of twins; so many turns of so many steps each.
PAIRS = 9
TURNS = 40
PACE = 6
# Allowed for a step of so many ops; Llama-7B's has fewer.
OPS_OF_STEP = 4000
STEP_MIB_MAX = 64
FILE_MIB_MAX = 20
WRITE_MS_MAX = 1000


def pair(*arguments, script=OBSERVED, **more):
    """The same program plainly and observed, kinds told."""
    return (
        run_once(Spec(script, arguments, **more)),
        run_once(
            Spec(KINDS, (script, *arguments), observe=True, **{**SAYS, **more})
        ),
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


def check_positions(outcome):
    """Each step begins at the launch at which the program began it. The first
    one has the program's preparation in it: parameters are then no older than
    what the step makes, and an update that works on them alone and comes last
    is left to the second."""
    began = [line["launches"] for line in outcome.steps() if "step" in line]
    told = re.findall(r"step (\d+) begins at launch (\d+)", outcome.err)
    found = [int(launch) for _, launch in told]
    print(f"steps begin at {found}, began at {began}")
    expect_equal(
        [int(step) for step, _ in told],
        list(range(1, len(began) + 1)),
        "steps in order",
    )
    expect_equal(found[2:], began[2:], "launches before steps")
    expect(found[0] <= began[0], f"first step: {found[0]}, {began[0]}")
    expect(
        began[1] - 1 <= found[1] <= began[1],
        f"second step: {found[1]}, {began[1]}",
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


def check_exit_line(outcome):
    """It says what one observes for, and where that is."""
    expect(
        re.search(
            r"\d+ ops seen, memory left alone; peak [0-9.]+ .iB in blocks; "
            r"\d+ steps.* -> .*profile\.json$",
            outcome.err,
            re.M,
        ),
        outcome.err[-500:],
    )


def observed(*arguments, turns=1, keep_gradients=False, **more):
    plain, seen = pair(*arguments, **more)
    check_harmless(plain, seen)
    check_counts(seen)
    check_positions(seen)
    check_exit_line(seen)
    check_profile(seen, turns, keep_gradients)


def alternating():
    """Two shapes take turns: both are steps, the larger is written."""
    plain, seen = pair("gpt2-small", "--alternate", "--steps", 14)
    check_harmless(plain, seen)
    check_counts(seen)
    check_positions(seen)
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


def cpu_time(model="bert-small"):
    """Processor time of a step once the profile is made. Twins make their
    steps by turns, with everything but the agent the same, so that whatever
    else the machine does slows both. What wrappers cost that pass everything
    on is not in it: tests/bench has that, some 7 ns a call."""
    outcome = run(
        Spec(
            TWINS,
            (model, "--pairs", PAIRS, "--turns", TURNS, "--pace", PACE),
            observe=True,
            timeout=1200,
        )
    )
    pairs = [
        [statistics.median(pair[mode]) for mode in ("off", "observe")]
        for pair in outcome.steps()
    ]
    expect_equal(len(pairs), PAIRS, "pairs of twins")
    # Of the last one that was observed; it warms up for some turns.
    expect(outcome.status["steps"] > TURNS * PACE, "the twin was not observed")
    ratios = [after / before for before, after in pairs]
    ratio = statistics.median(ratios)
    plain, seen = (statistics.median(column) for column in zip(*pairs))
    print(
        f"processor time of a step: {plain:.2f} ms plainly, {seen:.2f}"
        f" observed; x{ratio:.4f} ({min(ratios):.3f} to {max(ratios):.3f},"
        f" {PAIRS} pairs)"
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
