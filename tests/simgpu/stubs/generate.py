#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Stub libraries for what PyTorch's CUDA wheels need and the simulated GPU
does not have.

Reads the shared libraries of each Python environment given, finds the vendor
libraries that they need and neither the environment nor the simulator holds,
and builds one library for each into the output folder: every symbol the wheels
leave undefined, with its version node. A stub's function is named once on
stderr when called and returns its library's "not supported". Of several
environments the union of symbols is taken.
"""

import argparse
import concurrent.futures
import glob
import os
import re
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from elf import Library  # noqa: E402

# Library (without version) -> prefixes of its symbols where the wheel has them
# unversioned, and what stands for "not supported" in its status type.
VENDOR = {
    "libcudnn": (("cudnn",), 3000),  # CUDNN_STATUS_NOT_SUPPORTED
    "libcusparse": (("cusparse",), 10),  # CUSPARSE_STATUS_NOT_SUPPORTED
    "libcusparseLt": (("cusparseLt",), 10),
    "libcusolver": (("cusolver",), 9),  # CUSOLVER_STATUS_NOT_SUPPORTED
    "libcufft": (("cufft",), 16),  # CUFFT_NOT_SUPPORTED
    "libcufile": (("cuFile",), 5007),  # CU_FILE_PLATFORM_NOT_SUPPORTED
    "libcurand": (("curand",), 999),  # CURAND_STATUS_INTERNAL_ERROR
    "libnvrtc": (("nvrtc",), 11),  # NVRTC_ERROR_INTERNAL_ERROR
    "libnvJitLink": (("nvJitLink", "__nvJitLink"), 6),
    "libnvshmem_host": (("nvshmem",), 7),  # NVSHMEMX_ERROR_INTERNAL
    "libnvjpeg": (("nvjpeg",), 9),  # IMPLEMENTATION_NOT_SUPPORTED
    "libnvToolsExt": (("nvtx",), 0),
}

# The simulator's own libraries.
OWN = re.compile(
    r"lib(cuda\.so\.1|cudart\.so\.13|cublas\.so\.13|cublasLt\.so\.13"
    r"|cupti\.so\.13|nccl\.so\.2|nvidia-ml\.so\.1)$"
)

# Wheels that carry a library rename it: libcudart.3eda8113.so.13.
HASHED = re.compile(r"^(lib[\w-]+)\.[0-9a-f]{8}(\.so\.\d+)$")

# Functions that return a text (of an error that was named before), and those
# that return a number which is no status: a pointer (none) or a version (none;
# PyTorch asks for it by itself). Texts and versions are not named.
TEXT = re.compile(r"(GetErrorString|GetLastErrorString)$")
ZERO = re.compile(r"^(nvshmem_malloc|nvshmem_ptr|nvshmemx_mc_ptr)$")
QUIET = re.compile(
    r"^(cudnnGetVersion|cudnnGetCudartVersion|cudnnGetMaxDeviceVersion"
    r"|nvshmemid_init_status)$"
)

HEAD = """\
#include <stdio.h>

