# SPDX-License-Identifier: LGPL-2.1-or-later
"""What must hold where memory is short: the pager alone, TAPESWAP_MODE=cap.

  shares      a model at shares of its peak, and at the least limit that the
              agent names: the same losses and digest, within the limit
  settings    the same where unmapping waits and where it does not, with the
              agent's helper on the caller's thread and on its own
  faults      a driver call of the agent fails: right, or out of memory
  flat        many steps take no more memory than few
  tight       a limit close to the least there is
  leftover    what only unused slots of an op's parameters name need not fit
  beyond      a model far larger than the device
  fragmented  free memory in small pieces: no copy is needed
  replay      proofs and values made again need no memory that the program
              would not need without them
  gpu-check   scripts/gpu-check holds on the simulated GPU: what is checked under
              limits on a real one, by a thread that asks NVML
  unmapped    what is moved out is not there: every use of it is seen
  enough      a limit at the peak, or just above: nothing moves, and once steps
              repeat themselves no call maps memory and no time is lost
"""

import json
import pathlib
import random
import subprocess
import tempfile

from harness import ROOT, TRAIN_GPT, WORKLOADS, Spec, checked, launch, run_once
from repeat import Runner
from runner import Case, Failure, expect, expect_equal

import capping
import proving

MIB = 1 << 20
SHARES = (90, 70, 50, 30, 20)
LEAST = "least"

SEED = 6
SAMPLE = 6  # faults of the short case
FIRST = 20  # --full: so many first calls of each function,
DRAWN = 30  # and so many of the others

# Small, and yet many pages; the optimizer's fused ops fit into half of them.
GPT = (
    TRAIN_GPT,
    "--layers", 2, "--width", 512, "--sequence", 128, "--batch", 32,
    "--vocabulary", 1024, "--steps", 2,
)

GPT_SHARE = 50

# train_gpt.py --amp wants 778 MiB, the context included, and 580 at least.
TIGHT = 594 * MIB

# adversarial.py wants 1540 MiB, the context included. With slots of one
# optimizer's lists that still name the other's an op would need 922.
LEFTOVER = 820 * MIB

# Figures by workload and share, for tests/results.
results = {}


def write_results():
    path = ROOT / "tests/results/shares.json"
    kept = {}
    if path.exists():
        kept = json.loads(path.read_text(encoding="utf-8"))
    for name, by_share in results.items():
        kept.setdefault(name, {}).update(by_share)
    text = json.dumps(kept, indent=1, sort_keys=True) + "\n"
    path.write_text(text, encoding="utf-8")


def tagged(script, *arguments, **more):
    settings = (("SIMGPU_CONTENT", "tags"), *more.pop("settings", ()))
    return Spec(script, (*arguments, "--digest"), settings=settings, **more)


def limit_at(report, share):
    """The least is looked for from just above the context on."""
    context = report["context_bytes"]
    beside = report["physical_peak_bytes"] - context
    part = 0 if share == LEAST else beside * share // 100
    return context + max(part, 4 * MIB)


def share(name, spec, percent):
    unlimited = run_once(spec)
    report = unlimited.report
    wanted = capping.printed(unlimited)
    expect("digest" in wanted, f"no digest in {wanted[-200:]}")
    outcome, limit = capping.run_capped(spec, limit_at(report, percent))
    capping.check_capped(outcome, limit)
    expect_equal(outcome.report["possible_races"], 0, "possible races")
    expect_equal(capping.printed(outcome), wanted, "losses and digest")
    (device,) = outcome.status["devices"]
    expect_equal(
        device["peak_bytes"],
        outcome.report["physical_peak_bytes"],
        "peak by the agent and by the device",
    )
    results.setdefault(name, {})[str(percent)] = {
        "limit_bytes": limit,
        "physical_peak_bytes": outcome.report["physical_peak_bytes"],
        "unlimited_peak_bytes": report["physical_peak_bytes"],
        "virtual_ns": outcome.report["virtual_ns"],
        "unlimited_virtual_ns": report["virtual_ns"],
        "out_bytes": device["moved"]["out_bytes"],
        "in_bytes": device["moved"]["in_bytes"],
        "vmm_calls": outcome.report["vmm_calls"],
        "real_s": round(outcome.seconds, 1),
        "host_bytes": outcome.host_bytes,
    }
    print(
        f"  {name} at {percent}: limit {limit >> 20} MiB, out "
        f"{device['moved']['out_bytes'] >> 20} MiB, in "
        f"{device['moved']['in_bytes'] >> 20} MiB, "
        f"{outcome.report['virtual_ns'] / report['virtual_ns']:.2f} x the "
        f"time, {outcome.seconds:.0f} s",
        flush=True,
    )


