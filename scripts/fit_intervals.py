#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What the intervals of `skein fit` cost: the same training without any, and with one of them at each step.

    scripts/fit_intervals.py [--rounds 5] [--json FILE] FLAGS OF skein fit ...
    scripts/fit_intervals.py --config configs/deeplog_hdfs.yaml --data hdfs_train --set train.epochs=10

The trainings take turns, so that what else the machine does falls upon all alike. Seconds are those between the ends of the first
and the last epoch, by metrics.jsonl, so that reading the data and choosing limits do not count. Prints a table in Markdown: a step's
milliseconds, and what one line or checkpoint adds to it, as medians over the rounds, and what that makes of a step's time at
the interval of the table.
"""

import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[1]
BIN = pathlib.Path(os.environ.get("SKEIN_BIN", ROOT / "build" / "release"))
# Each is 1 in its own training and 0, never, in the others. Steps: the default, or what a user may set.
INTERVALS = {"logging.log_interval": 100, "logging.gpu_log_interval": 500, "checkpoint.save_interval": 1000}


def settings(interval):
    """With `interval` at each step; None: with none. Ends of epochs write no checkpoint, except for the last."""
    values = {name: int(name == interval) for name in INTERVALS}
    values["checkpoint.min_seconds"] = 86400
    return [word for name, value in values.items() for word in ("--set", f"{name}={value}")]


def seconds_per_step(lines):
    """Of lines of metrics.jsonl, from the end of the first epoch to that of the last."""
    ends = [line for line in lines if "epoch_loss" in line]
    if len(ends) < 2:
        sys.exit("want two epochs at least: --set train.epochs=10")
    return (ends[-1]["time"] - ends[0]["time"]) / (ends[-1]["iteration"] - ends[0]["iteration"])


def train(folder, interval, flags):
    run = folder / "run"
    command = [BIN / "skein", "fit", "--run-dir", run, "--resume", "never", "--port", "-1", *flags, *settings(interval)]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return seconds_per_step([json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()])


def summary(rounds):
    """`rounds`: of each, seconds of a step by interval; that of None is without any."""
    none = statistics.median(seconds[None] for seconds in rounds)
    costs = {}
    for name, steps in INTERVALS.items():
        added = [seconds[name] - seconds[None] for seconds in rounds]
        cost = statistics.median(added)
        costs[name] = {"seconds": cost, "least": min(added), "most": max(added), "steps": steps, "share": cost / steps / none}
    return {"seconds_per_step": none, "intervals": costs}


def table(result):
    lines = [f"A step without any: {1000 * result['seconds_per_step']:.3f} ms.", "",
             "| interval | one adds, ms | range of the rounds | at each ... steps | of a step's time |", "|---|---|---|---|---|"]
    for name, cost in result["intervals"].items():
        lines.append(f"| `{name}` | {1000 * cost['seconds']:.3f} | {1000 * cost['least']:.3f} to {1000 * cost['most']:.3f} | "
                     f"{cost['steps']} | {100 * cost['share']:.2f} % |")
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter,
                                     allow_abbrev=False)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--json", type=pathlib.Path, help="where the result goes as JSON, too")
    arguments, flags = parser.parse_known_args()
    rounds = []
    for number in range(arguments.rounds):
        rounds.append({})
        for interval in [None, *INTERVALS]:
            with tempfile.TemporaryDirectory() as folder:
                rounds[-1][interval] = train(pathlib.Path(folder), interval, flags)
            print(f"round {number + 1}, {interval or 'none'}: {1000 * rounds[-1][interval]:.3f} ms a step", file=sys.stderr)
    result = summary(rounds)
    print(table(result))
    if arguments.json:
        arguments.json.write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
