#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Programs for nodes without LibTorch load none: `torch_free_test.py FOLDER`."""

import pathlib
import subprocess
import sys
import unittest

FOLDER = pathlib.Path(sys.argv.pop(1))
WITHOUT = ("skein", "skein-actor", "skein-coordinator", "skein-eval", "skein-policy")


def torch_libraries(program):
    listed = subprocess.run(["ldd", FOLDER / program], check=True, capture_output=True, text=True).stdout
    return [line.split()[0] for line in listed.splitlines() if "torch" in line or "libc10" in line]


class TorchFreeTest(unittest.TestCase):
    def test_programs_of_worker_nodes_load_no_libtorch(self):
        for program in WITHOUT:
            self.assertEqual(torch_libraries(program), [], program)

    def test_the_learner_loads_it(self):  # Else this looks for the wrong thing.
        self.assertNotEqual(torch_libraries("skein-learner"), [])


unittest.main()
