#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Kills a sweep (-9) at random moments, or one of its trainings, and checks that it comes to the results of one that was
left alone.

    scripts/sweep_soak.py --kills 20 --seed 1

Both sweeps train small CartPole configurations in mode on_policy. With one slot their decisions have one order; with more
--slots they are the same only with a scheduler that does not depend on it, such as "{kind: hyperband, min_steps: 2048}".
A killed sweep must train again within 6 seconds, or be at its end; so must a sweep whose training was killed. At the end
each trial of one is in the other, with the same configuration, state and values to the bit; no trial has failed, no rung
has two results, none of the trials has two ends. Exit code 1: something of this does not hold.
"""
import argparse
import collections
import csv
import json
import os
import pathlib
import random
import signal
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[1]
CREATE, STATE, VALUE = 4, 6, 7  # Optuna's operations.
COMPARED = ("trial", "state", "rung", "env_steps", "value", "continues", "ppo.lr", "ppo.epochs", "why")


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=20, help="of the sweep or of a training")
    parser.add_argument("--seed", type=int, default=1, help="of when what is killed")
    parser.add_argument("--scheduler", default="{kind: asha, min_steps: 2048, reduction: 2}", help="as the space file has it")
    parser.add_argument("--trials", type=int, default=4)
    parser.add_argument("--slots", type=int, default=1)
    parser.add_argument("--steps", type=int, default=8192)
    parser.add_argument("--resume-seconds", type=float, default=6)
    parser.add_argument("--bin", type=pathlib.Path, default=ROOT / "build/release", help="folder of the programs")
    return parser.parse_args()


def children_of(parent):
    """Process ids of its trainings."""
    found = []
    for stat in pathlib.Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(")")[2].split()
            command = (stat.parent / "cmdline").read_bytes().split(b"\0")
        except OSError:  # It has just ended.
            continue
        if int(fields[1]) == parent and fields[0] != "Z" and b"train" in command:
            found.append(int(stat.parent.name))
    return found


class Sweep:
    def __init__(self, options, runs, name):
        self.folder = runs / name
        space = runs / "space.yaml"
        space.write_text(f"sampler: {{kind: random}}\nscheduler: {options.scheduler}\nmax_trials: {options.trials}\n"
                         "test_seeds: 0\nspace:\n  ppo.lr: {log_uniform: [1e-4, 1e-2]}\n  ppo.epochs: {integer: [1, 4]}\n")
        self.command = [options.bin / "skein", "sweep", "--config", ROOT / "configs/cartpole_ppo.yaml", "--space", space,
                        "--runs-dir", runs, "--name", name, "--steps", str(options.steps), "--slots",
                        str(options.slots), "--set", "checkpoint.interval_steps=1024"]
        self.log = open(runs / f"{name}.txt", "a+b")
        self.process = None

    def start(self):
        self.process = subprocess.Popen(self.command, stdout=self.log, stderr=subprocess.STDOUT)

    def wait(self, seconds):
        code = self.process.wait(seconds)
        self.log.seek(0)
        assert code == 0, f"exit code {code}:\n{self.log.read().decode(errors='replace')}"

    def rows(self):
        with open(self.folder / "sweep.csv", newline="") as file:
            return [{key: row[key] for key in COMPARED} for row in csv.DictReader(file)]

    def records(self):
        return [json.loads(line) for line in (self.folder / "journal.log").read_text().splitlines()]


def wait_until_it_trains(sweep, but=()):
    """Returns how long it takes until a training other than `but` is there, or the sweep is at its end."""
    began = time.monotonic()
    while sweep.process.poll() is None and not set(children_of(sweep.process.pid)) - set(but):
        assert time.monotonic() - began < 60, "it does not go on"
        time.sleep(0.02)
    return time.monotonic() - began


def kill_often(sweep, options):
    """Returns how long the sweep took to train again after each kill, by what was killed."""
    chance, gaps = random.Random(options.seed), {"sweep": [], "training": []}
    sweep.start()
    for number in range(options.kills):
        try:
            sweep.process.wait(chance.uniform(0.05, 2.5))
            return gaps  # It is at its end.
        except subprocess.TimeoutExpired:
            pass
        trainings = children_of(sweep.process.pid)
        # At most every third kill is a training's: three in a row without progress would be a failed trial.
        if trainings and number % 3 == 0:
            os.kill(chance.choice(trainings), signal.SIGKILL)
            gaps["training"].append(wait_until_it_trains(sweep, but=trainings))
            continue
        sweep.process.kill()
        sweep.process.wait()
        sweep.start()
        gaps["sweep"].append(wait_until_it_trains(sweep))
    return gaps


def judge(alone, killed, gaps, options):
    """What does not hold, a line each."""
    wrong = []
    expected, got = alone.rows(), killed.rows()
    if len(got) != len(expected):
        wrong.append(f"{len(got)} trials, want {len(expected)}")
    for want, have in zip(expected, got):
        if want != have:
            wrong.append(f"trial {want['trial']}: got {have}, want {want}")
    wrong += [f"trial {row['trial']} has failed: {row['why']}" for row in got if row["state"] == "failed"]
    values, ends = collections.Counter(), collections.Counter()
    for record in killed.records():
        if record["op_code"] == VALUE:
            values[record["trial_id"], record["step"]] += 1
        if record["op_code"] == STATE:
            ends[record["trial_id"]] += 1
    wrong += [f"trial {trial} has {count} results at {step}" for (trial, step), count in values.items() if count > 1]
    wrong += [f"trial {trial} has {count} ends" for trial, count in ends.items() if count > 1]
    wrong += [f"went on {gap:.1f} s after a kill of a {what}, want {options.resume_seconds:g}"
              for what, several in gaps.items() for gap in several if gap > options.resume_seconds]
    return wrong


def main():
    options = parse_arguments()
    with tempfile.TemporaryDirectory(prefix="sweep-soak-") as folder:
        runs = pathlib.Path(folder)
        alone, killed = Sweep(options, runs, "alone"), Sweep(options, runs, "killed")
        alone.start()
        alone.wait(1800)
        gaps = kill_often(killed, options)
        killed.wait(1800)
        wrong = judge(alone, killed, gaps, options)
        kills = ", ".join(f"{len(several)} of a {what} (trained again after at most {max(several, default=0):.1f} s)"
                          for what, several in gaps.items())
        print(f"{len(killed.rows())} trials over kills, seed {options.seed}: {kills}")
        for line in wrong:
            print(f"WRONG: {line}")
        return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
