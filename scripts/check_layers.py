#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""The rooms know only what they may know.

- Nothing in the library knows of the simulated GPU; in agent/ only the `run`
  command does.
- planner/ includes its own headers and agent/base alone; runtime/ none of
  intercept/'s or agent/'s but agent/base; agent/base nothing but itself.

Usage: check_layers.py ROOT
"""

import pathlib
import re
import sys

ROOMS = ("agent", "intercept", "planner", "runtime")
MAY_NAME_SIMGPU = {"agent/cli/run.c"}
INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]+)"', re.M)

# room: the folders that its includes may name
MAY_INCLUDE = {
    "agent/base": ("agent/base",),
    "planner": ("planner", "agent/base"),
    "runtime": ("runtime", "planner", "agent/base"),
}


def problems(root):
    for room in ROOMS:
        for path in sorted((root / room).rglob("*")):
            if not path.is_file():
                continue
            name = path.relative_to(root).as_posix()
            text = path.read_text(encoding="utf-8")
            if name not in MAY_NAME_SIMGPU and re.search(
                "simgpu", text, re.I
            ):
                yield f"{name}: names the simulated GPU"
            if path.suffix not in (".c", ".h"):
                continue
            for place, allowed in MAY_INCLUDE.items():
                if not name.startswith(place + "/"):
                    continue
                for included in INCLUDE.findall(text):
                    if "/" in included and not included.startswith(
                        tuple(folder + "/" for folder in allowed)
                    ):
                        yield f"{name}: includes {included}"


def main():
    found = list(problems(pathlib.Path(sys.argv[1])))
    print("\n".join(found), end="\n" if found else "")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
