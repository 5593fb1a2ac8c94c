# SPDX-License-Identifier: LGPL-2.1-or-later
"""Starts training scripts on the simulated GPU and reads what came of it."""

import json
import os
import pathlib
import re
import signal
import subprocess
import tempfile
import threading
import time
from dataclasses import dataclass

from runner import Failure, expect

ROOT = pathlib.Path(__file__).resolve().parents[2]
WORKLOADS = ROOT / "tests/torch/workloads"
TRAIN_GPT = ROOT / "scripts/examples/train_gpt.py"
LIBRARY = ROOT / "build/libtapeswap.so"
SIMGPU = ROOT / "build/simgpu"
BIG_DEVICE = "a100-192g-pcie4"
# Scripts run in a folder of their own, where this lies.
TRACE = "trace.jsonl"
REPORTS = "report-%p.json"
STATUSES = "status-%p.json"
PROFILES = "observed-%p.json"
# What tapeswap says where a limit is below what one operation needs.
REMEDY = re.compile(r"Remedy: TAPESWAP_LIMIT=(\d+)MiB")


@dataclass(frozen=True)
class Spec:
    """A script and what it is run on. Hashable: equal runs are made once."""

    script: pathlib.Path
    arguments: tuple = ()
    device: str = BIG_DEVICE
    limit: str = None  # TAPESWAP_LIMIT; None: nothing is preloaded
    venv: str = "venv"
    settings: tuple = ()  # pairs of further environment variables
    timeout: float = 300
    observe: bool = False  # TAPESWAP_MODE=observe with a profile


@dataclass
class Outcome:
    code: int
    out: str
    err: str
    seconds: float
    cpu_seconds: float  # of processors, all threads
    host_bytes: int  # resident set at its largest
    report: dict  # SIMGPU_REPORT
    plan: dict  # TAPESWAP_PLAN
    status: dict  # TAPESWAP_STATUS
    profile: dict  # TAPESWAP_PROFILE
    profile_bytes: int  # of that file
    # By device number: what stands beside it where there are several devices.
    device_profiles: dict
    trace: list  # SIMGPU_TRACE, where the settings name TRACE
    # One a process, where the settings name REPORTS, STATUSES and PROFILES.
    reports: list
    statuses: list
    profiles: list

    def steps(self):
        """The JSON lines that a workload printed, one a step."""
        lines = [l for l in self.out.splitlines() if l.startswith("{")]
        return [json.loads(line) for line in lines]


def environment(spec, folder):
    clean = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("TAPESWAP_", "SIMGPU_", "LD_"))
    }
    clean.update(
        LD_LIBRARY_PATH=str(SIMGPU),
        SIMGPU_DEVICE=spec.device,
        SIMGPU_REPORT=f"{folder}/report.json",
        # Compiled kernels of one run must not speed up the next one.
        TORCHINDUCTOR_CACHE_DIR=f"{folder}/inductor",
        TRITON_CACHE_DIR=f"{folder}/triton",
        HF_HUB_OFFLINE="1",
        PYTHONPATH=f"{ROOT}/tests/torch/site:{ROOT}/tests/torch",
        PYTHONDONTWRITEBYTECODE="1",
    )
    if spec.limit is not None:
        clean.update(
            LD_PRELOAD=str(LIBRARY),
            TAPESWAP_LIMIT=spec.limit,
            # More than this machine has: what copies bring into pinned
            # memory of the simulated GPU is mostly tags, not bytes.
            TAPESWAP_HOST_LIMIT="256GiB",
            # One thread at a time calls the driver: reports repeat.
            TAPESWAP_HELPER="inline",
            TAPESWAP_MODE="cap",
            TAPESWAP_PLAN=f"{folder}/plan.json",
            TAPESWAP_STATUS=f"{folder}/status.json",
        )
    if spec.observe:
        clean.update(
            LD_PRELOAD=str(LIBRARY),
            TAPESWAP_MODE="observe",
            TAPESWAP_PROFILE=f"{folder}/profile.json",
            TAPESWAP_STATUS=f"{folder}/status.json",
        )
    clean.update(spec.settings)
    return clean


def _load(path):
    try:
        with open(path, encoding="utf-8") as file:
            return json.load(file)
    except FileNotFoundError:
        return {}
    except ValueError as error:
        raise Failure(f"{os.path.basename(path)}: {error}")


