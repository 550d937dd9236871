#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""docs/tutorial.md, each command as it stands there, in an empty folder: the sweep in a shell of its own, all before it in
another; and whether docs/coming-from.md names settings that there are.

With SKEIN_BIN = the folder of the programs. Where it may, it runs in a network of its own, in which the ports that the page
names are free.
"""
import csv
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
BIN = pathlib.Path(os.environ.get("SKEIN_BIN", ROOT / "build" / "release")).resolve()
INSIDE = "SKEIN_TUTORIAL_INSIDE"
sys.path.insert(0, str(ROOT / "tests/testing"))
from code_blocks import fenced  # noqa: E402


def in_a_network_of_its_own():
    """Starts this test again there, and ends with its code; returns where that cannot be."""
    if INSIDE in os.environ or not shutil.which("unshare") or not shutil.which("ip"):
        return
    unshare = ["unshare", "--net", *([] if os.geteuid() == 0 else ["--user", "--map-root-user"])]
    if subprocess.run([*unshare, "ip", "link", "set", "lo", "up"], capture_output=True).returncode != 0:
        return
    os.execvpe("unshare", [*unshare, "sh", "-c", 'ip link set lo up && exec "$@"', "sh", sys.executable, *sys.argv],
               {**os.environ, INSIDE: "1"})


class Tutorial(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        blocks = fenced("docs/tutorial.md", "sh")
        (begin,) = [index for index, block in enumerate(blocks) if "skein sweep " in block]
        cls.before, cls.sweep = blocks[:begin], blocks[begin:]

    def run_blocks(self, blocks, folder):
        """What the blocks print, run in one shell in that folder."""
        environment = {**os.environ, "PATH": f"{BIN}:{os.environ['PATH']}", "SKEIN_BOOKINGS": str(folder / "bookings")}
        for variable in ("SKEIN_TOKEN_FILE", "SKEIN_TLS_CERT", "SKEIN_TLS_KEY", "SKEIN_TLS_CA"):
            environment.pop(variable, None)
        script = "set -euo pipefail\n" + "\n".join(blocks)
        done = subprocess.run(["bash", "-x", "-c", script], cwd=folder, env=environment, capture_output=True, text=True,
                              timeout=500)
        self.assertEqual(done.returncode, 0, f"{done.stdout[-4000:]}\n{done.stderr[-6000:]}")
        return done.stdout

    def test_every_command_before_the_sweep_runs(self):
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            printed = self.run_blocks(self.before, folder)
            for run in ("parallel", "cluster", "shares"):
                evaluation = json.loads((folder / "runs" / run / "eval.json").read_text())
                # A random policy gets about 22.
                self.assertGreater(evaluation["return_mean"], 100, run)
            self.assertIn("share of each actor: CPU by", printed)
            self.assertIn("asked for", printed)
            for worker in ("worker-1.log", "worker-2.log"):
                self.assertRegex((folder / worker).read_text(), r"actor left member=\S+ env_steps=[1-9]")
            self.assertFalse((folder / "runs/greedy").exists())

    def test_the_sweep_has_six_trials_and_trains_the_best_again(self):
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            printed = self.run_blocks(self.sweep, folder)
            with open(folder / "runs/grid/sweep.csv", newline="") as file:
                trials = list(csv.DictReader(file))
            self.assertEqual([(one["ppo.lr"], one["rollout.steps_per_iteration"]) for one in trials],
                             [(lr, steps) for lr in ("1.0e-3", "3.0e-4", "1.0e-4") for steps in ("2000", "4000")])
            self.assertEqual({(one["state"], one["env_steps"]) for one in trials}, {("complete", "20000")})
            self.assertIn("\ntrial,state,value,ppo.lr,rollout.steps_per_iteration\n0,complete,", printed)

            best = max(trials, key=lambda one: float(one["value"]))
            self.assertIn(f"\nbest: trial {best['trial']}, episode_return_mean {best['value']}: ppo.lr {best['ppo.lr']}, "
                          f"rollout.steps_per_iteration {best['rollout.steps_per_iteration']}\n", printed)
            self.assertRegex(printed, r"\nbest configuration: episode_return_mean \S+ \+- \S+ on 2 fresh seeds\n")
            self.assertRegex(printed, r"\nbase configuration: episode_return_mean \S+ \+- \S+ on 2 fresh seeds\n")
            # A random policy gets about 22.
            self.assertGreater(float(best["value"]), 60)
            self.assertTrue((folder / "runs/grid/sweep.html").read_text())

            digests = [json.loads((folder / "runs" / run / "checkpoints/latest/manifest.json").read_text())["digest"]
                       for run in (f"grid/trial-{int(best['trial']):05}-s0", "grid-best")]
            self.assertEqual(digests[0], digests[1])


class ComingFrom(unittest.TestCase):
    def test_names_settings_and_flags_that_there_are(self):
        page = (ROOT / "docs/coming-from.md").read_text()
        settings = sorted(set(re.findall(r"`((?:rollout|ppo|model|sync|learner|resources|checkpoint)\.[a-z_.]+)[`:]", page)) - {"model.zip"})
        self.assertGreater(len(settings), 25)
        for setting in settings:
            done = subprocess.run([BIN / "skein", "resources", "--set", f"{setting}=@"], capture_output=True, text=True)
            self.assertNotIn("unknown key", done.stderr, setting)
        known = json.loads(subprocess.run([BIN / "skein", "--print-flags"], capture_output=True, text=True).stdout)
        flags = {flag["name"] for verb in known["verbs"] for flag in verb["flags"]}
        for flag in set(re.findall(r"`(?:[^`|]* )?(--[a-z-]+)[ `]", page)) - {"--env", "--train"}:
            if flag in ("--head", "--address", "--checkpoint", "--format", "--render", "--steps"):
                continue  # Of `ray start`, or of verbs that are programs of their own.
            self.assertIn(flag, flags)


if __name__ == "__main__":
    in_a_network_of_its_own()
    unittest.main(verbosity=2)
