# SPDX-License-Identifier: Apache-2.0
"""Skein from Python: starts the programs, reads the files that they write, acts with what they have trained.

    import skein_rl as skein

    run = skein.train("half_cheetah_ppo.yaml", seed=1)
    for metrics in run:
        print(metrics["env_steps"], metrics["episode_return_mean"])
    action = run.policy()(observation)

Nothing of Skein is loaded into this process: training happens in programs of their own. Environments in Python are
the package skein_env, which comes along (docs/python.md).
"""

from skein_rl.errors import SkeinError
from skein_rl.head import Head, connect
from skein_rl.policy import Policy, load
from skein_rl.programs import program, version
from skein_rl.run import CONFIGS, Run, train

__all__ = ["CONFIGS", "Head", "Policy", "Run", "SkeinError", "connect", "load", "program", "train", "version"]
