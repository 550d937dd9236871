#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""scripts/learning_study.py: it trains the seeds that are missing and no others, leaves the rows that are there as they
are, and makes its tables of the suite's seeds. A program in the place of `skein` notes each call."""
import csv
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
# A run of seed S has checkpoints after 500,000 and 1,001,472 env steps, of which test episodes return S and 10 S. It
# was interrupted once. A file `fail-S` beside the program makes it fail, `short-S` end early.
FAKE = """#!/usr/bin/env python3
import json, pathlib, sys
verb, words, here = sys.argv[1], sys.argv[2:], pathlib.Path(__file__).parent
value = lambda flag: words[words.index(flag) + 1]
with open(here / "calls", "a") as file:
    print(verb, *words, file=file)
if verb == "train":
    seed = value("--seed")
    if (here / f"fail-{seed}").exists():
        sys.exit("no more disk")
    folder = pathlib.Path("runs") / value("--name")
    steps = (500000,) if (here / f"short-{seed}").exists() else (500000, 1001472)
    for step in steps:
        (folder / f"checkpoints/step_{step:012}").mkdir(parents=True, exist_ok=True)
    (folder / "config.yaml").write_text(f"seed: {seed}\\ntotal_steps: 1000000\\n")
    seconds = ((100, 1.0), (500000, 4.0), (500000, 0.5), (1001472, 2.5))  # The third line begins again after the first.
    lines = [json.dumps({"env_steps": steps, "seconds": seconds}) for steps, seconds in seconds]
    (folder / "metrics.jsonl").write_text("\\n".join(lines))
    print("recipe: configs/some_ppo.yaml, because of the environment")
else:
    folder = pathlib.Path(value("--checkpoint"))
    if not (folder / "config.yaml").exists():
        step, folder = int(folder.name[5:]), folder.parents[1]
    else:
        step = int(max(folder.glob("checkpoints/*")).name[5:])
    seed = int((folder / "config.yaml").read_text().split()[1])
    print(json.dumps({"env_steps": step, "return_mean": seed * (10.0 if step > 1000000 else 1.0), "return_std": 0.5,
                      "metrics_mean": {"coverage": 0.75}, "digest": f"d{seed}-{step}", "mujoco_version": "2.3.7"}))
"""


