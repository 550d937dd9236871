#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Plays a checkpoint of Skein in the real Gymnasium with NumPy alone.

    scripts/fetch_python.sh gymnasium && .deps/gymnasium/bin/python scripts/play.py runs/NAME

What it acts with is python/skein_rl/policy.py. Prints the return of each episode and their mean. A program that does
without any code of Skein is the block of NumPy in docs/policy-format.md.
"""

import argparse
import pathlib
import sys

parser = argparse.ArgumentParser(prog="play.py", description="Plays a checkpoint of Skein in the real Gymnasium.")
parser.add_argument("checkpoint", type=pathlib.Path, help="a run's folder for its newest checkpoint, or a checkpoint's")
parser.add_argument("--episodes", type=int, default=10)
parser.add_argument("--seed", type=int, default=0)
arguments = parser.parse_args()
try:
    import gymnasium
    import numpy as np
except ImportError as error:
    sys.exit(f"play.py: {error}; scripts/fetch_python.sh gymnasium makes .deps/gymnasium/bin/python, which has it")
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "python"))
import skein_rl  # noqa: E402

episodes, seed = arguments.episodes, arguments.seed
if episodes < 1:
    sys.exit(f"play.py: --episodes: got {episodes}, want at least 1")
try:
    policy = skein_rl.load(arguments.checkpoint)
except skein_rl.SkeinError as error:
    sys.exit(f"play.py: {error}")
try:
    env = gymnasium.make(policy.env_id)
except gymnasium.error.Error as error:
    sys.exit(f"play.py: {policy.env_id} is no environment of this Gymnasium ({error}); `skein eval` plays it")
returns = []
for episode in range(episodes):
    observation, _ = env.reset(seed=seed + episode)
    policy.reset()
    total, done = 0.0, False
    while not done:
        action = policy(observation)
        if not policy.discrete:
            action = np.clip(action, env.action_space.low, env.action_space.high)
        observation, reward, terminated, truncated, _ = env.step(action)
        total, done = total + float(reward), terminated or truncated
    returns.append(total)
    print(f"episode {episode}: return {total:.1f}")
print(f"{policy.env_id}: return {np.mean(returns):.1f} +- {np.std(returns):.1f} in {episodes} episodes")
