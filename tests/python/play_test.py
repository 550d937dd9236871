#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Plays trained checkpoints in the real Gymnasium by scripts/play.py and compares the returns with `skein eval`'s.

A policy that is read wrongly (normaliser, activation, order of layers, action) has another return by far.
"""

import json
import os
import pathlib
import re
import statistics
import subprocess
import sys
import tempfile
import unittest

from fetched_python import ROOT, fetch, python_of

sys.path.insert(0, str(ROOT / "tests/testing"))
from code_blocks import fenced  # noqa: E402

SKEIN = pathlib.Path(os.environ.get("SKEIN_BIN", ROOT / "build" / "release")) / "skein"
PYTHON = python_of("gymnasium")
EPISODES = 20


def run(*command):
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True)
    if done.returncode != 0:
        raise AssertionError(f"{command[0]} ended with {done.returncode}: {done.stderr}")
    return done.stdout


class Play(unittest.TestCase):
    def play(self, *training):
        """Trains; returns (mean, standard deviation) of the returns by `skein eval` and by play.py. The block of
        docs/policy-format.md must play the same episodes as play.py."""
        with tempfile.TemporaryDirectory() as folder:
            run(SKEIN, "train", *training, "--runs-dir", folder, "--name", "run", "--no-eval")
            checkpoint = pathlib.Path(folder) / "run" / "checkpoints" / "latest"
            ours = json.loads(run(SKEIN, "eval", "--checkpoint", checkpoint, "--episodes", EPISODES, "--json"))
            printed = run(PYTHON, ROOT / "scripts" / "play.py", checkpoint, "--episodes", EPISODES, "--seed", "1")
            (block,) = fenced("docs/policy-format.md", "python")
            script = pathlib.Path(folder) / "block.py"
            script.write_text(block)
            by_block = self.returns(run(PYTHON, script, pathlib.Path(folder) / "run"))
            by_play = self.returns(run(PYTHON, ROOT / "scripts" / "play.py", checkpoint, "--episodes", "10"))
        self.assertEqual(len(by_block), 10)
        # Float64 where play.py has float32, and a body that runs magnifies the difference: so the means.
        self.assertLess(abs(statistics.mean(by_block) - statistics.mean(by_play)),
                        3 * statistics.stdev(by_play) + 0.05 * abs(statistics.mean(by_play)))
        mean, std, episodes = re.search(r": return (\S+) \+- (\S+) in (\d+) episodes", printed).groups()
        self.assertEqual(int(episodes), EPISODES)
        return (ours["return_mean"], ours["return_std"]), (float(mean), float(std))

    @staticmethod
    def returns(printed):
        return [float(value) for value in re.findall(r"^episode \d+: return (\S+)$", printed, re.MULTILINE)]

    def refused(self, *arguments):
        """What play.py says on standard error of arguments that cannot be."""
        command = [str(part) for part in (PYTHON, ROOT / "scripts" / "play.py", *arguments)]
        done = subprocess.run(command, capture_output=True, text=True)
        self.assertNotEqual(done.returncode, 0)
        self.assertNotIn("Traceback", done.stderr)
        return done.stderr

    def test_mistakes_are_one_line(self):
        self.assertIn("usage: play.py", run(PYTHON, ROOT / "scripts" / "play.py", "--help"))
        self.assertIn("required: checkpoint", self.refused())
        with tempfile.TemporaryDirectory() as folder:
            for arguments in ([folder], [folder + "/none"], [folder, "--episodes", "0"]):
                said = self.refused(*arguments)
                self.assertEqual(said.count("\n"), 1, said)
                self.assertTrue(said.startswith("play.py: "), said)

    def test_a_python_without_gymnasium_is_told_of_the_one_that_has_it(self):
        # -S: no packages but Python's own.
        command = [sys.executable, "-S", "-I", str(ROOT / "scripts" / "play.py"), "x"]
        done = subprocess.run(command, capture_output=True, text=True)
        self.assertIn("scripts/fetch_python.sh gymnasium", done.stderr)
        self.assertNotIn("Traceback", done.stderr)

    def test_a_run_and_an_environment_that_gymnasium_lacks(self):
        with tempfile.TemporaryDirectory() as folder:
            run(SKEIN, "train", "--env", "CartPole-v1", "--steps", "4096", "--runs-dir", folder, "--name", "run",
                "--no-eval")
            printed = run(PYTHON, ROOT / "scripts" / "play.py", folder + "/run", "--episodes", "2")
            self.assertIn("in 2 episodes", printed)
            manifest = (pathlib.Path(folder) / "run" / "checkpoints" / "latest" / "manifest.json")
            manifest.write_text(manifest.read_text().replace('"CartPole-v1"', '"UavNavigate-v0"'))
            said = self.refused(folder + "/run")
            self.assertIn("UavNavigate-v0 is no environment of this Gymnasium", said)
            self.assertEqual(said.count("\n"), 1, said)

    def test_choices(self):
        ours, gymnasium = self.play("--config", ROOT / "configs" / "cartpole_reinforce.yaml")
        self.assertGreaterEqual(ours[0], 475)
        self.assertGreaterEqual(gymnasium[0], 475)

    def test_real_actions_with_normalised_observations(self):
        ours, gymnasium = self.play("--config", ROOT / "configs" / "half_cheetah_ppo.yaml", "--steps", "300000")
        self.assertGreater(ours[0], 1000)
        error = ((ours[1] ** 2 + gymnasium[1] ** 2) / EPISODES) ** 0.5
        self.assertLess(abs(ours[0] - gymnasium[0]), 5 * error + 0.01 * ours[0])


if __name__ == "__main__":
    fetch("gymnasium")
    unittest.main(verbosity=2)
