#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""skein sweep and the real Optuna: it reads the journal, and its sampler suggests through the helper what it suggests
when it is called directly, also over kill -9."""
import csv
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
BIN = Path(os.environ.get("SKEIN_BIN", ROOT / "build/release"))
PYTHON = ROOT / ".deps/optuna/bin/python"
SPACE = """
sampler: {kind: tpe, options: {n_startup_trials: 2}}
seed: 7
max_trials: 6
test_seeds: 0
space:
  ppo.lr: {log_uniform: [1e-4, 1e-2]}
  ppo.epochs: {integer: [1, 4]}
  ppo.lr_schedule: [linear, kl_adaptive]
  ppo.kl_target: {log_uniform: [1e-3, 1e-1], when: {ppo.lr_schedule: kl_adaptive}}
"""

# What a user would write: prints the trials of a journal.
READ = """
import json, sys, optuna
optuna.logging.set_verbosity(optuna.logging.ERROR)
storage = optuna.storages.JournalStorage(optuna.storages.journal.JournalFileBackend(sys.argv[1]))
study = optuna.load_study(study_name=sys.argv[2], storage=storage)
print(json.dumps({"direction": study.direction.name, "best": study.best_trial.number,
  "trials": [{"params": t.params, "state": t.state.name, "value": t.value, "steps": t.intermediate_values,
              "complete": t.datetime_complete is not None} for t in study.trials]}))
"""

# The same sampler without Skein, told the same values.
DIRECT = """
import json, sys, optuna
optuna.logging.set_verbosity(optuna.logging.ERROR)
study = optuna.create_study(direction="maximize", sampler=optuna.samplers.TPESampler(seed=7, n_startup_trials=2))
points = []
for value in json.loads(sys.argv[1]):
    trial = study.ask()
    trial.suggest_float("ppo.lr", 1e-4, 1e-2, log=True)
    trial.suggest_int("ppo.epochs", 1, 4)
    if trial.suggest_categorical("ppo.lr_schedule", ["linear", "kl_adaptive"]) == "kl_adaptive":
        trial.suggest_float("ppo.kl_target", 1e-3, 1e-1, log=True)
    points.append(trial.params)
    study.tell(trial, value)
print(json.dumps(points))
"""


def run_python(text, *arguments):
    return json.loads(subprocess.run([PYTHON, "-c", text, *arguments], check=True, capture_output=True, text=True).stdout)


class SweepTest(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.runs = Path(self.folder.name)
        (self.runs / "space.yaml").write_text(SPACE)

    def command(self, name):
        return [BIN / "skein", "sweep", "--config", ROOT / "configs/cartpole_ppo.yaml", "--space",
                self.runs / "space.yaml", "--runs-dir", self.runs, "--name", name, "--steps", "3072", "--slots", "1"]

    def start(self, name):
        environment = dict(os.environ, SKEIN_PYTHON=str(PYTHON))
        return subprocess.Popen(self.command(name), env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                text=True)

    def finish(self, name):
        process = self.start(name)
        output, _ = process.communicate(timeout=200)
        self.assertEqual(process.returncode, 0, output)
        return run_python(READ, self.runs / name / "journal.log", name)

    def test_optuna_reads_the_journal_and_suggests_the_same_directly(self):
        study = self.finish("one")
        self.assertEqual(study["direction"], "MAXIMIZE")
        self.assertEqual([trial["state"] for trial in study["trials"]], ["COMPLETE"] * 6)
        with open(self.runs / "one/sweep.csv", newline="") as file:
            rows = list(csv.DictReader(file))
        for row, trial in zip(rows, study["trials"], strict=True):
            self.assertAlmostEqual(float(row["value"]), trial["value"], delta=1e-9)
            self.assertEqual(float(row["ppo.lr"]), trial["params"]["ppo.lr"])
            self.assertEqual(row["ppo.lr_schedule"], trial["params"]["ppo.lr_schedule"])
            self.assertEqual(list(trial["steps"]), ["3072"])
            self.assertTrue(trial["complete"])
        best = max(study["trials"], key=lambda trial: trial["value"])
        self.assertEqual(study["trials"][study["best"]]["value"], best["value"])
        direct = run_python(DIRECT, json.dumps([trial["value"] for trial in study["trials"]]))
        self.assertEqual([trial["params"] for trial in study["trials"]], direct)

        # Killed at some moment: the same suggestions, since the trainings are the same.
        process = self.start("two")
        journal = self.runs / "two/journal.log"
        deadline = time.monotonic() + 100
        while process.poll() is None and time.monotonic() < deadline:
            if journal.exists() and journal.read_text().count('"op_code":4') >= 4:
                break
            time.sleep(0.05)
        process.send_signal(signal.SIGKILL)
        process.wait()
        process.stdout.close()
        again = self.finish("two")
        self.assertEqual([trial["params"] for trial in again["trials"]], direct)
        self.assertEqual([trial["state"] for trial in again["trials"]], ["COMPLETE"] * 6)

    def test_optuna_sees_a_minimized_metric_as_it_is(self):
        (self.runs / "space.yaml").write_text(
            "goal: minimize\nsampler: {kind: tpe}\nseed: 7\nmax_trials: 3\ntest_seeds: 0\n"
            "space:\n  ppo.lr: {log_uniform: [1e-4, 1e-2]}\n")
        study = self.finish("least")
        self.assertEqual(study["direction"], "MINIMIZE")
        values = [trial["value"] for trial in study["trials"]]
        self.assertTrue(all(value > 0 for value in values), values)  # CartPole gives 1 for each step.
        self.assertEqual(values[study["best"]], min(values))
        for trial in study["trials"]:
            self.assertEqual(trial["steps"]["3072"], trial["value"])
        with open(self.runs / "least/sweep.csv", newline="") as file:
            for row, value in zip(csv.DictReader(file), values, strict=True):
                self.assertAlmostEqual(float(row["value"]), value, delta=1e-9)

    def test_names_the_nearest_sampler(self):
        (self.runs / "space.yaml").write_text(SPACE.replace("kind: tpe, options: {n_startup_trials: 2}", "kind: tpee"))
        process = self.start("three")
        output, _ = process.communicate(timeout=60)
        self.assertEqual(process.returncode, 64, output)
        self.assertIn("space.yaml:2:17: there is no sampler 'tpee'; the nearest is 'tpe'", output)


if __name__ == "__main__":
    fetched = subprocess.run([ROOT / "scripts/fetch_python.sh", "optuna"], capture_output=True, text=True)
    if fetched.returncode == 75:
        print(fetched.stderr)
        sys.exit(77)
    fetched.check_returncode()
    unittest.main()