def tight():
    """A limit close to the least, pages small: nothing may go unordered."""
    spec = tagged(
        TRAIN_GPT, "--amp", "--steps", 6, device="a100-80g-pcie4"
    )
    unlimited = run_once(spec)
    outcome = checked(launch(capping.capped(spec, TIGHT)))
    capping.check_capped(outcome, TIGHT)
    expect_equal(outcome.report["possible_races"], 0, "possible races")
    expect_equal(
        capping.printed(outcome), capping.printed(unlimited), "output"
    )
    (device,) = outcome.status["devices"]
    expect(device["moved"]["out_bytes"] > 0, "nothing was moved")


# By how much virtual time may change where a thread of the agent's does some of
# the work: calls then come in another order, and rather save time.
SLOWER_THREADED = 0.01
FASTER_THREADED = 0.03


def setting(name, value):
    """A small model short of memory under a setting of either side."""
    script, *arguments, _ = GPT
    # The helper has work once the step is known.
    arguments.append(8 if name == "TAPESWAP_HELPER" else 2)
    spec = tagged(script, *arguments)
    unlimited = run_once(spec)
    limit = limit_at(unlimited.report, GPT_SHARE)
    pressed = capping.capped(
        tagged(script, *arguments, settings=((name, value),)), limit
    )
    outcome = checked(launch(pressed))
    capping.check_capped(outcome, limit)
    expect_equal(
        capping.printed(outcome), capping.printed(unlimited), "output"
    )
    (device,) = outcome.status["devices"]
    expect(device["moved"]["out_bytes"] > 0, "nothing was moved")
    if (name, value) == ("TAPESWAP_HELPER", "thread"):
        inline = checked(launch(capping.capped(spec, limit)))
        times = [o.report["virtual_ns"] for o in (inline, outcome)]
        print(f"  inline, with a thread: {times} ns", flush=True)
        expect(
            -FASTER_THREADED <= times[1] / times[0] - 1 <= SLOWER_THREADED,
            f"a thread changes the time: {times}",
        )


# ------------------------------------------------------------------- faults


def status_of(runner):
    path = pathlib.Path(runner.folder.name, "status.json")
    return json.loads(path.read_text(encoding="utf-8"))


def outcome_of(run):
    return run.losses(), run.digests()


def try_fault(runner, symbol, nth, wanted, limit):
    """What is wrong with a run in which that call failed; and how it went."""
    status = pathlib.Path(runner.folder.name, "status.json")
    status.unlink(missing_ok=True)
    run = runner.run(*GPT, "--digest", SIMGPU_FAIL=f"{symbol}:{nth}")
    said = []
    if run.report["api_call_counts"].get(symbol, 0) < nth:
        said.append("the call was never made")
    if run.code and "out of memory" not in run.out:
        said.append(f"exit status {run.code}: {run.out[-600:]}")
    # PyTorch takes other kernels where one product is refused memory.
    recovered = "Will attempt to recover" in run.out
    if not run.code and not recovered and outcome_of(run) != wanted:
        said.append(f"{outcome_of(run)}, wanted {wanted}")
    for name in "memory_errors", "races", "possible_races":
        if run.report[name]:
            texts = run.report.get("race_texts", [])[:1]
            said.append(f"{run.report[name]} {name} {texts}")
    peak = run.report["physical_peak_bytes"]
    if peak > limit:
        said.append(f"peak {peak} over {limit}")
    if not status.exists():
        said.append("no status")
    else:
        (device,) = status_of(runner)["devices"]
        if device["peak_bytes"] != peak:
            said.append(f"peak {device['peak_bytes']} for {peak}")
    word = "out of memory" if run.code else "right"
    word = "recovered by PyTorch" if recovered and not run.code else word
    return [f"{symbol}:{nth}: {text}" for text in said], word


