#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How well environments of other libraries are learned: the CSV behind docs/benchmarks/external-envs.md.

    scripts/external_study.py                                # all tasks, seeds 1 to 3
    scripts/external_study.py --only cartpole --seeds 1

Each run is a `skein train` and a `skein eval` of its last checkpoint. What is finished has its line in the CSV and is not
done again; a run that was interrupted goes on from its last checkpoint. --steps makes a study smaller, for a try; rows of
other steps do not count. Needs scripts/fetch_python.sh environments, and for half_cheetah gymnasium.
"""
import argparse
import csv
import json
import os
import pathlib
import subprocess
import sys
import typing

ROOT = pathlib.Path(__file__).resolve().parents[1]
FIELDS = ["task", "seed", "steps", "env_id", "env_steps", "seconds", "episodes", "return_mean", "return_std", "digest"]


class Task(typing.NamedTuple):
    env: str
    config: str
    steps: int
    python: str = "environments"  # Of .deps.
    settings: tuple = ()
    episodes: int = 100  # Of the test.


# An iteration of spread is 128 episodes of 25 steps.
TASKS = {
    "cartpole": Task("python:gymnasium:make?id=CartPole-v1", "cartpole_ppo", 200000),
    "half_cheetah": Task("python:gymnasium:make?id=HalfCheetah-v5", "half_cheetah_ppo", 3000000, "gymnasium"),
    "half_cheetah_native": Task("HalfCheetah-v5", "half_cheetah_ppo", 3000000),
    "simple_spread": Task("python:external_tasks:spread", "general_ppo", 3000000, episodes=1000, settings=(
        "rollout.num_envs=128", "rollout.envs_per_runner=32", "rollout.steps_per_iteration=3200", "ppo.lr=7e-4",
        "ppo.minibatch_size=960", "ppo.gamma=0.9", "ppo.entropy_coefficient=0.01")),
    "minigrid": Task("python:external_tasks:minigrid", "general_ppo", 500000),
}


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="names of tasks, comma-separated")
    parser.add_argument("--seeds", type=int, default=3, help="so many, from 1 on")
    parser.add_argument("--steps", type=int, help="env steps of each run; default: the task's")
    parser.add_argument("--episodes", type=int, help="test episodes; default: the task's")
    parser.add_argument("--set", action="append", default=[], metavar="A.B=C", help="passed on to skein train")
    parser.add_argument("--bin", type=pathlib.Path, default=ROOT / "build/release", help="folder of the programs")
    parser.add_argument("--runs", type=pathlib.Path, default=ROOT / "runs", help="folder of the runs")
    parser.add_argument("--out", type=pathlib.Path, default=ROOT / "docs/benchmarks/external-envs.csv")
    arguments = parser.parse_args()
    unknown = set(filter(None, arguments.only.split(","))) - set(TASKS)
    if unknown:
        parser.error(f"--only: no task {sorted(unknown)[0]!r}; there are {', '.join(TASKS)}")
    return arguments


def run(command):
    path = f"{ROOT / 'scripts'}:{os.environ.get('PYTHONPATH', '')}"
    done = subprocess.run([str(word) for word in command], stdout=subprocess.PIPE, text=True,
                          env={**os.environ, "PYTHONPATH": path})
    if done.returncode != 0:
        sys.exit(f"{' '.join(map(str, command))}: exit code {done.returncode}")
    return json.loads(done.stdout)


def learn(arguments, name, seed, steps):
    task = TASKS[name]
    python = f"env.external.python={ROOT / '.deps' / task.python / 'bin/python'}"
    folder = f"external-{name}-s{seed}-{steps}"
    command = [arguments.bin / "skein", "train", "--env", task.env, "--config", ROOT / f"configs/{task.config}.yaml",
               "--seed", seed, "--steps", steps, "--name", folder, "--runs-dir", arguments.runs, "--no-eval", "--json"]
    for setting in (python, *task.settings, *arguments.set):
        command += ["--set", setting]
    run(command)
    result = run([arguments.bin / "skein", "eval", "--checkpoint", arguments.runs / folder, "--episodes",
                  arguments.episodes or task.episodes, "--seed", 1, "--json"])
    with open(arguments.runs / folder / "metrics.jsonl") as log:
        seconds = [json.loads(line)["seconds"] for line in log][-1]
    return {"task": name, "seed": seed, "steps": steps, "env_id": task.env, "env_steps": result["env_steps"],
            "seconds": round(seconds, 1), "episodes": result["episodes"], "return_mean": round(result["return_mean"], 2),
            "return_std": round(result["return_std"], 2), "digest": result["digest"]}


def main():
    arguments = parse_arguments()
    rows = []
    if arguments.out.exists():
        with open(arguments.out, newline="") as file:
            rows = list(csv.DictReader(file))
    done = {(row["task"], row["seed"], row["steps"]) for row in rows}
    for name in [name for name in TASKS if not arguments.only or name in arguments.only.split(",")]:
        steps = arguments.steps or TASKS[name].steps
        for seed in range(1, arguments.seeds + 1):
            if (name, str(seed), str(steps)) in done:
                continue
            row = learn(arguments, name, seed, steps)
            arguments.out.parent.mkdir(parents=True, exist_ok=True)
            with open(arguments.out, "a", newline="") as file:
                writer = csv.DictWriter(file, FIELDS, lineterminator="\n")
                if file.tell() == 0:
                    writer.writeheader()
                writer.writerow(row)
            print(f"{name}, seed {seed}: {row['return_mean']} after {row['env_steps']} env steps", file=sys.stderr)


if __name__ == "__main__":
    main()
