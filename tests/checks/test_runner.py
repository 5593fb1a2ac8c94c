#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""The test runner counts what happened, above all what failed."""

import contextlib
import io
import pathlib
import sys
import types
import unittest

TESTS = pathlib.Path(__file__).resolve().parents[1]
sys.path[:0] = [str(TESTS)]

import run  # noqa: E402
import runner  # noqa: E402
from runner import Case, Count, Failure, Skipped  # noqa: E402


def fails():
    raise Failure("was 1, wanted 2")


def skips():
    raise Skipped("no compiler")


def crashes():
    raise KeyError("peak")


class Runner(unittest.TestCase):
    def run_main(self, *cases, **options):
        arguments = types.SimpleNamespace(
            only=None, full=False, list=False, jobs=2, **options
        )
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            status = runner.main(list(cases), arguments)
        return status, out.getvalue().splitlines()

    def test_last_line_and_status(self):
        status, lines = self.run_main(Case("a", lambda: None))
        self.assertEqual((status, lines[-1]), (0, "1 passed, 0 failed"))
        status, lines = self.run_main(
            Case("a", lambda: None), Case("b", fails, alone=True)
        )
        self.assertEqual((status, lines[-1]), (1, "1 passed, 1 failed"))
        self.assertTrue(any("wanted 2" in line for line in lines))

    def test_exception_is_a_failure(self):
        status, lines = self.run_main(Case("a", crashes))
        self.assertEqual((status, lines[-1]), (1, "0 passed, 1 failed"))

    def test_nothing_run_is_no_success(self):
        status, _ = self.run_main(Case("a", skips))
        self.assertEqual(status, 1)

    def test_single_tests_of_a_case_are_counted(self):
        status, lines = self.run_main(
            Case("a", lambda: Count(passed=5, failed=2)),
            Case("b", lambda: None),
        )
        self.assertEqual((status, lines[-1]), (1, "6 passed, 2 failed"))

    def test_selection(self):
        cases = [Case("x/a", None), Case("x/b", None, full=True)]
        names = lambda *a: [c.name for c in runner.select(cases, *a)]
        self.assertEqual(names(None, False), ["x/a"])
        self.assertEqual(names(None, True), ["x/a", "x/b"])
        self.assertEqual(names(["*/b"], True), ["x/b"])
        self.assertEqual(names(["/a"], False), ["x/a"])


class Output(unittest.TestCase):
    def count(self, output, ok):
        count = run.count_output(output, ok)
        return count.passed, count.failed

    def test_check(self):
        text = "87%: Checks: 8, Failures: 1, Errors: 0\n"
        self.assertEqual(self.count(text, False), (7, 1))
        text = "100%: Checks: 3, Failures: 0, Errors: 0\n" * 2
        self.assertEqual(self.count(text, True), (6, 0))

    def test_unittest(self):
        text = "Ran 18 tests in 0.2s\n\nFAILED (failures=1, errors=2)\n"
        self.assertEqual(self.count(text, False), (15, 3))

    def test_plain_program(self):
        self.assertEqual(self.count("", True), (1, 0))
        self.assertEqual(self.count("", False), (0, 1))

    def test_crash_after_all_checks_passed(self):
        text = "100%: Checks: 3, Failures: 0, Errors: 0\n"
        self.assertEqual(self.count(text, False), (2, 1))


if __name__ == "__main__":
    unittest.main()
