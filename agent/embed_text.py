#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""A text file as a C array that ends with a zero: INPUT NAME OUTPUT."""

import pathlib
import sys

source, name, target = sys.argv[1:]
lines = pathlib.Path(source).read_text(encoding="ascii").splitlines()
quoted = [
    '\t"%s\\n"' % line.replace("\\", "\\\\").replace('"', '\\"').replace(
        "\t", "\\t"
    )
    for line in lines
    if line.split("//")[0].strip()
]
pathlib.Path(target).write_text(
    f"static const char {name}[] =\n" + "\n".join(quoted) + ";\n"
)
