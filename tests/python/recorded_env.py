# SPDX-License-Identifier: Apache-2.0
"""An environment of Gymnasium's that writes down what it saw and was told: each instance its first whole episode."""

import itertools
import os
import pathlib

import gymnasium
import numpy as np


class Recorded(gymnasium.Wrapper):
    """Writes N.npz into the folder RECORDED, N counting the instances of the process: seed, observations, actions, rewards."""

    instances = itertools.count()

    def __init__(self, env):
        super().__init__(env)
        self.name, self.steps = next(Recorded.instances), []

    def reset(self, *, seed=None, options=None):
        self.seed, self.steps = seed, []
        self.observation, info = self.env.reset(seed=seed)
        return self.observation, info

    def step(self, action):
        before, action = self.observation.copy(), np.array(action)
        self.observation, reward, terminated, truncated, info = self.env.step(action)
        self.steps.append((before, action, reward))
        path = pathlib.Path(os.environ["RECORDED"]) / f"{self.name}.npz"
        if (terminated or truncated) and not path.exists():
            observations, actions, rewards = (np.array(column) for column in zip(*self.steps))
            np.savez(path, seed=self.seed, observations=observations, actions=actions, rewards=rewards)
        return self.observation, reward, terminated, truncated, info


def make(id):  # noqa: A002 - as Gymnasium's.
    return Recorded(gymnasium.make(id))
