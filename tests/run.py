#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Every test there is; scripts/test calls it after scripts/setup.

Run with the Python of build/venv, from the top folder.
"""

import argparse
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path[:0] = [
    str(ROOT / folder)
    for folder in ("tests", "tests/torch", "tests/mutants", "tests/bench")
]

import runner  # noqa: E402
from runner import Case, Count, Failure  # noqa: E402
import cases as torch_cases  # noqa: E402
import end_to_end  # noqa: E402
import mutants  # noqa: E402
import victims  # noqa: E402

PLOT_GROWTH = ROOT / "tests/bench/plot_growth.py"

CHECK_LINE = re.compile(
    r"^\d+%: Checks: (\d+), Failures: (\d+), Errors: (\d+)", re.M
)
UNITTEST_LINE = re.compile(r"^Ran (\d+) tests? in", re.M)
UNITTEST_BAD = re.compile(r"\b(?:failures|errors)=(\d+)")

# What says in a test program's output what went wrong.
FAULT_LINE = re.compile(
    r":[EF]:|FAIL|Assertion|runtime error|ERROR: |WARNING: Thread|SUMMARY|#0 "
)

# Meson suites whose programs start others that are not built with the
# sanitizer, into which a sanitized library cannot be preloaded.
NOT_SANITIZED = ("process", "preload")
# planner/ is pure: no threads, no state. Under TSan its tests take minutes.
WITHOUT_THREADS = ("planner",)

SANITIZERS = {
    "asan": (
        "address,undefined",
        {
            "ASAN_OPTIONS": "detect_leaks=1:abort_on_error=0"
            ":strict_string_checks=1",
            "UBSAN_OPTIONS": "print_stacktrace=1:halt_on_error=1",
        },
    ),
    "tsan": ("thread", {"TSAN_OPTIONS": "halt_on_error=1"}),
}


def command(arguments, **environment):
    """Run a command that must succeed; its output is the failure's text."""
    done = subprocess.run(
        [str(a) for a in arguments],
        cwd=ROOT,
        env={**os.environ, **environment},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
    )
    if done.returncode:
        raise Failure(done.stdout or f"exit status {done.returncode}")
    return done.stdout


def count_output(output, ok):
    """How many single tests a test program's output speaks of."""
    checks = CHECK_LINE.findall(output)
    if checks:
        total = sum(int(c[0]) for c in checks)
        bad = sum(int(c[1]) + int(c[2]) for c in checks)
    elif match := UNITTEST_LINE.search(output):
        total = int(match.group(1))
        bad = sum(int(n) for n in UNITTEST_BAD.findall(output))
    else:
        total, bad = 1, 0
    if not ok:
        bad = max(bad, 1)
        total = max(total, bad)
    return Count(passed=total - bad, failed=bad)


