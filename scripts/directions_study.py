#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How well searches over directions learn: the tables of docs/benchmarks/directions.md and docs/benchmarks/quadruped.md.

    scripts/directions_study.py tasks       # ten seeds of configs/{swimmer,hopper,half_cheetah,walker2d}_ars.yaml, and
                                            # three of configs/humanoid_ars.yaml
    scripts/directions_study.py quadruped   # ten seeds of configs/quadruped_stand_{ars,ppo}.yaml, and the bars
    scripts/directions_study.py episodes    # env steps until half of the crouches stand, by episodes a direction and by
                                            # directions

Each run is a `skein train` and, for each of its checkpoints, a `skein eval` with episodes that it did not train on. What
is finished has its line in a CSV below --data and is not done again; a run that was interrupted goes on from its last
checkpoint. After each run the tables in the documents are written anew, between their marks. --tables only does that.
--only NAME,NAME, --seeds and --steps make a study smaller, for a try. Rows and runs of other --steps, of another --set or
of a configuration that has changed since do not count.
"""

import argparse
import csv
import json
import os
import pathlib
import re
import statistics
import subprocess
import sys
import typing

sys.dont_write_bytecode = True
import learning_study  # noqa: E402  Beside this script.

ROOT = pathlib.Path(__file__).resolve().parents[1]
EPISODES = 200  # Held-out crouches.
FEW_EPISODES, FAR_BELOW = 10, 0.9
CORES = len(os.sched_getaffinity(0))


class Task(typing.NamedTuple):
    """A task of the paper, and what it needed for its threshold."""
    config: str
    threshold: float  # Mean test return.
    paper_episodes: int  # Mania et al. 2018, table 1, V2-t: episodes until a mean return of its threshold.
    interval: int  # Env steps between checkpoints.
    bar: str  # What is asked of ours.
    seeds: int = 10


TASKS = [
    Task("swimmer", 355, 427, 20000, "355"),  # The paper's threshold is 325.
    Task("hopper", 3120, 1973, 100000, "3,344 at 7M"),
    Task("half_cheetah", 3430, 1707, 100000, "3,430 in 30 s, 4,815 at 12M"),
    Task("walker2d", 4390, 24000, 500000, "4,390"),
    Task("humanoid", 6000, 142600, 2000000, "6,000 in 10 core-hours", seeds=3),
]
RUN_FIELDS = ["name", "seed", "steps", "env_steps", "seconds", "episodes", "return_mean", "to_threshold_steps",
              "to_threshold_episodes", "to_threshold_seconds", "cores", "digest", "settings"]
QUADRUPED_FIELDS = ["name", "seed", "steps", "env_steps", "seconds", "episodes", "stood", "after_push", "in_bands",
                    "in_bands_after_push", "digest", "settings"]
EPISODES_FIELDS = ["name", "seed", "steps", "num_envs", "num_dirs", "env_steps", "updates", "return_mean", "stood",
                   "to_half_steps", "digest", "settings"]
# One push of 0.5 m/s before decision 998 to 1,002, at six seconds; then six seconds to stand again. A second push would
# come before decision 1,996 at the earliest.
PUSH = ["env.max_episode_steps=1990", "env.mujoco.push_speed=0.5", "env.mujoco.push_interval_range=[5.99, 6.01]"]
QUIET = ["env.mujoco.push_speed=0"]
# The task of the first phase all along: phases end by env steps, and so after other numbers of updates in each run.
ONE_TASK = ["phases=[]", *QUIET, "env.mujoco.height_range=[0.3, 0.6]", "env.mujoco.upright_range=[0.80, 1.0]",
            "env.mujoco.knee_range=[0, 1.2]", "env.mujoco.fall_height=0.22", "env.mujoco.healthy_reward=0.6",
            "env.mujoco.posture_weight=2.5", "env.mujoco.reset_noise_scale=0.2", "directions.episode_length=250"]
ONE_TASK_STEPS = 4000000
HALF = 0.5  # Share of the crouches that stand.
EPISODES_A_DIRECTION, DIRECTIONS = (1, 4, 16, 64, 256), (4, 8, 16, 32, 64, 128)


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("study", choices=["tasks", "quadruped", "episodes"])
    parser.add_argument("--only", default="", help="names of the first column, comma-separated")
    parser.add_argument("--seeds", type=int, help="so many, from 1 on; default 10, of humanoid and `episodes` 3")
    parser.add_argument("--steps", type=int, help="env steps of each run; default: the configuration's")
    parser.add_argument("--interval", type=int, help="env steps between checkpoints")
    parser.add_argument("--episodes", type=int, help="test episodes of a checkpoint; default 100, of crouches 200")
    parser.add_argument("--set", action="append", default=[], metavar="A.B=C", help="passed on to skein train")
    parser.add_argument("--bin", type=pathlib.Path, default=ROOT / "build/release", help="folder of the programs")
    parser.add_argument("--runs", type=pathlib.Path, default=ROOT / "runs", help="folder of the runs")
    parser.add_argument("--data", type=pathlib.Path, default=ROOT / "docs/benchmarks/directions", help="folder of the CSVs")
    parser.add_argument("--documents", type=pathlib.Path, default=ROOT / "docs/benchmarks", help="folder of the documents")
    parser.add_argument("--tables", action="store_true", help="train nothing, write the tables of what is there")
    return parser.parse_args()


def read_rows(path):
    if not path.exists():
        return []
    with open(path, newline="") as file:
        return list(csv.DictReader(file))


def add_row(path, fields, row):
    path.parent.mkdir(parents=True, exist_ok=True)
    with open(path, "a", newline="") as file:
        writer = csv.DictWriter(file, fields, lineterminator="\n")
        if file.tell() == 0:
            writer.writeheader()
        writer.writerow(row)


def default_steps(config):
    return int(re.search(r"^total_steps: (\d+)", config.read_text(), re.M).group(1))


def config_of(arguments, name):
    if arguments.study == "tasks":
        return ROOT / f"configs/{name}_ars.yaml"
    return ROOT / f"configs/quadruped_stand_{name if arguments.study == 'quadruped' else 'ars'}.yaml"


def settings_of(arguments, name):
    """What is set besides the configuration."""
    if arguments.study != "episodes":
        return arguments.set
    num_dirs, num_envs = directions_and_episodes(name)
    return [*ONE_TASK, f"directions.num_dirs={num_dirs}", f"directions.num_envs={num_envs}", "directions.dir_chunk=1",
            f"ars.top_dirs={max(1, num_dirs // 4)}", *arguments.set]


def directions_and_episodes(name):
    return map(int, name.split("x"))


def train(arguments, run, name, seed, steps, interval):
    """One run to its end; its folder."""
    command = [arguments.bin / "skein", "train", "--config", config_of(arguments, name), "--seed", seed, "--name", run,
               "--no-eval", "--runs-dir", arguments.runs, "--steps", steps, "--set",
               f"checkpoint.interval_steps={interval}", "--set", "checkpoint.keep=1000000"]
    for setting in settings_of(arguments, name):
        command += ["--set", setting]
    learning_study.run(command)
    return arguments.runs / run


def checkpoints(folder):
    return sorted((folder / "checkpoints").glob("step_*"))


def play(arguments, checkpoint, episodes, settings=()):
    command = [arguments.bin / "skein", "eval", "--checkpoint", checkpoint, "--episodes", episodes, "--seed", 1, "--json"]
    for setting in settings:
        command += ["--set", setting]
    return json.loads(learning_study.run(command))


def manifest(checkpoint):
    return json.loads((checkpoint / "manifest.json").read_text())


def episodes_of(checkpoint):
    return manifest(checkpoint)["episodes"]


def reached(row, env_steps, checkpoint, seconds):
    row.update(to_threshold_steps=env_steps, to_threshold_episodes=episodes_of(checkpoint),
               to_threshold_seconds=round(seconds[env_steps], 1))


def task_row(arguments, task, seed, steps):
    run = f"directions-{task.config}-s{seed}-{steps}"
    folder = train(arguments, run, task.config, seed, steps, arguments.interval or task.interval)
    seconds = learning_study.seconds_at(folder)
    row = {"name": task.config, "seed": seed, "steps": steps, "cores": CORES, "to_threshold_steps": "",
           "to_threshold_episodes": "", "to_threshold_seconds": ""}
    all_of_them = checkpoints(folder)
    episodes = arguments.episodes or 100
    for checkpoint in all_of_them[:-1]:
        # Far below the threshold a few episodes tell so; once it has been reached, only the end counts.
        if play(arguments, checkpoint, FEW_EPISODES)["return_mean"] < FAR_BELOW * task.threshold:
            continue
        result = play(arguments, checkpoint, episodes)
        if result["return_mean"] >= task.threshold:
            reached(row, result["env_steps"], checkpoint, seconds)
            break
    result = play(arguments, all_of_them[-1], episodes)
    at, value = result["env_steps"], result["return_mean"]
    if value >= task.threshold and row["to_threshold_steps"] == "":
        reached(row, at, all_of_them[-1], seconds)
    row.update(env_steps=at, seconds=round(seconds[at], 1), episodes=episodes_of(all_of_them[-1]),
               return_mean=round(value, 1), digest=result["digest"])
    return row


def quadruped_row(arguments, kind, seed, steps):
    run = f"quadruped-{kind}-s{seed}-{steps}"
    folder = train(arguments, run, kind, seed, steps, arguments.interval or 1000000)
    newest = checkpoints(folder)[-1]
    count = arguments.episodes or EPISODES
    quiet, pushed = play(arguments, newest, count, QUIET), play(arguments, newest, count, PUSH)
    seconds = learning_study.seconds_at(folder)
    return {"name": kind, "seed": seed, "steps": steps, "env_steps": quiet["env_steps"],
            "seconds": round(seconds[quiet["env_steps"]], 1), "episodes": episodes_of(newest),
            **{name: round(result["metrics_mean"][metric], 4)
               for name, result, metric in (("stood", quiet, "stood"), ("after_push", pushed, "stood"),
                                            ("in_bands", quiet, "stood_in_bands"),
                                            ("in_bands_after_push", pushed, "stood_in_bands"))},
            "digest": quiet["digest"]}


def episodes_row(arguments, name, seed, steps):
    num_dirs, num_envs = directions_and_episodes(name)
    folder = train(arguments, f"episodes-{name}-s{seed}-{steps}", name, seed, steps, arguments.interval or 250000)
    row = {"name": name, "seed": seed, "steps": steps, "num_envs": num_envs, "num_dirs": num_dirs, "to_half_steps": ""}
    all_of_them = checkpoints(folder)
    for checkpoint in all_of_them:
        if row["to_half_steps"] != "" and checkpoint != all_of_them[-1]:
            continue  # Only the end is still to be known.
        result = play(arguments, checkpoint, arguments.episodes or EPISODES, QUIET)
        stood = result["metrics_mean"]["stood"]
        if stood >= HALF and row["to_half_steps"] == "":
            row["to_half_steps"] = result["env_steps"]
        row.update(env_steps=result["env_steps"], updates=manifest(checkpoint)["iteration"],
                   return_mean=round(result["return_mean"], 1), stood=stood, digest=result["digest"])
    return row


def count(value):
    return f"{float(value):,.0f}"


def mean(rows, field):
    return statistics.mean(float(row[field]) for row in rows)


def median_of_reached(rows, field):
    """The median over all, of whom those that never got there come last."""
    middle = statistics.median(float(row[field]) if row[field] != "" else float("inf") for row in rows)
    return "never" if middle == float("inf") else f"{middle:,.0f}"


def core_hours(seconds, row):
    return float(seconds) * int(row["cores"]) / 3600


def median_core_hours(rows):
    """To the threshold, as median_of_reached()."""
    reached = [float("inf") if row["to_threshold_seconds"] == "" else core_hours(row["to_threshold_seconds"], row)
               for row in rows]
    middle = statistics.median(reached)
    return "never" if middle == float("inf") else f"{middle:,.3f}"


def task_table(rows):
    lines = ["| task | seeds | threshold | reached by | episodes to it, median | the paper's | env steps to it, median | "
             "seconds to it, median | core-hours to it, median | return at the end | at env steps | core-hours | asked |",
             "|---" * 13 + "|"]
    for task in TASKS:
        mine = [row for row in rows if row["name"] == task.config]
        if not mine:
            lines.append(f"| {task.config} | 0 | {task.threshold:,} | | | {count(task.paper_episodes)} | | | | "
                         f"not measured | | | {task.bar} |")
            continue
        reached = sum(row["to_threshold_steps"] != "" for row in mine)
        deviation = statistics.pstdev(float(row["return_mean"]) for row in mine)
        whole = statistics.mean(core_hours(row["seconds"], row) for row in mine)
        lines.append(
            f"| {task.config} | {len(mine)} | {task.threshold:,} | {reached} of {len(mine)} | "
            f"{median_of_reached(mine, 'to_threshold_episodes')} | {count(task.paper_episodes)} | "
            f"{median_of_reached(mine, 'to_threshold_steps')} | {median_of_reached(mine, 'to_threshold_seconds')} | "
            f"{median_core_hours(mine)} | {count(mean(mine, 'return_mean'))} +- {deviation:,.0f} | "
            f"{count(mean(mine, 'env_steps'))} | {whole:,.3f} | {task.bar} |")
    return lines


def quadruped_table(rows):
    lines = ["| algorithm | seeds | stand (0.95 asked) | after a push (0.90 asked) | worst seed | in all bands | in all bands "
             "after a push | env steps | of the guide's 2.62 billion | minutes (10 asked) |", "|---" * 10 + "|"]
    for kind in ("ars", "ppo"):
        mine = [row for row in rows if row["name"] == kind]
        if not mine:
            lines.append(f"| {kind} | 0 | not measured | | | | | | | |")
            continue
        steps = mean(mine, "env_steps")
        worst = min(float(row["stood"]) for row in mine), min(float(row["after_push"]) for row in mine)
        lines.append(f"| {kind} | {len(mine)} | {mean(mine, 'stood'):.3f} | {mean(mine, 'after_push'):.3f} | "
                     f"{worst[0]:.3f}, {worst[1]:.3f} | {mean(mine, 'in_bands'):.3f} | "
                     f"{mean(mine, 'in_bands_after_push'):.3f} | {count(steps)} | 1 / {2.62e9 / steps:,.0f} | "
                     f"{mean(mine, 'seconds') / 60:,.1f} |")
    return lines


def episodes_table(rows):
    lines = ["| directions x episodes | seeds | env steps | updates | return | stand | half stand after env steps, median |",
             "|---" * 7 + "|"]
    for name in study_names("episodes"):
        mine = [row for row in rows if row["name"] == name]
        if not mine:
            lines.append(f"| {name} | 0 | | | not measured | | |")
            continue
        lines.append(f"| {name} | {len(mine)} | {count(mean(mine, 'env_steps'))} | {count(mean(mine, 'updates'))} | "
                     f"{count(mean(mine, 'return_mean'))} | {mean(mine, 'stood'):.3f} | "
                     f"{median_of_reached(mine, 'to_half_steps')} |")
    return lines


def study_names(study):
    if study == "tasks":
        return [task.config for task in TASKS]
    if study == "quadruped":
        return ["ars", "ppo"]
    return list(dict.fromkeys([f"8x{envs}" for envs in EPISODES_A_DIRECTION] + [f"{dirs}x1" for dirs in DIRECTIONS]))


def write_table(document, mark, lines):
    """Replaces what is between `<!-- MARK -->` and `<!-- end of MARK -->`."""
    text = document.read_text()
    begin, end = f"<!-- {mark} -->\n", f"<!-- end of {mark} -->"
    before, found, rest = text.partition(begin)
    _, closed, after = rest.partition(end)
    if not found or not closed:
        sys.exit(f"{document}: has no marks {begin.strip()} and {end}")
    document.write_text(before + begin + "\n" + "\n".join(lines) + "\n\n" + end + after)


STUDIES = {
    "tasks": (RUN_FIELDS, task_table, "directions.md"),
    "quadruped": (QUADRUPED_FIELDS, quadruped_table, "quadruped.md"),
    "episodes": (EPISODES_FIELDS, episodes_table, "quadruped.md"),
}


def do_one(arguments, name, seed, steps):
    if arguments.study == "tasks":
        return task_row(arguments, next(task for task in TASKS if task.config == name), seed, steps)
    if arguments.study == "quadruped":
        return quadruped_row(arguments, name, seed, steps)
    return episodes_row(arguments, name, seed, steps)


def steps_of(arguments, name):
    if arguments.steps:
        return arguments.steps
    return ONE_TASK_STEPS if arguments.study == "episodes" else default_steps(config_of(arguments, name))


def seeds_of(arguments, name):
    if arguments.seeds:
        return arguments.seeds
    if arguments.study == "tasks":
        return next(task.seeds for task in TASKS if task.config == name)
    return 3 if arguments.study == "episodes" else 10


def main():
    arguments = parse_arguments()
    fields, table, document = STUDIES[arguments.study]
    path = arguments.data / f"{arguments.study}.csv"
    names = arguments.only.split(",") if arguments.only else study_names(arguments.study)
    unknown = [name for name in names if name not in study_names(arguments.study)]
    if unknown:
        sys.exit(f"--only {','.join(unknown)}: want some of {', '.join(study_names(arguments.study))}")

    digests = {name: learning_study.settings_digest(config_of(arguments, name),
                                                    [str(steps_of(arguments, name)), *settings_of(arguments, name)])
               for name in study_names(arguments.study)}

    def counted():
        return [row for row in read_rows(path) if row["settings"] == digests.get(row["name"])]

    most = max(seeds_of(arguments, name) for name in names)
    todo = [(name, seed) for seed in range(1, most + 1) for name in names
            if seed <= seeds_of(arguments, name)
            and not any(row["name"] == name and int(row["seed"]) == seed for row in counted())]
    for done, (name, seed) in enumerate([] if arguments.tables else todo, 1):
        row = {**do_one(arguments, name, seed, steps_of(arguments, name)), "settings": digests[name]}
        add_row(path, fields, row)
        write_table(arguments.documents / document, arguments.study, table(counted()))
        print(f"[{done}/{len(todo)}] {row}", file=sys.stderr, flush=True)
    write_table(arguments.documents / document, arguments.study, table(counted()))
    print("\n".join(table(counted())))


if __name__ == "__main__":
    main()
