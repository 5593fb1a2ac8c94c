#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""The rows of blas.def agree with cublas_api.h, and none is missing.

Usage: test_blas_rows.py HEADERS
"""

import pathlib
import re
import subprocess
import sys
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
HEADERS = sys.argv[1]
GROUPS = 128

# Take operands and have no row: copies between host and device, which arrive
# as copies, and functions on parts of numbers that no framework calls.
LEFT_OUT = re.compile(
    r"cublas([SG]et(Vector|Matrix)(Async)?|.rotmg_v2|Rot(g|m|mg)Ex"
    r"|C(syrk|herk)(3m)?Ex|.(tpttr|trttp)|Uint8gemmBias)(_64)?$"
)
# What they write to is the host's.
HOST_INFO = re.compile(r"cublas.(getrs|geqrf|gels)Batched$")


def preprocess(text, *options):
    return subprocess.run(
        ["cc", "-E", "-P", *options, "-"],
        input=text,
        check=True,
        capture_output=True,
        text=True,
    ).stdout


def prototypes():
    """Function to the declarations of its parameters."""
    # Functions of half floats are declared for C++ only.
    text = preprocess(
        "#define __CUDA_FP16_H__\n#include <cublas_v2.h>\n",
        "-xc++", "-isystem", HEADERS,
    )
    found = re.findall(
        r"cublasStatus_t\s+(cublas\w+)\s*\(([^;]*?)\)\s*;", text, re.S
    )
    return {
        name: [" ".join(p.split()) for p in parameters.split(",")]
        for name, parameters in found
    }


def bits(mask):
    return {n for n in range(32) if mask >> n & 1}


def rows():
    """Function to words, written, tables, count, wide."""
    text = preprocess(
        "#define TS_BLAS(symbol, ...) ROW symbol, __VA_ARGS__;\n"
        f"#define TS_BLAS_GROUPS {GROUPS}\n"
        '#include "intercept/blas.def"\n',
        "-xc", "-I", str(ROOT),
    )
    found = {}
    for row in re.findall(r"ROW ([^;]*);", text):
        name, *cells = (cell.strip() for cell in row.split(","))
        # Plain constants of C: numbers, shifts and ors.
        values = [int(eval(re.sub(r"(?<=\d)u", "", c), {})) for c in cells]
        found[name] = [*values[:1], *map(bits, values[1:3]), *values[3:]]
    return found


class BlasRows(unittest.TestCase):
    def setUp(self):
        self.prototypes, self.rows = prototypes(), rows()

    def test_rows_agree_with_the_header(self):
        for name, (words, written, tables, count, wide) in self.rows.items():
            with self.subTest(function=name):
                declared = self.prototypes[name]
                self.assertEqual(words, len(declared))
                pointers = {
                    i for i, p in enumerate(declared, 1)
                    if "*" in p and "const" not in p and "[" not in p
                }
                if HOST_INFO.match(name):
                    pointers -= {
                        i for i, p in enumerate(declared, 1)
                        if re.search(r"\binfo$", p)
                    }
                self.assertEqual(written, pointers)
                self.assertEqual(
                    tables,
                    {
                        i for i, p in enumerate(declared, 1)
                        if "*" in p and "[]" in p
                    },
                )
                self.assertEqual(wide, name.endswith("_64"))
                if not tables:
                    self.assertEqual(count, 0)
                elif count & GROUPS:
                    count -= GROUPS
                    self.assertRegex(declared[count - 1], "group_count$")
                    self.assertRegex(declared[count], r"group_size\[\]$")
                else:
                    self.assertRegex(
                        declared[count - 1], "(batchCount|batchSize)$"
                    )

    def test_no_function_with_operands_is_missing(self):
        with_operands = {
            name for name, declared in self.prototypes.items()
            if len(declared) > 4 and any("*" in p for p in declared)
        }
        self.assertEqual(
            {n for n in with_operands - set(self.rows) if not LEFT_OUT.match(n)},
            set(),
        )


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[2:]])