def _load_all(folder, name):
    """What processes wrote under a name with %p in it."""
    paths = sorted(pathlib.Path(folder).glob(name.replace("%p", "[0-9]*")))
    return [_load(path) for path in paths]


def _size(path):
    return os.path.getsize(path) if os.path.exists(path) else 0


def _load_lines(path):
    """JSON lines; none where there is no file."""
    try:
        with open(path, encoding="utf-8") as file:
            return [json.loads(line) for line in file]
    except FileNotFoundError:
        return []


def _wait(process, timeout):
    """Wait as wait4() does, ending the process group after timeout."""
    late = threading.Event()

    def end():
        late.set()
        os.killpg(process.pid, signal.SIGKILL)

    timer = threading.Timer(timeout, end)
    timer.start()
    try:
        _, status, usage = os.wait4(process.pid, 0)
    finally:
        timer.cancel()
    process.returncode = os.waitstatus_to_exitcode(status)
    return usage, late.is_set()


def launch(spec):
    """Run a script to its end, whatever that is."""
    python = ROOT / "build" / spec.venv / "bin/python"
    with tempfile.TemporaryDirectory(prefix="tapeswap-test-") as folder:
        with open(f"{folder}/out", "w+") as out, open(
            f"{folder}/err", "w+"
        ) as err:
            started = time.monotonic()
            process = subprocess.Popen(
                [str(python), str(spec.script), *map(str, spec.arguments)],
                env=environment(spec, folder),
                cwd=folder,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=err,
                start_new_session=True,
            )
            usage, late = _wait(process, spec.timeout)
            seconds = time.monotonic() - started
            out.seek(0)
            err.seek(0)
            texts = out.read(), err.read()
        if late:
            raise Failure(
                f"not finished after {spec.timeout} s\n"
                + (texts[0] + texts[1])[-4000:]
            )
        return Outcome(
            code=process.returncode,
            out=texts[0],
            err=texts[1],
            seconds=seconds,
            cpu_seconds=usage.ru_utime + usage.ru_stime,
            host_bytes=usage.ru_maxrss * 1024,
            report=_load(f"{folder}/report.json"),
            plan=_load(f"{folder}/plan.json"),
            status=_load(f"{folder}/status.json"),
            profile=_load(f"{folder}/profile.json"),
            profile_bytes=_size(f"{folder}/profile.json"),
            device_profiles={
                device: found
                for device in range(16)
                if (found := _load(f"{folder}/profile-device{device}.json"))
            },
            trace=_load_lines(f"{folder}/{TRACE}"),
            reports=_load_all(folder, REPORTS),
            statuses=_load_all(folder, STATUSES),
            profiles=_load_all(folder, PROFILES),
        )


def run(spec):
    """Run a script that must end well and leave a report without errors."""
    return checked(launch(spec))


def expect_bounds(report):
    """Nothing that a device says without PyTorch's blocks can be trusted."""
    expect(
        report["block_bounds"] != "missing",
        "the simulated GPU was built without PyTorch's headers and knows no "
        "blocks: run scripts/setup",
    )


def checked(outcome):
    """An outcome, if it is a good one."""
    if outcome.code:
        raise Failure(
            f"exit status {outcome.code}\n"
            + (outcome.out + outcome.err)[-4000:]
        )
    expect(outcome.report, f"no report\n{outcome.err[-2000:]}")
    expect_bounds(outcome.report)
    errors = outcome.report["memory_errors"]
    if errors:
        raise Failure(f"memory_errors {errors}\n{outcome.err[-2000:]}")
    if outcome.report["races"]:
        texts = "\n".join(outcome.report["race_texts"][:5])
        raise Failure(f"races {outcome.report['races']}\n{texts}")
    return outcome


_runs = {}
_runs_guard = threading.Lock()


def run_once(spec):
    """As run(), but equal specs run once, and fail once, in a session."""
    with _runs_guard:
        entry = _runs.setdefault(spec, {"lock": threading.Lock()})
    with entry["lock"]:
        if "failure" in entry:
            raise Failure(f"as before: {entry['failure']}")
        if "outcome" not in entry:
            try:
                entry["outcome"] = run(spec)
            except Failure as failure:
                entry["failure"] = failure
                raise
        return entry["outcome"]
