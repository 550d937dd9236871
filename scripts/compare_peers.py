#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measures Skein beside its peers on this machine: PPO on HalfCheetah-v5, every library in a virtual environment of its own.

    scripts/compare_peers.py --install                         # fetches the peers (8 GB) into .deps/peers
    scripts/compare_peers.py --out DIR                         # env-steps/s at the sizes of the reference study
    scripts/compare_peers.py --out DIR --target 5000           # seconds to that return, each with its own recipe
    scripts/compare_peers.py --out DIR --env hosted            # env-steps/s on Gymnasium's own environment, in Python

The reference study's sizes: two hidden layers of 64, 16,384 env steps an iteration, 5 epochs, minibatches of 4,096.
The speed is that after the first third of the time. With --target each library runs with settings that it or its users
published (named in scripts/peers/*.py), until the mean return of the last training episodes (20 of a peer's, 100 of
Skein's, as each reports them) reaches the target, or for --seconds. DIR gets NAME-RECIPE-SEED.jsonl of each run, report.md
and, without --target, speeds.csv; a run whose file is complete is not repeated.
Skein is measured in both forms of the model. Peers step Gymnasium's file, in which MuJoCo searches for contacts; Skein
lists them (docs/decisions/contacts-as-pairs.md), the same numbers in less time. skein_published and
skein_published_overlapped step the file as peers do.
With --env hosted Skein steps what Stable-Baselines3 steps: Gymnasium's HalfCheetah-v5 in the Python of its virtual environment,
and the report divides by the fastest of Stable-Baselines3's ways to step several. --updates defaults takes Stable-Baselines3's own
10 epochs and minibatches of 64 in place of the study's 5 and 4,096, for both.
Nothing else should run on the machine meanwhile.
"""

import argparse
import contextlib
import csv
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
# Peers that are another one's program with other flags.
VARIANTS = {
    "stable_baselines3_subproc64": ("stable_baselines3", ["--vec", "subproc", "--envs", "64"]),
    "stable_baselines3_dummy16": ("stable_baselines3", ["--vec", "dummy", "--envs", "16"]),
    "stable_baselines3_dummy64": ("stable_baselines3", ["--vec", "dummy", "--envs", "64"]),
}
NATIVE = ["skein", "skein_overlapped", "skein_published", "skein_published_overlapped", *PACKAGES]
HOSTED = ["skein_hosted", "skein_hosted_overlapped", "stable_baselines3", *VARIANTS]
HOSTED_ENV = "python:gymnasium:make?id=HalfCheetah-v5"
TITLES = {
    "skein": "Skein, on_policy",
    "skein_overlapped": "Skein, overlapped",
    "skein_published": "Skein, on_policy, Gymnasium's model",
    "skein_published_overlapped": "Skein, overlapped, Gymnasium's model",
    "envpool": "EnvPool 1.2.5 and a plain PyTorch PPO",
    "sample_factory": "Sample Factory 2.1.1",
    "stable_baselines3": "Stable-Baselines3 2.9.2",
    "rllib": "RLlib 2.60.0",
    "torchrl": "TorchRL 0.14.1",
    "skein_hosted": "Skein, on_policy, hosted in Python",
    "skein_hosted_overlapped": "Skein, overlapped, hosted in Python",
    "stable_baselines3_subproc64": "Stable-Baselines3 2.9.2, SubprocVecEnv of 64",
    "stable_baselines3_dummy16": "Stable-Baselines3 2.9.2, DummyVecEnv of 16",
    "stable_baselines3_dummy64": "Stable-Baselines3 2.9.2, DummyVecEnv of 64",
}
SIZES = {"study": ["ppo.epochs=5", "ppo.minibatch_size=4096"], "defaults": ["ppo.epochs=10", "ppo.minibatch_size=64"]}


def install(names):
    HOME.mkdir(parents=True, exist_ok=True)
    pip = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    torch = HOME / "torch"
    if not (torch / "bin" / "python").exists():
        subprocess.run([sys.executable, "-m", "venv", torch], check=True)
    subprocess.run([torch / "bin" / "python", *pip, "torch==2.11.0", "numpy"], check=True)
    shared = next((torch / "lib").glob("python3.*/site-packages"))
    for name, packages in PACKAGES.items():
        if name not in names:
            continue
        print(f"installing {name}", flush=True)
        home = HOME / name
        if not (home / "bin" / "python").exists():
            subprocess.run([sys.executable, "-m", "venv", home], check=True)
            # PyTorch takes gigabytes: one copy serves all.
            (next((home / "lib").glob("python3.*/site-packages")) / "shared_torch.pth").write_text(f"{shared.resolve()}\n")
        subprocess.run([home / "bin" / "python", *pip, *packages], check=True)


def program(name):
    """The peer whose program and virtual environment it is, and the program's flags."""
    return VARIANTS.get(name, (name, []))


def python(name):
    return HOME / program(name)[0] / "bin" / "python"


def write_published_model(path):
    """Gymnasium's file, excluding two bodies that may not touch anyway: with an exclusion Skein lists no contacts."""
    packages = next((HOME / "stable_baselines3" / "lib").glob("python3.*/site-packages"))
    model = packages / "gymnasium" / "envs" / "mujoco" / "assets" / "half_cheetah.xml"
    before, after = model.read_text().rsplit("</mujoco>", 1)
    path.write_text(f'{before}<contact><exclude body1="bthigh" body2="fthigh"/></contact></mujoco>{after}')


def run_peer(name, args, seed, out):
    peer, flags = program(name)
    command = [python(name), ROOT / "scripts" / "peers" / f"{peer}_ppo.py", *flags]
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
    mode = "overlapped" if name.endswith("overlapped") else "on_policy"
    hosted = name.startswith("skein_hosted")
    model = out.parent / "half_cheetah_published.xml"
    command = [args.bin / "skein", "train", "--runs-dir", runs, "--name", out.stem, "--no-eval", "--seed", str(seed)]
    if args.target:
        command += ["--config", ROOT / "configs" / "half_cheetah_ppo.yaml"]
    else:
        settings = ["rollout.steps_per_iteration=16384", "model.hidden=[64, 64]", *SIZES[args.recipe], f"sync.mode={mode}"]
        if hosted:
            # Threads as the peers have; the more environments a server has, the seldomer it and its runner wake each other.
            settings += [f"env.external.python={python('stable_baselines3')}", f"learner.torch_threads={args.cores}",
                         "rollout.envs_per_runner=64"]
        command += ["--env", HOSTED_ENV if hosted else "HalfCheetah-v5", "--steps", str(10**9)]
        command += [x for s in settings for x in ("--set", s)]
        command += ["--recipe", "none"]
    if name.startswith("skein_published"):
        write_published_model(model)
        command += ["--set", f"env.mujoco.xml_file={model.resolve()}"]
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
    shutil.rmtree(runs, ignore_errors=True)
    return 0 if rows else 1


def read(path):
    """The rows of a run; some libraries print other lines, too."""
    return [json.loads(line) for line in path.read_text().splitlines() if line.startswith('{"env_steps"')]


def speed(rows):
    """Env steps per second after the first third of the time."""
    rows = [row for row in rows if row["seconds"] >= rows[-1]["seconds"] / 3]
    return (rows[-1]["env_steps"] - rows[0]["env_steps"]) / (rows[-1]["seconds"] - rows[0]["seconds"])


def title(name, args):
    way = ", SubprocVecEnv of 16" if args.env == "hosted" and name == "stable_baselines3" else ""
    return TITLES[name] + way


def write_speeds(path, results):
    with open(path, "w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["name", "seed", "env_steps_per_second", "env_steps", "seconds"])
        for name, runs in results.items():
            for seed, rows in enumerate(runs, 1):
                writer.writerow([name, seed, round(speed(rows), 1), rows[-1]["env_steps"], round(rows[-1]["seconds"], 1)])


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
        speeds = {name: [speed(rows) for rows in runs] for name, runs in results.items()}
        medians = {name: statistics.median(values) for name, values in speeds.items()}
        base = medians.get("skein_hosted" if args.env == "hosted" else "skein")
        lines = [f"Env steps a second while training, {cores}, median of the rounds:", ""]
        # With the model in Skein's form and, where it was measured, in that of the peers.
        bases = [("Skein on_policy is faster by", base)]
        if "skein_published" in medians:
            bases.append(("with Gymnasium's model by", medians["skein_published"]))
        lines.append("| | env-steps/s | each round |" + "".join(f" {what} |" for what, _ in bases))
        lines.append("|---|---|---|" + "---|" * len(bases))
        for name, values in speeds.items():
            factors = "".join(f" {of / medians[name]:.1f} |" if of else " |" for _, of in bases)
            each = ", ".join(f"{s:,.0f}" for s in values)
            lines.append(f"| {title(name, args)} | {medians[name]:,.0f} | {each} |{factors}")
        peers = [name for name in medians if not name.startswith("skein")]
        if args.env == "hosted" and peers:
            best = max(peers, key=medians.get)
            lines += ["", f"The fastest of Stable-Baselines3 is {title(best, args)}. Against it:", ""]
            lines += [f"- {TITLES[name]}: {medians[name] / medians[best]:.2f} times as fast"
                      for name in medians if name.startswith("skein")]
    return "\n".join(lines) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--install", action="store_true", help="fetch what --peers need")
    parser.add_argument("--out", type=pathlib.Path)
    parser.add_argument("--env", choices=["native", "hosted"], default="native", help="hosted: Gymnasium's, in Python")
    parser.add_argument("--updates", choices=list(SIZES), default="study", help="defaults: for --env hosted")
    parser.add_argument("--peers", help="which, separated by commas; default: those of --env")
    parser.add_argument("--seconds", type=float, default=60, help="of each run; with --target the longest")
    parser.add_argument("--rounds", type=int, default=3, help="runs of each, in turn, with seeds 1, 2, ...")
    parser.add_argument("--target", type=float, help="stop at this return, with each library's own recipe")
    parser.add_argument("--bin", type=pathlib.Path, default=ROOT / "build" / "release", help="folder of the programs")
    parser.add_argument("--cores", type=int, default=os.cpu_count())
    args = parser.parse_args()
    if args.target and args.env == "hosted":
        parser.error("--target is for --env native")
    if args.updates == "defaults" and args.env == "native":
        parser.error("--updates defaults is for --env hosted")
    there_are = NATIVE if args.env == "native" else HOSTED
    names = args.peers.split(",") if args.peers else there_are
    for name in names:
        if name not in there_are:
            parser.error(f"no peer '{name}' with --env {args.env}; there are {', '.join(there_are)}")
    # A hosted environment steps in the Python of Stable-Baselines3, whose Gymnasium has the published model, too.
    needs = ("skein_hosted", "skein_published")
    homes = {"stable_baselines3" if name.startswith(needs) else program(name)[0] for name in names} & set(PACKAGES)
    if args.install:
        install(homes)
    if not args.out:
        return 0 if args.install else parser.error("give --out DIR, or --install")
    args.recipe = "own" if args.target else args.updates
    names = [name for name in names if not (args.target and name.endswith("_overlapped"))]
    for name in sorted(homes):
        if not python(name).exists():
            parser.error(f"{name} is not installed; run: scripts/compare_peers.py --install --env {args.env}")
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
    if not args.target:
        write_speeds(args.out / "speeds.csv", results)
    (args.out / "report.md").write_text(text)
    print(text)
    print(f"took {(time.monotonic() - begun) / 60:.0f} minutes; written to {args.out}/report.md")
    return 0


if __name__ == "__main__":
    sys.exit(main())
