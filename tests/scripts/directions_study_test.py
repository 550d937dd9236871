#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""scripts/directions_study.py: it does no run twice, and writes its tables into the documents and nothing else."""
import csv
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
# Trains to two checkpoints, of 10 and 20 episodes, and evaluates to a return of twice the env steps. Of the episodes a
# share of env steps / 1000 stands, with pushes half, and half of these in all bands. Notes each call, and fails at the one that `fail_at` names.
FAKE = """#!/usr/bin/env python3
import json, pathlib, sys
verb, *words = sys.argv[1:]
here = pathlib.Path(__file__).parent
with (here / "calls").open("a") as file:
    print(verb, *words, file=file)
if (here / "fail_at").exists() and len((here / "calls").read_text().splitlines()) == int((here / "fail_at").read_text()):
    sys.exit("a fault")
value = lambda flag: words[words.index(flag) + 1]
if verb == "train":
    run, steps = pathlib.Path(value("--runs-dir")) / value("--name"), int(value("--steps"))
    (run / "checkpoints").mkdir(parents=True, exist_ok=True)
    with (run / "metrics.jsonl").open("w") as log:
        for half, at in ((1, steps // 2), (2, steps)):
            checkpoint = run / "checkpoints" / f"step_{at:012d}"
            checkpoint.mkdir(exist_ok=True)
            (checkpoint / "manifest.json").write_text(json.dumps({"episodes": 10 * half, "iteration": half}))
            print(json.dumps({"env_steps": at, "seconds": 1.5 * half}), file=log)
else:
    at = int(pathlib.Path(value("--checkpoint")).name[5:])
    pushed = "env.mujoco.push_speed=0.5" in words
    stood = 0.5 if pushed else min(1, at / 1000)
    print(json.dumps({"env_steps": at, "return_mean": 2.0 * at, "digest": f"d{at}",
                      "metrics_mean": {"stood": stood, "stood_in_bands": stood / 2}}))
"""


