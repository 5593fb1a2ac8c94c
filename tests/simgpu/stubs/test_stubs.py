#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Tests of the stub generator: on a made-up wheel, and on the installed ones.

usage: test_stubs.py LIBRARY_FOLDER [ENVIRONMENT...]
"""

import os
import subprocess
import sys
import tempfile
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
import generate  # noqa: E402
from elf import Library  # noqa: E402

libraries, environments = None, []

# What the made-up wheel is linked against: a library with a version node and
# one without.
CUDNN = """
int cudnnCreate(void) { return 0; }
long cudnnGetVersion(void) { return 9; }
const char *cudnnGetErrorString(int s) { return ""; }
"""
CUFILE = "int cuFileRead(void) { return 0; } int cuFileUnused(void) { return 0; }"
WHEEL = """
int cudnnCreate(void); long cudnnGetVersion(void);
const char *cudnnGetErrorString(int); int cuFileRead(void);
int wheel_create(void) { return cudnnCreate(); }
int wheel_read(void) { return cuFileRead(); }
long wheel_version(void) { return cudnnGetVersion(); }
const char *wheel_text(void) { return cudnnGetErrorString(3000); }
"""


def compile_library(folder, name, text, *options):
    subprocess.run(
        ["cc", "-shared", "-fPIC", "-w", f"-Wl,-soname,{name}"]
        + ["-x", "c", "-", "-x", "none", "-o", f"{folder}/{name}", *options],
        input=text,
        text=True,
        check=True,
    )


def exported(path):
    """Dynamic symbols as nm names them: name, name@@VERSION or name@VERSION."""
    text = subprocess.run(
        ["nm", "-D", "--defined-only", "--with-symbol-versions", path],
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    return {line.split()[-1].replace("@@", "@") for line in text.splitlines()}


class MadeUpWheel(unittest.TestCase):
    def setUp(self):
        work = tempfile.TemporaryDirectory()
        self.addCleanup(work.cleanup)
        self.vendor = f"{work.name}/vendor"
        self.stubs = f"{work.name}/stubs"
        self.wheel = f"{work.name}/venv/lib/python3.11/site-packages/torch/lib"
        os.makedirs(self.vendor)
        os.makedirs(self.wheel)
        with open(f"{self.vendor}/map", "w", encoding="utf-8") as out:
            out.write("libcudnn.so.9 { global: *; };\n")
        compile_library(
            self.vendor,
            "libcudnn.so.9",
            CUDNN,
            f"-Wl,--version-script={self.vendor}/map",
        )
        compile_library(self.vendor, "libcufile.so.0", CUFILE)
        compile_library(
            self.wheel,
            "libtorch_cuda.so",
            WHEEL,
            f"{self.vendor}/libcudnn.so.9",
            f"{self.vendor}/libcufile.so.0",
        )
        subprocess.run(
            [f"{HERE}/generate.py", "--out", self.stubs]
            + ["--venv", f"{work.name}/venv"],
            check=True,
        )

    def test_symbols_and_nodes(self):
        self.assertEqual(
            sorted(os.listdir(self.stubs)), ["libcudnn.so.9", "libcufile.so.0"]
        )
        self.assertLessEqual(
            {
                "cudnnCreate@libcudnn.so.9",
                "cudnnGetVersion@libcudnn.so.9",
                "cudnnGetErrorString@libcudnn.so.9",
            },
            exported(f"{self.stubs}/libcudnn.so.9"),
        )
        cufile = exported(f"{self.stubs}/libcufile.so.0")
        self.assertIn("cuFileRead", cufile)
        self.assertNotIn("cuFileUnused", cufile)
        self.assertEqual(
            Library(f"{self.stubs}/libcudnn.so.9").soname, "libcudnn.so.9"
        )

    def test_calls_answer_and_are_named_once(self):
        program = f"""
import ctypes
wheel = ctypes.CDLL("{self.wheel}/libtorch_cuda.so")
wheel.wheel_text.restype = ctypes.c_char_p
print(wheel.wheel_create(), wheel.wheel_create(), wheel.wheel_read(),
      wheel.wheel_version(), wheel.wheel_text().decode())
"""
        done = subprocess.run(
            [sys.executable, "-c", program],
            env=dict(os.environ, LD_LIBRARY_PATH=self.stubs),
            capture_output=True,
            text=True,
        )
        self.assertEqual(
            done.stdout,
            "3000 3000 5007 0 not supported by the simulated GPU\n",
            done.stderr,
        )
        self.assertEqual(
            done.stderr,
            "simgpu: cudnnCreate is not supported\n"
            "simgpu: cuFileRead is not supported\n",
        )


class InstalledWheels(unittest.TestCase):
    def test_everything_they_need_is_there(self):
        if not environments:
            self.skipTest("no environment")
        have = {}
        missing = []
        seen = 0
        for venv in environments:
            for path in generate.wheel_libraries(venv):
                library = Library(path)
                for name, (version, file, _) in library.undefined.items():
                    if file is None or not self.simulated(file):
                        continue
                    if file not in have:
                        have[file] = exported(f"{libraries}/{file}")
                    seen += 1
                    plain = generate.HASHED.sub(r"\1\2", version)
                    if f"{name}@{plain}" not in have[file]:
                        missing.append(f"{name}@{version} for {path}")
        self.assertEqual(missing, [])
        self.assertGreater(seen, 500)

    def test_nccl_has_all_functions(self):
        """They have no version that says which library they are of."""
        if not environments:
            self.skipTest("no environment")
        have = exported(f"{libraries}/libnccl.so.2")
        wanted = {
            name
            for venv in environments
            for path in generate.wheel_libraries(venv)
            for name in Library(path).undefined
            if name.startswith("nccl")
        }
        self.assertEqual(wanted - have, set())
        self.assertGreater(len(wanted), 30)

    @staticmethod
    def simulated(file):
        plain = generate.HASHED.sub(r"\1\2", file)
        return generate.OWN.match(plain) or generate.stem(plain) in generate.VENDOR


if __name__ == "__main__":
    libraries, environments = sys.argv[1], sys.argv[2:]
    unittest.main(argv=sys.argv[:1])
