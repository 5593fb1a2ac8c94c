#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""The PyTorch workloads alone; what scripts/test runs last.

Run with the Python of build/venv, with build/ up to date.
"""

import argparse
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

import cases  # noqa: E402
import runner  # noqa: E402


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    runner.add_options(parser)
    arguments = parser.parse_args()
    status = runner.main(cases.all_cases(), arguments)
    if arguments.full and not arguments.list:
        cases.write_results()
    return status


if __name__ == "__main__":
    sys.exit(main())
