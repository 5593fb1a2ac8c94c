#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Static page assignment of the recorded profiles: on average chunks within
1 % of the most pages that are alive at once, and pages that are mapped anew.

Usage: test_pages.py TAPESWAP FOLDER
"""

import gzip
import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

TAPESWAP, FOLDER = sys.argv[1], pathlib.Path(sys.argv[2])
LIMITS = (70, 50, 30, 20)
# Where stays over the cut leave no other way a single one may take more.
MOST, MEAN = 0.05, 0.01


def pages(path, limit):
    done = subprocess.run(
        [TAPESWAP, "plan", path, "--limit", f"{limit}%", "--search", "0"],
        stdout=subprocess.PIPE,
        check=True,
        timeout=120,
    )
    return json.loads(done.stdout)["pages"]


class Pages(unittest.TestCase):
    def test_chunks_within_one_percent_of_the_peak(self):
        all_more = []
        for packed in sorted(FOLDER.glob("*.profile.json.gz")):
            with tempfile.NamedTemporaryFile() as file:
                file.write(gzip.decompress(packed.read_bytes()))
                file.flush()
                for limit in LIMITS:
                    seen = pages(file.name, limit)
                    name = packed.name.split(".")[0]
                    more = seen["chunks"] / seen["peak_pages"] - 1
                    print(
                        f"{name:10} {limit} %: {seen['chunks']} chunks, peak"
                        f" {seen['peak_pages']} pages ({more:+.2%}),"
                        f" {seen['remaps']} remaps"
                    )
                    with self.subTest(name=name, limit=limit):
                        self.assertLessEqual(more, MOST)
                        self.assertGreaterEqual(more, 0)
                    all_more.append(more)
        self.assertEqual(len(all_more), 4 * len(LIMITS))
        self.assertLessEqual(sum(all_more) / len(all_more), MEAN)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
