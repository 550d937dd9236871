# SPDX-License-Identifier: Apache-2.0
"""APPO of Sample Factory on Gymnasium's HalfCheetah, with one rollout worker for each core.

own: the settings of Sample Factory's published MuJoCo example. study: the study's network, batch and epochs in it.
Its iterations are read off its own counters every two seconds, since it has no synchronous ones.
"""

import os
import sys
import threading
import time

from sample_factory.train import make_runner
from sf_examples.mujoco.train_mujoco import parse_mujoco_cfg, register_mujoco_components

from progress import Progress, arguments, note

if __name__ == "__main__":
    args = arguments()
    study = args.recipe == "study"
    flags = {
        "env": "mujoco_halfcheetah",
        "device": "cpu",
        "num_workers": args.cores,
        "num_envs_per_worker": 128 if study else 8,
        "worker_num_splits": 2,
        "decorrelate_envs_on_one_worker": False,  # It takes minutes of a short measurement.
        "train_for_env_steps": 10**9,
        "train_dir": f"/tmp/sample_factory_{time.time_ns()}",
        "experiment": "peer",
        "seed": args.seed,
    }
    if study:
        flags |= {"batch_size": 4096, "num_batches_per_epoch": 4, "num_epochs": 5, "rollout": 64}
    note(recipe=args.recipe, **{k: v for k, v in flags.items() if k != "train_dir"})
    register_mujoco_components()
    argv = [f"--{key}={value}" for key, value in flags.items()]
    argv += ["--encoder_mlp_layers", "64", "64"]
    cfg, runner = make_runner(parse_mujoco_cfg(argv))
    runner.init()
    progress = Progress(args)

    def watch():
        while True:
            time.sleep(2)
            steps = sum(runner.env_steps.values())
            values = [list(v) for k, v in runner.policy_avg_stats.items() if k == "reward"]
            recent = [x for per_policy in values for x in per_policy[0]][-20:] if values else []
            mean = sum(recent) / len(recent) if recent else None
            if steps and progress.iteration(steps, mean):
                runner.stop_training = True
                time.sleep(5)
                os._exit(0)  # Its workers may take minutes to end.

    threading.Thread(target=watch, daemon=True).start()
    sys.exit(runner.run())
