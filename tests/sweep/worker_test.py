#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A sweep without slots of its own and two workers that lend it theirs. Killed are a worker, in the middle of a
training, and the sweep; then a worker leaves and another comes. Each trial is trained once, in whatever pieces: its
checkpoint has the digest of a training that was never disturbed.

With SKEIN_BIN = the folder of the programs.
"""
import csv
import json
import os
import pathlib
import signal
import subprocess
import tempfile
import time
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
BIN = pathlib.Path(os.environ.get("SKEIN_BIN", ROOT / "build" / "release")).resolve()
RATES = ["1.0e-2", "3.0e-3", "1.0e-3", "3.0e-4"]
SPACE = f"sampler: {{kind: grid}}\ntest_seeds: 0\nspace:\n  ppo.lr: [{', '.join(RATES)}]\n"
STEPS = 65536
# Seconds until trainings go on after kill -9, on a file system of this machine. docs/decisions/workers-lend-slots.md says what a
# lost node costs on NFS.
GOES_ON_WITHIN = 6
TRAINING = ["--config", ROOT / "configs/cartpole_ppo.yaml", "--steps", str(STEPS), "--set",
            "checkpoint.interval_steps=2048"]


class Workers(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.sweep = self.folder / "runs/s"
        (self.folder / "s.yaml").write_text(SPACE)

    def start(self, name, *arguments, cwd=None):
        with open(self.folder / f"{name}.out", "w") as out:
            process = subprocess.Popen([BIN / "skein", *arguments], stdout=out, stderr=out, cwd=cwd or self.folder)

        def end():
            process.kill()
            process.wait()
        self.addCleanup(end)
        return process

    def start_sweep(self, name):
        return self.start(name, "sweep", *TRAINING, "--slots", "0", "--space", "s.yaml", "--runs-dir", "runs")

    def start_worker(self, name):
        # From another folder.
        return self.start(name, "worker", "--sweep", f"{self.sweep}/", "--slots", "1", cwd="/")

    def said(self, name):
        return (self.folder / f"{name}.out").read_text()

    def wait_until(self, what, condition, seconds=60):
        deadline = time.monotonic() + seconds
        while not condition():
            if time.monotonic() > deadline:
                outputs = "".join(f"{path.name}:\n{path.read_text()}" for path in self.folder.glob("*.out"))
                self.fail(f"waited in vain for {what}\n{outputs}")
            time.sleep(0.02)

    def trial_of(self, worker):
        """The run that the worker trains now, if it has a checkpoint."""
        lines = [line.split(": ")[1] for line in self.said(worker).splitlines() if ": trial-" in line]
        if not lines or " has ended" in lines[-1]:
            return None
        return lines[-1] if list((self.sweep / lines[-1] / "checkpoints").glob("step_*/DONE")) else None

    def begun(self, worker):
        """How many trainings the worker has begun."""
        return len([line for line in self.said(worker).splitlines() if ": trial-" in line and " has ended" not in line])

    def slots(self, sweep):
        return [line for line in self.said(sweep).splitlines() if line.startswith("slots of workers: ")][-1]

    def steps(self, run):
        with open(self.sweep / run / "metrics.jsonl") as file:
            return [json.loads(line)["env_steps"] for line in file]

    def test_what_is_killed_goes_on_elsewhere(self):
        begun = time.monotonic()
        first, second = self.start_worker("first"), self.start_worker("second")  # They wait for it.
        sweep = self.start_sweep("sweep")
        self.wait_until("trainings at both", lambda: self.trial_of("first") and self.trial_of("second"))
        killed = self.trial_of("first")
        first.kill()
        self.wait_until("the sweep to see it", lambda: f"-{first.pid}-" not in self.slots("sweep"), GOES_ON_WITHIN)
        self.wait_until("a training at the other one", lambda: self.trial_of("second"))
        sweep.kill()
        before, killed_at = self.begun("second"), time.monotonic()
        sweep = self.start_sweep("again")
        self.wait_until("it to go on", lambda: "going on with" in self.said("again"))
        self.wait_until("the second one to train again", lambda: self.begun("second") > before)
        self.assertLess(time.monotonic() - killed_at, GOES_ON_WITHIN)
        third = self.start_worker("third")
        self.wait_until("a training at the third one", lambda: self.trial_of("third"))
        second.send_signal(signal.SIGTERM)  # It leaves.
        self.assertEqual(second.wait(timeout=30), 0, self.said("second"))
        self.assertEqual(sweep.wait(timeout=120), 0, self.said("again"))
        self.assertEqual(third.wait(timeout=30), 0, self.said("third"))
        self.assertIn("the sweep has ended", self.said("third"))
        print(f"the sweep took {time.monotonic() - begun:.1f} s")

        with open(self.sweep / "sweep.csv", newline="") as file:
            rows = list(csv.DictReader(file))
        self.assertEqual([(row["state"], row["failures"]) for row in rows], [("complete", "0")] * len(RATES))
        self.assertEqual(len(list(self.sweep.glob("trial-*"))), len(RATES))
        for run in self.sweep.glob("trial-*"):
            steps = self.steps(run.name)
            self.assertEqual(steps, sorted(set(steps)), run.name)
            self.assertGreaterEqual(steps[-1], STEPS)
        self.assertEqual(list((self.sweep / "workers").iterdir()) + list((self.sweep / "orders").iterdir()), [])

        # A worker that comes late finds all done.
        late = subprocess.run([BIN / "skein", "worker", "--sweep", self.sweep, "--timeout", "100ms"],
                              capture_output=True, text=True, timeout=60)
        self.assertEqual((late.returncode, "has ended" in late.stdout), (0, True), late)

        rate = RATES[int(killed.split("-")[1])]
        alone = subprocess.run([BIN / "skein", "train", *TRAINING, "--set", f"ppo.lr={rate}", "--seed", "1001",
                                "--runners", "1", "--runs-dir", self.folder / "alone", "--no-eval", "--json"],
                               capture_output=True, text=True, timeout=120)
        self.assertEqual(alone.returncode, 0, alone.stderr)
        shown = subprocess.run([BIN / "skein", "runs", "show", killed, "--runs-dir", self.sweep, "--json"],
                               capture_output=True, text=True, timeout=60, check=True)
        self.assertEqual(json.loads(shown.stdout)["digest"], json.loads(alone.stdout)["digest"])

    def test_it_needs_a_sweep(self):
        done = subprocess.run([BIN / "skein", "worker", "--sweep", self.sweep, "--timeout", "100ms"],
                              capture_output=True, text=True, timeout=60)
        self.assertEqual(done.returncode, 69, done.stderr)
        self.assertIn("no sweep has this folder", done.stderr)


if __name__ == "__main__":
    unittest.main(verbosity=2)
