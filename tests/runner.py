# SPDX-License-Identifier: LGPL-2.1-or-later
"""Runs named cases, prints one line for each and counts single tests.

A case is a function that raises Failure, or returns None (one test passed) or
a Count where it stands for several tests.
"""

import fnmatch
import os
import sys
import threading
import time
import traceback
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field


class Failure(Exception):
    """A test that did not hold; its text says what was seen."""


class Skipped(Exception):
    """A test that cannot run here; its text says why."""


@dataclass
class Count:
    passed: int = 0
    failed: int = 0
    skipped: int = 0
    text: str = ""  # shown where something failed

    def add(self, other):
        self.passed += other.passed
        self.failed += other.failed
        self.skipped += other.skipped
        self.text += other.text


@dataclass
class Case:
    name: str
    function: object
    full: bool = False  # only with --full
    alone: bool = False  # needs the machine for itself
    arguments: tuple = field(default_factory=tuple)


def expect(condition, text):
    if not condition:
        raise Failure(text)


def expect_equal(seen, wanted, what):
    expect(seen == wanted, f"{what}: {seen!r}, wanted {wanted!r}")


def select(cases, only, full):
    chosen = []
    for case in cases:
        if case.full and not full:
            continue
        if only and not any(
            pattern in case.name or fnmatch.fnmatch(case.name, pattern)
            for pattern in only
        ):
            continue
        chosen.append(case)
    return chosen


def _run_case(case):
    try:
        result = case.function(*case.arguments)
        return result if isinstance(result, Count) else Count(passed=1)
    except Skipped as reason:
        return Count(skipped=1, text=str(reason))
    except Failure as failure:
        return Count(failed=1, text=str(failure))
    except Exception:
        return Count(failed=1, text=traceback.format_exc())


class Progress:
    """One line a finished case; every 30 s a line naming what still runs."""

    def __init__(self, total):
        self.total = total
        self.done = 0
        self.count = Count()
        self.failed_names = []
        self.running = {}
        self.lock = threading.Lock()
        self.stop = threading.Event()
        self.watcher = threading.Thread(target=self._watch, daemon=True)
        self.watcher.start()

    def _watch(self):
        while not self.stop.wait(30):
            with self.lock:
                now = time.monotonic()
                names = ", ".join(
                    f"{name} ({now - since:.0f} s)"
                    for name, since in self.running.items()
                )
                print(f"  ... running: {names}", flush=True)

    def run(self, case):
        with self.lock:
            self.running[case.name] = time.monotonic()
        started = time.monotonic()
        result = _run_case(case)
        seconds = time.monotonic() - started
        with self.lock:
            del self.running[case.name]
            self.done += 1
            self.count.add(result)
            if result.failed:
                verdict = "FAIL"
                self.failed_names.append(case.name)
            else:
                verdict = "ok" if result.passed else "skip"
            tests = result.passed + result.failed
            many = f" ({tests} tests)" if tests > 1 else ""
            print(
                f"[{self.done:3d}/{self.total}] {verdict:4s} {seconds:6.1f} s"
                f"  {case.name}{many}",
                flush=True,
            )
            if result.text and verdict != "ok":
                for line in result.text.rstrip().splitlines()[-60:]:
                    print(f"        {line}", flush=True)


def run(cases, workers=None):
    """Run cases, those that want the machine alone last; returns a Count."""
    progress = Progress(len(cases))
    together = [case for case in cases if not case.alone]
    with ThreadPoolExecutor(workers or os.cpu_count() or 1) as pool:
        list(pool.map(progress.run, together))
    for case in cases:
        if case.alone:
            progress.run(case)
    progress.stop.set()
    count = progress.count
    if progress.failed_names:
        print("failed: " + " ".join(progress.failed_names))
    if count.skipped:
        print(f"{count.skipped} skipped")
    return count


def main(cases, arguments):
    """What a script with cases does; arguments has only, list, full, jobs."""
    chosen = select(cases, arguments.only, arguments.full)
    if arguments.list:
        for case in chosen:
            print(case.name)
        return 0
    count = run(chosen, arguments.jobs)
    sys.stdout.flush()
    print(f"{count.passed} passed, {count.failed} failed", flush=True)
    return 1 if count.failed or not count.passed else 0


def add_options(parser):
    parser.add_argument(
        "--full", action="store_true", help="the whole matrix (hours)"
    )
    parser.add_argument(
        "--only",
        action="append",
        metavar="PATTERN",
        help="cases whose name holds or matches PATTERN; may be repeated",
    )
    parser.add_argument(
        "--list", action="store_true", help="print the names of the cases"
    )
    parser.add_argument(
        "-j", "--jobs", type=int, help="cases at once (default: the cores)"
    )
