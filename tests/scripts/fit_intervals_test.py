#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""scripts/fit_intervals.py with a pretended skein."""

import json
import os
import pathlib
import stat
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
# Ten steps an epoch of 2 ms; a line adds 1 ms, one with the use of resources 3 ms, a checkpoint 20 ms.
SKEIN = """#!/usr/bin/env python3
import json, pathlib, sys
run = pathlib.Path(sys.argv[sys.argv.index("--run-dir") + 1])
run.mkdir()
sets = dict(word.split("=") for word in sys.argv if "=" in word)
step = 0.002
for name, cost in (("logging.log_interval", 0.001), ("logging.gpu_log_interval", 0.003), ("checkpoint.save_interval", 0.02)):
    step += cost * int(sets[name])
assert sets["checkpoint.min_seconds"] == "86400" and "--data" in sys.argv
lines = [{"iteration": 5, "time": 100.0, "loss": 1}]
lines += [{"iteration": 10 * n, "time": 107 + 10 * n * step, "epoch_loss": 1} for n in (1, 2, 3)]
(run / "metrics.jsonl").write_text("".join(json.dumps(line) + "\\n" for line in lines))
"""


class FitIntervals(unittest.TestCase):
    def test_tells_what_each_adds_to_a_step(self):
        with tempfile.TemporaryDirectory() as folder:
            skein = pathlib.Path(folder) / "skein"
            skein.write_text(SKEIN)
            skein.chmod(skein.stat().st_mode | stat.S_IXUSR)
            report = pathlib.Path(folder) / "report.json"
            ended = subprocess.run(
                [sys.executable, ROOT / "scripts/fit_intervals.py", "--rounds", "2", "--json", report, "--data", "file"],
                env={**os.environ, "SKEIN_BIN": folder}, capture_output=True, text=True)
            self.assertEqual(ended.returncode, 0, ended.stderr)
            self.assertIn("A step without any: 2.000 ms.", ended.stdout)
            self.assertIn("| `logging.log_interval` | 1.000 | 1.000 to 1.000 | 100 | 0.50 % |", ended.stdout)
            self.assertIn("| `logging.gpu_log_interval` | 3.000 | 3.000 to 3.000 | 500 | 0.30 % |", ended.stdout)
            self.assertIn("| `checkpoint.save_interval` | 20.000 | 20.000 to 20.000 | 1000 | 1.00 % |", ended.stdout)
            result = json.loads(report.read_text())
            self.assertAlmostEqual(result["intervals"]["checkpoint.save_interval"]["seconds"], 0.02)


if __name__ == "__main__":
    unittest.main()
