# SPDX-License-Identifier: LGPL-2.1-or-later
"""Programs with the library before them, on a small simulated device."""

import json
import os
import pathlib
import subprocess
import sys
import tempfile


def arguments(count):
    """The first so many of the command line, files all of them, in full."""
    return [str(pathlib.Path(a).resolve()) for a in sys.argv[1:count + 1]]


def environment(library, simgpu, **settings):
    """All that such a program has in its environment."""
    return {
        "PATH": os.environ["PATH"],
        "LD_PRELOAD": library,
        "LD_LIBRARY_PATH": simgpu,
        "SIMGPU_DEVICE": "tiny-1g",
        **settings,
    }


def run(command, library, simgpu, *, timeout=120, cwd=None, **settings):
    return subprocess.run(
        command, env=environment(library, simgpu, **settings), cwd=cwd,
        capture_output=True, text=True, timeout=timeout,
    )


def run_and_read(test, out, command, library, simgpu, **settings):
    """Runs what is to end well and to print @out (None: that is looked at
    later): what was said, tapeswap's status and the device's report."""
    with tempfile.TemporaryDirectory() as folder:
        done = run(
            command, library, simgpu,
            **{
                "SIMGPU_REPORT": f"{folder}/report.json",
                "TAPESWAP_STATUS": f"{folder}/status.json",
                **settings,
            },
        )
        test.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        if out is not None:
            test.assertEqual(done.stdout, out, done.stderr)
        status, report = (
            json.loads(pathlib.Path(folder, name).read_text("utf-8"))
            for name in ("status.json", "report.json")
        )
    test.assertEqual(
        (report["memory_errors"], report["races"]), (0, 0), done.stderr
    )
    return done, status, report
