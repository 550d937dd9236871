#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Trains one environment with each form that trajectories and policies can travel in and tells what that costs and saves.

    scripts/compression_study.py --env HalfCheetah-v5 --out docs/benchmarks/compression.csv

Each form is a short `skein train` of its own, with one actor. Bytes come from the programs' own metrics, which are read
while it trains: trajectories as received for each env step, policies as sent for each subscriber. So does the time: what
an actor needs to put a fragment together (rounding and compressing included), what the learner needs to check it
(decompressing included) and to copy it to its place, and to publish a policy. Writes OUT and prints a table in Markdown,
with medians over --rounds, in which the order of the forms turns round each time.
"""

import argparse
import csv
import json
import pathlib
import re
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request

FORMS = [("fp32", "none"), ("fp32", "zstd"), ("bf16", "none"), ("bf16", "zstd")]


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--env", default="HalfCheetah-v5")
    parser.add_argument("--steps", type=int, default=500000, help="env steps of each run")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--set", action="append", default=[], metavar="A.B=C", help="passed on to skein train")
    parser.add_argument("--bin", type=pathlib.Path, default="build/release", help="folder of the programs")
    parser.add_argument("--out", required=True, type=pathlib.Path, help="CSV, one line a run")
    return parser.parse_args()


def get(url):
    with urllib.request.urlopen(url, timeout=2) as answer:
        return answer.read().decode()


def scrape(status_page):
    """All samples of the learner and of the actor, by name and labels, at one moment each."""
    samples = {}
    for group in json.loads(get(f"{status_page}sd/prometheus")):
        if group["labels"]["role"] not in ("learner", "actor"):
            continue
        for line in get(f"http://{group['targets'][0]}/metrics").splitlines():
            name, _, value = line.rpartition(" ")
            if name.startswith("skein_learner_") or name.startswith("skein_actor_"):
                samples[name] = float(value)
    return samples


def train(arguments, precision, compression, runs):
    command = [arguments.bin / "skein", "train", "--env", arguments.env, "--recipe", "study", "--steps", arguments.steps, "--no-eval",
               "--runs-dir", runs, "--name", "run", "--resume", "never"]
    for what in ("trajectory", "policy"):
        command += ["--set", f"transport.{what}_precision={precision}"]
        command += ["--set", f"transport.{what}_compression={compression}"]
    for setting in arguments.set:
        command += ["--set", setting]
    process = subprocess.Popen([str(word) for word in command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    page, last = None, {}
    for line in process.stdout:
        if found := re.search(r"status page and metrics discovery: (\S+)", line):
            page = found.group(1)
            break
    while page and process.poll() is None:
        time.sleep(0.2)
        try:
            samples = scrape(page)
        except (OSError, ValueError, KeyError):
            continue  # It is starting or ending.
        if samples.get('skein_learner_batches_total{result="accepted"}', 0) > 0 and "skein_actor_fragments_total" in samples:
            last = samples
    rest = process.stdout.read()
    if process.wait() != 0 or not last:
        sys.exit(f"{' '.join(map(str, command))}: exit code {process.returncode}, metrics seen: {bool(last)}\n{rest}")
    return last


def figures(arguments, precision, compression):
    with tempfile.TemporaryDirectory() as runs:
        seen = train(arguments, precision, compression, runs)
        config = (pathlib.Path(runs) / "run" / "config.yaml").read_text()

    def setting(name):
        return int(re.search(rf"\b{name}: (\d+)", config).group(1))

    def stage(role, name):
        return seen[f'skein_{role}_stage_seconds_total{{stage="{name}"}}'] * 1e6

    batches = seen['skein_learner_batches_total{result="accepted"}']
    fragments = seen["skein_actor_fragments_total"]
    fragment = setting("fragment_steps") or setting("steps_per_iteration") // setting("num_envs")
    env_steps = fragment * setting("envs_per_runner")
    policies = seen["skein_learner_iterations_total"] + 1  # One subscriber; the first goes out before any iteration.
    return {
        "precision": precision,
        "compression": compression,
        "bytes_per_env_step": seen["skein_learner_received_bytes_total"] / batches / env_steps,
        "uncompressed_bytes_per_env_step": seen["skein_learner_received_uncompressed_bytes_total"] / batches / env_steps,
        "bytes_per_policy": seen["skein_learner_policy_sent_bytes_total"] / policies,
        "uncompressed_bytes_per_policy": seen["skein_learner_policy_sent_uncompressed_bytes_total"] / policies,
        "build_microseconds": stage("actor", "build") / fragments,
        "check_microseconds": stage("learner", "receive") / batches,
        "copy_microseconds": stage("learner", "admit") / batches,
        "publish_microseconds": stage("learner", "publish") / (policies - 1),
        "env_steps_per_batch": env_steps,
    }


def table(rows):
    lines = ["| numbers | compression | bytes / env step | bytes / policy | build a fragment | check it | copy it | publish |",
             "|---|---|---|---|---|---|---|---|"]
    for precision, compression in FORMS:
        mine = [row for row in rows if (row["precision"], row["compression"]) == (precision, compression)]

        def median(name):
            return statistics.median(row[name] for row in mine)

        def share(name):
            return f"{median(name):,.1f} ({median(name) / median('uncompressed_' + name):.2f})"

        times = [f"{median(name + '_microseconds'):,.0f} us" for name in ("build", "check", "copy", "publish")]
        lines.append(f"| {precision} | {compression} | {share('bytes_per_env_step')} | {share('bytes_per_policy')} | "
                     + " | ".join(times) + " |")
    return "\n".join(lines)


def main():
    arguments = parse_arguments()
    rows = []
    for round_number in range(arguments.rounds):
        for precision, compression in FORMS if round_number % 2 == 0 else FORMS[::-1]:
            rows.append(figures(arguments, precision, compression))
            print(f"round {round_number + 1}: {precision} {compression} done", file=sys.stderr, flush=True)
    with open(arguments.out, "w", newline="") as out:
        writer = csv.DictWriter(out, rows[0].keys(), lineterminator="\n")
        writer.writeheader()
        for row in rows:
            writer.writerow({name: round(value, 3) if isinstance(value, float) else value for name, value in row.items()})
    print(table(rows))
    print(f"\nA message is one fragment of {rows[0]['env_steps_per_batch']:,} env steps.")


if __name__ == "__main__":
    main()
