#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""skein sweep and the real Optuna: it reads the journal, and its sampler suggests through the helper what it suggests
when it is called directly, also over kill -9."""
import csv
import json
import os
import signal
import subprocess
import tempfile
import time
import unittest
from pathlib import Path

from fetched_python import ROOT, fetch, python_of

BIN = Path(os.environ.get("SKEIN_BIN", ROOT / "build/release"))
PYTHON = python_of("optuna")
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


# The sampler of two numbers by itself.
DIRECT_NUMBERS = """
import json, sys, warnings, optuna
warnings.simplefilter("ignore")
optuna.logging.set_verbosity(optuna.logging.ERROR)
sampler = getattr(optuna.samplers, sys.argv[1])(seed=7, n_startup_trials=3)
study = optuna.create_study(direction="maximize", sampler=sampler)
points = []
for value in json.loads(sys.argv[2]):
    trial = study.ask()
    trial.suggest_float("ppo.lr", 1e-4, 1e-2, log=True)
    trial.suggest_float("ppo.gamma", 0.9, 0.999)
    points.append(trial.params)
    study.tell(trial, value)
print(json.dumps(points))
"""

# What another user of the journal may do.
ENQUEUE = """
import json, sys, optuna
optuna.logging.set_verbosity(optuna.logging.ERROR)
storage = optuna.storages.JournalStorage(optuna.storages.journal.JournalFileBackend(sys.argv[1]))
optuna.load_study(study_name=sys.argv[2], storage=storage).enqueue_trial({"ppo.lr": 0.005})
print(json.dumps(None))
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

    def compare_with_direct(self, name, kind, sampler):
        """A sweep of 7 trials against Optuna's class by itself, told the same values."""
        (self.runs / "space.yaml").write_text(
            f"sampler: {{kind: {kind}, options: {{n_startup_trials: 3}}}}\nseed: 7\nmax_trials: 7\ntest_seeds: 0\n"
            "space:\n  ppo.lr: {log_uniform: [1e-4, 1e-2]}\n  ppo.gamma: {uniform: [0.9, 0.999]}\n")
        study = self.finish(name)
        direct = run_python(DIRECT_NUMBERS, sampler, json.dumps([trial["value"] for trial in study["trials"]]))
        self.assertEqual([trial["params"] for trial in study["trials"]], direct)

    def test_cma_es_suggests_the_same_directly(self):
        self.compare_with_direct("cma", "cmaes", "CmaEsSampler")

    def test_a_gaussian_process_suggests_the_same_directly_or_says_what_it_lacks(self):
        if run_python("import importlib.util, json; print(json.dumps(all(importlib.util.find_spec(name) is not None "
                      "for name in ('scipy', 'torch'))))"):
            self.compare_with_direct("gaussian", "gp", "GPSampler")
            return
        (self.runs / "space.yaml").write_text(SPACE.split("space:")[0].replace("tpe", "gp") +
                                              "space:\n  ppo.lr: {log_uniform: [1e-4, 1e-2]}\n")
        process = self.start("gaussian")
        output, _ = process.communicate(timeout=60)
        self.assertEqual(process.returncode, 69, output)
        self.assertIn("sampler gp: GPSampler needs ", output)
        self.assertIn("torch", output)

    def test_trials_that_optuna_adds_meanwhile_shift_no_result(self):
        (self.runs / "space.yaml").write_text(SPACE.replace("max_trials: 6", "max_trials: 4"))
        process = self.start("busy")
        journal = self.runs / "busy/journal.log"
        deadline = time.monotonic() + 100
        while process.poll() is None and time.monotonic() < deadline:
            if journal.exists() and journal.read_text().count('"op_code":4') >= 2:
                break
            time.sleep(0.05)
        run_python(ENQUEUE, journal, "busy")
        output, _ = process.communicate(timeout=200)
        self.assertEqual(process.returncode, 0, output)
        study = run_python(READ, journal, "busy")
        own = [trial for trial in study["trials"] if trial["state"] == "COMPLETE"]
        self.assertEqual(len(own), 4)
        self.assertEqual([trial["state"] for trial in study["trials"]].count("WAITING"), 1)
        with open(self.runs / "busy/sweep.csv", newline="") as file:
            rows = list(csv.DictReader(file))
        for row, trial in zip(rows, own, strict=True):
            self.assertEqual(float(row["ppo.lr"]), trial["params"]["ppo.lr"])
            self.assertAlmostEqual(float(row["value"]), trial["value"], delta=1e-9)
        # Again: the sampler knows of its own trials only.
        (self.runs / "space.yaml").write_text(SPACE)
        self.assertEqual(len(self.finish("busy")["trials"]), 7)

    @unittest.skipIf(os.geteuid() != 0, "needs root, to mount a small disk")
    def test_a_full_disk_ends_the_sweep_and_loses_nothing(self):
        (self.runs / "space.yaml").write_text(
            "sampler: {kind: grid}\ntest_seeds: 0\nspace:\n  ppo.lr: [1e-3, 3e-4, 1e-4]\n  ppo.epochs: [1, 2]\n")
        disk = self.runs / "disk"
        disk.mkdir()
        command = [str(word) for word in self.command("full")]
        command[command.index("--runs-dir") + 1] = str(disk)
        # In a mount namespace of its own: a disk of 400 KB, then the same one with room.
        script = (f"mount -t tmpfs -o size=400k tmpfs {disk} || exit 77; \"$@\"; first=$?; "
                  f"mount -o remount,size=200m {disk}; \"$@\"; second=$?; "
                  f"cp {disk}/full/sweep.csv {self.runs}/full.csv; echo codes $first $second")
        done = subprocess.run(["unshare", "--mount", "sh", "-c", script, "sh", *command], capture_output=True, text=True,
                              timeout=250)
        if done.returncode == 77:
            self.skipTest("cannot mount here")
        self.assertIn("codes 74 0", done.stdout, done.stderr)
        with open(self.runs / "full.csv", newline="") as file:
            rows = list(csv.DictReader(file))
        self.assertEqual([row["state"] for row in rows], ["complete"] * 6)

    def test_says_which_file_keeps_a_sampler_from_going_on(self):
        (self.runs / "space.yaml").write_text(SPACE.replace("max_trials: 6", "max_trials: 1"))
        self.finish("broken")
        (self.runs / "broken/sampler.pickle").write_text("nonsense")
        (self.runs / "space.yaml").write_text(SPACE.replace("max_trials: 6", "max_trials: 2"))
        process = self.start("broken")
        output, _ = process.communicate(timeout=100)
        self.assertEqual(process.returncode, 70, output)
        self.assertIn("broken/sampler.pickle cannot be read (", output)
        (self.runs / "broken/sampler.pickle").unlink()
        self.assertEqual(len(self.finish("broken")["trials"]), 2)

    def test_names_the_nearest_sampler(self):
        (self.runs / "space.yaml").write_text(SPACE.replace("kind: tpe, options: {n_startup_trials: 2}", "kind: tpee"))
        process = self.start("three")
        output, _ = process.communicate(timeout=60)
        self.assertEqual(process.returncode, 64, output)
        self.assertIn("space.yaml:2:17: there is no sampler 'tpee'; the nearest is 'tpe'", output)


if __name__ == "__main__":
    fetch("optuna")
    unittest.main()
