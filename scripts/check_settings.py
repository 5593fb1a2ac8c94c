#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""What users are told of settings and commands is what the code has.

- README.md and man/tapeswap.1 have an entry for each setting of the table in
  agent/config.c, and name no other; README.md gives its option of `run`.
- Each is read by something besides the table, and nothing reads another.
- README.md names only commands that there are.
- tests/simgpu/README.md has a row for each setting of the simulated GPU.

Usage: check_settings.py ROOT
"""

import pathlib
import re
import sys

OURS = re.compile(r"\bTAPESWAP_[A-Z_]*[A-Z]\b")
ROOMS = ("agent", "intercept", "runtime")


def text_of(root, name):
    return (root / name).read_text(encoding="utf-8")


def apart(what, has, wanted):
    for name in sorted(wanted - has):
        yield f"{what}: lacks {name}"
    for name in sorted(has - wanted):
        yield f"{what}: has {name}, which is no setting"


def option_of(name):
    return "--" + name.removeprefix("TAPESWAP_").lower().replace("_", "-")


def sources(root):
    """All that may read a setting: code without comments and guards."""
    for room in ROOMS:
        for path in sorted((root / room).rglob("*.[ch]")):
            name = path.relative_to(root).as_posix()
            if name != "agent/config.c":
                yield name, path.read_text(encoding="utf-8")


def problems(root):
    table = dict(
        re.findall(
            r'\{"(TAPESWAP_\w+)".*?offsetof\(struct ts_config, (\w+)\)',
            text_of(root, "agent/config.c"), re.S,
        )
    )
    readme, page = text_of(root, "README.md"), text_of(root, "man/tapeswap.1")
    rows = dict(re.findall(r"^\| `(TAPESWAP_\w+)` *\| `(--[\w-]+)`", readme, re.M))
    yield from apart("README.md's table", set(rows), set(table))
    for name, option in rows.items():
        if option != option_of(name):
            yield f"README.md's table: {name} is {option_of(name)}, not {option}"
    entries = set(re.findall(r"^\.TP\n\.B (TAPESWAP_\w+)$", page, re.M))
    yield from apart("man/tapeswap.1", entries, set(table))
    for place, text in ("README.md", readme), ("man/tapeswap.1", page):
        for name in sorted(set(OURS.findall(text)) - set(table)):
            yield f"{place}: names {name}, which is no setting"
    code = list(sources(root))
    for name, field in table.items():
        used = re.compile(rf"\bconfig(?:\.|->){field}\b")
        if not any(used.search(text) for _, text in code):
            yield f"agent/config.c: nothing reads {name}"
    for place, text in code:
        for name in re.findall(r'getenv\("(TAPESWAP_\w+)"\)', text):
            if name not in table:
                yield f"{place}: reads {name}, which is no setting"
    commands = set(
        re.findall(r'\{"(\w+)", ts_cli_\w+', text_of(root, "agent/cli/main.c"))
    )
    for name in re.findall(r"(?:`|build/)tapeswap ([a-z]+)", readme):
        if name not in commands:
            yield f"README.md: names the command {name}, which there is not"
    simulated = set(
        re.findall(
            r'\{"(SIMGPU_\w+)"', text_of(root, "tests/simgpu/driver/settings.c")
        )
    )
    rows = set(
        re.findall(
            r"^\| `(SIMGPU_\w+)`", text_of(root, "tests/simgpu/README.md"), re.M
        )
    )
    yield from apart("tests/simgpu/README.md", rows, simulated)


def main():
    found = list(problems(pathlib.Path(sys.argv[1])))
    print("\n".join(found), end="\n" if found else "")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
