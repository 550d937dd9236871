#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measures Skein beside its peers on this machine: PPO on HalfCheetah-v5, every library in a virtual environment of its own.

    scripts/compare_peers.py --install                         # fetches the peers (8 GB) into .deps/peers
    scripts/compare_peers.py --out DIR                         # env-steps/s at the sizes of the reference study
    scripts/compare_peers.py --out DIR --target 5000           # seconds to that return, each with its own recipe

The reference study's sizes: two hidden layers of 64, 16,384 env steps an iteration, 5 epochs, minibatches of 4,096.
The speed is that after the first third of the time. With --target each library runs with settings that it or its users
published (named in scripts/peers/*.py), until the mean return of the last training episodes (20 of a peer's, 100 of
Skein's, as each reports them) reaches the target, or for --seconds. DIR gets NAME-RECIPE-SEED.jsonl of each run and report.md; a run whose file is complete is not repeated.
Nothing else should run on the machine meanwhile.
"""

import argparse
import contextlib
import json
import os
import pathlib
import shutil
import signal
import statistics
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[1]
HOME = ROOT / ".deps" / "peers"
MUJOCO = ["mujoco==2.3.7", "imageio", "packaging"]
PACKAGES = {
    "envpool": ["envpool==1.2.5", "gymnasium==1.2.1"],
    "sample_factory": ["sample-factory==2.1.1", *MUJOCO],
    "stable_baselines3": ["stable-baselines3==2.9.2", "gymnasium==1.2.1", *MUJOCO],
    "rllib": ["ray[rllib]==2.60.0", *MUJOCO],
    "torchrl": ["torchrl==0.14.1", "gymnasium==1.2.1", *MUJOCO],
}
PROGRAMS = {name: f"{name}_ppo.py" for name in PACKAGES}
TITLES = {
    "skein": "Skein, on_policy",
    "skein_overlapped": "Skein, overlapped",
    "envpool": "EnvPool 1.2.5 and a plain PyTorch PPO",
    "sample_factory": "Sample Factory 2.1.1",
    "stable_baselines3": "Stable-Baselines3 2.9.2",
    "rllib": "RLlib 2.60.0",
    "torchrl": "TorchRL 0.14.1",
}
STUDY = ["rollout.steps_per_iteration=16384", "ppo.epochs=5", "ppo.minibatch_size=4096", "model.hidden=[64, 64]"]


def install():
    HOME.mkdir(parents=True, exist_ok=True)
    pip = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    torch = HOME / "torch"
    if not (torch / "bin" / "python").exists():
        subprocess.run([sys.executable, "-m", "venv", torch], check=True)
    subprocess.run([torch / "bin" / "python", *pip, "torch==2.11.0", "numpy"], check=True)
    shared = next((torch / "lib").glob("python3.*/site-packages"))
    for name, packages in PACKAGES.items():
        print(f"installing {name}", flush=True)
        home = HOME / name
        if not (home / "bin" / "python").exists():
            subprocess.run([sys.executable, "-m", "venv", home], check=True)
            # PyTorch takes gigabytes: one copy serves all.
            (next((home / "lib").glob("python3.*/site-packages")) / "shared_torch.pth").write_text(f"{shared}\n")
        subprocess.run([home / "bin" / "python", *pip, *packages], check=True)


def run_peer(name, args, seed, out):
    command = [HOME / name / "bin" / "python", ROOT / "scripts" / "peers" / PROGRAMS[name]]
    command += ["--recipe", args.recipe, "--seconds", str(args.seconds), "--seed", str(seed), "--cores", str(args.cores)]
    if args.target:
        command += ["--target", str(args.target)]
    with open(out, "w") as file, open(out.with_suffix(".log"), "w") as log:
        # A session of its own: processes that a peer leaves running would slow the next one down.
        process = subprocess.Popen(command, stdout=file, stderr=log, start_new_session=True)
        try:
            return process.wait(timeout=args.seconds + 300)
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)


def run_skein(name, args, seed, out):
    """Trains, reads metrics.jsonl as it grows, and stops the run as peers stop themselves."""
    runs = out.parent / "runs"
    shutil.rmtree(runs / out.stem, ignore_errors=True)
    mode = "overlapped" if name == "skein_overlapped" else "on_policy"
    command = [args.skein, "train", "--runs-dir", runs, "--name", out.stem, "--no-eval", "--seed", str(seed)]
    if args.target:
        command += ["--config", ROOT / "configs" / "half_cheetah_ppo.yaml"]
    else:
        settings = [*STUDY, f"sync.mode={mode}"]
        command += ["--env", "HalfCheetah-v5", "--steps", str(10**9), *(x for s in settings for x in ("--set", s))]
        command += ["--recipe", "none"]
    start, rows, metrics = time.monotonic(), [], runs / out.stem / "metrics.jsonl"
    with open(out.with_suffix(".log"), "w") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log)
        reached = False
        while process.poll() is None and time.monotonic() - start < args.seconds and not reached:
            time.sleep(0.2)
            lines = metrics.read_text().splitlines() if metrics.exists() else []
            for line in lines[len(rows) :]:
                try:
                    row = json.loads(line)
                except ValueError:
                    break
                rows.append(
                    {"env_steps": row["env_steps"], "seconds": row["seconds"], "return": row["episode_return_mean"]}
                )
                reached = bool(args.target and (rows[-1]["return"] or 0) >= args.target)
        process.terminate()
        process.wait()
    out.write_text("".join(json.dumps(row) + "\n" for row in rows))
    shutil.rmtree(runs)
    return 0 if rows else 1


