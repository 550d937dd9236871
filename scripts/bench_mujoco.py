#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measures the speed of all MuJoCo environments: bare mj_step, VectorEnv, a whole actor, and EnvPool, in turn.

    scripts/bench_mujoco.py --out DIR                         # all of them, about 25 minutes on two cores
    scripts/bench_mujoco.py --out DIR --envs Ant-v5,Hopper-v5 --rounds 1 --seconds 0.2

Each round measures of each environment `skein bench env` and `skein bench rollout` (both beside bare mj_step, in the same
process) and EnvPool with each of five settings (scripts/peers/envpool_steps.py; scripts/compare_peers.py --install fetches
it). DIR gets ENV-ROUND-WHAT.json of each measurement, results.csv and report.md; what is measured already is not measured
again, and must be of the same machine and build. Ratios are medians over the rounds. Of EnvPool the setting with the
highest median counts. Nothing else should run on the machine meanwhile.
"""

import argparse
import csv
import json
import pathlib
import statistics
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[1]
PEER = ROOT / ".deps" / "peers" / "envpool" / "bin" / "python"
ENVS = (
    "Ant HalfCheetah Hopper Humanoid HumanoidStandup InvertedDoublePendulum InvertedPendulum Pusher Reacher Swimmer Walker2d"
)
COLUMNS = [
    "env",
    "bare_steps_per_second",
    "env_steps_per_second",
    "env_ratio",
    "env_ratio_min",
    "env_ratio_max",
    "rollout_steps_per_second",
    "rollout_ratio",
    "rollout_ratio_min",
    "rollout_ratio_max",
    "envpool_steps_per_second",
    "envpool_setting",
    "times_envpool",
]


def command(what, env, args, out):
    if what == "envpool":
        program = [args.envpool, ROOT / "scripts" / "peers" / "envpool_steps.py", "--env", env, "--threads", args.cores]
        return [*program, "--seconds", args.seconds]
    parallel = {"env": "--threads", "rollout": "--runners"}[what]
    turns = {"env": 6, "rollout": 2}[what]  # The machine's speed changes within a second; an actor needs one to begin.
    program = [args.skein, "bench", what, "--env", env, parallel, args.cores, "--rounds", turns]
    return [*program, "--seconds", 2 * args.seconds / turns, "--json", out]


def measure(what, env, args, out):
    partial = out.with_suffix(".part")
    words = [str(word) for word in command(what, env, args, partial)]
    done = subprocess.run(words, capture_output=True, text=True, timeout=300)
    if done.returncode != 0:
        sys.exit(f"{' '.join(words)}: exit code {done.returncode}\n{done.stderr[-2000:]}")
    if what == "envpool":
        partial.write_text(done.stdout)
    partial.rename(out)


def machine_of(measured):
    """What a measurement was made on and with, but for what else ran there."""
    return {key: value for key, value in measured["machine"].items() if key != "load_average"}


def read(out):
    text = out.read_text()
    if out.stem.endswith("envpool"):
        return [json.loads(line) for line in text.splitlines()]
    return json.loads(text)


def summary(env, rounds):
    """One line of the table; `rounds`: what was measured in each, by name."""
    ours = {what: [one[what]["summary"] for one in rounds] for what in ("env", "rollout")}
    median = lambda rows, key: statistics.median(row[key] for row in rows)
    line = {
        "env": env,
        "bare_steps_per_second": median(ours["env"], "limit_env_steps_per_second"),
        "env_steps_per_second": median(ours["env"], "env_steps_per_second"),
        "rollout_steps_per_second": median(ours["rollout"], "env_steps_per_second"),
    }
    for what, rows in ours.items():
        ratios = [row["ratio"] for row in rows]
        line |= {f"{what}_ratio": statistics.median(ratios)}
        line |= {f"{what}_ratio_min": min(ratios), f"{what}_ratio_max": max(ratios)}
    rates = {}
    for one in rounds:
        for row in one["envpool"]:
            setting = f"{row['num_envs']} environments, batches of {row['batch_size']}"
            rates.setdefault(setting, []).append(row["env_steps_per_second"])
    best = max(rates, key=lambda setting: statistics.median(rates[setting]))
    line["envpool_steps_per_second"] = statistics.median(rates[best])
    line["envpool_setting"] = best
    line["times_envpool"] = line["env_steps_per_second"] / line["envpool_steps_per_second"]
    return line


def report(lines, machine, rounds):
    cores = f"{machine['cores']} cores of {machine['cpu']}, MuJoCo {machine['mujoco']}"
    text = [f"Env-steps/s, {cores}; medians of {rounds} rounds, in brackets the least and the largest ratio.", ""]
    text += ["| | bare mj_step | VectorEnv | ratio | actor | ratio | EnvPool | VectorEnv / EnvPool |"]
    text += ["|---" * 8 + "|"]
    for x in lines:
        cells = [x["env"], f"{x['bare_steps_per_second']:,.0f}"]
        for what in ("env", "rollout"):
            ratio = f"{x[f'{what}_ratio']:.3f} ({x[f'{what}_ratio_min']:.3f} to {x[f'{what}_ratio_max']:.3f})"
            cells += [f"{x[f'{what}_steps_per_second']:,.0f}", ratio]
        cells += [f"{x['envpool_steps_per_second']:,.0f} ({x['envpool_setting']})", f"{x['times_envpool']:.2f}"]
        text.append("| " + " | ".join(cells) + " |")
    return "\n".join(text) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=pathlib.Path, required=True)
    parser.add_argument("--envs", default=",".join(f"{name}-v5" for name in ENVS.split()), help="separated by commas")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=1.2, help="in a round: EnvPool's settings once, others twice")
    parser.add_argument("--skein", type=pathlib.Path, default=ROOT / "build" / "release" / "skein")
    parser.add_argument("--cores", type=int, default=2, help="threads, runners, and threads of EnvPool")
    parser.add_argument("--envpool", type=pathlib.Path, default=PEER, help="a Python that has EnvPool")
    args = parser.parse_args()
    if not args.envpool.exists():
        parser.error("EnvPool is not installed; run: scripts/compare_peers.py --install")
    args.out.mkdir(parents=True, exist_ok=True)
    envs, begun = args.envs.split(","), time.monotonic()
    results = {env: [{} for _ in range(args.rounds)] for env in envs}
    jobs = [(n, env, what) for n in range(args.rounds) for env in envs for what in ("env", "rollout", "envpool")]
    measured = 0
    for number, (n, env, what) in enumerate(jobs):
        out = args.out / f"{env}-{n + 1}-{what}.json"
        if not out.exists():
            measure(what, env, args, out)
            measured += 1
            left = (time.monotonic() - begun) / measured * (len(jobs) - number - 1)
            print(f"{number + 1}/{len(jobs)} {env} {what}; about {left / 60:.0f} minutes left", flush=True)
        results[env][n][what] = read(out)
        first = results[envs[0]][0]["env"]
        if what != "envpool" and machine_of(results[env][n][what]) != machine_of(first):
            sys.exit(f"{out} is of another machine or build than {envs[0]}-1-env.json; give another --out")
    lines = [summary(env, results[env]) for env in envs]
    with open(args.out / "results.csv", "w", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS)
        writer.writeheader()
        for line in lines:
            writer.writerow({key: f"{x:.4f}" if isinstance(x, float) else x for key, x in line.items()})
    text = report(lines, results[envs[0]][0]["env"]["machine"], args.rounds)
    (args.out / "report.md").write_text(text)
    print(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
