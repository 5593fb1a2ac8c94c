#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""`tapeswap run`: what it hands on, and how each of its failures ends.

Usage: test_run.py TAPESWAP LIBRARY. Both are copied into a folder of the
test's own, beside a stand-in for the simulated GPU's folder.
"""

import os
import shutil
import struct
import subprocess
import sys
import tempfile
import unittest

TAPESWAP, LIBRARY = (os.path.abspath(path) for path in sys.argv[1:3])


class Run(unittest.TestCase):
    def setUp(self):
        self.folder = os.path.realpath(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, self.folder)
        self.program = shutil.copy(TAPESWAP, self.path("tapeswap"))
        self.library = shutil.copy(LIBRARY, self.path("libtapeswap.so"))

    def path(self, name):
        return os.path.join(self.folder, name)

    def write(self, name, content, mode=0o755):
        with open(self.path(name), "wb") as out:
            out.write(content)
        os.chmod(self.path(name), mode)
        return self.path(name)

    def run_tapeswap(self, *arguments, **environment):
        clean = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith(("TAPESWAP_", "LD_", "SIMGPU_"))
        }
        return subprocess.run(
            [self.program, "run", *arguments],
            env={**clean, **environment},
            capture_output=True,
            text=True,
            timeout=60,
        )

    def check(self, done, status, error=None):
        self.assertEqual(done.returncode, status, done.stderr)
        if error is None:
            self.assertEqual(done.stderr, "")
        else:
            self.assertIn(error, done.stderr)
            self.assertTrue(done.stderr.startswith("tapeswap: error: "))
            self.assertEqual(done.stdout, "")

    def environment(self, *arguments, **environment):
        done = self.run_tapeswap(*arguments, "--", "env", **environment)
        self.check(done, 0)
        return dict(
            line.split("=", 1)
            for line in done.stdout.splitlines()
            if "=" in line
        )

    def test_exit_status_is_the_commands_own(self):
        self.check(self.run_tapeswap("--", "sh", "-c", "exit 3"), 3)
        done = self.run_tapeswap("--", "sh", "-c", "kill -TERM $$")
        self.check(done, -15)

    def test_options_reach_the_library(self):
        seen = self.environment(
            "--limit", "12GiB", "--mode", "cap", "--plan", "p.json",
            "--status=s.json", "--log", "warn", "--host-limit", "64GiB",
        )
        self.assertEqual(seen["TAPESWAP_LIMIT"], "12GiB")
        self.assertEqual(seen["TAPESWAP_MODE"], "cap")
        self.assertEqual(seen["TAPESWAP_PLAN"], "p.json")
        self.assertEqual(seen["TAPESWAP_STATUS"], "s.json")
        self.assertEqual(seen["TAPESWAP_LOG"], "warn")
        self.assertEqual(seen["TAPESWAP_HOST_LIMIT"], "64GiB")

    def test_option_wins_over_variable(self):
        seen = self.environment("--limit", "1GiB", TAPESWAP_LIMIT="2GiB")
        self.assertEqual(seen["TAPESWAP_LIMIT"], "1GiB")

    def test_library_is_put_first_and_others_stay(self):
        seen = self.environment()
        self.assertEqual(seen["LD_PRELOAD"], self.library)
        seen = self.environment(LD_PRELOAD=LIBRARY)
        self.assertEqual(seen["LD_PRELOAD"], f"{self.library}:{LIBRARY}")

    def test_mode_off_preloads_nothing(self):
        self.assertNotIn("LD_PRELOAD", self.environment("--mode", "off"))
        self.assertNotIn("LD_PRELOAD", self.environment(TAPESWAP_MODE="off"))

    def simulated_gpu(self, *models):
        os.makedirs(self.path("simgpu/models"))
        self.write("simgpu/libcuda.so.1", b"")
        for name in models:
            self.write(f"simgpu/models/{name}.json", b"{}")

    def test_simulated_gpu_goes_on_the_library_path(self):
        self.simulated_gpu("tiny-1g")
        seen = self.environment(
            "--sim", "tiny-1g", "--mode", "off", LD_LIBRARY_PATH="/some/where"
        )
        self.assertEqual(
            seen["LD_LIBRARY_PATH"], self.path("simgpu") + ":/some/where"
        )
        self.assertEqual(seen["SIMGPU_DEVICE"], "tiny-1g")
        self.assertEqual(seen["SIMGPU_CONTENT"], "tags")
        seen = self.environment("--sim", "tiny-1g", SIMGPU_CONTENT="none")
        self.assertEqual(seen["SIMGPU_CONTENT"], "none")

    def test_unknown_device_model(self):
        self.simulated_gpu("tiny-1g", "h200")
        done = self.run_tapeswap("--sim", "nosuch", "--", "echo", "started")
        self.check(
            done, 125, "--sim nosuch: no such device model; want h200, tiny-1g"
        )
        self.assertEqual(done.stdout, "")
        self.assertEqual(done.stderr.count("\n"), 1)
        done = self.run_tapeswap("--sim", "./no.json", "--", "echo", "started")
        self.check(done, 125, "--sim ./no.json: no such device model")
        own = self.write("own.json", b"{}")
        self.environment("--sim", own, "--mode", "off")

    def test_exact_numbers_on_the_simulated_gpu(self):
        self.simulated_gpu("tiny-1g")
        seen = self.environment("--sim", "tiny-1g", "--sim-exact")
        self.assertEqual(seen["SIMGPU_CONTENT"], "exact")
        done = self.run_tapeswap("--sim-exact", "--", "true")
        self.check(done, 125, "--sim-exact wants --sim")

    def test_absent_simulated_gpu(self):
        done = self.run_tapeswap("--sim", "tiny-1g", "--", "true")
        self.check(done, 125, "the simulated GPU is not beside")

    def test_library_that_the_loader_refuses(self):
        self.write("libtapeswap.so", b"no library")
        done = self.run_tapeswap("--", "echo", "ran")
        self.assertEqual(done.returncode, 125)
        self.assertEqual(done.stdout, "")
        self.assertIn("does not preload libtapeswap.so", done.stderr)

    def test_absent_library(self):
        os.unlink(self.library)
        done = self.run_tapeswap("--", "true")
        self.check(done, 125, "libtapeswap.so is not beside")

    def test_bad_values(self):
        for value in "12GB", "12GB x", "0", "-1", "x%", "150%":
            done = self.run_tapeswap("--limit", value, "--", "true")
            self.check(done, 125, f'error: --limit "{value}": ')
            self.assertNotIn("TAPESWAP_", done.stderr)
            done = self.run_tapeswap("--", "true", TAPESWAP_LIMIT=value)
            self.check(done, 125, f'error: TAPESWAP_LIMIT="{value}": ')
        done = self.run_tapeswap("--limit", "150%", "--", "true")
        self.check(done, 125, '"150%": more than the device has: want bytes')
        done = self.run_tapeswap("--mode", "fast", "--", "true")
        self.check(done, 125, 'error: --mode "fast": want off')
        done = self.run_tapeswap("--", "true", TAPESWAP_HOST_LIMIT="60%")
        self.check(done, 125, 'TAPESWAP_HOST_LIMIT="60%"')

    def test_files_that_cannot_be_written(self):
        """The program would only be told once it runs, or at its end."""
        for name in "plan", "profile", "status":
            for path, why in (
                ("/no/such/x.json", "No such file or directory"),
                (self.folder, "Is a directory"),
                (f"{self.program}/x", "Not a directory"),
            ):
                error = f'"{path}": cannot be written: {why}'
                done = self.run_tapeswap(f"--{name}", path, "--", "echo", "ran")
                self.check(done, 125, f"--{name} {error}")
                variable = f"TAPESWAP_{name.upper()}"
                done = self.run_tapeswap("--", "echo", "ran", **{variable: path})
                self.check(done, 125, f"{variable}={error}")
                done = self.run_tapeswap(
                    "--mode", "off", f"--{name}", path, "--", "echo", "ran"
                )
                self.check(done, 0)
            self.environment(f"--{name}", self.path(f"%p.{name}"))
            self.environment(f"--{name}", "/dev/null")

    def test_misspelt_variable_is_named(self):
        done = self.run_tapeswap("--", "true", TAPESWAP_LIMITS="1GiB")
        self.assertEqual(done.returncode, 0)
        self.assertIn("TAPESWAP_LIMITS", done.stderr)
        self.assertIn("did you mean TAPESWAP_LIMIT?", done.stderr)

    def test_bad_usage(self):
        self.check(self.run_tapeswap(), 125, "no command given")
        self.check(self.run_tapeswap("--what", "true"), 125, "'--what'")
        self.check(self.run_tapeswap("--limit"), 125, "wants a value")
        done = self.run_tapeswap("--limit", "", "true")
        self.check(done, 125, "wants a value")

    def test_command_not_found(self):
        for mode in "off", "cap":
            done = self.run_tapeswap("--mode", mode, "no-such-command")
            self.check(done, 127, "no-such-command")

    def test_command_not_executable(self):
        file = self.write("plain", b"", 0o644)
        for mode in "off", "cap":
            done = self.run_tapeswap("--mode", mode, file)
            self.check(done, 126, "plain")

    def test_static_program(self):
        source = self.write("static.c", b"int main(void) { return 0; }\n")
        program = self.path("static")
        subprocess.run(["gcc", "-static", "-o", program, source], check=True)
        self.check(self.run_tapeswap(program), 125, "statically linked")

    def test_static_interpreter_of_a_script(self):
        source = self.write("static.c", b"int main(void) { return 0; }\n")
        program = self.path("static")
        subprocess.run(["gcc", "-static", "-o", program, source], check=True)
        script = self.write("script", f"#! {program} -x\n".encode())
        self.check(self.run_tapeswap(script), 125, "statically linked")

    def test_foreign_program(self):
        ident = b"\x7fELF" + bytes([1, 1, 1]) + bytes(9)
        program = self.write("foreign", ident + struct.pack("<HH", 2, 3))
        self.check(self.run_tapeswap(program), 125, "another architecture")

    @unittest.skipIf(os.getuid() != 0, "only root can give files away")
    def test_setuid_program(self):
        program = shutil.copy(shutil.which("env"), self.path("privileged"))
        os.chown(program, 65534, 65534)
        os.chmod(program, 0o4755)
        self.check(self.run_tapeswap(program), 125, "setuid")

    def test_help(self):
        done = self.run_tapeswap("--help")
        self.check(done, 0)
        for word in "--limit", "--sim", "exit status", "125":
            self.assertIn(word, done.stdout)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