def read(path):
    """The rows of a run; some libraries print other lines, too."""
    return [json.loads(line) for line in path.read_text().splitlines() if line.startswith('{"env_steps"')]


def speed(rows):
    """Env steps per second after the first third of the time."""
    rows = [row for row in rows if row["seconds"] >= rows[-1]["seconds"] / 3]
    return (rows[-1]["env_steps"] - rows[0]["env_steps"]) / (rows[-1]["seconds"] - rows[0]["seconds"])


def report(args, results):
    cores = f"{args.cores} cores of {os.uname().machine}"
    if args.target:
        lines = [f"Seconds of training to a mean return of {args.target:.0f}, {cores}. The mean is that of the last training",
                 "episodes, 100 of Skein's and 20 of each peer's, so Skein's comes later:", ""]
        lines += ["| | median | each run | highest return seen |", "|---|---|---|---|"]
        for name, runs in results.items():
            times = [next((r["seconds"] for r in rows if (r["return"] or -1e9) >= args.target), None) for rows in runs]
            best = max((r["return"] for rows in runs for r in rows if r["return"] is not None), default=float("nan"))
            # A run that never gets there took longer than any that did.
            ordered = sorted(float("inf") if t is None else t for t in times)
            middle = ordered[(len(ordered) - 1) // 2 if len(ordered) % 2 else len(ordered) // 2]
            shown = "not reached" if middle == float("inf") else f"{middle:.0f}"
            each = ", ".join("-" if t is None else f"{t:.0f}" for t in times)
            lines.append(f"| {TITLES[name]} | {shown} | {each} | {best:.0f} |")
    else:
        base = statistics.median(speed(rows) for rows in results["skein"]) if "skein" in results else None
        lines = [f"Env steps a second while training, {cores}, median of the rounds:", ""]
        lines += ["| | env-steps/s | each round | Skein on_policy is faster by |", "|---|---|---|---|"]
        for name, runs in results.items():
            speeds = [speed(rows) for rows in runs]
            factor = f"{base / statistics.median(speeds):.1f}" if base else ""
            each = ", ".join(f"{s:,.0f}" for s in speeds)
            lines.append(f"| {TITLES[name]} | {statistics.median(speeds):,.0f} | {each} | {factor} |")
    return "\n".join(lines) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--install", action="store_true")
    parser.add_argument("--out", type=pathlib.Path)
    parser.add_argument("--peers", default=",".join(TITLES), help="which, separated by commas")
    parser.add_argument("--seconds", type=float, default=60, help="of each run; with --target the longest")
    parser.add_argument("--rounds", type=int, default=3, help="runs of each, in turn, with seeds 1, 2, ...")
    parser.add_argument("--target", type=float, help="stop at this return, with each library's own recipe")
    parser.add_argument("--skein", type=pathlib.Path, default=ROOT / "build" / "release" / "skein")
    parser.add_argument("--cores", type=int, default=os.cpu_count())
    args = parser.parse_args()
    if args.install:
        install()
    if not args.out:
        return 0 if args.install else parser.error("give --out DIR, or --install")
    args.recipe = "own" if args.target else "study"
    names = [name for name in args.peers.split(",") if not (args.target and name == "skein_overlapped")]
    for name in names:
        if name not in TITLES:
            parser.error(f"no peer '{name}'; there are {', '.join(TITLES)}")
        if name in PACKAGES and not (HOME / name / "bin" / "python").exists():
            parser.error(f"{name} is not installed; run: scripts/compare_peers.py --install")
    args.out.mkdir(parents=True, exist_ok=True)
    total, begun = args.rounds * len(names), time.monotonic()
    results = {name: [] for name in names}
    for seed in range(1, args.rounds + 1):
        for number, name in enumerate(names):
            out = args.out / f"{name}-{args.recipe}-{seed}.jsonl"
            position = (seed - 1) * len(names) + number
            if not out.exists() or len(read(out)) < 3:
                left = (total - position) * args.seconds
                print(f"{position + 1}/{total} {name}, seed {seed}; at most {left / 60:.0f} minutes left", flush=True)
                partial = out.with_suffix(".part")
                run = run_skein if name.startswith("skein") else run_peer
                code = run(name, args, seed, partial)
                if code or len(read(partial)) < 3:
                    print(f"{name}: no result (exit code {code}); see {partial.with_suffix('.log')}", file=sys.stderr)
                    return 70
                partial.rename(out)
                partial.with_suffix(".log").unlink()
            results[name].append(read(out))
    text = report(args, results)
    (args.out / "report.md").write_text(text)
    print(text)
    print(f"took {(time.monotonic() - begun) / 60:.0f} minutes; written to {args.out}/report.md")
    return 0


if __name__ == "__main__":
    sys.exit(main())
