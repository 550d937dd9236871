# SPDX-License-Identifier: Apache-2.0
"""What every peer's program shares: its arguments, and one JSON line for each iteration on standard output."""

import argparse
import collections
import json
import sys
import time


def arguments(vec=(), envs=None, recipes=("study", "own")):
    """The arguments of all, and where a peer has them --vec, of which the first is the default, and --envs."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--recipe", choices=recipes, required=True)
    parser.add_argument("--seconds", type=float, default=60, help="stop after this long")
    parser.add_argument("--target", type=float, default=float("inf"), help="stop at this mean return of 20 episodes")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--cores", type=int, default=2)
    if vec:
        parser.add_argument("--vec", choices=vec, default=vec[0], help="how environments are stepped")
    if envs:
        parser.add_argument("--envs", type=int, default=envs, help="environments, but with --recipe own")
    return parser.parse_args()


class Progress:
    """Prints {"env_steps", "seconds", "return"} lines; `return` is the mean of the last 20 training episodes."""

    def __init__(self, args):
        self.args = args
        self.start = time.monotonic()
        self.returns = collections.deque(maxlen=20)

    def episode(self, value):
        self.returns.append(float(value))

    def mean_return(self):
        return sum(self.returns) / len(self.returns) if self.returns else None

    def iteration(self, env_steps, mean_return=None):
        """Call after each iteration; True if the program has to stop."""
        seconds = time.monotonic() - self.start
        value = mean_return if mean_return is not None else self.mean_return()
        print(json.dumps({"env_steps": int(env_steps), "seconds": round(seconds, 3), "return": value}), flush=True)
        full = mean_return is not None or len(self.returns) == self.returns.maxlen
        return seconds >= self.args.seconds or (full and value is not None and value >= self.args.target)


def note(**settings):
    """The settings that a peer ran with, for the report."""
    print(json.dumps({"settings": settings}), file=sys.stdout, flush=True)