class Study(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        (self.folder / "bin").mkdir()
        fake = self.folder / "bin/skein"
        fake.write_text(FAKE)
        fake.chmod(0o755)
        for page in ("directions.md", "quadruped.md"):
            shutil.copy(ROOT / "docs/benchmarks" / page, self.folder / page)

    def run_study(self, *words):
        command = [sys.executable, ROOT / "scripts/directions_study.py", *words, "--bin", self.folder / "bin"]
        command += ["--runs", self.folder / "runs", "--data", self.folder / "data", "--documents", self.folder]
        return subprocess.run(command, capture_output=True, text=True)

    def calls(self):
        return (self.folder / "bin/calls").read_text().splitlines()

    def rows(self, study):
        return list(csv.DictReader((self.folder / f"data/{study}.csv").read_text().splitlines()))

    def expect_only_the_table_changed(self, page, mark):
        """Returns the table's lines."""
        def split(text):
            before, rest = text.split(f"<!-- {mark} -->\n")
            table, after = rest.split(f"<!-- end of {mark} -->")
            return before, table.splitlines(), after

        was, now = (split((folder / page).read_text()) for folder in (ROOT / "docs/benchmarks", self.folder))
        self.assertEqual((now[0], now[2]), (was[0], was[2]))
        self.assertEqual(now[1][1], was[1][1])  # The head of the table.
        return now[1]

    def test_tasks_go_on_where_they_stopped(self):
        words = ["tasks", "--only", "swimmer", "--seeds", "2", "--steps", "200", "--episodes", "3", "--set", "seed=7"]
        (self.folder / "bin/fail_at").write_text("5")  # A run is three calls: the second one's first evaluation fails.
        stopped = self.run_study(*words)
        self.assertEqual(stopped.returncode, 1)
        self.assertIn("exit code 1\na fault", stopped.stderr)
        self.assertEqual([row["seed"] for row in self.rows("tasks")], ["1"])
        (self.folder / "bin/fail_at").unlink()
        for _ in range(2):  # The second time nothing is left to do.
            done = self.run_study(*words)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertEqual(len(self.calls()), 3 + 2 + 3)
        self.assertIn("--set seed=7", self.calls()[0])
        self.assertIn("--episodes 10 ", self.calls()[1])  # A return of 200 is far below the threshold.
        self.assertIn("--episodes 3 ", self.calls()[2])
        # The threshold of 355 is passed at 200 env steps, by a return of 400.
        row = self.rows("tasks")[1]
        self.assertEqual((row["to_threshold_steps"], row["to_threshold_episodes"], row["to_threshold_seconds"]),
                         ("200", "20", "3.0"))
        self.assertEqual((row["return_mean"], row["digest"]), ("400.0", "d200"))
        table = self.expect_only_the_table_changed("directions.md", "tasks")
        hours = f"{3 * len(os.sched_getaffinity(0)) / 3600:.3f}"
        self.assertIn(f"| swimmer | 2 | 355 | 2 of 2 | 20 | 427 | 200 | 3 | {hours} | 400 +- 0 | 200 | {hours} | 355 |",
                      table)
        self.assertIn("| humanoid | 0 | 6,000 |", "\n".join(table))

    def test_a_task_that_has_reached_its_threshold_is_played_again_at_its_end_only(self):
        words = ["tasks", "--only", "swimmer", "--seeds", "1", "--steps", "400", "--episodes", "3"]
        self.assertEqual(self.run_study(*words).returncode, 0)
        self.assertEqual([call.split("--episodes ")[1].split()[0] for call in self.calls()[1:]], ["10", "3", "3"])
        row = self.rows("tasks")[0]
        self.assertEqual((row["to_threshold_steps"], row["to_threshold_episodes"], row["env_steps"], row["return_mean"]),
                         ("200", "10", "400", "800.0"))

    def test_rows_of_other_steps_do_not_count(self):
        self.assertEqual(self.run_study("tasks", "--only", "swimmer", "--seeds", "1", "--steps", "200").returncode, 0)
        other = self.run_study("tasks", "--only", "swimmer", "--seeds", "1", "--steps", "100", "--tables")
        self.assertEqual(other.returncode, 0, other.stderr)
        self.assertIn("| swimmer | 0 |", other.stdout)
        self.assertEqual(len(self.calls()), 3)
        # A return of 200 is below the threshold, so no run has passed it.
        self.assertIn("| 0 of 1 | never |",
                      self.run_study("tasks", "--only", "swimmer", "--seeds", "1", "--steps", "100").stdout)

    def test_rows_of_other_settings_do_not_count(self):
        words = ["tasks", "--only", "swimmer", "--seeds", "1", "--steps", "200"]
        self.assertEqual(self.run_study(*words, "--set", "ars.step_size=1").returncode, 0)
        self.assertIn("| swimmer | 0 |", self.run_study(*words, "--tables").stdout)
        self.assertIn("| swimmer | 1 |", self.run_study(*words, "--set", "ars.step_size=1", "--tables").stdout)

    def test_quadruped_is_evaluated_with_and_without_pushes(self):
        for _ in range(2):
            done = self.run_study("quadruped", "--seeds", "1", "--steps", "1000000")
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertEqual(len(self.calls()), 2 * 3)
        table = self.expect_only_the_table_changed("quadruped.md", "quadruped")
        for kind in ("ars", "ppo"):
            self.assertIn(f"| {kind} | 1 | 1.000 | 0.500 | 1.000, 0.500 | 0.500 | 0.250 | 1,000,000 | 1 / 2,620 | "
                          "0.1 |", table)

    def test_episodes_differ_in_directions_and_their_episodes(self):
        for _ in range(2):
            done = self.run_study("episodes", "--only", "8x4,4x1", "--seeds", "1", "--steps", "1000")
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertEqual(len(self.calls()), 2 * 3)
        self.assertIn("--set phases=[] --set env.mujoco.push_speed=0", self.calls()[0])
        self.assertIn("--set directions.num_dirs=8 --set directions.num_envs=4", self.calls()[0])
        self.assertTrue(self.calls()[0].endswith("--set ars.top_dirs=2"), self.calls()[0])  # A quarter.
        table = self.expect_only_the_table_changed("quadruped.md", "episodes")
        self.assertIn("| 8x4 | 1 | 1,000 | 2 | 2,000 | 1.000 | 500 |", table)
        self.assertIn("| 16x1 | 0 | | | not measured | | |", table)

    def test_episodes_are_compared_in_the_first_phase_of_the_configuration(self):
        configuration = (ROOT / "configs/quadruped_stand_ars.yaml").read_text()
        first = re.search(r"^phases:\n(  - until_steps.*?)(?=^  - until_steps)", configuration, re.M | re.S).group(1)
        settings = {(name, value.strip()) for name, value in re.findall(r"^ {6}([a-z_.]+): ([^#\n]+)", first, re.M)}
        self.run_study("episodes", "--only", "4x1", "--seeds", "1", "--steps", "1000")
        given = {tuple(word.split("=")) for word in re.findall(r"--set (\S+=(?:\[[^]]*\]|\S+))", self.calls()[0])}
        self.assertGreater(len(settings), 5)
        self.assertEqual(settings - given, {("ars.top_dirs", "8")})

    def test_names_that_are_none_are_refused(self):
        refused = self.run_study("tasks", "--only", "swimmer,walker")
        self.assertEqual(refused.returncode, 1)
        self.assertIn("--only walker: want some of swimmer, hopper", refused.stderr)
        self.assertFalse((self.folder / "bin/calls").exists())


if __name__ == "__main__":
    unittest.main()
