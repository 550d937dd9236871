#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Trains one configuration with several seeds and tells how well it learns.

    scripts/learning_study.py --config configs/half_cheetah_ppo.yaml --out docs/benchmarks/half_cheetah_ppo

Each seed is a `skein train` of its own, one after the other; then `skein eval` plays episodes with deterministic actions
for each of its checkpoints. Writes OUT.csv (one line for each checkpoint), OUT.png (the learning curves, by
gnuplot) and prints tables in Markdown: the test return (or other --figure) of each seed at the --at steps, and the
wall-clock seconds until a checkpoint's passed --target, as the learner's own log has them. A seed whose rows are in OUT.csv
is not done again, and rows of another form of the configuration are refused; a run that was interrupted goes on from its
last checkpoint.

    scripts/learning_study.py --suite recipes

Trains each shipped environment with `skein train --env X` and nothing else, five seeds on which no recipe but Hopper's
was chosen, and tells which reach the environment's threshold. Writes a line of OUT.csv as soon as a seed is done, does not do
again what is there, and prints the table so far. --only ENV,ENV and --seeds N make it smaller, --dry-run only prints the
table. On a run that was interrupted it goes on from its last checkpoint.

    scripts/learning_study.py --suite mujoco

The first form for the configuration of each MuJoCo task, OUT a folder (docs/benchmarks/mujoco-suite), and a table beside the best published PPO. Ten
seeds that had no part in the choice of the configuration: 201 to 210, of four tasks later ones; of Humanoid over ten million steps
four, which take an hour each. A seed whose rows are there is not done again. --only hopper,ant_27 makes it smaller, --dry-run only prints the table of the seeds that are done.

    scripts/learning_study.py --suite wall-clock

Five seeds of the tasks of which rl_games' time on a graphics card is known, the same runs or those of a configuration
for a short wait: the median of the seconds of learning until a checkpoint has passed the task's return. For a machine that does
nothing else meanwhile.

    scripts/learning_study.py --suite memory