def meson_tests(folder, environment, *options):
    """Run all Meson tests of a build folder; single tests are counted."""
    log = ROOT / folder / "meson-logs/testlog.json"
    log.unlink(missing_ok=True)
    subprocess.run(
        ["meson", "test", "-C", folder, "--no-rebuild", *options],
        cwd=ROOT,
        env={**os.environ, **environment},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    if not log.exists():
        raise Failure(f"meson test in {folder} left no log")
    total = Count()
    for line in log.read_text(encoding="utf-8").splitlines():
        test = json.loads(line)
        if test["result"] == "SKIP":
            total.skipped += 1
            continue
        output = test.get("stdout", "") + test.get("stderr", "")
        ok = test["result"] in ("OK", "EXPECTEDFAIL")
        count = count_output(output, ok)
        if not ok:
            lines = output.splitlines()
            shown = [line for line in lines if FAULT_LINE.search(line)] or lines
            count.text = "\n".join(
                [f"{test['name']}: {test['result']}", *shown[:12], ""]
            )
        total.add(count)
    if not total.passed and not total.failed:
        raise Failure(f"meson test in {folder} ran nothing")
    return total


def sanitizer_folder(name):
    """The build folder of a sanitizer, set up once."""
    options, _ = SANITIZERS[name]
    folder = f"build-{name}"
    arguments = [f"-Db_sanitize={options}", "-Db_lundef=false"]
    headers = ROOT / "build/setup-options"
    arguments += [
        option
        for option in headers.read_text(encoding="utf-8").split()
        if option.startswith("-Dheaders=")
    ]
    if not (ROOT / folder / "build.ninja").exists():
        command(["meson", "setup", folder, *arguments])
    return folder


def sanitizer_tests(name):
    """Build the C parts with a sanitizer and run the C tests under it."""
    _, environment = SANITIZERS[name]
    folder = sanitizer_folder(name)
    left_out = NOT_SANITIZED
    if name == "tsan":
        left_out += WITHOUT_THREADS
    command(["ninja", "-C", folder])
    return meson_tests(
        folder,
        environment,
        "--timeout-multiplier=10",
        *(f"--no-suite={suite}" for suite in left_out),
    )


def planner_growth():
    """Planning time against the length of the tape, and its limits."""
    program = ROOT / "build/tests/unit/planner/planner_bench"
    command(["ninja", "-C", "build", program.relative_to(ROOT / "build")])
    with tempfile.TemporaryDirectory() as folder:
        table = pathlib.Path(folder, "growth.csv")
        picture = pathlib.Path(folder, "growth.svg")
        print(command([program, "--check", "--csv", table]))
        print(command([sys.executable, PLOT_GROWTH, table, picture]))


FUZZ_LINE = re.compile(r"^(\d+) inputs: (\d+) refused, (\d+) planned", re.M)


def fuzz_planner(inputs, jobs=2):
    """Spoilt profiles and plans, under ASan and UBSan; all end well."""
    _, environment = SANITIZERS["asan"]
    folder = sanitizer_folder("asan")
    program = ROOT / folder / "tests/unit/planner/planner_fuzz"
    command(["ninja", "-C", folder, program.relative_to(ROOT / folder)])
    share = inputs // jobs
    running = [
        subprocess.Popen(
            [program, str(share), str(job * share)],
            env={**os.environ, **environment},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        for job in range(jobs)
    ]
    done = refused = planned = 0
    for job, process in enumerate(running):
        output, _ = process.communicate()
        match = FUZZ_LINE.search(output)
        if process.returncode or not match:
            raise Failure(
                f"seeds from {job * share} on, status {process.returncode}:"
                f"\n{output[-3000:]}"
            )
        done += int(match.group(1))
        refused += int(match.group(2))
        planned += int(match.group(3))
    runner.expect_equal(done, share * jobs, "inputs")
    # Each kind must be there in numbers, or the inputs say little.
    runner.expect(refused > inputs / 10, f"only {refused} were refused")
    runner.expect(planned > inputs / 100, f"only {planned} were planned")
    print(f"{done} inputs: {refused} refused with a path, {planned} accepted")


def every_fault():
    """Each driver call of the agent fails once; tests/faults."""
    return count_output(
        command(
            [
                sys.executable,
                "tests/faults/test_faults.py",
                "--every",
                "build/libtapeswap.so",
                "build/tests/faults/faults_client",
                "build/simgpu",
                "runtime/gpu_ops.def",
            ]
        ),
        True,
    )


def python_script(*arguments):
    return lambda: count_output(command([sys.executable, *arguments]), True)


def tracked(*patterns):
    return command(["git", "ls-files", "--", *patterns]).split()


def all_cases():
    cases = [
        Case("checks/format", lambda: command(["scripts/format", "--check"])),
        Case("checks/lint", lambda: command(["scripts/lint"])),
        Case(
            "checks/sizes",
            lambda: command(
                [
                    sys.executable,
                    "scripts/check_sizes.py",
                    *tracked("*.c", "*.h"),
                ]
            ),
        ),
        Case(
            "checks/layers",
            lambda: command([sys.executable, "scripts/check_layers.py", "."]),
        ),
        Case(
            "checks/settings",
            lambda: command([sys.executable, "scripts/check_settings.py", "."]),
        ),
        Case(
            "checks/schemas",
            lambda: command(
                [
                    sys.executable,
                    "scripts/check_schemas.py",
                    "schemas",
                    *tracked("tests/simgpu/models/*.json"),
                ]
            ),
        ),
        Case(
            "checks/checkers", python_script("tests/checks/test_checkers.py")
        ),
        Case("checks/runner", python_script("tests/checks/test_runner.py")),
        Case("checks/scripts", python_script("tests/checks/test_scripts.py")),
        Case("c/plain", lambda: meson_tests("build", {})),
    ]
    for name in SANITIZERS:
        cases.append(Case(f"c/{name}", lambda n=name: sanitizer_tests(n)))
    cases += [
        Case("planner/fuzz/20000", lambda: fuzz_planner(20000)),
        Case("planner/fuzz/1000000", lambda: fuzz_planner(10**6), full=True),
        Case("planner/growth", planner_growth, full=True, alone=True),
    ]
    cases.append(Case("faults/every-call", every_fault, full=True))
    cases += mutants.all_cases() + victims.all_cases()
    cases += end_to_end.all_cases()
    return cases + torch_cases.all_cases()


def main():
    parser = argparse.ArgumentParser(
        prog="scripts/test", description="Set up, build and run every test."
    )
    runner.add_options(parser)
    arguments = parser.parse_args()
    status = runner.main(all_cases(), arguments)
    if arguments.full and not arguments.list:
        torch_cases.write_results()
    return status


if __name__ == "__main__":
    sys.exit(main())
