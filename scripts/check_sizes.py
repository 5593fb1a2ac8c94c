#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""No C file is longer than 800 lines, and each says its licence first.

Usage: check_sizes.py FILE...
"""

import sys

LIMIT = 800


def problems(path):
    with open(path, encoding="utf-8") as file:
        lines = file.read().splitlines()
    if len(lines) > LIMIT:
        yield f"{path}: {len(lines)} lines, more than {LIMIT}"
    if not lines or "SPDX-License-Identifier: LGPL-2.1-or-later" not in lines[0]:
        yield f"{path}: no SPDX line first"


def main():
    found = [line for path in sys.argv[1:] for line in problems(path)]
    print("\n".join(found), end="\n" if found else "")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
