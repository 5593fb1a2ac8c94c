#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""gen_exports.py EXPORTS.DEF OUT.C: what the driver exports.

Writes a weak definition of every symbol in the table, overridden by the real
ones of the other files, that answers CUDA_ERROR_NOT_SUPPORTED and names itself
once; and the table itself for cuGetProcAddress (procaddr.c).
"""
import re
import sys

ROW = re.compile(r"SG_ENTRY\((\w+), (\w+), (\d+), (LEGACY|PER_THREAD)\)$")


def read_rows(path):
    rows = []
    with open(path, encoding="ascii") as table:
        for number, line in enumerate(table, 1):
            if not line.startswith("SG_ENTRY"):
                continue
            match = ROW.match(line.strip())
            if not match:
                sys.exit(f"{path}:{number}: cannot read {line.strip()}")
            rows.append(match.groups())
    if rows != sorted(rows, key=lambda r: (r[0], r[3], int(r[2]))):
        sys.exit(f"{path}: rows are not sorted by name, thread, version")
    return rows


def main():
    rows = read_rows(sys.argv[1])
    out = ["/* Written by gen_exports.py: do not edit. */",
           '#include "tests/simgpu/driver/exports.h"',
           "#define STUB(fn) \\",
           "\tint fn(void); \\",
           '\t__attribute__((weak, visibility("default"))) int fn(void) \\',
           "\t{ return sg_stub_called(#fn); }"]
    for symbol in sorted({row[1] for row in rows}):
        out.append(f"STUB({symbol})")
    out.append("const struct sg_export sg_exports[] = {")
    for name, symbol, version, thread in rows:
        per_thread = "true" if thread == "PER_THREAD" else "false"
        out.append(f'\t{{"{name}", "{symbol}", {version}, {per_thread}, '
                   f"{symbol}}},")
    out.append("};")
    out.append(f"const unsigned sg_export_count = {len(rows)};")
    with open(sys.argv[2], "w", encoding="ascii") as target:
        target.write("\n".join(out) + "\n")


main()
