#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""docs/first-task.md, each command as it stands there, in one shell and an empty folder.

With SKEIN_BIN = the folder of the programs. Exits with 77, skipped, where Gymnasium cannot be had (scripts/fetch_python.sh).
"""
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
BIN = pathlib.Path(os.environ.get("SKEIN_BIN", ROOT / "build" / "release")).resolve()
PYTHON = ROOT / ".deps/gymnasium/bin"
sys.path.insert(0, str(ROOT / "tests/testing"))
from code_blocks import fenced  # noqa: E402


class FirstTask(unittest.TestCase):
    def test_every_command_runs(self):
        script = "set -euo pipefail\n" + "\n".join(fenced("docs/first-task.md", "sh"))
        with tempfile.TemporaryDirectory() as name:
            environment = {**os.environ, "PATH": f"{PYTHON}:{BIN}:{os.environ['PATH']}", "SKEIN_BIN": str(BIN),
                           "PYTHONPATH": str(ROOT / "python")}
            done = subprocess.run(["bash", "-c", script], cwd=name, env=environment, capture_output=True, text=True,
                                  timeout=500)
            self.assertEqual(done.returncode, 0, f"{done.stdout[-4000:]}\n{done.stderr[-4000:]}")
            self.assertIn("it keeps the contract", done.stdout)
            evaluation = json.loads((pathlib.Path(name) / "runs/reach/eval.json").read_text())
        played = float(re.search(r"^return (\S+)$", done.stdout, re.MULTILINE)[1])
        # Nothing done: 20 x the mean distance of two points of [-1, 1], 2/3, is -13.3.
        self.assertGreater(evaluation["return_mean"], -6)
        self.assertGreater(played, -6)


if __name__ == "__main__":
    fetched = subprocess.run([ROOT / "scripts/fetch_python.sh", "gymnasium"], capture_output=True, text=True)
    if fetched.returncode != 0:
        print(f"skipped: {fetched.stderr.strip()}")
        sys.exit(77)
    unittest.main(verbosity=2)
