# SPDX-License-Identifier: Apache-2.0
"""Environments of other libraries that external_study.py learns."""

import gymnasium
import numpy as np
import pettingzoo


class Spread(pettingzoo.ParallelEnv):
    """MPE's simple_spread as the MAPPO paper's environment (Yu et al. 2022) has it: three agents, 25 steps. Each agent's reward is all of the common one and all of its own for collisions, which mpe2 weights by local_ratio and
    1 - local_ratio, and 1 less in each step, because the paper's environment counts that an agent touches itself: 75 an
    episode. Landmarks are in the middle 0.8 of where mpe2 puts them.

    World, physics, observations and rewards are mpe2's; only PettingZoo's conversion from agents in turn to agents at once is
    left out (tests/python/external_tasks_test.py compares the two)."""

    metadata = {"name": "simple_spread"}

    def __init__(self, landmarks=0.8):
        from mpe2.simple_spread.simple_spread import Scenario, raw_env

        class NearLandmarks(Scenario):
            def reset_world(self, world, np_random):
                super().reset_world(world, np_random)
                for landmark in world.landmarks:
                    landmark.state.p_pos *= landmarks

        self._turns = raw_env(local_ratio=0.5)
        self._turns.scenario = NearLandmarks()
        self.possible_agents = list(self._turns.possible_agents)
        self.observation_space, self.action_space = self._turns.observation_space, self._turns.action_space

    def _observe(self):
        observed = {agent: self._turns.observe(agent) for agent in self.possible_agents}
        self._state = np.concatenate(list(observed.values()))
        return observed

    def state(self):
        return self._state

    def reset(self, seed=None, options=None):
        self._turns.reset(seed=seed)
        self.agents, self._steps = list(self.possible_agents), 0
        return self._observe(), {agent: {} for agent in self.agents}

    def step(self, actions):
        self._turns.current_actions[:] = [actions[agent] for agent in self.possible_agents]
        self._turns._execute_world_step()
        self._steps += 1
        over = self._steps == 25
        rewards = {agent: 2 * self._turns.rewards[agent] - 1 for agent in self.agents}
        infos = {agent: {} for agent in self.agents}
        if over:
            self.agents = []
        return self._observe(), rewards, dict.fromkeys(infos, False), dict.fromkeys(infos, over), infos

    def close(self):
        self._turns.close()


def spread():
    return Spread()


def minigrid():
    import minigrid.wrappers

    return minigrid.wrappers.ImgObsWrapper(gymnasium.make("MiniGrid-Empty-5x5-v0"))
