# SPDX-License-Identifier: Apache-2.0
"""EnvPool's env-steps/s with random actions, in several of its settings; one JSON line for each."""

import argparse
import json
import time

import envpool
import numpy as np

# Environments, of which a call returns so many.
SETTINGS = [(2, 2), (16, 8), (64, 32), (64, 64), (256, 128)]
ROWS = 64  # Of actions, used again and again.


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--env", required=True)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--seconds", type=float, default=1, help="of each setting")
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    for num_envs, batch in SETTINGS:
        envs = envpool.make(
            args.env, env_type="gymnasium", num_envs=num_envs, batch_size=batch, num_threads=args.threads, seed=args.seed
        )
        space = envs.action_space
        random = np.random.default_rng(args.seed)
        actions = random.uniform(space.low, space.high, (ROWS, batch, *space.shape)).astype(space.dtype)
        envs.async_reset()
        # The first quarter is not measured: episodes of all lengths are then on their way.
        begin, steps, row = time.monotonic(), 0, 0
        measured = begin + args.seconds / 4
        while (now := time.monotonic()) < begin + args.seconds * 5 / 4 or steps == 0:
            env_id = envs.recv()[-1]["env_id"]
            envs.send(actions[row % ROWS], env_id)
            row += 1
            if now >= measured:
                if steps == 0:
                    measured = now
                steps += batch
        rate = steps / (time.monotonic() - measured)
        print(json.dumps({"num_envs": num_envs, "batch_size": batch, "env_steps_per_second": rate}), flush=True)
        envs.close()


main()
