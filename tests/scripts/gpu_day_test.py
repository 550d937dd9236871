#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""scripts/gpu_day.sh without a GPU: a dry run with the real programs, and what becomes of steps that fail.

    gpu_day_test.py SKEIN_BENCH
"""
import contextlib
import io
import json
import pathlib
import subprocess
import sys
import tempfile
import unittest
import unittest.mock

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.dont_write_bytecode = True
sys.path.insert(0, str(ROOT / "scripts"))
import gpu_day  # noqa: E402
BENCH = None

# Answers as skein-bench does, but for these.
FAKE = """#!/usr/bin/env python3
import json, sys, time
verb = sys.argv[1]
if verb in ("learner", "fit"):
    sys.exit(f"skein bench {verb}: no GPU here")
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
        for group in ("device", "learner", "fit", "stepping", "training", "ars", "ranks"):
            self.assertIn(group, groups)
        for step in result["steps"]:
            self.assertNotIn("failed", step)
            self.assertTrue(step["report"]["rows"], step["name"])
        for title in ("The device's limit", "Updates of one learner", "Gradient steps of skein fit", "UAV worlds stepped",
                      "UAV worlds trained on", "Directions of ars on the device", "Ranks"):
            self.assertIn(f"## {title}", text)
        self.assertNotIn("What was not done", text)
        self.assertIn("UavNavigate-v0, linear | 2 x 2 x 4 |", text)

    def test_a_second_day_measures_what_the_first_did_not(self):
        fake = self.folder / "skein-bench"
        fake.write_text(FAKE)
        fake.chmod(0o755)
        self.day(fake, "--step-seconds", "2")
        done, result, text = self.day(BENCH)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(result["steps"][0]["report"]["summary"]["fp32_flops"], 2e9)
        self.assertNotIn("gpu_day: device", done.stderr)
        self.assertIn("gpu_day: fit", done.stderr)
        self.assertNotIn("What was not done", text)

    def test_a_day_with_another_gpu_is_not_gone_on_with(self):
        (self.folder / "day.json").write_text(json.dumps({"gpus": ["NVIDIA H100, 80 GiB, 1.0"], "steps": []}))
        done = subprocess.run([ROOT / "scripts/gpu_day.sh", "--dry-run", "--out", self.folder / "day", "--bench", BENCH],
                              capture_output=True, text=True, timeout=60, check=False)
        self.assertEqual(done.returncode, 1, done.stdout)
        self.assertIn("was measured with GPUs ['NVIDIA H100'], here are []", done.stderr)

    def test_an_unknown_group_is_refused(self):
        done = subprocess.run([ROOT / "scripts/gpu_day.sh", "--dry-run", "--out", self.folder / "day", "--only", "fit,foo"],
                              capture_output=True, text=True, timeout=60, check=False)
        self.assertEqual(done.returncode, 2, done.stdout)
        self.assertIn("--only: got foo, want some of device, learner", done.stderr)
        self.assertFalse((self.folder / "day.json").exists())

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

    def test_without_a_program_the_tables_are_written_all_the_same(self):
        done, result, text = self.day(self.folder / "not-built")
        self.assertEqual(done.returncode, 1)
        self.assertNotIn("Traceback", done.stderr)
        self.assertIn("not-built is not there |", text)
        no_program = self.folder / "skein-bench"
        no_program.write_text("not a program")
        done, result, text = self.day(no_program)
        self.assertEqual(done.returncode, 1)
        self.assertNotIn("Traceback", done.stderr)
        self.assertIn("| device | products and copies | cannot be started: Permission denied |", text)
        self.assertGreater(len(result["steps"]), 5)

    def test_a_build_that_fails_is_neither_tested_nor_measured(self):
        def step(day, group, name, command, *_, **__):
            failed = {"failed": "exit code 1: no space"} if name == "build" else {}
            day.steps.append({"group": group, "name": name, "command": str(command), "commit": "c", **failed})

        (self.folder / "skein-bench").write_text("of an earlier commit")
        with unittest.mock.patch.object(gpu_day.Day, "step", step), contextlib.redirect_stdout(io.StringIO()) as text:
            code = gpu_day.main(["--dry-run", "--out", str(self.folder / "day"), "--build", str(self.folder)])
        self.assertEqual(code, 1)
        steps = json.loads((self.folder / "day.json").read_text())["steps"]
        self.assertEqual([step["name"] for step in steps], ["libraries", "configure", "build"])
        self.assertIn("| build | build | exit code 1: no space |", text.getvalue())

    def test_a_gpu_is_as_busy_as_in_its_busiest_window_or_as_the_measurement_says(self):
        gpus = gpu_day.Gpus.__new__(gpu_day.Gpus)
        # Ten seconds of starting, three of work; a second GPU is idle. Each sample: time, GPU, percent, MiB, W.
        gpus.samples = [(t / 2, 0, 96.0 if t >= 20 else 2.0, 500.0, 300.0) for t in range(27)]
        gpus.samples += [(t / 2, 1, 0.0, 1.0, 50.0) for t in range(27)]
        self.assertEqual(gpus.between(0, 13, 3), {"busy_percent": 96.0, "memory_mib": 500.0, "watts": 300.0})
        self.assertEqual(gpus.between(0, 1, 3)["busy_percent"], 2.0)  # Shorter than the window: all of it.
        self.assertEqual(gpus.between(50, 60, 3), {})
        self.assertEqual(gpu_day.busy({"report": {"rows": [{}]}, "busy_percent": 96.0}), "96 %")
        self.assertEqual(gpu_day.busy({"report": {"rows": [{"gpu_utilization": 0.915}]}, "busy_percent": 10.0}), "92 %")
        self.assertEqual(gpu_day.busy({"report": {"rows": [{}]}}), "not measured")

    def test_what_was_asked_for_is_measured_before_the_sweep(self):
        asked = []

        class Listing:
            options = gpu_day.parse_arguments(["--out", "x"])
            gpus = gpu_day.Gpus.__new__(gpu_day.Gpus)

            def bench(self, group, name, *arguments, **facts):
                asked.append((group, name))

        Listing.gpus.names = ["one", "another"]
        gpu_day.measure(Listing())
        self.assertEqual(len(asked), len(set(asked)))
        groups = [group for group, _ in asked]
        self.assertEqual(groups[:7], ["device"] + ["learner"] * 6)
        sweep = max(i for i, group in enumerate(groups) if group != "learner") + 1
        self.assertEqual(groups[sweep:], ["learner"] * 66)  # 3 minibatches x 6 arithmetics x 4 sizes, less the 6.
        self.assertEqual([name for group, name in asked if group == "fit"], ["LSTM 256 x 2, fp32", "LSTM 256 x 2, bf16"])
        self.assertEqual([name for group, name in asked if group == "ranks"], ["1 ranks", "2 ranks"])

    def test_what_there_is_no_time_for_is_left_out(self):
        done, result, text = self.day(BENCH, "--minutes", "0")
        self.assertEqual(done.returncode, 0)
        self.assertTrue(all(step["left_out"] == "no time was left" for step in result["steps"]))
        self.assertIn("no time was left", text)


if __name__ == "__main__":
    BENCH = sys.argv.pop(1)
    unittest.main()
