#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Jobs of a Slurm array share one skein sweep, also after kill -9 of one that lends its place and of the one that
leads. With stand-ins for squeue and for srun, whose trainings only leave what trainings leave.

With SKEIN_BIN = the folder of the programs.
"""
import csv
import os
import pathlib
import subprocess
import tempfile
import time
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
BIN = pathlib.Path(os.environ.get("SKEIN_BIN", ROOT / "build" / "release")).resolve()
TRIALS = 8
# Seconds until others go on after kill -9, on a file system of this machine: they look once a second.
GOES_ON_WITHIN = 6
SPACE = "sampler: {kind: grid}\ntest_seeds: 0\nspace:\n  ppo.lr: {log_uniform: [1e-5, 1e-2], points: %d}\n" % TRIALS

# A file dead.JOB: Slurm has ended that job, with its trainings.
SRUN = """#!/bin/bash
cd "$(dirname "$0")"
while (($#)); do
  case $1 in --jobid=*) job=${1#*=} ;; --runs-dir) runs=$2 ;; --name) name=$2 ;; esac
  shift
done
echo "$name $job" >>started
for ((i = 0; i < 20; ++i)); do
  [[ -e dead.$job ]] && exit 1
  sleep 0.1
done
mkdir -p "$runs/$name/checkpoints/step_000000004096"
echo '{"env_steps":4096,"episode_return_mean":5.5}' >"$runs/$name/metrics.jsonl"
touch "$runs/$name/checkpoints/step_000000004096/DONE"
"""
SQUEUE = """#!/bin/bash
cd "$(dirname "$0")"
for job in 11 12 13; do [[ -e dead.$job ]] || echo $job; done
"""


class JobArray(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        for name, text in (("srun", SRUN), ("squeue", SQUEUE)):
            (self.folder / name).write_text(text)
            (self.folder / name).chmod(0o755)
        (self.folder / "s.yaml").write_text(SPACE)

    def start(self, job):
        environment = {**os.environ, "PATH": f"{self.folder}:{os.environ['PATH']}", "SLURM_ARRAY_JOB_ID": "11",
                       "SLURM_JOB_ID": str(job), "SLURM_NTASKS": "1", "SLURM_CPUS_PER_TASK": "1"}
        with open(self.folder / f"{job}.out", "w") as out:
            process = subprocess.Popen([BIN / "skein", "sweep", "--env", "CartPole-v1", "--steps", "4096", "--space",
                                        self.folder / "s.yaml", "--runs-dir", self.folder / "runs"], env=environment,
                                       stdout=out, stderr=out)

        def end():
            process.kill()
            process.wait()
        self.addCleanup(end)
        return process

    def said(self, job, text):
        return text in (self.folder / f"{job}.out").read_text()

    def wait_until(self, what, condition, seconds=60):
        deadline = time.monotonic() + seconds
        while not condition():
            if time.monotonic() > deadline:
                outputs = "".join(path.read_text() for path in self.folder.glob("*.out"))
                self.fail(f"waited in vain for {what}\n{outputs}")
            time.sleep(0.05)

    def started(self):
        path = self.folder / "started"
        return [line.split() for line in path.read_text().splitlines()] if path.exists() else []

    def test_what_is_killed_goes_on_in_other_jobs(self):
        leader = self.start(11)
        self.wait_until("a leader", lambda: self.said(11, "sweep: "))
        lender, last = self.start(12), self.start(13)
        self.wait_until("trainings in all jobs", lambda: {job for _, job in self.started()} == {"11", "12", "13"})
        # A node is lost.
        (self.folder / "dead.12").touch()
        lender.kill()
        self.wait_until("the leader to see it", lambda: self.said(11, "array: 11-0 13-0"), GOES_ON_WITHIN)
        leader.kill()
        self.wait_until("another leader", lambda: self.said(13, "going on with "), GOES_ON_WITHIN)
        self.assertEqual(last.wait(timeout=60), 0)
        self.assertTrue(self.said(13, "best: "))
        with open(self.folder / "runs/s/sweep.csv", newline="") as file:
            rows = list(csv.DictReader(file))
        self.assertEqual([(row["state"], row["failures"]) for row in rows], [("complete", "0")] * TRIALS)
        self.assertEqual(list((self.folder / "runs/s/places").iterdir()), [])
        # One that comes late finds all done, and starts nothing.
        before = self.started()
        (self.folder / "dead.12").unlink()
        self.assertEqual(self.start(12).wait(timeout=60), 0)
        self.assertTrue(self.said(12, "best: "))
        self.assertEqual(self.started(), before)

    def test_no_job_begins_anew_what_another_leads(self):
        environment = {**os.environ, "SLURM_ARRAY_JOB_ID": "11", "SLURM_JOB_ID": "11"}
        done = subprocess.run([BIN / "skein", "sweep", "--env", "CartPole-v1", "--space", self.folder / "s.yaml",
                               "--runs-dir", self.folder / "runs", "--resume", "never"], env=environment,
                              capture_output=True, text=True)
        self.assertEqual(done.returncode, 64, done.stderr)
        self.assertIn("--resume never: each job of an array would begin anew", done.stderr)


if __name__ == "__main__":
    unittest.main(verbosity=2)
