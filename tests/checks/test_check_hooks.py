#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Every function of cuda.h has its class, and the checker would notice.

Usage: test_check_hooks.py HEADERS
"""

import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
HEADERS = sys.argv[1]


class CheckHooks(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, self.folder)
        for name in "cuda_hooks.def", "passthrough.tsv", "procaddr.c":
            shutil.copy(ROOT / "intercept" / name, self.folder)
        shutil.copy(ROOT / "tests/data/cudart_queries.tsv", self.folder)

    def check(self):
        return subprocess.run(
            [
                sys.executable,
                ROOT / "scripts/check_hooks.py",
                self.folder,
                HEADERS,
                self.folder / "cudart_queries.tsv",
            ],
            capture_output=True,
            text=True,
        )

    def change(self, name, old, new):
        path = self.folder / name
        text = path.read_text(encoding="utf-8")
        self.assertIn(old, text)
        path.write_text(text.replace(old, new, 1), encoding="utf-8")

    def refused(self, words):
        done = self.check()
        self.assertEqual(done.returncode, 1, done.stdout + done.stderr)
        self.assertIn(words, done.stdout)

    def test_tables_as_they_are(self):
        done = self.check()
        self.assertEqual((done.returncode, done.stdout), (0, ""))

    def test_hook_left_out(self):
        path = self.folder / "cuda_hooks.def"
        lines = path.read_text(encoding="utf-8").splitlines(True)
        path.write_text(
            "".join(l for l in lines if "(cuMemFree_v2," not in l),
            encoding="utf-8",
        )
        self.refused("cuMemFree_v2: neither hooked nor passed through")

    def test_hooked_and_passed_through(self):
        self.change(
            "passthrough.tsv", "cuCtxAttach\t", "cuInit\tquery\ncuCtxAttach\t"
        )
        self.refused("cuInit: hooked and passed through")

    def test_unknown_reason(self):
        self.change("passthrough.tsv", "cuCtxAttach\tcontext", "cuCtxAttach\tx")
        self.refused("cuCtxAttach: no reason x")

    def test_no_reason(self):
        self.change("passthrough.tsv", "cuCtxAttach\tcontext", "cuCtxAttach")
        self.refused("cannot be read: cuCtxAttach")

    def test_function_that_is_not_in_the_header(self):
        self.change(
            "passthrough.tsv", "cuCtxAttach\t", "cuNone\tquery\ncuCtxAttach\t"
        )
        self.refused("cuNone: cuda.h has no such function")

    def test_function_of_another_header(self):
        self.change("passthrough.tsv", "cuGLInit\tgraphics\tcudaGL",
                    "cuGLInit\tgraphics")
        self.refused("cuGLInit: cuda.h has no such function")

    def test_function_that_libcudart_asks_for(self):
        self.change("cudart_queries.tsv", "cuInit\t", "cuNew\t14000/0\ncuInit\t")
        self.refused("cuNew: libcudart asks for it, nobody knows it")

    def test_hidden_function_that_is_hidden_no_more(self):
        self.change("procaddr.c", '"cuMemcpyWithAttributesAsync"', '"x"')
        self.refused("cuMemcpyWithAttributesAsync: libcudart asks for it")

    def test_version_that_libcudart_asks_for(self):
        self.change("cudart_queries.tsv", "cuMemFree\t", "cuMemFree\t1000/0,")
        self.refused("cuMemFree: no hook of version 1000")

    def test_type_of_another_function(self):
        self.change(
            "cuda_hooks.def", "PFN_cuMemFree_v3020", "PFN_cuMemAlloc_v3020"
        )
        self.refused("is cuMemAlloc_v3020 the type of cuMemFree?")

    def test_wrong_version(self):
        self.change(
            "cuda_hooks.def", '"cuMemFree", 3020,', '"cuMemFree", 4000,'
        )
        self.refused("version 4000")

    def test_rows_out_of_order(self):
        self.change("cuda_hooks.def", "TS_HOOK(cuInit,", "TS_HOOK(cuAaa,")
        self.refused("not sorted")


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[2:]])
