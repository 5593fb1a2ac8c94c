#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""The rows of dnn.def agree with cudnn.h, where a machine has it.

Usage: test_dnn_rows.py HEADERS
"""

import re
import sys
import unittest

from test_blas_rows import HEADERS, ROOT, bits, preprocess

# Pointers that do not name memory on the device.
HOST = re.compile(
    r"\b(alpha\w*|beta\w*|host\w+(\[\])?|returnedAlgoCount|perfResults)$"
)
SCRATCH = re.compile(r"\bwork[sS]pace$")


def prototypes():
    """Function to the declarations of its parameters, numbers left out;
    empty without the headers."""
    text = preprocess(
        "#if __has_include(<cudnn.h>)\n#include <cudnn.h>\n#endif\n",
        "-xc", "-isystem", HEADERS,
    )
    found = re.findall(r"\b(cudnn\w+)\s*\(([^;()]*)\)\s*;", text, re.S)
    return {
        name: [
            parameter
            for p in parameters.split(",")
            if not re.match(
                r"(float|double) \w+$", parameter := " ".join(p.split())
            )
        ]
        for name, parameters in found
    }


def rows():
    """Function to words, operands, written, scratch."""
    text = preprocess(
        "#define TS_DNN(symbol, ...) ROW symbol, __VA_ARGS__;\n"
        '#include "intercept/dnn.def"\n',
        "-xc", "-I", str(ROOT),
    )
    found = {}
    for row in re.findall(r"ROW ([^;]*);", text):
        name, *cells = (cell.strip() for cell in row.split(","))
        # Plain constants of C: numbers, shifts and ors.
        values = [int(eval(re.sub(r"(?<=\d)u", "", c), {})) for c in cells]
        found[name] = [values[0], *map(bits, values[1:])]
    return found


class DnnRows(unittest.TestCase):
    def test_rows_agree_with_the_header(self):
        declared = prototypes()
        if not declared:
            self.skipTest("no cudnn.h")
        for name, (words, operands, written, scratch) in rows().items():
            with self.subTest(function=name):
                parameters = list(enumerate(declared[name], 1))
                self.assertEqual(words, len(parameters))
                on_device = {
                    i for i, p in parameters
                    if ("*" in p or "[" in p) and not HOST.search(p)
                }
                self.assertEqual(operands, on_device)
                self.assertEqual(
                    scratch, {i for i, p in parameters if SCRATCH.search(p)}
                )
                self.assertEqual(
                    written,
                    {
                        i for i, p in parameters
                        if i in on_device - scratch and "const" not in p
                    },
                )


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[2:]])
