#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""What `meson install` lays down works from there.

Usage: test_install.py MESON BUILD-FOLDER.
"""

import glob
import os
import shutil
import subprocess
import sys
import tempfile
import unittest

MESON, BUILD = sys.argv[1], os.path.abspath(sys.argv[2])


class Install(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = os.path.realpath(tempfile.mkdtemp())
        cls.addClassCleanup(shutil.rmtree, cls.folder)
        subprocess.run(
            [MESON, "install", "-C", BUILD, "--no-rebuild"],
            env={**os.environ, "DESTDIR": cls.folder},
            check=True,
            capture_output=True,
            timeout=120,
        )

    def find(self, name):
        found = glob.glob(f"{self.folder}/**/{name}", recursive=True)
        self.assertEqual(len(found), 1, f"{name}: {found}")
        return found[0]

    def test_all_is_there(self):
        for name in ("bin/tapeswap", "libtapeswap.so", "man1/tapeswap.1",
                     "include/tapeswap.h", "pkgconfig/tapeswap.pc"):
            self.assertGreater(os.path.getsize(self.find(name)), 0, name)

    def test_run_finds_the_library(self):
        clean = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith(("TAPESWAP_", "LD_", "SIMGPU_"))
        }
        done = subprocess.run(
            [self.find("bin/tapeswap"), "run", "--limit", "1GiB", "--", "env"],
            env=clean, capture_output=True, text=True, timeout=60,
        )
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        preloaded = [
            line.partition("=")[2]
            for line in done.stdout.splitlines()
            if line.startswith("LD_PRELOAD=")
        ]
        self.assertEqual(
            [os.path.realpath(path) for path in preloaded],
            [self.find("libtapeswap.so")],
        )

    def test_page_names_every_command(self):
        done = subprocess.run(
            [self.find("bin/tapeswap"), "--help"],
            capture_output=True, text=True, check=True, timeout=60,
        )
        listed = done.stdout.split("commands:\n")[1].split("\n\n")[0]
        names = [line.split()[0] for line in listed.splitlines()]
        self.assertIn("run", names)
        with open(self.find("man1/tapeswap.1"), encoding="utf-8") as file:
            page = file.read()
        for name in names:
            self.assertRegex(page, rf"\n\.BI? \"?{name}\b", name)

    def test_header_is_found(self):
        if not shutil.which("pkg-config"):
            self.skipTest("no pkg-config")
        pc = self.find("pkgconfig/tapeswap.pc")
        done = subprocess.run(
            ["pkg-config", "--cflags", "--variable=preload", "tapeswap"],
            env={
                **os.environ,
                "PKG_CONFIG_PATH": os.path.dirname(pc),
                "PKG_CONFIG_SYSROOT_DIR": self.folder,
            },
            capture_output=True, text=True, timeout=60,
        )
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertIn("libtapeswap.so", done.stdout)


if __name__ == "__main__":
    sys.argv = sys.argv[:1]
    unittest.main()
