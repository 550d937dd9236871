# SPDX-License-Identifier: Apache-2.0
"""Environments of other libraries that external_study.py learns."""

import gymnasium


def spread():
    """MPE's simple_spread as the MAPPO paper's environment (Yu et al. 2022) has it: three agents, 25 steps. Each agent's reward
    is all of the common one and all of its own for collisions, which mpe2 weights by local_ratio and 1 - local_ratio, and 1
    less in each step, because the paper's environment counts that an agent touches itself: 75 an episode. Landmarks are in
    the middle 0.8 of where mpe2 puts them."""
    from mpe2 import simple_spread_v3
    from mpe2.simple_spread.simple_spread import Scenario
    from pettingzoo.utils import BaseParallelWrapper

    class NearLandmarks(Scenario):
        def reset_world(self, world, np_random):
            super().reset_world(world, np_random)
            for landmark in world.landmarks:
                landmark.state.p_pos *= 0.8

    class Whole(BaseParallelWrapper):
        def step(self, actions):
            observed, rewards, *rest = super().step(actions)
            return observed, {agent: 2 * reward - 1 for agent, reward in rewards.items()}, *rest

    env = simple_spread_v3.parallel_env(max_cycles=25, local_ratio=0.5)
    env.unwrapped.scenario = NearLandmarks()
    return Whole(env)


def minigrid():
    import minigrid.wrappers

    return minigrid.wrappers.ImgObsWrapper(gymnasium.make("MiniGrid-Empty-5x5-v0"))
