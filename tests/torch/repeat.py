# SPDX-License-Identifier: LGPL-2.1-or-later
"""Runs scripts again and again on the simulated GPU, PyTorch loaded once."""

import json
import os
import pathlib
import re
import signal
import subprocess
import tempfile
import threading
from dataclasses import dataclass

from harness import BIG_DEVICE, ROOT, Spec, environment, expect_bounds
from runner import expect

SECONDS = 1800  # the longest run, on a busy machine


@dataclass
class Run:
    code: int
    out: str
    report: dict  # SIMGPU_REPORT

    def losses(self):
        return re.findall(r'(?:"loss": |  loss )([-+\w.]+)', self.out)

    def digests(self):
        return re.findall(r"^digest (\w+)$", self.out, re.M)


class Runner:
    """A process with PyTorch (many.py) and its folder; a context manager.

    Content is tagged and races are looked for; settings, pairs of environment
    variables, hold for every run.
    """

    def __init__(self, settings=(), limit=None):
        self.folder = tempfile.TemporaryDirectory(prefix="tapeswap-repeat-")
        spec = Spec(
            ROOT,
            device=BIG_DEVICE,
            limit=None if limit is None else str(limit),
            settings=(
                ("SIMGPU_CONTENT", "tags"),
                ("SIMGPU_RACES", "on"),
                *settings,
            ),
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
            start_new_session=True,
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

    def run(self, *argv, **settings):
        """One run of a script, with further settings."""
        report = pathlib.Path(f"{self.folder.name}/report.json")
        output = pathlib.Path(f"{self.folder.name}/out")
        report.unlink(missing_ok=True)
        request = {
            "argv": [str(word) for word in argv],
            "environment": {k: str(v) for k, v in settings.items()},
            "output": str(output),
        }
        # Ends the process, its child with it, and so the wait for an answer.
        timer = threading.Timer(
            SECONDS, os.killpg, (self.process.pid, signal.SIGKILL)
        )
        timer.start()
        self.process.stdin.write(json.dumps(request) + "\n")
        self.process.stdin.flush()
        answer = self.process.stdout.readline()
        timer.cancel()
        if not answer:
            self.log.seek(0)
            expect(False, f"{argv}: many.py ended\n{self.log.read()[-2000:]}")
        text = output.read_text(errors="replace")
        expect(report.exists(), f"{settings}: no report\n{text[-2000:]}")
        read = json.loads(report.read_text())
        expect_bounds(read)
        return Run(int(answer), text, read)

    def good(self, *argv, **settings):
        """A run that ends well, without races or memory errors."""
        run = self.run(*argv, **settings)
        where = f"{argv} {settings}"
        expect(run.code == 0, f"{where}: exit status {run.code}\n"
               + run.out[-4000:])
        for name in "races", "possible_races", "memory_errors":
            texts = run.report.get("race_texts", [])[:3]
            expect(not run.report[name],
                   f"{where}: {name} {run.report[name]} {texts}")
        return run
