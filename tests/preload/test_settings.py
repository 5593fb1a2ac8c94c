#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Bad values of every setting: one clear line, and the program runs.

Usage: test_settings.py LIBRARY HOST SIMGPU TAPESWAP [TEST...]
"""

import fcntl
import json
import os
import pathlib
import re
import resource
import stat
import subprocess
import sys
import tempfile
import unittest

import preloaded

LIBRARY, HOST, SIMGPU, TAPESWAP = preloaded.arguments(4)
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
        ["12GB x", "0.5GB", "0.5TB", "0.5G", "50MB", "0.02gib", "0.005KB", "2TiB",
         "0.5", "0.0001KB", "101%", "0%", "-5%", "1e3", "much", "0", "0x10", "1 GiB x",
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
# What is said beside that, of some of them.
WHY = {
    "12GB": "did you mean 11.17GiB? ",
    "0.5GB": "did you mean 0.46GiB? ",
    "0.5TB": "did you mean 465.66GiB? ",
    "0.5G": "did you mean 0.50GiB? ",
    "50MB": "did you mean 47.68MiB? ",
    "0.02gib": "did you mean 20.48MiB? ",
    "0.005KB": "did you mean 5? ",
    "2TiB": "did you mean 2048GiB? ",
    "0.5": "bytes are whole: ",
    "0.0001KB": "bytes are whole: ",
    "-1": "less than nothing: ",
    "-5%": "less than nothing: ",
    "0": "that is none: ",
    "0%": "that is none: ",
    "101%": "more than the device has: ",
    "99999999999999999999": "more than there can be: ",
    "9999999999999GiB": "more than there can be: ",
}


def how(command, settings):
    return {
        "args": [HOST, command],
        "env": preloaded.environment(LIBRARY, SIMGPU, **settings),
        "text": True,
    }


def run(command="steps", **settings):
    return subprocess.run(
        **how(command, settings), capture_output=True, timeout=60
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
                    why = WHY.get(value, "")
                    self.assertIn(f'{value[:200]}": {why}want', lines[0])

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
                            f'{variable}="{path}" cannot be written: {reason}',
                        )
                        # Once, and nobody is sent there.
                        self.assertEqual(len(lines), 2, lines)
                        self.assertTrue(lines[1].startswith("ok: "), lines)
                        self.assertNotIn(path, lines[1])
            # Nothing half made is left behind.
            self.assertEqual(os.listdir(folder), [])

    def test_a_file_for_each(self):
        """One file for two settings: whoever writes last would have it."""
        with tempfile.TemporaryDirectory() as folder:
            path = f"{folder}/%p.json"
            lines = self.lines(
                run(TAPESWAP_PLAN=path, TAPESWAP_STATUS=path)
            )
            self.assertEqual(
                lines,
                [
                    f'off: TAPESWAP_STATUS="{path}": TAPESWAP_PLAN names '
                    "that file too: want another"
                ],
            )
            self.assertEqual(os.listdir(folder), [])
        # What is no file takes all.
        lines = self.lines(
            run(TAPESWAP_PLAN="/dev/null", TAPESWAP_STATUS="/dev/null")
        )
        self.assertFalse(any("names that" in line for line in lines), lines)

    def test_told_before_the_program_works(self):
        """It is not over then: of a file there is one line, not two."""
        done = run("init", TAPESWAP_STATUS="/no/such/x.json")
        self.assertIn(
            'TAPESWAP_STATUS="/no/such/x.json" cannot be written: No such',
            done.stderr,
        )

    def test_what_is_no_plan_is_named_at_once(self):
        """With the first call already; it stays, and the program goes on."""
        plan = '{"schema": "tapeswap-plan", "schema_version": "1.0"'
        broken = {
            '{"schema": "tapeswap-pl': "it is cut off, or no JSON",
            plan + ', "tape": "12", "decisions": [{"a": 1}': "it is cut off",
            "print(1)\n": "it is no JSON object",
            "[1, 2]": "it is no JSON object",
            '{"a": 1}': "it names no schema",
            '{"schema": "tapeswap-profile", "schema_version": "1.0"}':
                'its schema is "tapeswap-profile"',
            plan.replace("1.0", "2.0") + "}":
                'its schema_version is "2.0", and 1 is read',
            plan.replace("1.0", "10") + ', "tape": "1"}':
                'its schema_version is "10", and 1 is read',
        }
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder, "plan.json")
            for content, why in broken.items():
                with self.subTest(content):
                    path.write_text(content, encoding="utf-8")
                    done = run("init", TAPESWAP_PLAN=str(path))
                    self.assertEqual(done.stdout, "cuInit 0\n")
                    said = done.stderr.splitlines()
                    self.assertEqual(len(said), 1, said)
                    self.assertIn(
                        f'TAPESWAP_PLAN="{path}" holds no plan: {why}',
                        said[0],
                    )
                    self.assertTrue(
                        said[0].endswith(f"written to {path}.new"), said
                    )
                    done = run(
                        "init", TAPESWAP_PLAN=str(path), TAPESWAP_STRICT="1"
                    )
                    self.assertEqual(done.stdout, "cuInit 1\n")
                    self.assertEqual(len(done.stderr.splitlines()), 1)
                    self.assertIn(
                        f'CUDA refused: TAPESWAP_PLAN="{path}" holds no '
                        f"plan: {why}",
                        done.stderr,
                    )
                    self.assertEqual(path.read_text("utf-8"), content)
            self.assertEqual(os.listdir(folder), ["plan.json"])
            # One as runs write it, and an empty file, are none of these.
            for content in plan + ', "tape": "12"}', "":
                path.write_text(content, encoding="utf-8")
                done = run("init", TAPESWAP_PLAN=str(path))
                self.assertEqual((done.stdout, done.stderr), ("cuInit 0\n", ""))

    def test_plan_that_cannot_be_read(self):
        if os.geteuid():
            self.skipTest("only root can take another's rights")
        with tempfile.TemporaryDirectory() as folder:
            os.chmod(folder, 0o777)
            path = pathlib.Path(folder, "plan.json")
            path.write_text("{}", encoding="utf-8")
            path.chmod(0)
            try:
                done = subprocess.run(
                    **how("init", {"TAPESWAP_PLAN": str(path)}),
                    capture_output=True, timeout=60, user=65534, group=65534,
                    extra_groups=[],
                )
            except PermissionError:
                self.skipTest("others cannot read the build folder")
        if "cannot open shared object" in done.stderr:
            self.skipTest("others cannot read the build folder")
        self.assertEqual(done.stdout, "cuInit 0\n")
        self.assertIn("cannot be read: Permission denied", done.stderr)

    def test_place_of_a_plan_is_named_at_once(self):
        with tempfile.TemporaryDirectory() as folder:
            for path, why in (
                ("/no/such/x.json", "No such file or directory"),
                (folder, "Is a directory"),
            ):
                done = run("init", TAPESWAP_PLAN=path)
                self.assertEqual(done.stdout, "cuInit 0\n")
                said = done.stderr.splitlines()
                self.assertEqual(len(said), 1, said)
                self.assertTrue(said[0].endswith(
                    f'TAPESWAP_PLAN="{path}" cannot be written: {why}'
                ), said)

    def test_pipe_is_no_plan_to_read(self):
        """Nobody writes to it: a program that opened it would wait."""
        with tempfile.TemporaryDirectory() as folder:
            pipe = f"{folder}/pipe"
            os.mkfifo(pipe)
            self.lines(run(TAPESWAP_PLAN=pipe))

    def test_what_mode_cap_left_makes_way(self):
        with tempfile.TemporaryDirectory() as folder:
            path = f"{folder}/x.json"
            self.lines(run(TAPESWAP_MODE="cap", TAPESWAP_PLAN=path))
            said = self.lines(run(TAPESWAP_PLAN=path))
            self.assertEqual(
                said[0],
                f"plan: {path} holds what a run in mode cap did: one is "
                "made, and written there",
            )
            self.assertNotIn(".new", "".join(said))

    def test_closed_standard_error(self):
        """What the program opens in its place is the program's alone."""
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder, "data")
            done = subprocess.run(
                ["sh", "-c", 'exec 2>&-; exec "$0" open "$1"', HOST, path],
                env=how("", {})["env"], text=True, stdout=subprocess.PIPE,
                timeout=60,
            )
            self.assertEqual((done.returncode, done.stdout), (0, "done\n"))
            self.assertEqual(path.read_text("utf-8"), "2\n")

    def test_nobody_reads_standard_error(self):
        """A line that nobody reads ends no program."""
        reader, writer = os.pipe()
        os.close(reader)
        done = subprocess.run(
            **how("steps", {}), stdout=subprocess.PIPE, stderr=writer,
            timeout=60,
        )
        os.close(writer)
        self.assertEqual((done.returncode, done.stdout), (0, "done\n"))

    def test_files_that_may_not_grow(self):
        """That a file of tapeswap's has no room ends no program."""
        with tempfile.TemporaryDirectory() as folder:
            path = f"{folder}/x.json"
            for name, mode in (
                ("PROFILE", "observe"), ("STATUS", "cap"), ("PLAN", "cap"),
            ):
                settings = {"TAPESWAP_MODE": mode, f"TAPESWAP_{name}": path}
                done = subprocess.run(
                    **how("steps", settings), capture_output=True, timeout=60,
                    preexec_fn=lambda: resource.setrlimit(
                        resource.RLIMIT_FSIZE, (0, 0)
                    ),
                )
                self.assertIn(
                    f'TAPESWAP_{name}="{path}" cannot be written: File too '
                    "large\n",
                    "\n".join(self.lines(done)) + "\n",
                )
            # Standard error as well.
            with open(f"{folder}/log", "w", encoding="utf-8") as log:
                done = subprocess.run(
                    **how("steps", {}), stdout=subprocess.PIPE, stderr=log,
                    timeout=60,
                    preexec_fn=lambda: resource.setrlimit(
                        resource.RLIMIT_FSIZE, (0, 0)
                    ),
                )
            self.assertEqual((done.returncode, done.stdout), (0, "done\n"))

    def test_files_of_others_stay(self):
        """What no run wrote for that setting is not written over."""
        others = {
            "script.py": "print(1)\n",
            "other.json": '{"schema": "other", "a": 1}\n',
            "list.json": "[1, 2]\n",
            "inner.json": '{"a": {"schema": "status", "tape": 1}, '
            '"b": "schema", "c": "tape"}',
            "half.json": '{"schema": "status", ',
            "own.json": '{"schema": "tapeswap-plan", "decisions": []}',
        }
        kinds = (
            ("PROFILE", "observe"), ("STATUS", "cap"), ("STATUS", "plan"),
            ("PLAN", "cap"), ("PLAN", "observe"),
        )
        with tempfile.TemporaryDirectory() as folder:
            for name, mode in kinds:
                for other, content in others.items():
                    path = pathlib.Path(folder, other)
                    path.write_text(content, encoding="utf-8")
                    with self.subTest(setting=name, mode=mode, file=other):
                        variable = f"TAPESWAP_{name}"
                        lines = self.lines(run(
                            TAPESWAP_MODE=mode, **{variable: str(path)}
                        ))
                        self.assertEqual(
                            lines[0],
                            f'{variable}="{path}" is not a file that a run '
                            "of tapeswap wrote: it stays, and none is "
                            "written",
                        )
                        self.assertEqual(len(lines), 2, lines)
                        self.assertTrue(lines[1].startswith("ok: "), lines)
                        self.assertNotIn(str(path), lines[1])
                        self.assertEqual(
                            path.read_text(encoding="utf-8"), content
                        )
            self.assertEqual(sorted(os.listdir(folder)), sorted(others))

    def test_files_of_runs_are_written_again(self):
        for name, mode in (
            ("PROFILE", "observe"), ("STATUS", "cap"), ("PLAN", "cap"),
        ):
            with tempfile.TemporaryDirectory() as folder:
                path = pathlib.Path(folder, "x.json")
                path.write_text("", encoding="utf-8")
                pids = set()
                for _ in range(2):
                    lines = self.lines(run(
                        TAPESWAP_MODE=mode, **{f"TAPESWAP_{name}": str(path)}
                    ))
                    self.assertEqual(len(lines), 1, lines)
                    said = path.read_text(encoding="utf-8")
                    pids.add(json.loads(said)["pid"])
                self.assertEqual(len(pids), 2)

    def test_what_is_no_file_is_written_to_itself(self):
        self.lines(run(TAPESWAP_MODE="cap", TAPESWAP_STATUS="/dev/null"))
        self.assertTrue(stat.S_ISCHR(os.stat("/dev/null").st_mode))
        with tempfile.TemporaryDirectory() as folder:
            pipe = f"{folder}/pipe"
            os.mkfifo(pipe)
            # Nobody reads: not something to wait for.
            lines = self.lines(
                run(TAPESWAP_MODE="cap", TAPESWAP_STATUS=pipe)
            )
            self.assertIn("No such device or address", lines[0])

    def test_links_stay(self):
        """What is open is written as it is, what is a file is replaced."""
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            (folder / "beside").mkdir()
            links = {
                "open": "/proc/self/fd/2", "device": "/dev/stderr",
                "file": "beside/x.json", "chain": "file",
            }
            for link, target in links.items():
                (folder / link).symlink_to(target)
            for link, target in links.items():
                with self.subTest(link=link):
                    with open(folder / "log", "w", encoding="utf-8") as log:
                        log.write("before\n")
                        log.flush()
                        done = subprocess.run(
                            **how("steps", {
                                "TAPESWAP_MODE": "cap",
                                "TAPESWAP_STATUS": str(folder / link),
                            }),
                            stdout=subprocess.PIPE, stderr=log, timeout=60,
                        )
                    self.assertEqual(done.stdout, "done\n")
                    self.assertEqual(os.readlink(folder / link), target)
                    said = (folder / "log").read_text(encoding="utf-8")
                    self.assertTrue(said.startswith("before\n"), said)
                    self.assertRegex(said, r"tapeswap\[\d+\]: ok: ")
                    self.assertNotIn("cannot", said)
                    if target.startswith("/"):
                        self.assertIn('"schema": "status"', said)
                        continue
                    self.assertNotIn("schema", said)
                    file = folder / "beside/x.json"
                    status = json.loads(file.read_text(encoding="utf-8"))
                    self.assertEqual(status["schema"], "status")
                    file.unlink()
            self.assertEqual(
                sorted(os.listdir(folder)), sorted([*links, "beside", "log"])
            )

    def test_a_pipe_may_be_read_slowly(self):
        with tempfile.TemporaryDirectory() as folder:
            pipe = f"{folder}/pipe"
            os.mkfifo(pipe)
            reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
            self.addCleanup(os.close, reader)
            size = fcntl.fcntl(reader, fcntl.F_SETPIPE_SZ, 4096)
            pathlib.Path(pipe).write_text(" " * (size - 1), encoding="utf-8")
            with subprocess.Popen(
                **how("steps", {
                    "TAPESWAP_MODE": "cap", "TAPESWAP_STATUS": pipe,
                }),
                stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            ) as program:
                self.addCleanup(program.kill)
                # The pipe is full, and nobody has read of it.
                with self.assertRaises(subprocess.TimeoutExpired):
                    program.wait(2)
                os.set_blocking(reader, True)
                with open(reader, encoding="utf-8", closefd=False) as file:
                    said = file.read()
                _, told = program.communicate(timeout=60)
            self.assertEqual(program.returncode, 0)
            self.assertNotIn("cannot", told)
            # Once at the end, and whenever it is written meanwhile.
            said = said.strip()
            self.assertTrue(said)
            while said:
                status, end = json.JSONDecoder().raw_decode(said)
                self.assertEqual(status["schema"], "status")
                said = said[end:].lstrip()

    def test_looking_at_a_large_file_takes_no_memory(self):
        most = {}
        with tempfile.TemporaryDirectory() as folder:
            for name, mode, schema in (
                ("PROFILE", "observe", "tapeswap-profile"),
                ("STATUS", "cap", "status"), ("PLAN", "cap", "tapeswap-plan"),
            ):
                for count in 1, 8 << 20:
                    path = pathlib.Path(folder, f"{name}{count}")
                    path.write_text(
                        f'{{"schema": "{schema}", "list": [0{",0" * count}], '
                        '"tape": "1"}\n',
                        encoding="utf-8",
                    )
                    with subprocess.Popen(
                        **how("init", {
                            "TAPESWAP_MODE": mode,
                            f"TAPESWAP_{name}": str(path),
                        }),
                        stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                    ) as program:
                        said = program.stdout.read()
                        _, program.returncode, usage = os.wait4(
                            program.pid, 0
                        )
                    self.assertEqual(said, "cuInit 0\n")
                    most[count] = usage.ru_maxrss
                self.assertLess(most[8 << 20], most[1] + (64 << 10), name)

    def test_limit_below_the_context(self):
        for limit, text in ("1KiB", "1.0 KiB"), ("12", "12 bytes"):
            done = run(TAPESWAP_MODE="cap", TAPESWAP_LIMIT=limit)
            said = [
                line for line in done.stderr.splitlines()
                if "leaves no room" in line
            ]
            self.assertEqual(len(said), 1, done.stderr)
            self.assertRegex(
                said[0],
                rf"the limit, {text}, leaves no room: \d+\.\d MiB are in use",
            )
            self.assertNotIn("0.0 MiB", done.stderr)


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[5:]])
