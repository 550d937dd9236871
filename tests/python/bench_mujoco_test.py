#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""scripts/bench_mujoco.py: what it makes of measurements, and that it measures nothing twice."""
import csv
import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
# Prints or writes what `skein bench` and scripts/peers/envpool_steps.py do, and notes each call.
FAKE = """#!/usr/bin/env python3
import json, pathlib, sys
words = sys.argv[1:]
calls = pathlib.Path(__file__).with_name("calls")
with calls.open("a") as file:
    print(*words, file=file)
n = len(calls.read_text().splitlines())
if "bench" in words:
    ratio = {1: 0.9, 4: 0.99, 7: 0.98, 2: 0.5, 5: 0.6, 8: 0.7}[n]
    summary = {"env_steps_per_second": 1000 * ratio, "limit_env_steps_per_second": 1000, "ratio": ratio}
    machine = {"cores": 2, "cpu": "a processor", "mujoco": "2.3.7"}
    report = {"machine": machine, "config": {}, "summary": summary, "rows": []}
    pathlib.Path(words[words.index("--json") + 1]).write_text(json.dumps(report))
else:
    for envs, rate in ((2, 100), (64, 140 + n)):
        print(json.dumps({"num_envs": envs, "batch_size": 2, "env_steps_per_second": rate}))
"""


class Benchmark(unittest.TestCase):
    def test_takes_medians_and_the_best_setting_and_goes_on_where_it_stopped(self):
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            fake = folder / "skein"
            fake.write_text(FAKE)
            fake.chmod(0o755)
            words = [sys.executable, ROOT / "scripts/bench_mujoco.py", "--out", folder / "out", "--envs", "Ant-v5"]
            words += ["--skein", fake, "--envpool", fake, "--rounds", "3"]
            for _ in range(2):  # The second time nothing is left to do.
                done = subprocess.run(words, capture_output=True, text=True)
                self.assertEqual(done.returncode, 0, done.stderr)
            self.assertEqual(len((folder / "calls").read_text().splitlines()), 9)
            (line,) = csv.DictReader((folder / "out/results.csv").read_text().splitlines())
            self.assertEqual(float(line["env_ratio"]), 0.98)
            self.assertEqual(float(line["env_ratio_min"]), 0.9)
            self.assertEqual(float(line["rollout_ratio"]), 0.6)
            self.assertEqual(float(line["envpool_steps_per_second"]), 146)  # Calls 3, 6 and 9: 143, 146, 149.
            self.assertEqual(line["envpool_setting"], "64 environments, batches of 2")
            self.assertEqual(float(line["times_envpool"]), round(980 / 146, 4))
            other = folder / "out/Ant-v5-2-rollout.json"
            other.write_text(other.read_text().replace("a processor", "another"))
            done = subprocess.run(words, capture_output=True, text=True)
            self.assertEqual(done.returncode, 1)
            self.assertIn("Ant-v5-2-rollout.json is of another machine or build than Ant-v5-1-env.json", done.stderr)
            report = (folder / "out/report.md").read_text()
            self.assertIn("| Ant-v5 | 1,000 | 980 | 0.980 (0.900 to 0.990) | 600 |", report)


if __name__ == "__main__":
    unittest.main()
