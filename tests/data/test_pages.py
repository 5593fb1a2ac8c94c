#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Page assignment of the recorded profiles: chunks within 1 % of the most
pages that are alive at once and, where those are, within the limit; how many
pages are mapped anew (tests/unit/planner/test_fewest.c holds that against the
least there is), and how many chunks it takes where none is.

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
MOST = 0.01
# Pages that are mapped anew in a step; more by a twentieth is a regression.
REMAPS = {
    "bert-large": {70: 0, 50: 28, 30: 40, 20: 2275},
    "gpt2-xl": {70: 0, 50: 0, 30: 15130, 20: 19238},
    "llama-7b": {70: 10415, 50: 29558, 30: 48931, 20: 45932},
    "resnet50": {70: 470, 50: 1449, 30: 2159, 20: 2649},
}
SLIP = 1.05


def pages(path, limit):
    done = subprocess.run(
        [TAPESWAP, "plan", path, "--limit", f"{limit}%", "--search", "0"],
        stdout=subprocess.PIPE,
        check=True,
        timeout=120,
    )
    plan = json.loads(done.stdout)
    beside = json.loads(pathlib.Path(path).read_text()).get("resident_bytes", 0)
    return plan["pages"], plan["limit_bytes"] - beside


class Pages(unittest.TestCase):
    def test_chunks_within_one_percent_of_the_peak(self):
        cells = 0
        for packed in sorted(FOLDER.glob("*.profile.json.gz")):
            with tempfile.NamedTemporaryFile() as file:
                file.write(gzip.decompress(packed.read_bytes()))
                file.flush()
                for limit in LIMITS:
                    seen, limit_bytes = pages(file.name, limit)
                    name = packed.name.split(".")[0]
                    more = seen["chunks"] / seen["peak_pages"] - 1
                    print(
                        f"{name:10} {limit} %: {seen['chunks']} chunks, peak"
                        f" {seen['peak_pages']} pages ({more:+.2%}),"
                        f" {seen['remaps']} remaps; without remaps"
                        f" {seen['static_chunks']} chunks"
                    )
                    with self.subTest(name=name, limit=limit):
                        self.assertLessEqual(more, MOST)
                        self.assertGreaterEqual(more, 0)
                        self.assertLessEqual(
                            seen["remaps"], SLIP * REMAPS[name][limit]
                        )
                        # Nobody moves where nobody has to.
                        if seen["static_chunks"] <= seen["chunks"]:
                            self.assertEqual(seen["remaps"], 0)
                        self.assertGreaterEqual(
                            seen["static_chunks"], seen["peak_pages"]
                        )
                        self.assertLessEqual(
                            seen["chunks"],
                            max(
                                limit_bytes // seen["page_bytes"],
                                seen["peak_pages"],
                            ),
                        )
                    cells += 1
        self.assertEqual(cells, 4 * len(LIMITS))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