static void name_once(const char *name, char *said)
{
	if (!__atomic_exchange_n(said, 1, __ATOMIC_RELAXED))
		fprintf(stderr, "simgpu: %s is not supported\\n", name);
}
"""

FUNCTION = """
{type} {name}(void);
{type} {name}(void)
{{
	static char said;

	name_once("{name}", &said);
	return {value};
}}
"""

QUIET_FUNCTION = """
{type} {name}(void);
{type} {name}(void)
{{
	return {value};
}}
"""

DATA = """
extern char {name}[4096];
char {name}[4096];
"""


def stem(soname):
    return soname.split(".so")[0]


def wheel_libraries(venv):
    for folder in ("torch/lib", "torch", "torchvision", "triton/_C"):
        for site in glob.glob(f"{venv}/lib/python3*/site-packages/{folder}"):
            for path in sorted(glob.glob(f"{site}/*.so*")):
                if os.path.isfile(path):
                    yield path


def collect(venvs):
    """{soname: {version or None: {symbol: is_data}}} and the hashed names,
    {as asked for: soname}."""
    stubs, aliases = {}, {}
    for venv in venvs:
        for path in wheel_libraries(venv):
            try:
                library = Library(path)
            except ValueError as error:
                print(f"generate.py: left out: {error}", file=sys.stderr)
                continue
            for needed in library.needed:
                soname = needed
                match = HASHED.match(needed)
                if match:
                    soname = match[1] + match[2]
                if stem(soname) not in VENDOR and not OWN.match(soname):
                    continue
                if soname != needed:
                    aliases[needed] = soname
                if OWN.match(soname):
                    continue
                nodes = stubs.setdefault(soname, {})
                prefixes = VENDOR[stem(soname)][0]
                for name, (version, file, is_data) in library.undefined.items():
                    if version is not None and file == needed:
                        nodes.setdefault(version, {})[name] = is_data
                    elif version is None and name.startswith(prefixes):
                        owner = max(
                            (
                                n
                                for n in library.needed
                                if stem(n) in VENDOR
                                and name.startswith(VENDOR[stem(n)][0])
                            ),
                            key=lambda n: max(
                                len(p)
                                for p in VENDOR[stem(n)][0]
                                if name.startswith(p)
                            ),
                        )
                        if owner == needed:
                            nodes.setdefault(None, {})[name] = is_data
    return stubs, aliases


def source(soname, nodes):
    status = VENDOR[stem(soname)][1]
    parts = [HEAD]
    for symbols in nodes.values():
        for name, is_data in sorted(symbols.items()):
            if is_data:
                parts.append(DATA.format(name=name))
            elif QUIET.match(name):
                parts.append(
                    QUIET_FUNCTION.format(type="long", name=name, value=0)
                )
            elif TEXT.search(name):
                value = '"not supported by the simulated GPU"'
                parts.append(
                    QUIET_FUNCTION.format(
                        type="const char *", name=name, value=value
                    )
                )
            else:
                value = 0 if ZERO.match(name) else status
                # Wide enough for statuses, small structures and sizes alike.
                parts.append(FUNCTION.format(type="long", name=name, value=value))
    return "".join(parts)


def version_script(nodes):
    parts = []
    for version, symbols in nodes.items():
        names = "".join(f"\t{name};\n" for name in sorted(symbols))
        if version is None:
            continue
        parts.append(f"{version} {{\nglobal:\n{names}}};\n")
    return "".join(parts)


def build(compiler, folder, soname, nodes):
    with tempfile.TemporaryDirectory() as work:
        script = version_script(nodes)
        with open(f"{work}/stub.c", "w", encoding="utf-8") as out:
            out.write(source(soname, nodes))
        command = compiler + ["-shared", "-fPIC", "-O1", "-w"]
        command += [f"-Wl,-soname,{soname}", f"{work}/stub.c"]
        if script:
            with open(f"{work}/stub.map", "w", encoding="utf-8") as out:
                out.write(script)
            command.append(f"-Wl,--version-script={work}/stub.map")
        command += ["-o", f"{folder}/.{soname}.new"]
        subprocess.run(command, check=True)
    os.replace(f"{folder}/.{soname}.new", f"{folder}/{soname}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--out", required=True, help="folder for the libraries")
    parser.add_argument("--stamp", help="file written when all is done")
    parser.add_argument("--depfile", help="make rules of what was read")
    parser.add_argument("--cc", nargs="+", default=["cc"], help="compiler")
    parser.add_argument("--venv", action="append", default=[], required=True)
    args = parser.parse_args()

    stubs, aliases = collect(args.venv)
    os.makedirs(args.out, exist_ok=True)
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        jobs = [
            pool.submit(build, args.cc, args.out, soname, nodes)
            for soname, nodes in stubs.items()
        ]
        for job in jobs:
            job.result()
    for alias, soname in aliases.items():
        link = f"{args.out}/{alias}"
        if os.path.lexists(link):
            os.unlink(link)
        os.symlink(soname, link)
    if args.depfile:
        read = " ".join(p for v in args.venv for p in wheel_libraries(v))
        with open(args.depfile, "w", encoding="utf-8") as out:
            out.write(f"{args.stamp}: {read}\n")
    if args.stamp:
        with open(args.stamp, "w", encoding="utf-8"):
            pass


if __name__ == "__main__":
    main()
