#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Names of environments and algorithms stand in their own folders and in the registries only.

What depends on an environment or an algorithm asks for a fact (EnvSpec, EnvInfo, AlgorithmFacts), not for a name.
"""
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
# Whole literals: texts of help may give a name as an example.
ENVIRONMENT = re.compile(r'"[A-Z][A-Za-z0-9]*-v[0-9]+"')
# The registries, and the folders that hold an environment each or a family of them.
MAY_NAME_ENVIRONMENTS = ("env/registry.cc", "env/mujoco/task.cc", "env/tensor/tensor_envs.cc", "launch/recipe.cc",
                         "env/classic/", "env/mujoco/tasks/", "env/synthetic/", "env/uav/")
# The registry, and the launcher's choice of a recipe's file. Besides, each algorithm's own folder may name it.
MAY_NAME_ALGORITHMS = ("learner/algorithm/registry.cc", "launch/recipe.cc")
# What is about one algorithm by its nature.
EXCEPTIONS = {
    "bench/bare_update.cc": {"ppo"},  # PPO's update by LibTorch alone, which the bench compares with ours.
    "bench/bare_update.h": {"ppo"},
    "bench/learner_bench.cc": {"ppo"},  # Describes that comparison.
    "bench/rollout_bench.cc": {"ars"},  # A verb of the bench.
}


def algorithms():
    proto = (ROOT / "proto/skein/v1/config.proto").read_text()
    choice = re.search(r"oneof algorithm \{(.*?)\n  \}", proto, re.S)
    return re.findall(r"^\s*\w+ (\w+) = \d+;", choice.group(1), re.M)


def is_ours(name):
    return name.endswith((".cc", ".h")) and not name.startswith(("tests/", "build/", "third_party/", "."))


def tracked():
    """The sources in Git that must have been read; none outside of a checkout."""
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True)
    return {name for name in listed.stdout.split("\n") if is_ours(name) and "/" in name and (ROOT / name).exists()}


def code(path):
    """The lines of a file without their comments."""
    return [line.split("//")[0] for line in path.read_text().splitlines()]


def main():
    names = algorithms()
    if len(names) < 2:
        sys.exit(f"want the algorithms of config.proto, got {names}")
    either = "|".join(names)
    classes = "|".join(name.capitalize() for name in names)
    algorithm = re.compile(
        rf'\b(?:has_|mutable_|set_|clear_)?({either})\(\)|"({either})"|\bv1::({classes})Config\b')
    found, read = [], set()
    for path in sorted(ROOT.glob("*/**/*")):
        name = path.relative_to(ROOT).as_posix()
        if not is_ours(name):
            continue
        read.add(name)
        for number, line in enumerate(code(path), 1):
            if not name.startswith(MAY_NAME_ENVIRONMENTS):
                found += [f"{name}:{number}: names {match.group()}" for match in ENVIRONMENT.finditer(line)]
            if name.startswith(MAY_NAME_ALGORITHMS):
                continue
            for match in algorithm.finditer(line):
                which = next(group for group in match.groups() if group).lower()
                if not name.startswith(f"learner/algorithm/{which}/") and which not in EXCEPTIONS.get(name, ()):
                    found.append(f"{name}:{number}: names {match.group()}")
    found = [f"{line}; ask for a fact of its spec instead" for line in found]
    if len(read) < 900 or (missed := tracked() - read):
        sys.exit(f"read {len(read)} sources only, not {sorted(missed) if len(read) >= 900 else 'the tree'}")
    sys.exit("\n".join(found) or 0)


main()
