# SPDX-License-Identifier: LGPL-2.1-or-later
"""A folder with a profile, and a plan made from it, for tests of commands.

Usage of those who take this: test_NAME.py TAPESWAP
"""

import os
import shutil
import subprocess
import sys
import tempfile
import unittest

TAPESWAP = os.path.abspath(sys.argv[1])


class Profiled(unittest.TestCase):
    LIMIT = None  # of the plan; None: there is none

    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.mkdtemp()
        cls.addClassCleanup(shutil.rmtree, cls.folder)
        cls.profile = f"{cls.folder}/profile.json"
        cls.plan_path = f"{cls.folder}/plan.json"
        cls.put_out("workload", "bert-large", "-o", cls.profile)
        if cls.LIMIT:
            cls.put_out(
                "plan", cls.profile, "--limit", cls.LIMIT, "-o", cls.plan_path
            )

    @staticmethod
    def put_out(*arguments):
        """What a command, which ends well, writes to standard output."""
        done = subprocess.run(
            [TAPESWAP, *arguments], capture_output=True, text=True,
            timeout=120,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout
