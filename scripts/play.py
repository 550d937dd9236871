#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Plays a checkpoint of Skein in the real Gymnasium with NumPy alone.

    scripts/fetch_python.sh gymnasium && .deps/gymnasium/bin/python scripts/play.py runs/NAME

The format is described in docs/policy-format.md. Prints the return of each episode and their mean.
"""

import argparse
import json
import pathlib
import re
import struct
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

folder, episodes, seed = arguments.checkpoint, arguments.episodes, arguments.seed
if episodes < 1:
    sys.exit(f"play.py: --episodes: got {episodes}, want at least 1")
if (folder / "checkpoints" / "latest").is_dir():
    folder = folder / "checkpoints" / "latest"
if not (folder / "manifest.json").is_file():
    sys.exit(f"play.py: {str(folder)!r} is no checkpoint: no manifest.json there; give a run's folder or a checkpoint's")
manifest = json.loads((folder / "manifest.json").read_text())
raw = (folder / "model.safetensors").read_bytes()
(size,) = struct.unpack("<Q", raw[:8])
DTYPES = {"F32": np.float32, "F64": np.float64}
tensors = {
    name: np.frombuffer(raw[8 + size :][slice(*entry["data_offsets"])], DTYPES[entry["dtype"]]).reshape(entry["shape"])
    for name, entry in json.loads(raw[8 : 8 + size]).items()
}
setting = lambda name: re.search(rf"^ +{name}: (.*)$", manifest["config_yaml"], re.MULTILINE)[1]  # noqa: E731
ACTIVATIONS = {
    "tanh": np.tanh,
    "elu": lambda x: np.where(x > 0, x, np.expm1(np.minimum(x, 0))),
    "relu": lambda x: np.maximum(x, 0),
}
activation = ACTIVATIONS[setting("activation")]
hidden = [name for name in tensors if re.fullmatch(r"(policy|trunk)\.\d+\.weight", name)]
hidden.sort(key=lambda name: int(name.split(".")[1]))
if "memory.weight_ih" in tensors:
    sys.exit("play.py: this policy has a memory; docs/policy-format.md has its formulas")


def head(observation):
    """The means of the actions, or the logits of the choices, for one observation."""
    x = np.asarray(observation, np.float32)
    if setting("normalize_observations") == "true":
        scale = np.sqrt(tensors["obs_normalizer.variance"] + 1e-8)
        x = np.clip((x - tensors["obs_normalizer.mean"]) / scale, -10, 10).astype(np.float32)
    for name in hidden:
        x = activation(tensors[name] @ x + tensors[name.replace("weight", "bias")])
    return tensors["policy.head.weight"] @ x + tensors["policy.head.bias"]


try:
    env = gymnasium.make(manifest["env_id"])
except gymnasium.error.Error as error:
    sys.exit(f"play.py: {manifest['env_id']} is no environment of this Gymnasium ({error}); `skein eval` plays it")
returns = []
for episode in range(episodes):
    observation, _ = env.reset(seed=seed + episode)
    total, done = 0.0, False
    while not done:
        output = head(observation)
        if isinstance(env.action_space, gymnasium.spaces.Discrete):
            action = int(np.argmax(output))
        else:
            action = np.clip(output, env.action_space.low, env.action_space.high).astype(np.float32)
        observation, reward, terminated, truncated, _ = env.step(action)
        total, done = total + float(reward), terminated or truncated
    returns.append(total)
    print(f"episode {episode}: return {total:.1f}")
print(f"{manifest['env_id']}: return {np.mean(returns):.1f} +- {np.std(returns):.1f} in {episodes} episodes")