As the suite of recipes, ten seeds of each configuration with a memory and of the same without one (--set
model.memory=none), side by side.
"""

import argparse
import csv
import hashlib
import json
import math
import pathlib
import re
import statistics
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from learning_suites import GENERAL, MEMORY, MILLION, MUJOCO, RACES, RECIPES, Reference  # noqa: E402  Beside this script.
from learning_tables import (draw, find_row, first_above, mujoco_line, number, returns_table, suite_table,  # noqa: E402
                             table_steps, target_table, title)

DOCUMENTS = {suite: pathlib.Path("docs/benchmarks") / out for suite, out in
             [("recipes", "recipes/recipes"), ("mujoco", "mujoco-suite"), ("wall-clock", "mujoco-suite"),
              ("memory", "memory/memory")]}  # What --out is by default.
INTERVAL = 100000  # Env steps between checkpoints.
TABLE_EPISODES = 100  # Of the checkpoints that a table shows; the others are for the curves.


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--config", type=pathlib.Path, help="YAML of the run")
    parser.add_argument("--suite", choices=["recipes", "mujoco", "wall-clock", "memory"], help="instead of --config")
    parser.add_argument("--only", default="", help="of a suite: environments, comma-separated")
    parser.add_argument("--dry-run", action="store_true", help="of a suite: train nothing, print the table so far")
    parser.add_argument("--seeds", type=int, help="so many; default 10, of humanoid_10m 4, of the suites recipes and wall-clock 5")
    parser.add_argument("--first-seed", type=int, help="default: 1; of a suite as said above")
    parser.add_argument("--steps", type=int, help="env steps of each run; default: the configuration's")
    parser.add_argument("--interval", type=int, help="env steps between checkpoints; default 100,000, of a race maybe others")
    parser.add_argument("--at", default="1000000,3000000", help="env steps of the table's columns")
    parser.add_argument("--target", type=float, default=5000, help="test return, or other figure, to reach")
    parser.add_argument("--figure", default="return_mean",
                        help="what tables and curves show: return_mean or one of the environment's own, e.g. success_rate")
    parser.add_argument("--episodes", type=int, default=10,
                        help=f"test episodes of each checkpoint; at the --at steps {TABLE_EPISODES} at least")
    parser.add_argument("--eval-seed", type=int, default=1, help="of the test episodes")
    parser.add_argument("--learners", type=int, default=1, help="learner ranks")
    parser.add_argument("--set", action="append", default=[], metavar="A.B=C", help="passed on to skein train")
    parser.add_argument("--bin", type=pathlib.Path, default="build/release", help="folder of the programs")
    parser.add_argument("--out", type=pathlib.Path,
                        help="path of the results without ending; default of a suite: where its documents are")
    arguments = parser.parse_args()
    if (arguments.config is None) == (arguments.suite is None):
        parser.error("one of --config and --suite")
    if arguments.out is None:
        if arguments.suite is None:
            parser.error("--config needs --out")
        arguments.out = DOCUMENTS[arguments.suite]
    return arguments


def columns_of(arguments):
    return sorted({int(steps) for steps in arguments.at.split(",")})


def seeds_of(arguments, usual, count):
    """Those that are asked for; `usual`: the first one where none is."""
    first = usual if arguments.first_seed is None else arguments.first_seed
    return list(range(first, first + (count if arguments.seeds is None else arguments.seeds)))


def run(command):
    result = subprocess.run([str(word) for word in command], capture_output=True, text=True)
    if result.returncode != 0:
        sys.exit(f"{' '.join(map(str, command))}: exit code {result.returncode}\n{result.stdout[-2000:]}{result.stderr[-2000:]}")
    return result.stdout


def train(arguments, seed):
    name = f"{arguments.suite + '-' if arguments.suite else ''}{arguments.out.name}-s{seed}"
    folder = pathlib.Path("runs") / name
    command = [arguments.bin / "skein", "train", "--config", arguments.config, "--seed", seed, "--name", name,
               "--no-eval", "--set", f"checkpoint.interval_steps={arguments.interval or INTERVAL}",
               "--set", "checkpoint.keep=1000000"]
    if arguments.steps:
        command += ["--steps", arguments.steps]
    if arguments.learners > 1:
        command += ["--learners", arguments.learners]
    for setting in arguments.set:
        command += ["--set", setting]
    run(command)
    check_finished(folder)
    return folder


def check_finished(folder):
    """Ends the study where a run was stopped in order, which is exit code 0 as well."""
    target = int(re.search(r"^total_steps: (\d+)", (folder / "config.yaml").read_text(), re.M).group(1))
    steps = max(map(steps_of, (folder / "checkpoints").glob("step_*")))
    if steps < target:
        sys.exit(f"{folder.name} was stopped after {steps:,} of {target:,} env steps; the same command goes on")


def seconds_at(folder):
    """Wall-clock seconds of learning, by env steps. A run that was resumed counts on from where it went on."""
    seconds, before, last = {}, 0, 0
    with open(folder / "metrics.jsonl") as log:
        for line in map(json.loads, log):
            if line["seconds"] < last:
                before = max(value for steps, value in seconds.items() if steps < line["env_steps"])
            last = line["seconds"]
            seconds[line["env_steps"]] = before + last
    return seconds


def steps_of(checkpoint):
    return int(checkpoint.name.split("_")[1])


def settings_digest(config, settings):
    """Of the configuration without its comments, and of texts that say what is set besides."""
    lines = [line for line in config.read_text().splitlines() if not line.lstrip().startswith("#")]
    return hashlib.sha256("\n".join([*lines, *settings]).encode()).hexdigest()[:8]


def evaluate(arguments, seed, folder):
    seconds = seconds_at(folder)
    checkpoints = sorted((folder / "checkpoints").glob("step_*"))
    # The first ones at the steps of the table.
    in_table = {next((c for c in checkpoints if steps_of(c) >= steps), None) for steps in columns_of(arguments)}
    for checkpoint in checkpoints:
        episodes = max(arguments.episodes, TABLE_EPISODES) if checkpoint in in_table else arguments.episodes
        result = json.loads(run([arguments.bin / "skein", "eval", "--checkpoint", checkpoint, "--episodes", episodes,
                                 "--seed", arguments.eval_seed, "--json"]))
        yield {"seed": seed, "env_steps": result["env_steps"], "seconds": round(seconds[result["env_steps"]], 2),
               "settings": settings_digest(arguments.config, [str(arguments.steps), *arguments.set]), "episodes": episodes,
               "return_mean": round(result["return_mean"], 2), "return_std": round(result["return_std"], 2),
               **{name: round(value, 4) for name, value in result["metrics_mean"].items()},
               "digest": result["digest"], "mujoco": result["mujoco_version"]}


SUITE_FIELDS = ["env", "seed", "env_steps", "figure", "value", "std", "digest", "recipe", "asked", "mujoco"]


def suite_row(arguments, task, seed):
    name = f"{arguments.suite}-{task.env}-{task.recipe}-s{seed}".replace(" ", "-")
    asked = [] if task.recipe == "auto" else ["--recipe", task.recipe]
    what = ["--config", task.config] if task.config else ["--env", task.env, *asked]
    printed = run([arguments.bin / "skein", "train", *what, "--seed", seed, "--name", name, "--no-eval", *task.settings])
    check_finished(pathlib.Path("runs") / name)
    recipe = re.match(r"recipe: ([^\s,:]+)", printed)
    result = json.loads(run([arguments.bin / "skein", "eval", "--checkpoint", pathlib.Path("runs") / name, "--episodes",
                             100, "--seed", arguments.eval_seed, "--json"]))
    value = result["return_mean"] if task.figure == "return_mean" else result["metrics_mean"][task.figure]
    return {"env": task.env, "seed": seed, "env_steps": result["env_steps"], "figure": task.figure,
            "value": round(value, 4), "std": round(result["return_std"], 1), "digest": result["digest"],
            "recipe": recipe.group(1) if recipe else task.config, "asked": task.recipe, "mujoco": result["mujoco_version"]}


def run_suite(arguments):
    path = pathlib.Path(f"{arguments.out}.csv")
    path.parent.mkdir(parents=True, exist_ok=True)
    rows = []
    if path.exists():
        with open(path, newline="") as file:
            rows = list(csv.DictReader(file))
    suite = MEMORY if arguments.suite == "memory" else RECIPES + GENERAL
    usual = MEMORY if arguments.suite == "memory" else RECIPES
    wanted = arguments.only.split(",") if arguments.only else [task.env for task in usual]
    count = 10 if arguments.suite == "memory" else 5
    seeds = {task: seeds_of(arguments, task.first_seed, count) for task in suite if task.env in wanted}
    todo = [(seed, task) for task in seeds for seed in seeds[task] if find_row(rows, task, seed) is None]
    for seed, task in [] if arguments.dry_run else todo:
        rows.append(suite_row(arguments, task, seed))
        with open(path, "a", newline="") as file:
            writer = csv.DictWriter(file, SUITE_FIELDS, lineterminator="\n")
            if file.tell() == 0:
                writer.writeheader()
            writer.writerow(rows[-1])
        print(f"{task.env} seed {seed}: {task.figure} {rows[-1]['value']}", file=sys.stderr, flush=True)
    print(suite_table(rows, seeds))


def study(arguments, seeds):
    """All seeds of one configuration; a seed whose rows are in OUT.csv is not done again. Returns the rows."""
    figure = arguments.figure
    arguments.out.parent.mkdir(parents=True, exist_ok=True)
    path = pathlib.Path(f"{arguments.out}.csv")
    rows = read_rows(path) if path.exists() else []
    settings = settings_digest(arguments.config, [str(arguments.steps), *arguments.set])
    if any(row.get("settings", settings) != settings for row in rows):
        sys.exit(f"{path} has rows of another form of {arguments.config.name}: remove them, and the folders of their runs")
    for seed in seeds:
        if any(row["seed"] == seed for row in rows):
            continue
        mine = list(evaluate(arguments, seed, train(arguments, seed)))
        rows += mine
        with open(path, "w", newline="") as out:
            fields = dict.fromkeys(name for row in rows for name in row)
            writer = csv.DictWriter(out, fields, lineterminator="\n")
            writer.writeheader()
            writer.writerows(rows)
        print(f"seed {seed}: {title(figure)} {number(mine[-1][figure], figure)} after {mine[-1]['env_steps']:,} steps, "
              f"{mine[-1]['seconds']:.0f} s", file=sys.stderr, flush=True)
    drawn = sorted({row["seed"] for row in rows})
    draw(rows, drawn, arguments.out, f"{arguments.config.name}, {len(drawn)} seeds", figure)
    print(returns_table(rows, seeds, [steps for steps in columns_of(arguments) if steps <= rows[-1]["env_steps"]], figure))
    print()
    print(target_table(rows, seeds, arguments.target, figure))
    return rows


def read_rows(path):
    """The rows of a CSV with its numbers as numbers."""
    text = ("digest", "mujoco", "settings")
    whole = ("seed", "env_steps", "episodes")
    with open(path, newline="") as file:
        return [{name: value if name in text else int(value) if name in whole else float(value)
                 for name, value in row.items() if value} for row in csv.DictReader(file)]


def study_line(arguments, line, target, seeds):
    """The rows of a line of a suite: those that are there, and without --dry-run those of the seeds that are missing."""
    path = arguments.out / f"{line.name}.csv"
    if arguments.dry_run:
        return read_rows(path) if path.exists() else []
    print(f"\n## {line.name}\n", flush=True)
    at = ",".join(map(str, table_steps(line)))
    return study(argparse.Namespace(**{**vars(arguments), "out": arguments.out / line.name, "target": target, "at": at,
                                       "config": pathlib.Path(f"configs/{line.config or line.name}_ppo.yaml"),
                                       "set": [*arguments.set, *line.settings]}), seeds)


def chosen(arguments, lines):
    wanted = arguments.only.split(",") if arguments.only else [line.name for line in lines]
    unknown = set(wanted) - {line.name for line in lines}
    if unknown:
        sys.exit(f"--only: the suite has no {', '.join(sorted(unknown))}; it has {', '.join(line.name for line in lines)}")
    return [line for line in lines if line.name in wanted]


def run_mujoco(arguments):
    lines = ["| task | env steps | return, mean +- std of the seeds | seeds | which | best published PPO |", "|---" * 6 + "|"]
    for task in chosen(arguments, MUJOCO):
        seeds = seeds_of(arguments, task.first_seed, task.seeds)
        rows = study_line(arguments, task, max(task.published.values(), default=0), seeds)
        lines += [mujoco_line(task, steps, rows, seeds) for steps in table_steps(task)]
    print("\n" + "\n".join(lines))


def run_wall_clock(arguments):
    lines = ["| task | return | median seconds | each seed's | seeds | rl_games on an RTX 3090 |", "|---" * 6 + "|"]
    for race in chosen(arguments, RACES):
        line = next((task for task in MUJOCO if task.name == race.name), Reference(race.name, MILLION, {}, ""))
        seeds = seeds_of(arguments, race.first_seed, 5)
        interval = {"interval": arguments.interval or race.interval}
        rows = study_line(argparse.Namespace(**{**vars(arguments), **interval}), line, race.target, seeds)
        done = {row["seed"] for row in rows}
        passed = [first_above(rows, seed, race.target) for seed in seeds if seed in done]
        seconds = [row["seconds"] if row else math.inf for row in passed]
        shown = ["never" if value == math.inf else f"{value:.1f}"
                 for value in [statistics.median(seconds) if seconds else 0, *seconds]]
        lines.append(f"| {race.name} | {race.target:,} | {shown[0] if seconds else '-'} | {', '.join(shown[1:]) or '-'} | "
                     f"{len(seconds)} | {race.rl_games} |")
    print("\n" + "\n".join(lines))


def main():
    arguments = parse_arguments()
    if arguments.suite in ("recipes", "memory"):
        run_suite(arguments)
    elif arguments.suite == "mujoco":
        run_mujoco(arguments)
    elif arguments.suite == "wall-clock":
        run_wall_clock(arguments)
    else:
        study(arguments, seeds_of(arguments, 1, 10))


if __name__ == "__main__":
    main()
