# SPDX-License-Identifier: Apache-2.0
"""An environment that does nothing, to measure what lies around one: --env python:null_env:Null. 17 floats, 6 reals, episodes
without end."""

import skein_env


class Null(skein_env.Batch):
    def __init__(self, num_envs: int) -> None:
        self.num_envs = num_envs
        self.spec = skein_env.Spec(num_agents=1, obs_size=17, discrete=False, action_size=6, action_low=[-1] * 6,
                                   action_high=[1] * 6, name="Null")

    def reset(self, columns: skein_env.Columns) -> None:
        begun = columns.mask.astype(bool)
        columns.observation[begun] = 0
        columns.active[begun] = 1

    def step(self, columns: skein_env.Columns) -> None:
        columns.observation.fill(0)
        columns.reward.fill(0)
        columns.terminated.fill(0)
        columns.truncated.fill(0)
        columns.failed.fill(0)
        columns.active.fill(1)
