#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Every function of cuda.h is hooked, or passed through for a stated reason.

Usage: check_hooks.py INTERCEPT HEADERS QUERIES

INTERCEPT/cuda_hooks.def has a TS_HOOK row for each hooked function,
INTERCEPT/passthrough.tsv the reasons (`# key: text`) and a line
`function<TAB>key` for each other one. HEADERS has cuda.h. All ABIs that cuda.h
knows count: the current one, those for the per-thread default stream, and the
replaced ones. A third column of passthrough.tsv says where a function is
declared that cuda.h of HEADERS has not: a later version, another header.

QUERIES lists what libcudart asks the driver for, `function<TAB>version/flags`:
each is one of these, or hidden by procaddr.c. A version of a hooked function
that is asked for has a hook of that version or an older one.
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
        rows.append((kind, symbol, name, int(version)))
    return rows, problems


def read_passthrough(path):
    """Symbol to reason, those of other headers, what is wrong with the file."""
    reasons, symbols, elsewhere, problems = {}, {}, set(), []
    for number, line in enumerate(path.read_text("utf-8").splitlines(), 1):
        reason = re.match(r"# ([a-z][\w-]*): (\S.*)$", line)
        entry = re.match(r"(cu[A-Z]\w*)\t([\w-]+)(\t\w+)?$", line)
        if reason:
            reasons[reason[1]] = reason[2]
        elif entry:
            if entry[1] in symbols:
                problems.append(f"{path}:{number}: {entry[1]} stands twice")
            symbols[entry[1]] = entry[2]
            if entry[3]:
                elsewhere.add(entry[1])
        elif line and not line.startswith("#"):
            problems.append(f"{path}:{number}: cannot be read: {line}")
    for symbol, key in symbols.items():
        if key not in reasons:
            problems.append(f"{path}: {symbol}: no reason {key}")
    for key in reasons:
        if key not in symbols.values():
            problems.append(f"{path}: reason {key} is nobody's")
    return symbols, elsewhere, problems


def base(symbol):
    """The name it is asked for by."""
    return re.sub(r"(_v\d+)?(_pt[ds][sz])?$", "", symbol)


def read_queries(path):
    """(function, version) of each query."""
    queries = set()
    for line in path.read_text("utf-8").splitlines():
        if line.startswith("#"):
            continue
        name, asked = line.split("\t")
        for query in asked.split(","):
            queries.add((name, int(query.split("/")[0])))
    return queries


def check_queries(intercept, rows, passed, path):
    oldest = {}
    for kind, symbol, name, version in rows:
        if kind == "HOOK":
            oldest[name] = min(version, oldest.get(name, version))
    source = (intercept / "procaddr.c").read_text("utf-8")
    hidden = re.search(r"hidden\[\] = \{([^}]*)\}", source)[1]
    # A hooked function may have older ABIs that are passed through.
    bases = {base(symbol) for symbol in passed}
    problems = []
    for name, version in sorted(read_queries(path)):
        if f'"{name}"' in hidden or name in bases:
            continue
        if name not in oldest:
            problems.append(f"{name}: libcudart asks for it, nobody knows it")
        elif version < oldest[name]:
            problems.append(f"{name}: no hook of version {version}")
    return problems


def check(intercept, headers, queries):
    rows, problems = read_hooks(intercept / "cuda_hooks.def")
    passed, elsewhere, more = read_passthrough(intercept / "passthrough.tsv")
    problems += more
    problems += check_queries(intercept, rows, passed, queries)
    hooked = [symbol for kind, symbol, _, _ in rows if kind == "HOOK"]
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
    for symbol in sorted((set(hooked) | set(passed)) - names - elsewhere):
        problems.append(f"{symbol}: cuda.h has no such function")
    return problems


def main():
    if len(sys.argv) != 4:
        print(__doc__, file=sys.stderr)
        return 2
    problems = check(*map(pathlib.Path, sys.argv[1:]))
    print("\n".join(problems), end="\n" if problems else "")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
