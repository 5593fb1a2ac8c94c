#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Lists the kernels of a script that the kernel table does not know.

Runs the command given (with LD_LIBRARY_PATH set to the simulated GPU), or
reads reports of earlier runs, and prints for each unknown kernel its launches
and their share of all. Ends with 1 if the share of launches of known kernels
is below --at-least.

    unknown_kernels.py [options] -- python train.py --steps 2
    unknown_kernels.py [options] --report report.json ...
"""

import argparse
import collections
import json
import os
import pathlib
import subprocess
import sys
import tempfile

SIMGPU = pathlib.Path(__file__).resolve().parents[3] / "build/simgpu"


def run(command, device):
    """Run a command on the simulated GPU; its reports, one a process."""
    with tempfile.TemporaryDirectory(prefix="unknown-kernels-") as folder:
        environment = dict(
            os.environ,
            LD_LIBRARY_PATH=str(SIMGPU),
            SIMGPU_DEVICE=device,
            SIMGPU_REPORT=f"{folder}/%p.json",
        )
        done = subprocess.run(command, env=environment, stdout=sys.stderr)
        if done.returncode:
            sys.exit(f"{command[0]}: exit status {done.returncode}")
        return [load(path) for path in sorted(os.scandir(folder), key=str)]


def load(path):
    with open(path, encoding="utf-8") as file:
        return json.load(file)


def count(reports, ignored):
    """Launches in all, and by unknown kernel, without the ignored ones."""
    unknown = collections.Counter()
    launches = 0
    for report in reports:
        for device in report["devices"]:
            launches += device["launches"]
            for kernel in device["unknown_kernel_list"]:
                if any(kernel["name"].startswith(i) for i in ignored):
                    launches -= kernel["launches"]
                else:
                    unknown[kernel["name"]] += kernel["launches"]
    return launches, unknown


def main():
    parser = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_argument
    add("--device", default="a100-192g-pcie4", help="device model")
    add("--report", nargs="+", default=[], help="reports to read")
    add("--at-least", type=float, default=0, metavar="PERCENT")
    add("--ignore", nargs="+", default=[], metavar="PREFIX",
        help="leave these kernels out, as triton_ for compiled ones")
    add("command", nargs="*")
    args = parser.parse_args()
    if bool(args.report) == bool(args.command):
        parser.error("give a command or --report")
    reports = [load(path) for path in args.report]
    if args.command:
        reports = run(args.command, args.device)
    launches, unknown = count(reports, args.ignore)
    if not launches:
        sys.exit("no kernel was launched")
    for name, times in unknown.most_common():
        print(f"{times:8} {100 * times / launches:6.2f} %  {name}")
    known = 100 * (1 - unknown.total() / launches)
    print(f"{launches} launches, {known:.2f} % of known kernels")
    return 1 if known < args.at_least else 0


if __name__ == "__main__":
    sys.exit(main())