class LearningStudy(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.bin = self.folder / "bin"
        self.bin.mkdir()
        for name, text in (("skein", FAKE), ("gnuplot", "#!/bin/sh\ncat >drawn\n")):
            (self.bin / name).write_text(text)
            (self.bin / name).chmod(0o755)
        (self.folder / "configs").mkdir()
        for name in ("some.yaml", "configs/reacher_ppo.yaml", "configs/hopper_ppo.yaml",
                     "configs/walker2d_quick_ppo.yaml"):
            (self.folder / name).write_text("# A comment.\ntotal_steps: 1000000\n")

    def study(self, *words, code=0):
        """What it prints; `code`: its exit code."""
        command = [sys.executable, ROOT / "scripts/learning_study.py", *words, "--bin", self.bin]
        done = subprocess.run([str(word) for word in command], capture_output=True, text=True, cwd=self.folder,
                              env={**os.environ, "PATH": f"{self.bin}:{os.environ['PATH']}"})
        self.assertEqual(done.returncode, code, done.stderr)
        return done.stdout if code == 0 else done.stderr

    def trained(self):
        """The seeds that were trained, in order; forgets them."""
        calls = self.bin / "calls"
        lines = calls.read_text().splitlines() if calls.exists() else []
        calls.unlink(missing_ok=True)
        words = [line.split() for line in lines if line.startswith("train ")]
        return [int(line[line.index("--seed") + 1]) for line in words]

    def text(self, name):
        return (self.folder / name).read_text()

    def rows(self, name):
        return list(csv.DictReader(self.text(name).splitlines()))

    def test_a_configuration_has_a_row_for_each_checkpoint_and_trains_a_seed_once(self):
        words = ("--config", "some.yaml", "--out", "out/some", "--target", "15")
        self.study(*words, "--seeds", "2")
        self.assertEqual(self.trained(), [1, 2])
        before = self.text("out/some.csv")
        rows = self.rows("out/some.csv")
        self.assertEqual([(row["seed"], row["return_mean"]) for row in rows],
                         [("1", "1.0"), ("1", "10.0"), ("2", "2.0"), ("2", "20.0")])
        self.assertEqual([row["env_steps"] for row in rows], ["500000", "1001472"] * 2)
        # 1 s until the run was interrupted, then 0.5 and 2.5.
        self.assertEqual([row["seconds"] for row in rows[:2]], ["1.5", "3.5"])
        self.assertEqual(rows[3]["digest"], "d2-1001472")
        printed = self.study(*words, "--seeds", "3")
        self.assertEqual(self.trained(), [3])
        self.assertTrue(self.text("out/some.csv").startswith(before))
        self.assertIn("| 3 | 30.0 (d3-1001472) |", printed)
        self.assertIn("| mean +- std | **20.00 +- 8.16** |", printed)
        self.assertIn("| 1 | never | - |", printed)
        self.assertIn("| 2 | 3.5 | 1,001,472 |", printed)
        self.assertIn("some.yaml, 3 seeds", self.text("drawn"))

    def test_the_checkpoints_of_the_table_have_more_test_episodes(self):
        self.study("--config", "some.yaml", "--out", "out/some", "--seeds", "1")
        self.assertEqual([row["episodes"] for row in self.rows("out/some.csv")], ["10", "100"])

    def test_rows_of_another_form_of_the_configuration_are_refused(self):
        words = ("--config", "some.yaml", "--out", "out/some", "--seeds", "1")
        self.study(*words)
        (self.folder / "some.yaml").write_text("# Another comment.\ntotal_steps: 1000000\n")
        self.study(*words)
        (self.folder / "some.yaml").write_text("total_steps: 1000000\nppo: {lr: 1}\n")
        self.assertIn("has rows of another form of some.yaml", self.study(*words, code=1))

    def test_recipes_are_trained_on_the_seeds_of_the_suite_and_go_on_where_they_stopped(self):
        words = ("--suite", "recipes", "--only", "UavCover-v0", "--out", "out/recipes")
        (self.bin / "fail-203").touch()
        self.assertIn("no more disk", self.study(*words, code=1))
        self.assertEqual(self.trained(), [201, 202, 203])
        before = self.text("out/recipes.csv")
        self.assertEqual([row["seed"] for row in self.rows("out/recipes.csv")], ["201", "202"])
        (self.bin / "fail-203").unlink()
        printed = self.study(*words)
        self.assertEqual(self.trained(), [203, 204, 205])
        self.assertTrue(self.text("out/recipes.csv").startswith(before))
        self.assertEqual(len(self.rows("out/recipes.csv")), 5)
        self.assertEqual(self.rows("out/recipes.csv")[4],
                         {"env": "UavCover-v0", "seed": "205", "env_steps": "1001472", "figure": "coverage",
                          "value": "0.75", "std": "0.5", "digest": "d205-1001472", "recipe": "configs/some_ppo.yaml",
                          "asked": "auto", "mujoco": "2.3.7"})
        self.assertIn("| 0.750 | 0.750 | 0.750 | 0.750 | 0.750 | 0 of 5 |", printed)  # The threshold is 0.9.
        self.study(*words)
        self.assertEqual(self.trained(), [])

    def test_a_run_that_ended_early_gets_no_row(self):
        (self.bin / "short-201").touch()
        said = self.study("--suite", "recipes", "--only", "CartPole-v1", "--out", "out/recipes", code=1)
        self.assertIn("was stopped after 500,000 of 1,000,000 env steps", said)
        self.assertFalse((self.folder / "out/recipes.csv").exists())

    def test_a_dry_run_prints_the_table_so_far_and_trains_nothing(self):
        words = ("--suite", "recipes", "--only", "UavCover-v0", "--out", "out/recipes")
        self.assertIn("| - | - | - | - | - | 0 of 0 |", self.study(*words, "--dry-run"))
        self.study(*words, "--seeds", "1")
        self.assertEqual(self.trained(), [201])
        before = self.text("out/recipes.csv")
        self.assertIn("| 0.750 | - | - | - | - | 0.750 | 0 of 1 |", self.study(*words, "--dry-run"))
        self.assertEqual((self.trained(), self.text("out/recipes.csv")), ([], before))

    def test_tasks_of_mujoco_are_judged_by_the_seeds_of_the_suite_alone(self):
        out = "docs/benchmarks/mujoco-suite"  # Unless another is given.
        (self.folder / out).mkdir(parents=True)
        earlier = "seed,env_steps,seconds,return_mean,return_std,digest,mujoco\n1,1001472,9.0,-3.0,0.5,d,2.3.7\n"
        (self.folder / out / "reacher.csv").write_text(earlier)
        words = ("--suite", "mujoco", "--only", "reacher")
        self.assertIn("| reacher | 1,000,000 | - | 0 | - | -3.7 at 3M", self.study(*words, "--dry-run"))
        self.assertEqual(self.text(f"{out}/reacher.csv"), earlier)
        printed = self.study(*words, "--seeds", "2")
        self.assertEqual(self.trained(), [201, 202])
        self.assertIn("| reacher | 1,000,000 | 2,015 +- 5 | 2 | 201, 202 | -3.7 at 3M", printed)
        self.assertEqual(self.rows(f"{out}/reacher.csv")[0]["digest"], "d")
        self.study(*words)
        self.assertEqual(self.trained(), list(range(203, 211)))
        said = self.study("--suite", "mujoco", "--only", "walker", code=1)
        self.assertIn("the suite has no walker", said)

    def test_a_race_has_the_median_seconds_of_five_seeds(self):
        # 3,000 is what seeds from 300 on return, after 3.5 s.
        printed = self.study("--suite", "wall-clock", "--only", "hopper", "--out", "out", "--first-seed", "298")
        self.assertEqual(self.trained(), [298, 299, 300, 301, 302])
        self.assertIn("| hopper | 3,000 | 3.5 | never, never, 3.5, 3.5, 3.5 | 5 | 90 |", printed)

    def test_a_task_whose_configuration_was_chosen_on_the_usual_seeds_has_others(self):
        self.study("--suite", "mujoco", "--only", "hopper", "--out", "out", "--seeds", "2")
        self.assertEqual(self.trained(), [221, 222])
        self.study("--suite", "mujoco", "--only", "hopper", "--out", "out", "--seeds", "1", "--first-seed", "206")
        self.assertEqual(self.trained(), [206])

    def test_a_race_may_have_a_configuration_and_an_interval_of_its_own(self):
        self.study("--suite", "wall-clock", "--only", "walker2d_quick", "--out", "out", "--seeds", "1")
        call = next(line for line in (self.bin / "calls").read_text().splitlines() if line.startswith("train "))
        self.assertIn("--config configs/walker2d_quick_ppo.yaml", call)
        self.assertIn("checkpoint.interval_steps=50000", call)
        self.assertTrue((self.folder / "out/walker2d_quick.csv").exists())
        self.study("--suite", "wall-clock", "--only", "walker2d_quick", "--out", "out", "--seeds", "2", "--interval", "70000")
        self.assertIn("checkpoint.interval_steps=70000", (self.bin / "calls").read_text())

    def test_wants_one_of_a_configuration_and_a_suite(self):
        for words in ((), ("--config", "some.yaml", "--suite", "mujoco")):
            self.assertIn("one of --config and --suite", self.study("--out", "out/x", *words, code=2))
        self.assertIn("--config needs --out", self.study("--config", "some.yaml", code=2))


if __name__ == "__main__":
    unittest.main()