def draw_faults(before, after, every):
    """Calls that the agent alone makes; before: without it."""
    chance = random.Random(SEED)
    chosen = []
    for symbol in capping.agent_symbols():
        count = after.get(symbol, 0)
        if before.get(symbol, 0) or not count:
            continue
        first = range(1, min(FIRST, count) + 1)
        rest = range(len(first) + 1, count + 1)
        drawn = chance.sample(rest, min(DRAWN, len(rest)))
        chosen += [(symbol, nth) for nth in (*first, *sorted(drawn))]
    return chosen if every else chance.sample(chosen, SAMPLE)


def faults(every):
    with Runner() as runner:
        plain = runner.good(*GPT, "--digest")
    limit = limit_at(plain.report, GPT_SHARE)
    wanted = outcome_of(plain)
    bad, words = [], {}
    with Runner(limit=str(limit)) as runner:
        run = runner.good(*GPT, "--digest")
        expect_equal(outcome_of(run), wanted, "under the limit")
        chosen = draw_faults(
            plain.report["api_call_counts"],
            run.report["api_call_counts"],
            every,
        )
        for symbol, nth in chosen:
            said, word = try_fault(runner, symbol, nth, wanted, limit)
            bad += said
            words[word] = words.get(word, 0) + 1
    print(f"  {len(chosen)} faults: {words}", flush=True)
    expect(not bad, "\n".join(bad))


# -------------------------------------------------------------------- others


def flat(few, many):
    """Memory after many steps is that after few, on both sides."""
    script, *arguments = GPT[:-2]
    peaks = {}
    for steps in few, many:
        plain = Spec(script, (*arguments, "--steps", 2))
        limit = limit_at(run_once(plain).report, GPT_SHARE)
        spec = Spec(script, (*arguments, "--steps", steps), timeout=1800)
        outcome = checked(launch(capping.capped(spec, limit)))
        capping.check_capped(outcome, limit)
        (device,) = outcome.status["devices"]
        peaks[steps] = {
            "host": outcome.host_bytes,
            "device": outcome.report["physical_peak_bytes"],
            "pinned": device["host_peak_bytes"],
        }
    print(f"  {peaks}", flush=True)
    grown = {k: peaks[many][k] - peaks[few][k] for k in peaks[few]}
    expect(grown["host"] <= 16 * MIB, f"host memory grew: {grown}")
    expect(grown["device"] <= 0, f"device memory grew: {grown}")
    expect(grown["pinned"] <= 8 * MIB, f"pinned memory grew: {grown}")


def beyond(name, steps, device, host_limit):
    """It never fitted: all of a smaller device is the limit."""
    model = ROOT / f"tests/simgpu/models/{device}.json"
    limit = json.loads(model.read_text(encoding="utf-8"))["memory_bytes"]
    script = WORKLOADS / "language_model.py"
    wanted = run_once(Spec(script, (name, "--steps", steps)))
    spec = Spec(
        script,
        (name, "--steps", steps),
        device=device,
        settings=(("TAPESWAP_HOST_LIMIT", host_limit),),
        timeout=1500,
    )
    outcome = checked(launch(capping.capped(spec, limit)))
    capping.check_capped(outcome, limit)
    expect_equal(
        capping.printed(outcome), capping.printed(wanted), "output"
    )
    peak = wanted.report["physical_peak_bytes"]
    print(
        f"  {name}: peak {peak >> 20} MiB in {limit >> 20} MiB, "
        f"{outcome.seconds:.0f} s, host {outcome.host_bytes >> 20} MiB",
        flush=True,
    )


def fragmented(*arguments):
    """PyTorch alone has the memory free, but not in one piece."""
    script = WORKLOADS / "fragmented.py"
    alone = launch(Spec(script, arguments, device="tiny-1g"))
    expect(
        alone.code and "OutOfMemoryError" in alone.err,
        f"it fits without tapeswap: {alone.out[-300:]}{alone.err[-300:]}",
    )
    spec = Spec(script, arguments, device="tiny-1g", limit="1GiB")
    outcome = checked(launch(spec))
    capping.check_capped(outcome, 1 << 30)
    (device,) = outcome.status["devices"]
    moved = device["moved"]
    expect(moved["reclaimed_pages"] > 0, f"nothing was taken back: {moved}")
    seen = moved["out_bytes"], moved["in_bytes"]
    expect_equal(seen, (0, 0), "bytes moved")


