#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""The library preloaded into small programs, most of them without CUDA.

Usage: test_preload.py LIBRARY HOST NEXT_MALLOC SIMGPU ENGINE SLOW_START
    NEXT_DLSYM SECURE NO_PEEK [TEST...]
"""

import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

import preloaded

ARGUMENTS = preloaded.arguments(9)
LIBRARY, HOST, NEXT_MALLOC, SIMGPU, ENGINE = ARGUMENTS[:5]
SLOW_START, NEXT_DLSYM, SECURE, NO_PEEK = ARGUMENTS[5:]

ROOT = pathlib.Path(__file__).resolve().parents[2]


def run(*command, preload=LIBRARY, **settings):
    return preloaded.run(command, preload, SIMGPU, **settings)


class Preload(unittest.TestCase):
    def quiet(self, done, out=""):
        self.assertEqual(
            (done.returncode, done.stdout, done.stderr), (0, out, "")
        )

    def lines(self, done):
        return [l for l in done.stderr.splitlines() if "tapeswap" in l]

    def one_line(self, done, *words):
        lines = self.lines(done)
        self.assertEqual(len(lines), 1, done.stderr)
        self.assertRegex(lines[0], r"^tapeswap\[\d+\]: ")
        for word in words:
            self.assertIn(word, lines[0])
        self.assertEqual(self.lines(done), done.stderr.splitlines())

    def test_programs_without_cuda_hear_nothing(self):
        self.quiet(run("/bin/true"))
        self.quiet(run("bash", "-c", "echo a | cat; echo b"), "a\nb\n")
        self.quiet(run(sys.executable, "-c", "import ctypes; print(1)"), "1\n")

    def test_bad_settings_are_no_matter_without_cuda(self):
        self.quiet(run("/bin/true", TAPESWAP_LIMIT="x", TAPESWAP_STRICT="1"))

    def test_no_thread_and_no_file_without_cuda(self):
        with tempfile.TemporaryDirectory() as folder:
            done = run(
                "bash",
                "-c",
                "ls /proc/self/task | wc -l",
                TAPESWAP_PLAN=f"{folder}/plan.json",
                TAPESWAP_STATUS=f"{folder}/status.json",
            )
            self.quiet(done, "1\n")
            self.assertEqual(os.listdir(folder), [])

    def test_look_ups_of_other_programs(self):
        self.quiet(run(HOST, "look-ups"))

    def test_beside_another_preloaded_library(self):
        for both in f"{NEXT_MALLOC}:{LIBRARY}", f"{LIBRARY}:{NEXT_MALLOC}":
            self.quiet(run(HOST, "look-ups", preload=both))
            done = run(HOST, "work", preload=both, TAPESWAP_LOG="error")
            self.quiet(done, "done\n")

    def test_beside_another_hook_of_dlsym(self):
        for both in f"{NEXT_DLSYM}:{LIBRARY}", f"{LIBRARY}:{NEXT_DLSYM}":
            with self.subTest(preload=both):
                done = run(HOST, "work", preload=both)
                self.assertEqual((done.returncode, done.stdout), (0, "done\n"))
                self.one_line(done, "ok: device 0 peak")
                done = run(HOST, "roads", preload=both)
                self.assertEqual(
                    (done.returncode, done.stdout.count("libtapeswap.so")),
                    (0, 2), done.stdout,
                )
                self.quiet(run("/bin/true", preload=both))

    def test_program_with_more_rights_than_its_caller(self):
        with tempfile.TemporaryDirectory() as folder:
            done = run(
                HOST,
                "work",
                preload=f"{SECURE}:{LIBRARY}",
                TAPESWAP_LIMIT="much",
                TAPESWAP_STRICT="1",
                TAPESWAP_PLAN=f"{folder}/plan.json",
                TAPESWAP_PROFILE=f"{folder}/profile.json",
                TAPESWAP_STATUS=f"{folder}/status.json",
            )
            self.quiet(done, "done\n")
            self.assertEqual(os.listdir(folder), [])

    def test_exit_while_threads_launch(self):
        for _ in range(5):
            done = run(HOST, "exit-busy", TAPESWAP_LIMIT="80MiB")
            self.assertEqual((done.returncode, done.stdout), (0, "done\n"))
            self.one_line(done, "device 0 peak")

    def test_workers_and_programs_of_python(self):
        script = (
            "import multiprocessing, subprocess, sys\n"
            "def square(n): return n * n\n"
            "if __name__ == '__main__':\n"
            "    for way in 'fork', 'spawn', 'forkserver':\n"
            "        with multiprocessing.get_context(way).Pool(2) as pool:\n"
            "            print(sum(pool.map(square, range(10))))\n"
            "    subprocess.run(['sh', '-c', 'echo $((6 * 7))'], check=True)\n"
        )
        with tempfile.TemporaryDirectory() as folder:
            file = pathlib.Path(folder, "workers.py")
            file.write_text(script, "utf-8")
            done = run(
                sys.executable, "-u", str(file),
                TAPESWAP_STATUS=f"{folder}/status.json",
            )
            self.quiet(done, "285\n" * 3 + "42\n")
            self.assertEqual(os.listdir(folder), ["workers.py"])

    def test_nothing_differs_where_cuda_is_not_used(self):
        python = sys.executable
        spawn = (
            "import os; p = os.posix_spawn('/bin/echo', ['echo', 'a'], "
            "os.environ); print(os.waitpid(p, 0)[1])"
        )
        fork = (
            "import os\np = os.fork()\nif not p: os.execv('/bin/echo', "
            "['echo', 'a'])\nprint(os.waitpid(p, 0)[1])"
        )
        for command in (
            [python, "-X", "faulthandler", "-c", "print(1)"],
            [python, "-X", "dev", "-c", "print(1)"],
            [python, "-c", spawn], [python, "-c", fork],
            ["bash", "-c", "ulimit -v 60000; echo a; ls /nowhere"],
            ["bash", "-c", "exec 2>&-; echo a; ls /nowhere; echo $?"],
            ["bash", "-c", "exec 0>&- 1>&-; echo a"],
            ["bash", "-c", "ulimit -n 4; exec cat /proc/self/comm"],
            ["bash", "-c", "cd /proc; echo $HOME; ls self/fd | wc -l"],
            ["bash", "-c", "grep -c . /proc/self/status; kill -TERM $$"],
        ):
            with self.subTest(command):
                done = [
                    run(*command, preload=library)
                    for library in ("", LIBRARY)
                ]
                self.assertEqual(
                    *((d.returncode, d.stdout, d.stderr) for d in done)
                )

    def test_little_of_everything(self):
        """A program ends as it would alone, whatever it may not have."""
        for limits in (
            "ulimit -n 4", "ulimit -s 64", "ulimit -l 0", "ulimit -f 0",
            "exec 0<&-", "exec 1>&-", "cd /proc",
            "mkdir gone && cd gone && rmdir ../gone",
        ):
            with self.subTest(limits), tempfile.TemporaryDirectory() as folder:
                done = [
                    run(
                        "bash", "-c",
                        f'{limits}; LD_PRELOAD=$1 exec "$0" pressure', HOST,
                        library, preload="", cwd=folder,
                        TAPESWAP_LIMIT="76MiB", TAPESWAP_STATUS="status.json",
                    )
                    for library in ("", LIBRARY)
                ]
                self.assertEqual(*((d.returncode, d.stdout) for d in done))
                self.assertIn("76.0 MiB of 76.0 MiB", done[1].stderr)

    def test_roads_lead_to_the_wrappers(self):
        done = run(HOST, "roads")
        self.assertEqual(done.returncode, 0, done.stdout)
        self.assertEqual(
            done.stdout,
            "dlsym libtapeswap.so\ncuGetProcAddress libtapeswap.so\n",
        )

    def test_calls_of_a_library_to_itself_arrive(self):
        self.quiet(run(HOST, "engine", ENGINE), "3\n")

    def test_look_ups_while_the_loader_is_busy(self):
        for preload in "", LIBRARY:
            done = run(
                HOST,
                "loader",
                SLOW_START,
                preload=preload + f":{SIMGPU}/libcuda.so.1",
                TAPESWAP_LOG="error",
            )
            self.quiet(done, "done\n")

    def test_driver_that_is_not_there_is_not_found(self):
        self.quiet(run(HOST, "absent"))

    def test_work_and_exit_line(self):
        done = run(HOST, "work")
        self.assertEqual((done.returncode, done.stdout), (0, "done\n"))
        self.one_line(done, "ok: device 0 peak", "nothing moved")

    def test_work_on_four_threads(self):
        done = run(HOST, "threads")
        self.assertEqual((done.returncode, done.stdout), (0, "done\n" * 4))
        self.one_line(done, "ok: ")

    def test_child_says_nothing(self):
        self.one_line(run(HOST, "fork"), "ok: ")

    def test_mode_off_is_quiet(self):
        self.quiet(run(HOST, "work", TAPESWAP_MODE="off"), "done\n")

    def test_mode_observe_leaves_memory_alone(self):
        done = run(HOST, "work", TAPESWAP_MODE="observe")
        self.assertEqual(done.stdout, "done\n")
        self.one_line(done, "4 ops seen, memory left alone")

    def test_profile_that_is_not_made_is_told_of(self):
        with tempfile.TemporaryDirectory() as folder:
            path = f"{folder}/profile.json"
            settings = {"TAPESWAP_MODE": "observe", "TAPESWAP_PROFILE": path}
            done = run(HOST, "work", **settings)
            self.assertEqual(done.stdout, "done\n")
            said = self.lines(done)
            self.assertEqual(len(said), 2, done.stderr)
            self.assertIn(
                f"profile: no step was timed: {path} is not written", said[0]
            )
            self.assertFalse(os.path.exists(path))
            self.assertRegex(said[1], "memory left alone$")

    def test_profile_that_has_no_room_is_told_of_once(self):
        """By its cause, and not as if no step had been timed."""
        done = run(
            HOST,
            "steps",
            TAPESWAP_MODE="observe",
            TAPESWAP_PROFILE="/dev/full",
        )
        self.assertEqual(done.stdout, "done\n")
        said = [line for line in self.lines(done) if "profile" in line.lower()]
        self.assertEqual(len(said), 1, said)
        self.assertRegex(
            said[0], '"/dev/full" cannot be written: No space left on device$'
        )

    def test_plan_that_is_not_made_is_told_of(self):
        with tempfile.TemporaryDirectory() as folder:
            done = run(HOST, "work", TAPESWAP_PLAN=f"{folder}/plan.json")
            said = self.lines(done)
            self.assertEqual(len(said), 2, done.stderr)
            self.assertRegex(
                said[0], f"plan: none was made.*: {folder}/plan.json is not"
            )
            self.assertEqual(os.listdir(folder), [])

    def test_what_is_no_plan_is_named_by_short_runs(self):
        with tempfile.TemporaryDirectory() as folder:
            path = f"{folder}/plan.json"
            content = '{"schema": "tapeswap-plan", "broken'
            with open(path, "w", encoding="utf-8") as file:
                file.write(content)
            said = self.lines(run(HOST, "work", TAPESWAP_PLAN=path))
            self.assertEqual(len(said), 3, said)
            self.assertIn(f'TAPESWAP_PLAN="{path}" holds no plan: ', said[0])
            self.assertRegex(
                said[1], f"plan: none was made.*: {path}.new is not written$"
            )
            with open(path, encoding="utf-8") as file:
                self.assertEqual(file.read(), content)

    def test_debug_lines_tell_the_settings(self):
        done = run(
            HOST, "work", TAPESWAP_LOG="debug", TAPESWAP_LIMIT="900MiB"
        )
        said = "\n".join(self.lines(done))
        self.assertIn('TAPESWAP_LIMIT="900MiB"', said)
        self.assertIn("device 0: limit 900.0 MiB of ", said)

    def test_bad_limit_is_one_line_and_the_program_runs(self):
        for value in "12GB x", "12GB", "much", "-1GiB", "0":
            done = run(HOST, "work", TAPESWAP_LIMIT=value)
            self.assertEqual((done.returncode, done.stdout), (0, "done\n"))
            self.one_line(done, f'off: TAPESWAP_LIMIT="{value}": ')
            self.one_line(done, "want bytes, KiB/MiB/GiB or %")

    def test_strict_refuses_cuda(self):
        done = run(
            HOST, "init", TAPESWAP_LIMIT="much", TAPESWAP_STRICT="1"
        )
        self.assertEqual(done.stdout, "cuInit 1\n")
        self.one_line(done, "CUDA refused: TAPESWAP_LIMIT")

    def test_unknown_setting_is_warned_of(self):
        done = run(HOST, "init", TAPESWAP_LIMITS="1GiB")
        self.assertEqual(done.stdout, "cuInit 0\n")
        self.one_line(done, "TAPESWAP_LIMITS: did you mean TAPESWAP_LIMIT?")

    def test_limit_too_small_for_an_op(self):
        done = run(HOST, "work", TAPESWAP_LIMIT="65MiB")
        self.assertEqual(done.stdout, "host: copies\n")
        need = re.search(r"Remedy: TAPESWAP_LIMIT=(\d+MiB)", done.stderr)
        self.assertTrue(need, done.stderr)
        self.assertIn("out of memory: MemcpyHtoD needs 2.0 MiB", done.stderr)
        # 64 MiB of context and a page.
        self.assertEqual(need[1], "66MiB")
        done = run(HOST, "work", TAPESWAP_LIMIT=need[1])
        self.assertEqual(done.stdout, "done\n")

    def test_sharing_with_processes_is_refused(self):
        done = run(HOST, "share")
        self.assertEqual(done.stdout, "cuIpcGetMemHandle 801\n")
        self.assertIn("TAPESWAP_IPC=1", done.stderr)

    def test_files_at_exit(self):
        with tempfile.TemporaryDirectory() as folder:
            done = run(
                HOST,
                "work",
                TAPESWAP_MODE="cap",
                TAPESWAP_PLAN=f"{folder}/plan-%p.json",
                TAPESWAP_STATUS=f"{folder}/status.json",
                SIMGPU_REPORT=f"{folder}/report.json",
            )
            plan = next(pathlib.Path(folder).glob("plan-*.json"))
            tape = json.loads(plan.read_text(encoding="utf-8"))
            self.assertIn(plan.name, done.stderr)
            names = [tape["names"][op["name"]] for op in tape["ops"]]
            self.assertEqual(
                names,
                ["MemcpyHtoD", "MemsetD8", "MemcpyDtoH", "MemcpyDtoH"],
            )
            self.assertFalse(tape["step"]["found"])
            self.assertEqual(
                [block["bytes"] for block in tape["blocks"]],
                [4 << 20, 100],
            )
            with open(f"{folder}/report.json", encoding="utf-8") as file:
                report = json.load(file)
            with open(f"{folder}/status.json", encoding="utf-8") as file:
                status = json.load(file)
            self.assertEqual(status["totals"]["copies"], report["copies"])
            self.assertEqual(status["totals"]["sets"], report["memsets"])
            self.assertEqual(
                status["devices"][0]["peak_bytes"],
                report["physical_peak_bytes"],
            )
            self.assertEqual(report["memory_errors"], 0)

    # 64 MiB of context, and four of the six buffers of 4 MiB.
    PRESSURE_LIMIT = 80 << 20

    def pressure(self, command="pressure", **settings):
        with tempfile.TemporaryDirectory() as folder:
            done = run(
                HOST,
                command,
                TAPESWAP_LIMIT=str(self.PRESSURE_LIMIT),
                TAPESWAP_MODE="cap",
                TAPESWAP_PLAN=f"{folder}/plan.json",
                TAPESWAP_STATUS=f"{folder}/status.json",
                SIMGPU_REPORT=f"{folder}/report.json",
                **settings,
            )
            self.valid(f"{folder}/plan.json", f"{folder}/status.json")
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
            with open(f"{folder}/report.json", encoding="utf-8") as file:
                report = json.load(file)
            with open(f"{folder}/status.json", encoding="utf-8") as file:
                status = json.load(file)
        self.assertEqual(report["memory_errors"], 0, done.stderr)
        self.assertLessEqual(
            report["physical_peak_bytes"], self.PRESSURE_LIMIT
        )
        return [int(n) for n in done.stdout.split()], report, status

    def valid(self, *files):
        """They hold to their schemas."""
        checker = ROOT / "scripts/check_schemas.py"
        done = subprocess.run(
            [sys.executable, checker, ROOT / "schemas", *files],
            capture_output=True,
            text=True,
        )
        self.assertEqual(done.stderr, "")
        for file in files:
            self.assertNotIn(file, done.stdout)

    def test_captured_graph_finds_its_memory(self):
        outcomes, _, status = self.pressure("graph")
        self.assertEqual(outcomes, [7, 0, 0])
        self.assertEqual(status["totals"]["captured"], 1)
        self.assertEqual(status["totals"]["graph_launches"], 1)
        self.assertEqual(status["totals"]["sets"], 5)
        self.assertEqual(status["devices"][0]["pinned_bytes"], 4 << 20)

    def test_capture_without_an_end_is_over_with_its_stream(self):
        outcomes, _, status = self.pressure("dropped-capture")
        self.assertEqual(outcomes, [13, 0, 0])
        self.assertEqual(status["totals"]["captured"], 0)

    def test_other_threads_go_on_beside_a_capture(self):
        outcomes, _, status = self.pressure("beside-capture")
        self.assertEqual(outcomes, [22, 0, 0])
        self.assertEqual(status["totals"]["captured"], 2)
        self.assertEqual(status["devices"][0]["pinned_bytes"], 4 << 20)
        self.assertGreater(status["devices"][0]["moved"]["out_bytes"], 0)

    def test_node_of_a_graph_keeps_its_memory(self):
        outcomes, _, status = self.pressure("node")
        self.assertEqual(outcomes, [5, 0, 0])
        self.assertEqual(status["devices"][0]["pinned_bytes"], 4 << 20)
        self.assertEqual(status["totals"]["sets"], 5)

    def test_more_than_the_limit_is_moved_in_and_out(self):
        outcomes, report, status = self.pressure()
        self.assertEqual(outcomes, [6 + 48 + 6, 0, 0])
        moved = status["devices"][0]["moved"]
        self.assertGreater(moved["out_bytes"], 0)
        self.assertEqual(moved["out_bytes"], report["bytes_d2h"])
        self.assertEqual(moved["in_bytes"], report["bytes_h2d"])
        self.assertEqual(status["totals"]["sets"], 24)
        self.assertEqual(status["totals"]["copies"], 24)

    def test_pool_of_pinned_memory_that_is_too_small(self):
        outcomes, _, status = self.pressure(TAPESWAP_HOST_LIMIT="4MiB")
        self.assertGreater(outcomes[1], 0)
        self.assertEqual(outcomes[2], 0)
        self.assertLessEqual(
            status["devices"][0]["host_pinned_bytes"], 4 << 20
        )

    def test_addresses_in_copies_pin_what_they_name(self):
        with tempfile.TemporaryDirectory() as folder:
            done = run(
                HOST,
                "escape",
                TAPESWAP_LIMIT=str(self.PRESSURE_LIMIT),
                TAPESWAP_STATUS=f"{folder}/status.json",
            )
            with open(f"{folder}/status.json", encoding="utf-8") as file:
                status = json.load(file)
        self.assertEqual(done.stdout, "4 0 0\n")
        self.assertEqual(status["devices"][0]["pinned_bytes"], 8 << 20)

    def test_pool_serves_from_what_it_has(self):
        outcomes, report, _ = self.pressure("pool")
        self.assertEqual(outcomes, [16, 1, 0])

    def test_questions_about_placed_memory(self):
        done = run(HOST, "questions", TAPESWAP_LOG="error")
        self.assertEqual((done.returncode, done.stdout), (0, "done\n"))

    def work_without(self, symbol):
        """On a driver that exports no such function."""
        with open(f"{SIMGPU}/libcuda.so.1", "rb") as file:
            driver = file.read()
        name = b"\0%s\0" % symbol
        self.assertIn(name, driver)
        with tempfile.TemporaryDirectory() as folder:
            with open(f"{folder}/libcuda.so.1", "wb") as file:
                file.write(driver.replace(name, name.swapcase()))
            done = run(HOST, "work", LD_LIBRARY_PATH=folder)
        self.assertEqual((done.returncode, done.stdout), (0, "done\n"))
        return done

    def test_driver_that_lacks_a_function_is_named(self):
        done = self.work_without(b"cuEventElapsedTime")
        self.one_line(done, "off: the driver has no cuEventElapsedTime")

    def test_driver_need_not_tell_parameters(self):
        """That comes with CUDA 12.4."""
        for symbol in b"cuFuncGetParamInfo", b"cuKernelGetParamInfo":
            self.one_line(self.work_without(symbol), "ok: device 0 peak")

    def times(self, command="steps", **settings):
        """Durations of the ops of a step, and what was said of it."""
        with tempfile.TemporaryDirectory() as folder:
            done = run(
                HOST,
                command,
                TAPESWAP_MODE="observe",
                TAPESWAP_LOG="warn",
                TAPESWAP_PROFILE=f"{folder}/profile.json",
                **settings,
            )
            self.assertEqual(
                (done.returncode, done.stdout), (0, "done\n"), done.stderr
            )
            profile = json.loads(
                pathlib.Path(folder, "profile.json").read_text("utf-8")
            )
        self.assertGreaterEqual(profile["run"]["timed_steps"], 2)
        self.assertGreater(profile["run"]["step_ns"], 0)
        return [op["duration_ns"] for op in profile["ops"]], done

    def test_times_by_events_and_by_cupti(self):
        events, done = self.times()
        self.assertEqual(done.stderr, "")
        records, done = self.times(TAPESWAP_TIMING="cupti")
        self.assertEqual(done.stderr, "")
        self.assertEqual(len(events), len(records))
        # 0.5 to 2 MiB are set, 1 MiB is copied, in steps that may begin
        # with any op. An event costs time itself, a record does not.
        self.assertGreaterEqual(len(set(records)), 4)
        for event, record in zip(sorted(events), sorted(records)):
            self.assertGreater(record, 0)
            self.assertLessEqual(record, event)
            self.assertLess(event - record, 8000)

    def test_cupti_that_another_tool_has(self):
        events, _ = self.times()
        times, done = self.times(
            TAPESWAP_TIMING="cupti", SIMGPU_CUPTI="taken"
        )
        self.one_line(done, "another tool uses CUPTI", "pairs of events")
        self.assertEqual(sorted(times), sorted(events))

    def test_cupti_that_is_not_there(self):
        with tempfile.TemporaryDirectory() as folder:
            os.symlink(f"{SIMGPU}/libcuda.so.1", f"{folder}/libcuda.so.1")
            # Nor may the machine's own be found.
            for end in ".so", ".so.12", ".so.13":
                pathlib.Path(folder, f"libcupti{end}").write_text("", "utf-8")
            _, done = self.times(
                TAPESWAP_TIMING="cupti", LD_LIBRARY_PATH=folder
            )
        self.one_line(done, "there is no CUPTI", "pairs of events")

    def test_cupti_that_the_program_wants_itself(self):
        _, done = self.times("steps-profiled", TAPESWAP_TIMING="cupti")
        self.one_line(done, "the program uses CUPTI", "from now on")

    def test_device_address_as_a_source_in_host_memory(self):
        plain = run(HOST, "misuse", TAPESWAP_MODE="off")
        done = run(HOST, "misuse")
        self.assertEqual(
            (done.returncode, done.stdout), (plain.returncode, plain.stdout)
        )

    def test_device_address_as_a_source_where_reading_is_not_allowed(self):
        done = run(NO_PEEK, TAPESWAP_LIMIT="200MiB")
        self.assertEqual((done.returncode, done.stdout), (0, "done\n"))

    def test_file_that_cannot_be_written_is_named(self):
        done = run(HOST, "work", TAPESWAP_STATUS="/no/such/folder/x.json")
        self.assertEqual((done.returncode, done.stdout), (0, "done\n"))
        self.assertIn(
            'TAPESWAP_STATUS="/no/such/folder/x.json" cannot be written',
            done.stderr,
        )


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[10:]])
