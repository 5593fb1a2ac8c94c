#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Every function of cuda.h is hooked, or passed through for a stated reason.

Usage: check_hooks.py INTERCEPT HEADERS

INTERCEPT/cuda_hooks.def has a TS_HOOK row for each hooked function,
INTERCEPT/passthrough.tsv the reasons (`# key: text`) and a line
`function<TAB>key` for each other one. HEADERS has cuda.h. All ABIs that cuda.h
knows count: the current one, those for the per-thread default stream, and the
replaced ones.
"""

import pathlib
import re
import subprocess
import sys

ROW = re.compile(
    r"^TS_(HOOK|CALL)\((\w+), \"(\w+)\", (\d+), PFN_(\w+), (\w+)\)$"
)
ABIS = ("", "-DCUDA_API_PER_THREAD_DEFAULT_STREAM", "-D__CUDA_API_VERSION_INTERNAL")
DECLARATION = re.compile(r"\bCUresult\s+(cu[A-Z]\w*)\s*\(")


def declared(headers):
    """The functions cuda.h declares under any of its ABIs."""
    names = set()
    for abi in ABIS:
        command = ["cc", "-E", "-P", "-xc", "-I", str(headers)]
        command += [abi] if abi else []
        text = subprocess.run(
            [*command, "-"],
            input="#include <cuda.h>\n",
            check=True,
            capture_output=True,
            text=True,
        ).stdout
        names.update(DECLARATION.findall(text))
    return names


def read_hooks(path):
    """The rows, and what is wrong with them."""
    rows, problems = [], []
    for number, line in enumerate(path.read_text("utf-8").splitlines(), 1):
        if not line.startswith(("TS_HOOK(", "TS_CALL(")):
            continue
        row = ROW.match(line)
        if not row:
            problems.append(f"{path}:{number}: cannot be read: {line}")
            continue
        kind, symbol, name, version, pfn, need = row.groups()
        where = f"{path}:{number}: {symbol}"
        if re.sub(r"_v\d+(_pt[ds][sz])?$", "", pfn) != name:
            problems.append(f"{where}: is {pfn} the type of {name}?")
        if f"_v{version}" not in pfn:
            problems.append(f"{where}: version {version}, type {pfn}")
        if re.sub(r"(_v\d)?(_pt[ds][sz])?$", "", symbol) != name:
            problems.append(f"{where}: is looked up as {name}?")
        if need not in ("REQUIRED", "OPTIONAL"):
            problems.append(f"{where}: neither REQUIRED nor OPTIONAL")
        rows.append((kind, symbol))
    return rows, problems


def read_passthrough(path):
    """Symbol to reason, and what is wrong with the file."""
    reasons, symbols, problems = {}, {}, []
    for number, line in enumerate(path.read_text("utf-8").splitlines(), 1):
        reason = re.match(r"# ([a-z][\w-]*): (\S.*)$", line)
        entry = re.match(r"(cu[A-Z]\w*)\t([\w-]+)$", line)
        if reason:
            reasons[reason[1]] = reason[2]
        elif entry:
            if entry[1] in symbols:
                problems.append(f"{path}:{number}: {entry[1]} stands twice")
            symbols[entry[1]] = entry[2]
        elif line and not line.startswith("#"):
            problems.append(f"{path}:{number}: cannot be read: {line}")
    for symbol, key in symbols.items():
        if key not in reasons:
            problems.append(f"{path}: {symbol}: no reason {key}")
    for key in reasons:
        if key not in symbols.values():
            problems.append(f"{path}: reason {key} is nobody's")
    return symbols, problems


def check(intercept, headers):
    rows, problems = read_hooks(intercept / "cuda_hooks.def")
    passed, more = read_passthrough(intercept / "passthrough.tsv")
    problems += more
    hooked = [symbol for kind, symbol in rows if kind == "HOOK"]
    if hooked != sorted(hooked):
        problems.append("cuda_hooks.def: TS_HOOK rows are not sorted")
    for symbol in sorted(set(hooked)):
        if hooked.count(symbol) > 1:
            problems.append(f"cuda_hooks.def: {symbol} stands twice")
    names = declared(headers)
    for symbol in sorted(names - set(hooked) - set(passed)):
        problems.append(f"{symbol}: neither hooked nor passed through")
    for symbol in sorted(set(hooked) & set(passed)):
        problems.append(f"{symbol}: hooked and passed through")
    for symbol in sorted((set(hooked) | set(passed)) - names):
        problems.append(f"{symbol}: cuda.h has no such function")
    return problems


def main():
    if len(sys.argv) != 3:
        print(__doc__, file=sys.stderr)
        return 2
    problems = check(pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]))
    print("\n".join(problems), end="\n" if problems else "")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