def replay_at_least():
    """At the least limit proofs give way, and nothing else is seen of them."""
    spec = tagged(
        TRAIN_GPT, *proving.LARGE, 18, "--dropout", 0.1,
        settings=(("TAPESWAP_HELPER", "inline"),),
    )
    unlimited = run_once(spec)
    _, limit = capping.run_capped(spec, limit_at(unlimited.report, LEAST))
    proved = Spec(
        spec.script,
        spec.arguments,
        settings=(*spec.settings, ("TAPESWAP_REPLAY", "1")),
    )
    outcome = checked(launch(capping.capped(proved, limit)))
    peak = outcome.report["physical_peak_bytes"]
    expect(peak <= limit, f"physical peak {peak} over {limit}")
    expect_equal(
        capping.printed(outcome), capping.printed(unlimited), "output"
    )
    expect("proof: " in outcome.err, "nothing was to be proved")
    expect_equal(outcome.status["shortages"], 0, "refusals")


def gpu_check():
    """Its limits are held and its losses are equal; nothing is left out."""
    python = ROOT / "build/venv/bin/python"
    with tempfile.TemporaryDirectory() as folder:
        output = pathlib.Path(folder, "check.json")
        done = subprocess.run(
            [python, ROOT / "scripts/gpu-check", "--python", python,
             "--sim", "h200", "--output", output],
            cwd=folder,
            capture_output=True,
            text=True,
            timeout=1800,
        )
        expect_equal(done.returncode, 0, done.stdout + done.stderr[-2000:])
        checks = json.loads(output.read_text(encoding="utf-8"))["checks"]
    bits = [name for name in checks if name.endswith(": bits")]
    expect_equal(len(bits), 3, f"limits in {sorted(checks)}")
    untold = [name for name, check in checks.items() if not check["holds"]]
    expect(not untold, f"not told: {untold}")


def unmapped_at_60(spec):
    """Every use is seen: none meets what was unmapped as it left."""
    unlimited = run_once(spec)
    pressed = Spec(
        spec.script,
        spec.arguments,
        settings=(*spec.settings, ("TAPESWAP_DEBUG_UNMAP", "1")),
        timeout=900,
    )
    limit = limit_at(unlimited.report, 60)
    outcome, limit = capping.run_capped(pressed, limit)
    capping.check_capped(outcome, limit)
    expect_equal(
        capping.printed(outcome), capping.printed(unlimited), "output"
    )
    (device,) = outcome.status["devices"]
    expect(device["moved"]["out_bytes"] > 0, "nothing was moved")


STEADY = 6, 8  # steps; by then addresses repeat themselves
SLOWER = 0.005


def steady_runs(runner, arguments):
    """The same with fewer steps and with more."""
    # What the first one compiles the others find.
    if "--compile" in arguments:
        runner.good(*arguments, "--steps", STEADY[0])
    return [runner.good(*arguments, "--steps", n) for n in STEADY]


def enough(spec, more_bytes):
    """What two further steps cost, without a limit and with one."""
    arguments = spec.script, *spec.arguments, "--digest"
    runs = {}
    with Runner() as runner:
        runs["plain"] = steady_runs(runner, arguments)
    peak = runs["plain"][-1].report["physical_peak_bytes"]
    with Runner(limit=peak + more_bytes) as runner:
        runs["capped"] = steady_runs(runner, arguments)
        (device,) = status_of(runner)["devices"]
    for plain, capped in zip(*runs.values()):
        expect_equal(outcome_of(capped), outcome_of(plain), "output")
    expect(outcome_of(runs["plain"][0])[1], "no digest")
    moved = device["moved"]["out_bytes"] + device["moved"]["in_bytes"]
    expect_equal(moved, 0, "bytes moved")
    steps = {
        kind: {
            key: after.report[key] - before.report[key]
            for key in ("vmm_calls", "virtual_ns")
        }
        for kind, (before, after) in runs.items()
    }
    print(f"  {STEADY[1] - STEADY[0]} steps: {steps}", flush=True)
    expect_equal(steps["capped"]["vmm_calls"], 0, "calls that map memory")
    ratio = steps["capped"]["virtual_ns"] / steps["plain"]["virtual_ns"]
    expect(ratio <= 1 + SLOWER, f"{ratio:.4f} times the time of {steps}")


