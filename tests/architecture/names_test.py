#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Names of environments and algorithms stand in their own folders and in the registries only.

What depends on an environment or an algorithm asks for a fact (EnvSpec, EnvInfo, AlgorithmFacts), not for a name.
"""
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
# Whole literals: texts of help may give a name as an example.
ENVIRONMENT = re.compile(r'"[A-Z][A-Za-z0-9]*-v[0-9]+"')
# The registries, rules between settings, and a bench of PPO's update against LibTorch's own.
MAY_NAME_ENVIRONMENTS = ("env/", "launch/recipe.cc")
MAY_NAME_ALGORITHMS = ("learner/algorithm/", "base/config/", "launch/recipe.cc", "bench/")


def algorithms():
    proto = (ROOT / "proto/skein/v1/config.proto").read_text()
    choice = re.search(r"oneof algorithm \{(.*?)\n  \}", proto, re.S)
    return re.findall(r"^\s*\w+ (\w+) = \d+;", choice.group(1), re.M)


def code(path):
    """The lines of a file without their comments."""
    return [line.split("//")[0] for line in path.read_text().splitlines()]


def main():
    names = algorithms()
    if len(names) < 2:
        sys.exit(f"want the algorithms of config.proto, got {names}")
    either = "|".join(names)
    algorithm = re.compile(rf'\b(has_|mutable_|set_|clear_)?({either})\(\)|"({either})"')
    found, read = [], 0
    for path in sorted(ROOT.glob("*/**/*")):
        name = path.relative_to(ROOT).as_posix()
        if path.suffix not in (".cc", ".h") or name.startswith(("tests/", "build/", "third_party/", ".")):
            continue
        read += 1
        for number, line in enumerate(code(path), 1):
            for pattern, may in ((ENVIRONMENT, MAY_NAME_ENVIRONMENTS), (algorithm, MAY_NAME_ALGORITHMS)):
                if not name.startswith(may) and (match := pattern.search(line)):
                    found.append(f"{name}:{number}: names {match.group()}; ask for a fact of its spec instead")
    if read < 400:
        sys.exit(f"read {read} sources only")
    sys.exit("\n".join(found) or 0)


main()
