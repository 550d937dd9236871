#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What a callback costs: the same training without one, with one that does nothing, and with one that logs a number.

    scripts/callback_cost.py [--rounds 5] [FLAGS OF skein train ...]
    scripts/callback_cost.py --lines 3000       the second one's process alone: microseconds for each iteration's line

The three take turns, so that what else the machine does falls upon all alike. Env-steps/s are those between the first and the
last line of metrics.jsonl. Prints a table in Markdown: medians over the rounds, and the range of the ratios within a round.
"""

import argparse
import json
import os
import pathlib
import socket
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[1]
BIN = pathlib.Path(os.environ.get("SKEIN_BIN", ROOT / "build" / "release"))
MODULE = '''import skein_env


class Nothing(skein_env.Callback):
    pass


class Log(skein_env.Callback):
    def on_iteration(self, run, metrics):
        run.log("episodes_per_step", metrics["episodes"] / metrics["env_steps"])
'''
KINDS = {"none": "", "empty": "cost:Nothing", "logs a number": "cost:Log"}


def train(folder, callback, flags):
    """Env-steps/s, and milliseconds of an iteration."""
    command = [BIN / "skein", "train", "--runs-dir", folder, "--name", "run", "--resume", "never", "--no-eval", *flags]
    if callback:
        command += ["--callbacks", callback]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, env={**os.environ, "PYTHONPATH": str(folder)})
    lines = [json.loads(line) for line in (folder / "run" / "metrics.jsonl").read_text().splitlines()]
    seconds = lines[-1]["seconds"] - lines[0]["seconds"]
    return (lines[-1]["env_steps"] - lines[0]["env_steps"]) / seconds, 1000 * seconds / (len(lines) - 1)


def tell(folder, lines):
    """Sends a line of metrics.jsonl so many times to the process that a learner starts, each after the answer to the last."""
    here, there = socket.socketpair()
    process = subprocess.Popen([sys.executable, "-m", "skein_env.callback_process", "cost:Log"], stdin=there, stdout=there,
                               env={**os.environ, "PYTHONPATH": f"{folder}:{ROOT / 'python'}"})
    there.close()
    answers = here.makefile("r")

    def ask(request):
        here.sendall((json.dumps(request) + "\n").encode())
        return json.loads(answers.readline())

    ask({"begin": {"config": {}, "folder": str(folder), "env_steps": 0, "iteration": 0}})
    line = {"iteration": 1, "env_steps": 512, "episodes": 9, "episode_return_mean": 20.1, "seconds": 1.0,
            "update": {f"statistic_{i}": i / 9 for i in range(14)},
            "learner_stage_seconds": {f"stage_{i}": i / 7 for i in range(7)},
            "actor_stage_seconds": {f"stage_{i}": i / 7 for i in range(4)}}
    seconds = []
    for _ in range(lines):
        begin = time.perf_counter()
        ask({"iteration": line})
        seconds.append(time.perf_counter() - begin)
    seconds.sort()
    here.shutdown(socket.SHUT_RDWR)
    process.wait()
    print(f"{lines} lines of {len(json.dumps(line))} bytes: median {1e6 * statistics.median(seconds):.0f} us, "
          f"99th percentile {1e6 * seconds[99 * lines // 100]:.0f} us; load {os.getloadavg()[0]:.1f}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--lines", type=int, default=0)
    arguments, flags = parser.parse_known_args()
    rates = {kind: [] for kind in KINDS}
    iterations = {kind: [] for kind in KINDS}
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        (folder / "cost.py").write_text(MODULE)
        if arguments.lines > 0:
            return tell(folder, arguments.lines)
        for _ in range(arguments.rounds):
            for kind, callback in KINDS.items():
                rate, iteration = train(folder, callback, flags)
                rates[kind].append(rate)
                iterations[kind].append(iteration)
    print("| callback | env-steps/s | an iteration | of none | range |\n|---|---|---|---|---|")
    for kind in KINDS:
        ratios = [one / none for one, none in zip(rates[kind], rates["none"])]
        print(f"| {kind} | {statistics.median(rates[kind]):,.0f} | {statistics.median(iterations[kind]):.2f} ms | "
              f"{statistics.median(ratios):.3f} | {min(ratios):.3f} to {max(ratios):.3f} |")


main()
