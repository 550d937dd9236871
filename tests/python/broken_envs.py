# SPDX-License-Identifier: Apache-2.0
"""Environments that each break the contract in one way, and one that keeps it, for env_check_test.py."""

import os
import pathlib
import signal
import sys
import time

import gymnasium
import numpy as np
import pettingzoo
from gymnasium import spaces


class Line(gymnasium.Env):
    """Observes where it is and began, walks to one side or the other, and ends after ten steps."""

    observation_space = spaces.Box(-1000, 1000, (2,), np.float32)
    action_space = spaces.Discrete(2)
    steps_of_the_process = 0
    length = 10

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.steps = 0
        self.at = self.begin = self.np_random.uniform(-1, 1)
        return self.observe(), {}

    def step(self, action):
        Line.steps_of_the_process += 1
        self.steps += 1
        self.at += 0.5 if action == 1 else -0.25
        return self.observe(), 1.0, self.steps >= self.length, False, {}

    def observe(self):
        return np.array([self.at, self.begin], np.float32)

    def fails(self):
        """In each 25th step."""
        return self.steps_of_the_process % 25 == 24


class Unseeded(Line):
    def observe(self):
        return np.random.random(2).astype(np.float32)


class Sharing(Line):
    """Its reward counts the steps of all environments of the process."""

    def step(self, action):
        observation, _, terminated, truncated, info = super().step(action)
        return observation, float(self.steps_of_the_process % 100), terminated, truncated, info


class EndingAtItsLimit(Line):
    length = 20


class Endless(Line):
    length = 10**9

    def observe(self):
        return np.array([self.steps % 7, 0], np.float32)


class ResettingEarly(Line):
    """Its last observation is the first one of the next episode."""

    def observe(self):
        return np.array([self.steps % self.length, 0], np.float32)


class Raising(Line):
    def step(self, action):
        result = super().step(action)
        if self.fails():
            raise ValueError("no such cell")
        return result


class NotANumber(Line):
    def observe(self):
        return np.array([np.nan if self.fails() else 0, self.steps], np.float32)


class OfAnotherShape(Line):
    def observe(self):
        return np.zeros(3 if self.fails() else 2, np.float32)


class Dying(Line):
    def step(self, action):
        if self.fails():
            os.kill(os.getpid(), signal.SIGKILL)
        return super().step(action)


def hang():
    """For long; the file that BROKEN_HANGS names says that it has begun."""
    if "BROKEN_HANGS" in os.environ:
        pathlib.Path(os.environ["BROKEN_HANGS"]).touch()
    time.sleep(1000)


class Hanging(Line):
    """In its first step."""

    def step(self, action):
        hang()


class FailingAsItIsMade(Line):
    def __init__(self):
        raise OSError("the parts are missing")


class HangingAsItIsMade(Line):
    def __init__(self):
        hang()


class HangingAsItsTypesAreSeen(Line):
    def step(self, action):
        if "--dtypes" in sys.argv:
            hang()
        return super().step(action)


class HangingInAnActor(Line):
    def step(self, action):
        if pathlib.Path(f"/proc/{os.getppid()}/comm").read_text().strip() == "skein-actor":
            hang()
        return super().step(action)


class Leaving(Line):
    def close(self):
        raise OSError("it is gone")


class OfAnotherType(Line):
    """Declares float32 and observes float64; its reward is an array."""

    def step(self, action):
        observation, reward, terminated, truncated, info = super().step(action)
        return observation, np.array([reward]), terminated, truncated, info

    def observe(self):
        return super().observe().astype(np.float64)


class OutOfItsBox(Line):
    """Each of its parts is out of its bounds in most steps."""

    observation_space = spaces.Dict(at=spaces.Box(np.float32([-1000, -1000]), np.float32([0.25, 1000]), dtype=np.float32),
                                    steps=spaces.Box(0, 5, (), np.int64), free=spaces.Box(-np.inf, np.inf, (1,), np.float32))

    def observe(self):
        return {"at": np.array([0.5, self.begin], np.float32), "steps": np.array(self.steps), "free": np.full(1, 1e5, np.float32)}


class Unpaid(pettingzoo.ParallelEnv):
    """A team, of which one gets no reward."""

    metadata = {"name": "unpaid"}
    possible_agents = ["a", "b"]

    def observation_space(self, agent):
        return spaces.Box(-1, 1, (1,), np.float32)

    def action_space(self, agent):
        return spaces.Discrete(2)

    def _observe(self):
        return {agent: self.at.copy() for agent in self.possible_agents}

    def reset(self, seed=None, options=None):
        self.agents, self.steps = list(self.possible_agents), 0
        self.at = np.random.default_rng(seed).uniform(-0.5, 0.5, 1).astype(np.float32)
        return self._observe(), {}

    def step(self, actions):
        self.steps += 1
        self.at *= np.float32(0.9)
        over = self.steps == 10
        every = dict.fromkeys(self.agents)
        if over:
            self.agents = []
        return self._observe(), {"a": 1.0}, dict.fromkeys(every, False), dict.fromkeys(every, over), dict.fromkeys(every, {})


class FlaggingWithNumbers(Line):
    def step(self, action):
        observation, reward, terminated, truncated, info = super().step(action)
        return observation, reward, int(terminated), truncated, info