def small_models():
    language = WORKLOADS / "language_model.py"
    vision = WORKLOADS / "vision.py"
    small = WORKLOADS / "small.py"
    return {
        "gpt": tagged(TRAIN_GPT, "--steps", 3),
        "gpt-amp": tagged(
            TRAIN_GPT, "--steps", 3, "--amp", "--dropout", 0.1
        ),
        "gpt-accumulate": tagged(
            TRAIN_GPT, "--steps", 4, "--accumulate", 2, "--eval-every", 2
        ),
        "gpt-compile": tagged(TRAIN_GPT, "--steps", 3, "--compile"),
        "mlp": tagged(small, "mlp", "--batch", 16384, "--steps", 3),
        "lenet": tagged(small, "lenet", "--batch", 1024, "--steps", 3),
        "lstm": tagged(WORKLOADS / "lstm.py"),
        "bert-small": tagged(language, "bert-small"),
        "gpt2-small": tagged(language, "gpt2-small"),
        "llama-small": tagged(language, "llama-small"),
        "resnet18": tagged(
            vision, "resnet18", "--batch", 128, "--size", 64
        ),
    }


def large_models():
    language = WORKLOADS / "language_model.py"
    vision = WORKLOADS / "vision.py"
    return {
        "bert-large": tagged(language, "bert-large", timeout=1200),
        "gpt2-xl": tagged(language, "gpt2-xl", timeout=1800),
        "llama-7b": tagged(language, "llama-7b", timeout=1800),
        "vgg16": tagged(vision, "vgg16", "--batch", 128, timeout=900),
        "resnet50": tagged(vision, "resnet50", "--batch", 64, timeout=900),
    }


def leftover():
    """Below what ops would need if slots left over from others counted."""
    spec = Spec(WORKLOADS / "adversarial.py", ())
    unlimited = run_once(spec)
    outcome = launch(capping.capped(spec, LEFTOVER))
    checked(outcome)
    capping.check_capped(outcome, LEFTOVER)
    expect_equal(outcome.out, unlimited.out, "output under the limit")
    expect_equal(outcome.report["races"], 0, "races")


def all_cases():
    cases = [
        Case("torch/pressed/faults/sample", lambda: faults(False)),
        Case("torch/pressed/faults/all", lambda: faults(True), full=True),
        Case("torch/pressed/fragmented/large", fragmented, full=True),
        Case(
            "torch/pressed/fragmented/small", lambda: fragmented("--small")
        ),
        Case("torch/pressed/tight", tight),
        Case("torch/pressed/leftover", leftover),
        Case("torch/pressed/replay", replay_at_least, full=True),
        Case("torch/pressed/gpu-check", gpu_check, full=True),
        Case("torch/pressed/flat", lambda: flat(100, 1000), full=True),
        Case(
            "torch/pressed/beyond/llama-7b",
            lambda: beyond("llama-7b", 2, "rtx4090", "160GiB"),
            full=True,
            alone=True,
        ),
    ]
    for name, values in {
        "SIMGPU_UNMAP_SYNC": ("none", "device"),
        "TAPESWAP_HELPER": ("inline", "thread"),
        # A use that the agent does not see is error 700 then.
        "TAPESWAP_DEBUG_UNMAP": ("1",),
    }.items():
        for value in values:
            cases.append(
                Case(
                    f"torch/pressed/settings/{name}={value}",
                    lambda n=name, v=value: setting(n, v),
                    full=True,
                )
            )
    for name in "gpt-compile", "lstm", "bert-small", "resnet18":
        cases.append(
            Case(
                f"torch/pressed/unmapped/{name}",
                lambda n=name: unmapped_at_60(small_models()[n]),
                full=name != "bert-small",
            )
        )
    models = small_models()
    for name, spec in models.items():
        for mib in 0, 256:
            cases.append(
                Case(
                    f"torch/pressed/enough/{name}+{mib}MiB",
                    lambda s=spec, m=mib: enough(s, m * MIB),
                    full=(name, mib) != ("gpt", 0),
                )
            )
    for name, spec in (*models.items(), *large_models().items()):
        large = name not in models
        for percent in (*SHARES, LEAST):
            cases.append(
                Case(
                    f"torch/pressed/shares/{name}/{percent}",
                    lambda n=name, s=spec, p=percent: share(n, s, p),
                    full=(name, percent) != ("bert-large", 50),
                    alone=large,
                )
            )
    return cases
