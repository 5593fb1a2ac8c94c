# SPDX-License-Identifier: LGPL-2.1-or-later
"""Every defect put into the agent on purpose is found by some quick test.

A mutant is a patch in this folder: a line that says what is wrong with it,
then the change. Each is applied to a copy of the sources beside a copy of the
build folder, where only what it touches is built again, and tests are run
until one fails. A mutant that none finds means that a test is missing.
"""

import os
import pathlib
import random
import re
import shutil
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass

from runner import Case, Failure, expect

ROOT = pathlib.Path(__file__).resolve().parents[2]
FOLDER = pathlib.Path(__file__).resolve().parent
SEED = 6
SAMPLE = 5
AT_LEAST = 15

# Of the build folder: what is neither needed nor small.
NOT_COPIED = shutil.ignore_patterns("venv*", "headers", "meson-logs")

BUILD_SECONDS = 600
TEST_SECONDS = 400
REMADE_SECONDS = 1500  # on a busy machine

CHECK_FAILURE = re.compile(r":[FE]:[^:]*:(\w+):\d+: (.*)")
UNITTEST_FAILURE = re.compile(r"^(?:FAIL|ERROR): (\w+)", re.M)


@dataclass(frozen=True)
class Detector:
    """A test program; its arguments may name files of the build folder."""

    name: str
    command: tuple
    targets: tuple = ()
    seconds: int = TEST_SECONDS


def _unit(name):
    program = f"tests/unit/test_{name}"
    return Detector(f"unit_{name}", (f"build/{program}",), (program,))


def _client(name, program, *settings):
    """On the simulated driver, with no agent but what is linked in."""
    return Detector(
        name,
        (
            "env",
            "LD_LIBRARY_PATH=build/simgpu",
            "SIMGPU_DEVICE=tiny-1g",
            *settings,
            f"build/{program}",
        ),
        (program,),
    )


def _preload(name, *tests):
    """A small host with the library before it; all its tests, or some."""
    program = f"tests/preload/preload_{name}"
    return Detector(
        f"preload_{name}",
        (
            sys.executable,
            f"tests/preload/test_{name}.py",
            "build/libtapeswap.so",
            f"build/{program}",
            "build/simgpu",
            *tests,
        ),
        ("libtapeswap.so", program),
    )


# In the order in which they are tried: those that find most come first.
DETECTORS = (
    _unit("replay"),
    _unit("discard"),
    _unit("pager"),
    _unit("enforce"),
    _unit("enforce_kept"),
    _unit("remake"),
    _unit("planned"),
    _unit("planned_replay"),
    _unit("planned_predict"),
    _unit("planned_pace"),
    Detector(
        "planner_share",
        ("build/tests/unit/planner/test_planner_share",),
        ("tests/unit/planner/test_planner_share",),
    ),
    Detector(
        "planner_paged",
        ("build/tests/unit/planner/test_planner_paged",),
        ("tests/unit/planner/test_planner_paged",),
    ),
    _unit("planned_filler"),
    Detector(
        "cli_sweep",
        (
            sys.executable,
            "tests/cli/test_sweep.py",
            "build/tapeswap",
            "Sweep.test_copies_wait_where_chunks_are_short",
        ),
        ("tapeswap",),
    ),
    _unit("pager_orders"),
    _unit("pager_stress"),
    _unit("adopt"),
    _preload(
        "rows",
        "Rows.test_plain_copies",
        "Rows.test_addresses_that_go_elsewhere",
    ),
    _unit("places"),
    _unit("crossed"),
    _unit("beside"),
    _preload("beside"),
    _preload("late_code"),
    _client(
        "proof_kernels",
        "tests/simgpu/clients/proof_kernels",
        "SIMGPU_CONTENT=tags",
    ),
    _client(
        "preload_leftovers",
        "tests/preload/preload_leftovers",
        "TAPESWAP_MODE=cap",
        "TAPESWAP_LIMIT=128MiB",
        "TAPESWAP_HELPER=inline",
    ),
)


# Of values that are made again whole programs tell too: cases of run.py, for
# what the others do not find.
REMADE = "remade_"
REMADE_CASES = (
    "torch/remade/kept/rules",
    "torch/remade/kept/added",
    "torch/remade/planned",
    "torch/remade/disturbed",
    "torch/remade/streams",
    "torch/remade/apart",
)
REMADE_QUICK = (_unit("remake"), _unit("planned_replay"), _unit("places"))
REMADE_SLOW = tuple(
    Detector(
        case.replace("/", "_"),
        (
            sys.executable,
            "tests/run.py",
            "--full",
            "--only",
            # A pattern: a name alone is that of all that begin so.
            f"{case[:-1]}[{case[-1]}]",
        ),
        ("libtapeswap.so",),
        REMADE_SECONDS,
    )
    for case in REMADE_CASES
)


def mutants():
    """Names and what is wrong with each, in the order of the names."""
    found = {}
    for path in sorted(FOLDER.glob("*.patch")):
        text = path.read_text(encoding="utf-8")
        found[path.stem] = text.splitlines()[0]
    return found


