#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""scripts/gpu_day.sh without a GPU: a dry run with the real programs, and what becomes of steps that fail.

    gpu_day_test.py SKEIN_BENCH
"""
import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
BENCH = None

# Answers as skein-bench does, but for these.
FAKE = """#!/usr/bin/env python3
import json, sys, time
verb = sys.argv[1]
if verb == "learner":
    sys.exit("skein bench learner: no GPU here")
if verb == "tensor" and "--train" in sys.argv:
    time.sleep(60)
if verb == "tensor":
    print("not JSON")
    sys.exit(0)
print(json.dumps({"machine": {"cpu": "C", "cores": 2, "libtorch": "9"}, "config": {},
                  "summary": {"device": "cpu", "fp32_flops": 2e9}, "rows": []}))
"""


class GpuDay(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def day(self, bench, *more):
        done = subprocess.run([ROOT / "scripts/gpu_day.sh", "--dry-run", "--out", self.folder / "day", "--bench", bench,
                               *more], capture_output=True, text=True, timeout=280, check=False)
        result = json.loads((self.folder / "day.json").read_text())
        return done, result, (self.folder / "day.md").read_text()

    def test_a_dry_run_measures_everything_on_the_cpu(self):
        done, result, text = self.day(BENCH)
        self.assertEqual(done.returncode, 0, done.stderr)
        groups = [step["group"] for step in result["steps"]]
        for group in ("device", "learner", "stepping", "training", "ars", "ranks"):
            self.assertIn(group, groups)
        for step in result["steps"]:
            self.assertNotIn("failed", step)
            self.assertTrue(step["report"]["rows"], step["name"])
        for title in ("The device's limit", "Updates of one learner", "UAV worlds stepped", "UAV worlds trained on",
                      "Directions of ars on the device", "Ranks"):
            self.assertIn(f"## {title}", text)
        self.assertNotIn("What was not done", text)
        self.assertIn("UavNavigate-v0, linear | 2 x 2 x 4 |", text)

    def test_what_fails_hangs_or_answers_nonsense_is_named_and_the_rest_is_done(self):
        fake = self.folder / "skein-bench"
        fake.write_text(FAKE)
        fake.chmod(0o755)
        done, result, text = self.day(fake, "--step-seconds", "2")
        self.assertEqual(done.returncode, 1)
        why = {step["group"]: step.get("failed", "") for step in result["steps"]}
        self.assertEqual(why["device"], "")
        self.assertIn("exit code 1: skein bench learner: no GPU here", why["learner"])
        self.assertIn("not what was expected", why["stepping"])
        self.assertEqual(why["training"], "took longer than 2 s")
        self.assertIn("| fp32_flops | 2,000,000,000 |", text)
        self.assertIn("| training | UavNavigate-v0, 16 worlds | took longer than 2 s |", text)

    def test_what_there_is_no_time_for_is_left_out(self):
        done, result, text = self.day(BENCH, "--minutes", "0")
        self.assertEqual(done.returncode, 0)
        self.assertTrue(all(step["left_out"] == "no time was left" for step in result["steps"]))
        self.assertIn("no time was left", text)


if __name__ == "__main__":
    BENCH = sys.argv.pop(1)
    unittest.main()
