#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""docs/tutorial.md, each command as it stands there, in one shell and an empty folder; and whether docs/coming-from.md names
settings that there are.

With SKEIN_BIN = the folder of the programs. Where it may, it runs in a network of its own, in which the ports that the page
names are free.
"""
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
    def test_every_command_runs(self):
        script = "set -euo pipefail\n" + "\n".join(fenced("docs/tutorial.md", "sh"))
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            environment = {**os.environ, "PATH": f"{BIN}:{os.environ['PATH']}", "SKEIN_BOOKINGS": name + "/bookings"}
            for variable in ("SKEIN_TOKEN_FILE", "SKEIN_TLS_CERT", "SKEIN_TLS_KEY", "SKEIN_TLS_CA"):
                environment.pop(variable, None)
            done = subprocess.run(["bash", "-x", "-c", script], cwd=folder, env=environment, capture_output=True,
                                  text=True, timeout=600)
            self.assertEqual(done.returncode, 0, f"{done.stdout[-4000:]}\n{done.stderr[-6000:]}")
            for run in ("parallel", "cluster", "shares"):
                evaluation = json.loads((folder / "runs" / run / "eval.json").read_text())
                # Whoever acts at random gets about 22.
                self.assertGreater(evaluation["return_mean"], 100, run)
            self.assertIn("share of each actor: CPU by", done.stdout)
            self.assertIn("asked for", done.stdout)
            for worker in ("worker-1.log", "worker-2.log"):
                self.assertRegex((folder / worker).read_text(), r"actor left member=\S+ env_steps=[1-9]")
            self.assertFalse((folder / "runs/greedy").exists())


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
            if flag in ("--head", "--address", "--checkpoint", "--render", "--steps"):
                continue  # Of `ray start`, or of verbs that are programs of their own.
            self.assertIn(flag, flags)


if __name__ == "__main__":
    in_a_network_of_its_own()
    unittest.main(verbosity=2)
