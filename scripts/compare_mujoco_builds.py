#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares builds of MuJoCo: bare physics (mj_step with each task's frame skip, random actions), for each environment.

    scripts/compare_mujoco_builds.py                       # the system's, 2.3.7, 3.17.0 and 4.0.0; about 6 minutes
    scripts/compare_mujoco_builds.py --test                # first runs the tests of env/ with each
    scripts/compare_mujoco_builds.py --physics             # only what does not need an idle machine
    scripts/compare_mujoco_builds.py system /opt/mujoco    # the system's and one of your own

A build is `system`, a version that scripts/fetch_mujoco.sh knows, or a folder with include/ and lib/. Each gets a tree
build/mujoco-<build> with the environments and nothing else. Two tables come out, for docs/benchmarks/mujoco-builds.md.

Speed: env-steps/s of the model as it was published and as we step it, with its contacts listed. The builds are measured in
turn, round by round, so that what else happens on the machine meets all of them. Medians over the rounds, and in brackets
the median of the rounds' ratios to the first build's published model.

Physics: one decision from each of 1,000 thrown states, against the first build's. Of positions and velocities the largest
difference, relative to 1 or the number itself; and the share of states in which one is above 1e-6: rounding stays below,
another contact does not.
"""

import argparse
import pathlib
import re
import statistics
import subprocess
import sys

ENVS = (
    "Ant HalfCheetah Hopper Humanoid HumanoidStandup InvertedDoublePendulum InvertedPendulum Pusher Reacher Swimmer Walker2d"
)


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


def difference(one, other):
    """The largest difference in each state, of positions and velocities."""
    largest = []
    for a, b in zip(one, other, strict=True):
        pairs = ((float.fromhex(x), float.fromhex(y)) for x, y in zip(a.split(), b.split(), strict=True))
        largest.append(max(abs(x - y) / max(1.0, abs(x)) for x, y in pairs))
    return largest


def physics(programs, envs):
    lines = []
    for env in envs:
        states = [run(program, env, "physics").splitlines() for program in programs.values()]
        cells = []
        for mine in states[1:]:
            largest = difference(states[0], mine)
            share = sum(x > 1e-6 for x in largest) / len(largest)
            cells.append("the same bits" if not any(largest) else f"{max(largest):.1g}, {share:.1%}")
        lines.append(f"| {env} | " + " | ".join(cells) + " |")
    titles = list(programs)[1:]
    head = f"Against {next(iter(programs))}: the largest difference, and the share of states with one above 1e-6"
    return [head, "", "| | " + " | ".join(titles) + " |", "|---" * (1 + len(titles)) + "|", *lines]


def speed(programs, envs, threads, options):
    runs = [(build, form) for build in programs for form in ("published", "stepped")]
    rates = {(env, build, form): [] for env in envs for build, form in runs}
    for i in range(options.rounds):
        for env in envs:
            for build, form in runs[:: 1 if i % 2 == 0 else -1]:
                _, rate = run(programs[build], env, form, threads, str(options.seconds)).split()
                rates[env, build, form].append(float(rate))
        print(f"round {i + 1} of {options.rounds} is measured", file=sys.stderr, flush=True)
    lines = []
    for env in envs:
        first = rates[(env, *runs[0])]
        cells = []
        for one in runs:
            mine = rates[(env, *one)]
            ratio = statistics.median(x / base for x, base in zip(mine, first))
            cells.append(f"{statistics.median(mine):,.0f} ({ratio:.2f})")
        lines.append(f"| {env} | " + " | ".join(cells) + " |")
    titles = [f"{build}, {form}" for build, form in runs]
    head = f"Env-steps/s on {threads} threads, medians of {options.rounds} rounds; in brackets the ratio to the first column"
    return [head, "", "| | " + " | ".join(titles) + " |", "|---" * (1 + len(titles)) + "|", *lines]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("builds", nargs="*", default=["system", "2.3.7", "3.17.0", "4.0.0"])
    parser.add_argument("--envs", default=",".join(f"{name}-v5" for name in ENVS.split()), help="separated by commas")
    parser.add_argument("--threads", default="2")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=0.5, help="of each measurement")
    parser.add_argument("--physics", action="store_true", help="no speeds")
    parser.add_argument("--root", type=pathlib.Path, default=pathlib.Path("build"), help="where the trees are")
    parser.add_argument("--test", action="store_true", help="run the tests of env/ with each build first")
    options = parser.parse_args()

    envs = options.envs.split(",")
    programs = {}
    for build in options.builds:
        program = str(prepare(build, options.root, options.test))
        version = run(program, envs[0], "stepped", "1", "0.01").split()[0]
        programs[version + (", the system's" if build == "system" else "")] = program
    print("\n".join(physics(programs, envs)), flush=True)
    if not options.physics:
        print("\n" + "\n".join(speed(programs, envs, options.threads, options)))


main()
