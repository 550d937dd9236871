#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares builds of MuJoCo: the bare physics of HalfCheetah-v5 (mj_step, frame skip 5, random actions).

    scripts/compare_mujoco_builds.py                       # the system's, 2.3.7 and 3.17.0
    scripts/compare_mujoco_builds.py --test                # first runs the tests of env/ with each
    scripts/compare_mujoco_builds.py system /opt/mujoco    # the system's and one of your own

A build is `system`, a version that scripts/fetch_mujoco.sh knows, or a folder with include/ and lib/. Each gets a tree
build/mujoco-<build> with the environments and nothing else. The builds are measured in turn, round by round, so that
what else happens on the machine meets all of them; the table has the medians over the rounds and, as a ratio, the
median of the rounds' ratios to the first line, and a digest of the states of 40,000 random steps. Each build steps the
model as it was published, and as we step it, with its contacts listed. Run in the repository root on a machine that is
otherwise idle.
"""

import argparse
import pathlib
import re
import statistics
import subprocess
import sys


def run(*command):
    result = subprocess.run(command, capture_output=True, text=True)
    if result.returncode != 0:
        sys.exit(f"{' '.join(command)}: exit code {result.returncode}\n{result.stdout[-4000:]}{result.stderr[-4000:]}")
    return result.stdout


def prepare(build, root, test):
    """Builds what is measured against one MuJoCo and returns the program."""
    if build == "system":
        where = build
    elif re.fullmatch(r"[0-9.]+", build):
        run("scripts/fetch_mujoco.sh", build)
        where = str(pathlib.Path(f".deps/mujoco-{build}").resolve())
    else:
        where = str(pathlib.Path(build).resolve())
    tree = root / f"mujoco-{pathlib.Path(where).name.removeprefix('mujoco-')}"
    run("cmake", "-S", ".", "-B", str(tree), "-G", "Ninja", "-DCMAKE_BUILD_TYPE=Release", f"-DSKEIN_MUJOCO={where}")
    run("ninja", "-C", str(tree), "mujoco-speed")
    if test:
        run("ninja", "-C", str(tree), "env_tests", "env_allocation_tests")
        run("ctest", "--test-dir", str(tree), "-R", "^env_", "-E", "^env_absent_test$")
        print(f"{build}: the tests of env/ pass", flush=True)
    return tree / "mujoco-speed"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("builds", nargs="*", default=["system", "2.3.7", "3.17.0"])
    parser.add_argument("--env", default="HalfCheetah-v5")
    parser.add_argument("--threads", default="1,2", help="comma-separated (default 1,2)")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--seconds", type=float, default=1, help="of each measurement")
    parser.add_argument("--root", type=pathlib.Path, default=pathlib.Path("build"), help="where the trees are")
    parser.add_argument("--test", action="store_true", help="run the tests of env/ with each build first")
    options = parser.parse_args()

    threads = options.threads.split(",")
    # What is compared: each build with the model as we step it, and as it was published.
    builds = [(build, form) for build in options.builds for form in ("published", "stepped")]
    trees = {build: prepare(build, options.root, options.test) for build in options.builds}
    programs = [(str(trees[build]), options.env, form) for build, form in builds]
    versions = [""] * len(programs)
    digests = [""] * len(programs)
    rates = [[[] for _ in threads] for _ in programs]
    for i in range(options.rounds):
        for t, count in enumerate(threads):
            for b, program in list(enumerate(programs))[:: 1 if i % 2 == 0 else -1]:
                versions[b], rate, digests[b] = run(*program, count, str(options.seconds)).split()
                rates[b][t].append(float(rate))

    print(f"{options.env}: env-steps/s of bare mj_step, medians of {options.rounds} rounds (least to most)\n")
    titles = [f"{n} {'thread' if n == '1' else 'threads'} | ratio" for n in threads]
    print("| MuJoCo |", " | ".join(titles), "| digest |")
    print("|---" * (2 + 2 * len(threads)) + "|")
    for b, (build, form) in enumerate(builds):
        cells = []
        for t in range(len(threads)):
            mine = rates[b][t]
            ratio = statistics.median(x / first for x, first in zip(mine, rates[0][t]))
            cells.append(f"{statistics.median(mine):,.0f} ({min(mine):,.0f} to {max(mine):,.0f}) | {ratio:.2f}")
        name = versions[b] + (", the system's" if build == "system" else "") + f", {form}"
        print(f"| {name} |", " | ".join(cells), f"| {digests[b]} |")


main()