class Tree:
    """A copy of the sources and of what was built; a context manager."""

    def __init__(self):
        self.scratch = tempfile.TemporaryDirectory(prefix="tapeswap-mutants-")
        self.top = pathlib.Path(self.scratch.name)
        listed = subprocess.run(
            ["git", "ls-files", "-z", "-co", "--exclude-standard"],
            cwd=ROOT,
            check=True,
            capture_output=True,
            text=True,
        ).stdout
        for name in filter(None, listed.split("\0")):
            if (ROOT / name).is_file():
                (self.top / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(ROOT / name, self.top / name)
        for venv in (ROOT / "build").glob("venv*"):
            kept = self.top / "build" / venv.name
            kept.parent.mkdir(parents=True, exist_ok=True)
            kept.symlink_to(venv)
        # Times are kept, so nothing is built again but what is changed.
        shutil.copytree(
            ROOT / "build",
            self.top / "build",
            symlinks=True,
            ignore=NOT_COPIED,
            dirs_exist_ok=True,
        )

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.scratch.cleanup()

    def run(self, command, seconds):
        """(exit status, output); None as the status where it took too long."""
        environment = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith(("TAPESWAP_", "SIMGPU_", "LD_"))
        }
        try:
            done = subprocess.run(
                command,
                cwd=self.top,
                env={**environment, "CK_DEFAULT_TIMEOUT": "120"},
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                errors="replace",
                timeout=seconds,
            )
        except subprocess.TimeoutExpired as late:
            text = late.stdout or b""
            return None, text.decode(errors="replace")
        return done.returncode, done.stdout

    def must(self, command, seconds, what):
        status, output = self.run(command, seconds)
        if status != 0:
            raise Failure(f"{what}\n{output[-3000:]}")

    def build(self, what, detectors):
        targets = sorted({t for d in detectors for t in d.targets})
        self.must(
            ["ninja", "-C", "build", *targets],
            BUILD_SECONDS,
            f"{what} does not build",
        )

    def apply(self, name, *options):
        """The patch of a mutant, or with --reverse what was before it."""
        self.must(
            # Not the repository that this may lie in.
            ["env", f"GIT_CEILING_DIRECTORIES={self.top.parent}", "git",
             "apply", "-C1", *options, str(FOLDER / f"{name}.patch")],
            TEST_SECONDS,
            f"{name}.patch does not apply: what it changes was changed",
        )

    def test(self, detector):
        """What a test program says is wrong; None where all is well."""
        status, output = self.run(detector.command, detector.seconds)
        if status == 0:
            return None
        if status is None:
            return f"{detector.name}: no end within {detector.seconds} s"
        found = CHECK_FAILURE.findall(output)
        names = [name for name, _ in found] or UNITTEST_FAILURE.findall(output)
        more = f" and {len(names) - 1} more" if len(names) > 1 else ""
        return f"{detector.name}: {names[0] if names else status}{more}"


def _try_mutant(tree, name, detectors):
    """What found it first."""
    tree.apply(name)
    try:
        tree.build(name, detectors)
        for detector in detectors:
            complaint = tree.test(detector)
            if complaint:
                return complaint
        return None
    finally:
        tree.apply(name, "--reverse")


def not_found(names, detectors):
    """Those of @names that none of @detectors finds."""
    survivors = []
    with Tree() as tree:
        tree.build("the agent as it is", detectors)
        for detector in detectors:
            complaint = tree.test(detector)
            expect(not complaint, f"without a mutant: {complaint}")
        for name in names:
            begin = time.monotonic()
            found = _try_mutant(tree, name, detectors)
            seconds = time.monotonic() - begin
            told = found or "NOT FOUND"
            print(f"  {name} ({seconds:.1f} s): {told}", flush=True)
            if not found:
                survivors.append(name)
    return survivors


def must_find(survivors, texts):
    lines = [f"{name}: {texts[name]}" for name in survivors]
    expect(not lines, "no test finds\n" + "\n".join(lines))


def sample():
    texts = mutants()
    expect(len(texts) >= AT_LEAST, f"only {len(texts)} mutants")
    names = random.Random(SEED).sample(sorted(texts), SAMPLE)
    must_find(not_found(names, DETECTORS), texts)


def everything():
    texts = mutants()
    expect(len(texts) >= AT_LEAST, f"only {len(texts)} mutants")
    left = not_found(sorted(texts), DETECTORS)
    slow = [name for name in left if name.startswith(REMADE)]
    others = [name for name in left if name not in slow]
    must_find(others + (slow and not_found(slow, REMADE_SLOW)), texts)


def remade():
    texts = mutants()
    names = [name for name in sorted(texts) if name.startswith(REMADE)]
    expect(len(names) >= 10, f"only {len(names)} mutants")
    left = not_found(names, REMADE_QUICK)
    must_find(left and not_found(left, REMADE_SLOW), texts)


def all_cases():
    return [
        Case("mutants/sample", sample),
        Case("mutants/all", everything, full=True),
        Case("mutants/remade", remade, full=True),
    ]
