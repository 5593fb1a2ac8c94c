#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Programs that have more rights than their callers: the library is off.

Usage: test_secure.py PROGRAM

PROGRAM is linked with the library and the simulated driver by full paths,
since the loader hears neither LD_PRELOAD nor LD_LIBRARY_PATH of such programs.
Making one takes root, and a folder whose file system allows setuid.
"""

import os
import pathlib
import shutil
import stat
import subprocess
import sys
import tempfile
import unittest

PROGRAM = pathlib.Path(sys.argv[1]).resolve()
# Whose rights the program has, and who starts it: any two that are not root.
OWNER, CALLER = 65534, 12345


def run(program, folder, **more):
    return subprocess.run(
        [program],
        env={
            "PATH": os.environ["PATH"],
            "SIMGPU_DEVICE": "tiny-1g",
            "SIMGPU_CONTENT": "exact",
            "TAPESWAP_STATUS": f"{folder}/status.json",
            "TAPESWAP_PROFILE": f"{folder}/profile.json",
        },
        cwd=folder, capture_output=True, text=True, timeout=60, **more,
    )


class Secure(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="tapeswap-secure-")
        self.addCleanup(shutil.rmtree, self.folder)
        # Whatever the program could write, anybody may.
        os.chmod(self.folder, 0o777)

    def test_ordinary_program_is_seen(self):
        done = run(PROGRAM, self.folder)
        self.assertEqual(done.stdout, "secure 0 result 0 value 7070707\n")
        self.assertIn("ok: device 0 peak", done.stderr)
        self.assertEqual(os.listdir(self.folder), ["status.json"])

    def test_setuid_program_is_left_alone(self):
        if os.geteuid():
            self.skipTest("only root can make a program of another's")
        with tempfile.TemporaryDirectory() as home:
            os.chmod(home, 0o755)
            program = pathlib.Path(home, "program")
            shutil.copyfile(PROGRAM, program)
            os.chown(program, OWNER, OWNER)
            os.chmod(program, 0o755 | stat.S_ISUID | stat.S_ISGID)
            done = run(
                program, self.folder,
                user=CALLER, group=CALLER, extra_groups=[],
            )
        if "cannot open shared object" in done.stderr:
            self.skipTest("others cannot read the build folder")
        if "secure 0" in done.stdout:
            self.skipTest("the file system does not know setuid")
        self.assertEqual(
            (done.returncode, done.stdout, done.stderr),
            (0, "secure 1 result 0 value 7070707\n", ""),
        )
        self.assertEqual(os.listdir(self.folder), [])


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[2:]])
