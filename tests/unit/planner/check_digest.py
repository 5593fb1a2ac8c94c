#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""The same input gives the same plan: at every level of optimisation, in
every run, locale and layout of the address space.

Usage: check_digest.py PROGRAM...
"""

import hashlib
import os
import shutil
import subprocess
import sys
import unittest

PROGRAMS = sys.argv[1:]


def digest(command, **environment):
    done = subprocess.run(
        command,
        env={**os.environ, **environment},
        stdout=subprocess.PIPE,
        timeout=300,
        check=True,
    )
    return len(done.stdout), hashlib.sha256(done.stdout).hexdigest()


class Digest(unittest.TestCase):
    def test_the_same_bytes(self):
        self.assertGreater(len(PROGRAMS), 1)
        first = digest([PROGRAMS[0]])
        self.assertGreater(first[0], 1_000_000)
        for program in PROGRAMS[1:]:
            with self.subTest(program):
                self.assertEqual(digest([program]), first)
        last = PROGRAMS[-1]
        for locale in "C", "de_DE.UTF-8", "tr_TR.UTF-8":
            with self.subTest(locale=locale):
                self.assertEqual(
                    digest([last], LC_ALL=locale, MALLOC_PERTURB_="85"), first
                )
        if shutil.which("setarch"):
            self.assertEqual(digest(["setarch", "-R", last]), first)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
