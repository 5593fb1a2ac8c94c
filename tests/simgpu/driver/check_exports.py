#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""check_exports.py EXPORTS.DEF COMPILER...: the table against cuda.h.

Every function that cuda.h declares, in every version and for both kinds of
default stream, stands in the table of exports.
"""
import re
import subprocess
import sys


def main():
    with open(sys.argv[1], encoding="ascii") as table:
        rows = re.findall(r"^SG_ENTRY\(\w+, (\w+),", table.read(), re.M)
    source = "#define __CUDA_API_VERSION_INTERNAL\n#include <cuda.h>\n"
    header = subprocess.run(
        [*sys.argv[2:], "-E", "-P", "-x", "c", "-"], input=source,
        capture_output=True, text=True, check=True).stdout
    declared = set(re.findall(r"\bCUresult\s+(cu[A-Z]\w*)\s*\(", header))
    if len(declared) < 500:
        sys.exit(f"only {len(declared)} functions found in cuda.h")
    missing = sorted(declared - set(rows))
    for symbol in missing:
        print(f"{sys.argv[1]}: no row for {symbol}")
    sys.exit(1 if missing else 0)


main()
