# SPDX-License-Identifier: Apache-2.0
"""Environments of other libraries that external_study.py learns."""

import gymnasium


def spread():
    """MPE's simple_spread as the MAPPO paper (Yu et al. 2022) has it: three agents, 25 steps, each agent's reward is all of the
    common one and all of its own for collisions. mpe2 weights the two by local_ratio and 1 - local_ratio."""
    from mpe2 import simple_spread_v3
    from pettingzoo.utils import BaseParallelWrapper

    class Whole(BaseParallelWrapper):
        def step(self, actions):
            observed, rewards, *rest = super().step(actions)
            return observed, {agent: 2 * reward for agent, reward in rewards.items()}, *rest

    return Whole(simple_spread_v3.parallel_env(max_cycles=25, local_ratio=0.5))


def minigrid():
    import minigrid.wrappers

    return minigrid.wrappers.ImgObsWrapper(gymnasium.make("MiniGrid-Empty-5x5-v0"))
