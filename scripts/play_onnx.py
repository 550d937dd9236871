#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Plays a policy that `skein export --format onnx` wrote in the real Gymnasium, by onnxruntime.

    scripts/fetch_python.sh onnx && .deps/onnx/bin/python scripts/play_onnx.py policy.onnx

Works with every policy for an environment that Gymnasium has: transforms, normaliser, memory, clipping and scaling are in
the file. Prints the return of each episode and their mean.
"""

import argparse
import json
import pathlib
import sys

parser = argparse.ArgumentParser(prog="play_onnx.py", description="Plays an exported policy in the real Gymnasium.")
parser.add_argument("file", type=pathlib.Path, help="what skein export --format onnx wrote")
parser.add_argument("--episodes", type=int, default=10)
parser.add_argument("--seed", type=int, default=0)
arguments = parser.parse_args()
try:
    import gymnasium
    import numpy as np
    import onnxruntime
except ImportError as error:
    sys.exit(f"play_onnx.py: {error}; scripts/fetch_python.sh onnx makes .deps/onnx/bin/python, which has it")
if arguments.episodes < 1:
    sys.exit(f"play_onnx.py: --episodes: got {arguments.episodes}, want at least 1")
if not arguments.file.is_file():
    sys.exit(f"play_onnx.py: {str(arguments.file)!r}: no such file")
try:
    policy = onnxruntime.InferenceSession(arguments.file, providers=["CPUExecutionProvider"])
    metadata = policy.get_modelmeta().custom_metadata_map
    spec = json.loads(metadata["skein.spec"])
except Exception as error:  # noqa: BLE001 - onnxruntime's are of many types.
    sys.exit(f"play_onnx.py: {str(arguments.file)!r} is no policy of Skein: {str(error).splitlines()[0]}")
try:
    env = gymnasium.make(metadata["skein.env_id"])
except gymnasium.error.Error as error:
    sys.exit(f"play_onnx.py: {metadata['skein.env_id']} is no environment of this Gymnasium ({error})")

# Of sampled_action, which is not asked for.
noise = np.zeros((1,) if spec["discrete"] else (1, spec["action_size"]), np.float32)
returns = []
for episode in range(arguments.episodes):
    observation, _ = env.reset(seed=arguments.seed + episode)
    state = np.zeros((1, spec["state_size"]), np.float32)
    total, done, begins = 0.0, False, True
    while not done:
        feed = {"observation": np.asarray(observation, np.float32)[None], "noise": noise}
        wanted = ["action"]
        if spec["state_size"] > 0:
            feed.update(state=state, reset=np.array([begins]))
            wanted.append("next_state")
        action, *rest = policy.run(wanted, feed)
        state, begins = (rest[0] if rest else state), False
        observation, reward, terminated, truncated, _ = env.step(int(action[0]) if spec["discrete"] else action[0])
        total, done = total + float(reward), terminated or truncated
    returns.append(total)
    print(f"episode {episode}: return {total:.1f}")
print(f"{metadata['skein.env_id']}: return {np.mean(returns):.1f} +- {np.std(returns):.1f} in {len(returns)} episodes")
