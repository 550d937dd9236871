#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The real optuna-dashboard shows the journal of a skein sweep: studies, trials with their parameters and results, and
importances, as sweep.csv has them."""
import csv
import json
import os
import socket
import subprocess
import tempfile
import time
import unittest
import urllib.request
from pathlib import Path

from fetched_python import ROOT, fetch, python_of

BIN = Path(os.environ.get("SKEIN_BIN", ROOT / "build/release"))
FOLDER = python_of("dashboard").parent
SPACE = """
sampler: {kind: random}
max_trials: 4
test_seeds: 2
space:
  ppo.lr: {log_uniform: [1e-4, 1e-2]}
  ppo.epochs: {integer: [1, 4]}
"""


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


class DashboardTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.runs = Path(folder.name)

    def start_dashboard(self, journal):
        self.address = f"http://127.0.0.1:{free_port()}"
        with open(self.runs / "dashboard.log", "w") as log:
            process = subprocess.Popen([FOLDER / "python", FOLDER / "optuna-dashboard", journal, "--port",
                                        self.address.rpartition(":")[2]], stdout=log, stderr=log)

        def end():
            process.kill()
            process.wait()
        self.addCleanup(end)
        deadline = time.monotonic() + 60
        while True:
            try:
                return self.get("/api/studies")
            except OSError:
                if process.poll() is not None or time.monotonic() > deadline:
                    raise AssertionError((self.runs / "dashboard.log").read_text())
                time.sleep(0.1)

    def get(self, path):
        with urllib.request.urlopen(self.address + path, timeout=30) as answer:
            return json.loads(answer.read())

    def test_it_shows_what_sweep_csv_has(self):
        (self.runs / "space.yaml").write_text(SPACE)
        done = subprocess.run([BIN / "skein", "sweep", "--config", ROOT / "configs/cartpole_ppo.yaml", "--space",
                               self.runs / "space.yaml", "--runs-dir", self.runs, "--name", "s", "--steps", "3072"],
                              capture_output=True, text=True, timeout=250)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        studies = self.start_dashboard(self.runs / "s/journal.log")["study_summaries"]
        self.assertEqual([(study["study_name"], study["directions"]) for study in studies],
                         [("s", ["maximize"]), ("s-test", ["maximize"])])
        shown = self.get(f"/api/studies/{studies[0]['study_id']}?after=0")["trials"]
        with open(self.runs / "s/sweep.csv", newline="") as file:
            rows = list(csv.DictReader(file))
        self.assertEqual(len(rows), 4)
        for row, trial in zip(rows, shown, strict=True):
            self.assertEqual(trial["state"], "Complete")
            self.assertAlmostEqual(trial["values"][0], float(row["value"]), delta=1e-9)
            self.assertEqual([one["step"] for one in trial["intermediate_values"]], [3072])
            values = {one["name"]: float(one["param_external_value"]) for one in trial["params"]}
            self.assertEqual(values, {name: float(row[name]) for name in ("ppo.lr", "ppo.epochs")})
        test = self.get(f"/api/studies/{studies[1]['study_id']}?after=0")["trials"]
        self.assertEqual([trial["state"] for trial in test], ["Complete"] * 2)
        importances = self.get(f"/api/studies/{studies[0]['study_id']}/param_importances")["param_importances"]
        self.assertEqual({one["name"] for one in importances[0]}, {"ppo.lr", "ppo.epochs"})


if __name__ == "__main__":
    fetch("dashboard")
    unittest.main()
