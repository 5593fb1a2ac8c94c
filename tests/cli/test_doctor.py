#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""`tapeswap doctor`: each thing it can find out, and its exit status.

Usage: test_doctor.py TAPESWAP NO_LIBRARY [SIMGPU_FOLDER OLDER_DRIVER];
without the folder the cases that need a driver are left out.
"""

import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

TAPESWAP, NO_LIBRARY = sys.argv[1:3]
SIMGPU, OLDER = sys.argv[3:5] if len(sys.argv) > 3 else (None, None)
PACKERS = "libzstd.so.1", "liblz4.so.1"


class Doctor(unittest.TestCase):
    def run_doctor(self, *arguments, sim=False, **environment):
        clean = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith(
                ("TAPESWAP_", "LD_", "SIMGPU_", "PYTORCH_", "CUDA_", "NCCL_")
            )
        }
        if sim:
            clean.update(LD_LIBRARY_PATH=SIMGPU, SIMGPU_DEVICE="tiny-1g")
        return subprocess.run(
            [TAPESWAP, "doctor", *arguments],
            env={**clean, **environment},
            capture_output=True,
            text=True,
            timeout=60,
        )

    def findings(self, **environment):
        done = self.run_doctor("--json", **environment)
        root = json.loads(done.stdout)
        self.assertEqual(done.returncode, 0 if root["can_work"] else 1)
        return root["can_work"], {
            item["subject"]: item for item in root["findings"]
        }

    def test_bad_setting(self):
        can_work, found = self.findings(TAPESWAP_LIMIT="12GB x")
        self.assertFalse(can_work)
        self.assertEqual(found["setting"]["verdict"], "refused")
        self.assertIn("TAPESWAP_LIMIT", found["setting"]["detail"])

    def test_setting_shows_its_origin(self):
        _, found = self.findings(TAPESWAP_LIMIT="12GiB")
        self.assertEqual(
            found["setting"]["detail"], "TAPESWAP_LIMIT=12GiB (environment)"
        )

    def test_allocators(self):
        for value, verdict in (
            ("max_split_size_mb:64", "supported"),
            ("expandable_segments:True", "supported"),
            ("backend:cudaMallocAsync", "passed through"),
        ):
            _, found = self.findings(PYTORCH_CUDA_ALLOC_CONF=value)
            self.assertEqual(found["allocator"]["verdict"], verdict, value)

    def test_addresses_and_processes(self):
        _, found = self.findings()
        self.assertEqual(found["addresses in memory"]["verdict"], "supported")
        self.assertIn("tensor maps", found["addresses in memory"]["detail"])
        self.assertEqual(
            found["several processes"]["verdict"], "passed through"
        )

    def test_ipc(self):
        _, found = self.findings()
        self.assertEqual(found["IPC"]["verdict"], "refused")
        _, found = self.findings(TAPESWAP_IPC="1")
        self.assertEqual(found["IPC"]["verdict"], "passed through")

    def test_libraries(self):
        _, found = self.findings()
        self.assertEqual(found["NCCL"]["verdict"], "supported")
        self.assertEqual(found["CUPTI"]["verdict"], "passed through")
        self.assertEqual(
            found["pluggable allocators"]["verdict"], "passed through"
        )
        _, found = self.findings(
            NCCL_COMM_BLOCKING="0", TAPESWAP_TIMING="cupti"
        )
        self.assertEqual(found["NCCL"]["verdict"], "passed through")
        self.assertIn("NCCL_COMM_BLOCKING", found["NCCL"]["detail"])
        self.assertEqual(found["CUPTI"]["verdict"], "supported")

    def test_shared_devices(self):
        _, found = self.findings()
        self.assertNotIn("MIG", found)
        self.assertNotIn("MPS", found)
        _, found = self.findings(
            CUDA_VISIBLE_DEVICES="MIG-8a1f", CUDA_MPS_PIPE_DIRECTORY="/x"
        )
        self.assertEqual(found["MIG"]["verdict"], "supported")
        self.assertIn("% of TAPESWAP_LIMIT", found["MIG"]["detail"])
        self.assertEqual(found["MPS"]["verdict"], "passed through")

    def test_blocking_launches(self):
        _, found = self.findings(CUDA_LAUNCH_BLOCKING="1")
        self.assertEqual(found["launches"]["verdict"], "passed through")
        self.assertNotIn("launches", self.findings()[1])

    def test_python_without_torch(self):
        done = self.run_doctor("--python", "/nowhere/python")
        self.assertIn("not found by /nowhere/python", done.stdout)

    def test_usage(self):
        self.assertEqual(self.run_doctor("--what").returncode, 2)
        self.assertEqual(self.run_doctor("more").returncode, 2)

    def test_machine_without_a_driver(self):
        """What is found under the driver's name is no library."""
        with tempfile.TemporaryDirectory() as folder:
            pathlib.Path(folder, "libcuda.so.1").write_text("", "utf-8")
            can_work, found = self.findings(LD_LIBRARY_PATH=folder)
            done = self.run_doctor(LD_LIBRARY_PATH=folder)
            bad = self.run_doctor(LD_LIBRARY_PATH=folder, TAPESWAP_LIMIT="x")
            told = self.run_doctor("--json", LD_LIBRARY_PATH=folder)
        self.assertFalse(can_work)
        self.assertEqual(found["driver"]["verdict"], "refused")
        # Everything else is still told.
        for subject in "PyTorch", "allocator", "CUDA graphs", "IPC":
            self.assertTrue(found[subject]["detail"], subject)
        self.assertEqual(done.returncode, 1)
        # The simulated GPU does not want one, where it is there.
        self.assertIs(json.loads(told.stdout)["can_simulate"], bool(SIMGPU))
        self.assertEqual(
            done.stdout.splitlines()[-1],
            "tapeswap cannot work on a GPU here; on the simulated one it can: "
            "tapeswap run --sim a100-80g-pcie4 -- PROGRAM"
            if SIMGPU else "tapeswap cannot work here",
        )
        self.assertEqual(
            bad.stdout.splitlines()[-1], "tapeswap cannot work here"
        )

    def test_every_finding_says_why(self):
        done = self.run_doctor("--json")
        root = json.loads(done.stdout)
        for key in "schema", "schema_version", "tool_version":
            self.assertTrue(root[key], key)
        for item in root["findings"]:
            self.assertIn(
                item["verdict"], ("supported", "passed through", "refused")
            )
            self.assertTrue(item["detail"], item)

    @unittest.skipUnless(SIMGPU, "no simulated GPU")
    def test_driver(self):
        can_work, found = self.findings(sim=True)
        self.assertTrue(can_work, found)
        self.assertEqual(found["driver"]["verdict"], "supported")
        self.assertIn("1.00 GiB", found["device 0"]["detail"])
        self.assertEqual(found["library"]["verdict"], "supported")

    @unittest.skipUnless(SIMGPU, "no simulated GPU")
    def test_driver_that_tells_no_layouts(self):
        """The code that is read instead is packed by these libraries."""
        folder = self.enterContext(tempfile.TemporaryDirectory())
        for path in pathlib.Path(SIMGPU).iterdir():
            target = OLDER if path.name == "libcuda.so.1" else path
            pathlib.Path(folder, path.name).symlink_to(
                pathlib.Path(target).resolve()
            )
        for missing in (), PACKERS[:1], PACKERS[1:], PACKERS:
            _, found = self.findings(
                LD_LIBRARY_PATH=folder, SIMGPU_DEVICE="tiny-1g",
                LD_PRELOAD=NO_LIBRARY, NO_LIBRARY=" ".join(missing),
            )
            said = found["kernel parameters"]
            self.assertEqual(
                said["verdict"], "passed through" if missing else "supported"
            )
            for library in PACKERS:
                self.assertEqual(library in said["detail"], library in missing)
            self.assertEqual(bool(said["remedy"]), bool(missing))
        self.assertNotIn("kernel parameters", self.findings(sim=True)[1])

    @unittest.skipUnless(SIMGPU, "no simulated GPU")
    def test_page(self):
        done = self.run_doctor(sim=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(
            done.stdout.splitlines()[-1], "tapeswap can work here"
        )
        self.assertEqual(done.stderr, "")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
