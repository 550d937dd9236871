#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs `skein bench` of two builds in turn on one machine and prints their ratios side by side.

A ratio is a part's speed over its own limit on this machine, both measured in one run, so that it can be compared where
speeds cannot. Run it on an idle machine.

    scripts/compare_builds.py ../before/build/release build/release --rounds 3 --out docs/benchmarks/NAME
"""
import argparse
import json
import pathlib
import statistics
import subprocess
import sys

MEASUREMENTS = {
    # Many short slices: speed and limit of a shared machine drift within seconds.
    "env": ["env", "--rounds", "41", "--seconds", "0.2"],
    "rollout": ["rollout", "--rounds", "3"],
    "stream": ["stream", "--rounds", "3"],
    "learner": ["learner", "--rounds", "3"],
    "train on_policy": ["train", "--rounds", "1", "--seconds", "{seconds}", "--set", "sync.mode=on_policy"],
    "train overlapped": ["train", "--rounds", "1", "--seconds", "{seconds}", "--set", "sync.mode=overlapped"],
}


def measure(build, arguments, path):
    """The summary of one `skein bench` run, whose JSON is kept at `path`."""
    command = [str(build / "skein"), "bench", *arguments, "--json", str(path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"compare_builds: {' '.join(command)} ended with code {done.returncode}: {done.stderr.strip()}")
    return json.loads(path.read_text())["summary"]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("before", type=pathlib.Path, help="build folder of the older code")
    parser.add_argument("after", type=pathlib.Path, help="build folder of the newer code")
    parser.add_argument("--rounds", type=int, default=3, help="measurements of each build, in turn")
    parser.add_argument("--seconds", default="20", help="length of each training run")
    parser.add_argument("--only", default="", help="measurements, separated by commas; default: all")
    parser.add_argument("--out", type=pathlib.Path, required=True, help="folder for the JSON of every run")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    chosen = options.only.split(",") if options.only else list(MEASUREMENTS)
    lines = ["| measurement | ratio before | ratio after | waiting before | waiting after |", "|---|---|---|---|---|"]
    for name in chosen:
        arguments = [argument.format(seconds=options.seconds) for argument in MEASUREMENTS[name]]
        results = {"before": [], "after": []}
        for i in range(options.rounds):
            for side, build in (("before", options.before), ("after", options.after)):
                path = options.out / f"{name.replace(' ', '_')}-{side}-{i + 1}.json"
                results[side].append(measure(build, arguments, path))
                print(f"{name} {i + 1}/{options.rounds} {side}: {results[side][-1]['ratio']:.3f}", flush=True)

        def cell(side, key, scale, digits):
            values = [summary[key] * scale for summary in results[side] if key in summary]
            if not values:
                return ""
            return f"{statistics.median(values):.{digits}f} ({min(values):.{digits}f} to {max(values):.{digits}f})"

        waiting = "wire_serialisation_waiting_share"
        lines.append(f"| {name} | {cell('before', 'ratio', 1, 3)} | {cell('after', 'ratio', 1, 3)} "
                     f"| {cell('before', waiting, 100, 1)} | {cell('after', waiting, 100, 1)} |")
    table = "\n".join(lines) + "\n"
    (options.out / "table.md").write_text(table)
    print(table)


if __name__ == "__main__":
    main()
