#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Bad values of every setting: one clear line, and the program runs.

Usage: test_settings.py LIBRARY HOST SIMGPU TAPESWAP [TEST...]
"""

import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

LIBRARY, HOST, SIMGPU, TAPESWAP = (
    str(pathlib.Path(a).resolve()) for a in sys.argv[1:5]
)
SIZE = "want bytes or KiB/MiB/GiB"
LIMIT = "want bytes, KiB/MiB/GiB or %"
FILE = "want a file name with %p, %r or %% in it"
BOOLEAN = "want 0 or 1"
LONG = "a" * 5000

# Of settings: bad values and what is said of them.
BAD = {
    "HOST_LIMIT": (["60%", "12GB", "-1", "0", "1e9", "GiB", "nan"], SIZE),
    "IPC": (["yes", "2", "01", " 1"], BOOLEAN),
    "LIMIT": (
        ["12GB x", "101%", "0%", "-5%", "1e3", "much", "0", "0x10", "1 GiB x",
         "99999999999999999999", "9999999999999GiB"],
        LIMIT,
    ),
    "LOG": (["loud", "Debug", "1"], "want error, warn, info, debug"),
    "MODE": (["Observe", "on", "1", "cap "], "want off, observe, cap, plan"),
    "PLAN": (["%q", "100%", LONG], FILE),
    "PROFILE": (["%q", "%", LONG], FILE),
    "STATUS": (["%d", LONG], FILE),
    "STEP_RANGE": (["a" * 256], "want a name of up to 255 bytes"),
    "STRICT": (["2", "true"], BOOLEAN),
    "TIMING": (["event", "CUPTI"], "want events, cupti"),
}


def run(command="steps", **settings):
    return subprocess.run(
        [HOST, command],
        env={
            "PATH": os.environ["PATH"],
            "LD_PRELOAD": LIBRARY,
            "LD_LIBRARY_PATH": SIMGPU,
            "SIMGPU_DEVICE": "tiny-1g",
            **settings,
        },
        capture_output=True, text=True, timeout=60,
    )


class Settings(unittest.TestCase):
    def lines(self, done):
        """What was said; the program itself went on as ever."""
        self.assertEqual((done.returncode, done.stdout), (0, "done\n"))
        lines = done.stderr.splitlines()
        for line in lines:
            self.assertRegex(line, r"^tapeswap\[\d+\]: ")
        return [re.sub(r"^tapeswap\[\d+\]: ", "", line) for line in lines]

    def test_every_setting_has_bad_values(self):
        """One that no type of setting takes, but names of any kind."""
        done = subprocess.run(
            [TAPESWAP, "run", "--help"],
            capture_output=True, text=True, check=True, timeout=60,
        )
        known = re.findall(r"\[TAPESWAP_(\w+)\]", done.stdout)
        self.assertLessEqual(set(BAD), set(known))
        for name in known:
            if name == "STEP_RANGE":
                continue
            lines = self.lines(run("work", **{f"TAPESWAP_{name}": "?%"}))
            self.assertEqual(len(lines), 1, lines)
            self.assertTrue(
                lines[0].startswith(f'off: TAPESWAP_{name}="?%": want '),
                lines[0],
            )

    def test_bad_values(self):
        for name, (values, wanted) in BAD.items():
            for value in values:
                with self.subTest(setting=name, value=value[:40]):
                    variable = f"TAPESWAP_{name}"
                    lines = self.lines(run("work", **{variable: value}))
                    self.assertEqual(len(lines), 1, lines)
                    self.assertTrue(
                        lines[0].startswith(f'off: {variable}="{value[:200]}'),
                        lines[0],
                    )
                    self.assertTrue(lines[0].endswith(wanted), lines[0])

    def test_strict_refuses_what_is_bad(self):
        for name, (values, wanted) in BAD.items():
            if name == "STRICT":
                continue
            done = run(
                "init", TAPESWAP_STRICT="1", **{f"TAPESWAP_{name}": values[0]}
            )
            self.assertEqual(done.stdout, "cuInit 1\n", name)
            self.assertEqual(len(done.stderr.splitlines()), 1, done.stderr)
            self.assertIn(f"CUDA refused: TAPESWAP_{name}=", done.stderr)
            self.assertIn(wanted, done.stderr)

    def test_empty_is_as_good_as_unset(self):
        empty = {f"TAPESWAP_{name}": "" for name in BAD}
        lines = self.lines(run(**empty))
        self.assertEqual(len(lines), 1, lines)
        self.assertTrue(lines[0].startswith("ok: "), lines[0])

    def test_files_that_cannot_be_written(self):
        with tempfile.TemporaryDirectory() as folder:
            places = {
                f"{folder}/no/such/x.json": "No such file or directory",
                folder: "Is a directory",
                "/dev/null/x.json": "Not a directory",
            }
            for name, mode in (
                ("PROFILE", "observe"), ("STATUS", "cap"), ("PLAN", "cap"),
            ):
                for path, reason in places.items():
                    with self.subTest(setting=name, path=path):
                        variable = f"TAPESWAP_{name}"
                        lines = self.lines(
                            run(TAPESWAP_MODE=mode, **{variable: path})
                        )
                        self.assertEqual(
                            lines[0],
                            f'{variable}="{path}" was not written: {reason}',
                        )
                        # Once, and nobody is sent there.
                        self.assertEqual(len(lines), 2, lines)
                        self.assertTrue(lines[1].startswith("ok: "), lines)
                        self.assertNotIn(path, lines[1])
            # Nothing half made is left behind.
            self.assertEqual(os.listdir(folder), [])


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[5:]])
