#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Runs a script many times from one process that has PyTorch in memory.

Reads one JSON object a line: "argv" (the script first), "environment",
"output" (a file for stdout and stderr). Each runs in a fork made before CUDA
is touched; then the exit status is printed on a line of its own.
"""

import json
import os
import runpy
import sys
import traceback

import torch  # noqa: F401
import torchvision  # noqa: F401
import transformers  # noqa: F401


def run(request):
    """The child: becomes the script, and leaves as a program does."""
    file = os.open(
        request["output"], os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644
    )
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(file, 1)
    os.dup2(file, 2)
    os.environ.update(request["environment"])
    sys.argv = request["argv"]
    # As for a script started by itself: beside it lie its modules.
    sys.path.insert(0, os.path.dirname(sys.argv[0]))
    try:
        runpy.run_path(sys.argv[0], run_name="__main__")
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else bool(end.code)
    except BaseException:
        traceback.print_exc()
        return 1
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
    return 0


def main():
    for line in sys.stdin:
        pid = os.fork()
        if pid == 0:
            sys.exit(run(json.loads(line)))
        _, status = os.waitpid(pid, 0)
        print(os.waitstatus_to_exitcode(status), flush=True)


if __name__ == "__main__":
    main()
