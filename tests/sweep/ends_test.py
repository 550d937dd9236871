#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How a sweep ends, with real trainings: when its core-hours are used up, and when no trial has a result.

With SKEIN_BIN = the folder of the programs.
"""
import json
import os
import pathlib
import subprocess
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
BIN = pathlib.Path(os.environ.get("SKEIN_BIN", ROOT / "build" / "release")).resolve()


class Ends(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def sweep(self, space, *arguments):
        (self.folder / "space.yaml").write_text(space)
        return subprocess.run([BIN / "skein", "sweep", "--env", "CartPole-v1", "--space", "space.yaml", "--slots", "1",
                               *arguments], capture_output=True, text=True, cwd=self.folder, timeout=200)

    def test_when_core_hours_are_used_up_the_best_so_far_is_tested(self):
        space = "sampler: {kind: grid}\nspace: {ppo.lr: [1e-3, 1e-4, 1e-5]}\n"
        done = self.sweep(space + "max_trials: 1\ntest_seeds: 0\n", "--steps", "2048")
        self.assertEqual(done.returncode, 0, done.stderr)
        # 0.36 seconds of a core are less than the first trial took.
        done = self.sweep(space + "max_core_hours: 1e-4\ntest_seeds: 2\n", "--steps", "2048", "--json")
        self.assertEqual(done.returncode, 0, done.stderr)
        said = json.loads(done.stdout)
        self.assertFalse(said["finished"])
        self.assertEqual(sum(said["trials"].values()), 1)
        self.assertEqual([len(said["test"][side]["values"]) for side in ("base", "best")], [2, 2])

    def test_a_search_without_any_result_is_no_success(self):
        # A value that the setting takes and the training does not.
        done = self.sweep("sampler: {kind: grid}\ntest_seeds: 0\nspace: {rollout.steps_per_iteration: [1001]}\n",
                          "--steps", "2048")
        self.assertEqual(done.returncode, 70, done.stdout + done.stderr)
        self.assertIn("no trial has a result; trial 0: its configuration is refused: ", done.stderr)

    def test_constraints_that_no_point_meets_are_said_before_anything_starts(self):
        done = self.sweep("max_trials: 3\ntest_seeds: 0\nconstraints: [ppo.lr > 5]\n"
                          "space: {ppo.lr: {uniform: [1e-4, 1e-2]}}\n", "--steps", "2048")
        self.assertEqual(done.returncode, 64, done.stdout + done.stderr)
        self.assertIn("space.yaml: 1000 random points, and none of them meets the constraints", done.stderr)


if __name__ == "__main__":
    unittest.main(verbosity=2)
