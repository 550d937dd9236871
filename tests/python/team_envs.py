# SPDX-License-Identifier: Apache-2.0
"""Environments of other libraries, good and bad ones, for environments_test.py."""

import json
import os
import signal
import time

import dm_env
import gymnasium
import numpy as np
from dm_env import specs
from gymnasium import spaces


def cartpole():
    return gymnasium.make("CartPole-v1")


def cartpoles(num_envs):
    return gymnasium.make_vec("CartPole-v1", num_envs=num_envs, vectorization_mode="sync",
                              vector_kwargs={"autoreset_mode": gymnasium.vector.AutoresetMode.DISABLED})


def cartpoles_in_the_same_step(num_envs):
    return gymnasium.make_vec("CartPole-v1", num_envs=num_envs, vectorization_mode="sync",
                              vector_kwargs={"autoreset_mode": gymnasium.vector.AutoresetMode.SAME_STEP})


def cartpoles_in_the_next_step(num_envs):
    return gymnasium.make_vec("CartPole-v1", num_envs=num_envs)


class Recorded(gymnasium.vector.VectorWrapper):
    """Writes the seeds of its resets to the file TEAM_SEEDS, a list in each line."""

    def reset(self, *, seed=None, options=None):
        with open(os.environ["TEAM_SEEDS"], "a") as file:
            file.write(json.dumps(seed) + "\n")
        return self.env.reset(seed=seed, options=options)


def recorded_cartpoles(num_envs):
    return Recorded(cartpoles_in_the_same_step(num_envs))


class Slow(gymnasium.Wrapper):
    """Takes 45 s for its second step."""

    steps = 0

    def step(self, action):
        Slow.steps += 1
        if Slow.steps == 2:
            time.sleep(45)
        return self.env.step(action)


def slow():
    return Slow(gymnasium.make("CartPole-v1"))


def minigrid():
    import minigrid.wrappers

    return minigrid.wrappers.ImgObsWrapper(gymnasium.make("MiniGrid-Empty-5x5-v0"))


def minigrid_with_its_text():
    import minigrid  # noqa: F401

    return gymnasium.make("MiniGrid-Empty-5x5-v0")


def spread():
    from mpe2 import simple_spread_v3

    return simple_spread_v3.parallel_env(max_cycles=25)


class Shrinking:
    """A ParallelEnv whose agent "b" leaves after three steps, and "a" after six."""

    metadata = {"name": "shrinking", "episode_metrics": ["left"]}
    possible_agents = ["a", "b"]

    def observation_space(self, agent):
        return spaces.Box(-10, 10, (2 if agent == "a" else 1,), np.float32)

    def action_space(self, agent):
        return spaces.Discrete(3)

    def reset(self, seed=None, options=None):
        self.agents, self.count = ["a", "b"], 0
        return {"a": np.zeros(2, np.float32), "b": np.zeros(1, np.float32)}, {}

    def step(self, actions):
        assert set(actions) == set(self.agents), actions
        self.count += 1
        observed = {agent: np.full(2 if agent == "a" else 1, self.count, np.float32) for agent in self.agents}
        rewards = {agent: 1.0 for agent in self.agents}
        ended = {"a": self.count == 6, "b": self.count == 3}
        terminations = {agent: ended[agent] for agent in self.agents}
        truncations = {agent: False for agent in self.agents}
        infos = {agent: {"left": float(len(self.agents))} for agent in self.agents}
        self.agents = [agent for agent in self.agents if not ended[agent]]
        return observed, rewards, terminations, truncations, infos

    def close(self):
        pass


def paying(reward):
    """A team of which "b" gets this reward."""
    team = shrinking()
    own_step = team.step

    def step(actions):
        observed, rewards, *rest = own_step(actions)
        return observed, {**rewards, "b": reward}, *rest

    team.step = step
    return team


def shrinking():
    from pettingzoo import ParallelEnv

    return type("Shrinking", (Shrinking, ParallelEnv), {})()


class WithoutAMap(gymnasium.Wrapper):
    def reset(self, **arguments):
        raise ValueError("no map of this arena")


def without_a_map():
    return WithoutAMap(gymnasium.make("CartPole-v1"))


class Catch(dm_env.Environment):
    def __init__(self):
        self._count = 0

    def reset(self):
        self._count = 0
        return dm_env.restart(self._observe())

    def step(self, action):
        assert action.shape == (2,) and action.dtype == np.float32, action
        self._count += 1
        if self._count == 5:
            return dm_env.termination(float(action.sum()), self._observe())
        if self._count == 9:
            return dm_env.truncation(0.0, self._observe())
        return dm_env.transition(float(action.sum()), self._observe())

    def _observe(self):
        return {"position": np.full(3, self._count, np.float64), "height": np.float64(7)}

    def observation_spec(self):
        return {"position": specs.Array((3,), np.float64), "height": specs.Array((), np.float64)}

    def action_spec(self):
        return specs.BoundedArray((2,), np.float32, -1, 1)


def catch():
    return Catch()


def raises():
    raise ValueError("no map of this arena")


def a_number():
    return 3


class Faulty(gymnasium.Wrapper):
    """Does what TEAM_FAULT says in the 500th step of the process, and in every 2,000th after that; "often" in each 20th, "all"
    in each step; "reset" hangs in each reset, "step" in each step."""

    steps = 0

    def reset(self, **arguments):
        if os.environ.get("TEAM_FAULT") == "reset":
            time.sleep(1000)
        return self.env.reset(**arguments)

    def step(self, action):
        Faulty.steps += 1
        fault = os.environ.get("TEAM_FAULT", "") if Faulty.steps % 2000 == 500 else ""
        if fault in ("kill", "sigint"):
            os.kill(os.getpid(), signal.SIGKILL if fault == "kill" else signal.SIGINT)
        if fault == "hang" or os.environ.get("TEAM_FAULT") == "step":
            time.sleep(1000)
        often = os.environ.get("TEAM_FAULT") == "often" and Faulty.steps % 20 == 0
        if fault == "raise" or often or os.environ.get("TEAM_FAULT") == "all":
            return 1 / 0
        if fault in ("exit", "interrupt"):
            raise SystemExit(3) if fault == "exit" else KeyboardInterrupt
        result = self.env.step(action)
        if fault == "nan":
            return np.full(4, np.nan, np.float32), *result[1:]
        if fault == "shape":
            return np.zeros(5, np.float32), *result[1:]
        return result


def faulty():
    return Faulty(gymnasium.make("CartPole-v1"))


class Fragile(gymnasium.Env):
    """Episodes of ten steps with reward 1; each third episode fails in its fourth step."""

    observation_space = spaces.Box(-1, 1, (1,), np.float32)
    action_space = spaces.Discrete(2)
    metadata = {"episode_metrics": ["whole"]}
    episodes = 0

    def reset(self, *, seed=None, options=None):
        self.episodes, self.count = self.episodes + 1, 0
        return np.zeros(1, np.float32), {}

    def step(self, action):
        self.count += 1
        if self.episodes % 3 == 0 and self.count == 4:
            raise OSError("no more room")
        return np.zeros(1, np.float32), 1.0, False, self.count == 10, {"whole": 1}


class Unpaid(gymnasium.Wrapper):
    def step(self, action):
        observed, _, *rest = self.env.step(action)
        return observed, None, *rest


def unpaid(make=cartpole):
    return Unpaid(make())


class Doomed(Fragile):
    """Fails in the fourth step of each episode."""

    def step(self, action):
        self.episodes = 3
        return super().step(action)


def doomed():
    return Doomed()


def fragile():
    return Fragile()


class Four(gymnasium.Env):
    """Its step returns four values, as before Gymnasium."""

    observation_space = spaces.Box(-1, 1, (1,), np.float32)
    action_space = spaces.Discrete(2)

    def reset(self, *, seed=None, options=None):
        return np.zeros(1, np.float32), {}

    def step(self, action):
        return np.zeros(1, np.float32), 1.0, False, {}


class Short(gymnasium.vector.VectorEnv):
    """Several at once, whose observations lack a column in each step."""

    metadata = {"autoreset_mode": gymnasium.vector.AutoresetMode.DISABLED}
    single_observation_space = spaces.Box(-1, 1, (3,), np.float32)
    single_action_space = spaces.Discrete(2)

    def __init__(self, num_envs):
        self.num_envs = num_envs

    def reset(self, *, seed=None, options=None):
        return np.zeros((self.num_envs, 3), np.float32), {}

    def step(self, actions):
        none = np.zeros(self.num_envs, bool)
        return np.zeros((self.num_envs, 2), np.float32), np.ones(self.num_envs), none, none, {}


def short_without_a_number():
    return Short(2)


class Odd(gymnasium.Env):
    """Observes a matrix of its own, which it changes in place; its seed says what is odd in the third step."""

    observation_space = spaces.Box(-1e4, 1e4, (2, 3), np.float64)
    action_space = spaces.Box(-2, 2, (2,), np.float32)
    metadata = {"episode_metrics": ["count"]}

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.fault = seed % 12
        self.at, self.count = self.np_random.normal(size=(2, 3)), 0
        return self.at, {}

    def step(self, action):
        self.count += 1
        self.at[:, :2] += action
        action[:] = 7  # It is the environment's own.
        fault = self.fault if self.count == 3 else -1
        observed = {0: self.at.tolist(), 1: self.at[:1], 2: np.array([["x"] * 3] * 2)}.get(fault, self.at)
        reward = {3: 2, 4: None, 5: [1, 2]}.get(fault, self.at.sum())
        if fault == 6:
            raise OSError("no more room")
        terminated = self.count == 5 and self.at[0, 0] > 0
        return observed, reward, terminated, np.bool_(self.count == 5), {"count": self.count}


def odd():
    return Odd()


class Sharing(gymnasium.Env):
    """All of the process observe one array: their seed and the steps since. Episodes of three steps."""

    observation_space = spaces.Box(-1e4, 1e4, (2,), np.float32)
    action_space = spaces.Discrete(2)
    seen = np.zeros(2, np.float32)

    def reset(self, *, seed=None, options=None):
        self.begin = self.at = seed
        return self._observe(), {}

    def step(self, action):
        self.at += 1
        return self._observe(), 0.0, False, self.at == self.begin + 3, {}

    def _observe(self):
        Sharing.seen[:] = self.at
        return Sharing.seen[:]  # Another view each time.


class SharingInParts(Sharing):
    observation_space = spaces.Dict({"a": Sharing.observation_space})

    def _observe(self):
        return {"a": super()._observe()}


def sharing():
    return Sharing()


def sharing_in_parts():
    return SharingInParts()


class Mixed(gymnasium.Env):
    """Spaces of several kinds."""

    observation_space = spaces.Dict({
        "b": spaces.Tuple((spaces.Discrete(3, start=5), spaces.MultiBinary(2))),
        "a": spaces.Box(0, 255, (2, 2), np.uint8),
        "c": spaces.MultiDiscrete([2, 3]),
    })

    def __init__(self, action="multi"):
        self.action_space = {
            "multi": spaces.MultiDiscrete([2, 3]),
            "binary": spaces.MultiBinary(3),
            "many": spaces.MultiDiscrete([100, 100]),
            "both": spaces.Tuple((spaces.Box(-1, 1, (2,)), spaces.Discrete(2))),
            "reals": spaces.Dict({"y": spaces.Box(-2, 2, (2,)), "x": spaces.Box(-np.inf, 3, (1,))}),
        }[action]
        self.taken = []

    def _observe(self):
        return {"a": np.arange(4, dtype=np.uint8).reshape(2, 2), "b": (6, np.array([0, 1], np.int8)),
                "c": np.array([1, 2])}

    def reset(self, seed=None, options=None):
        return self._observe(), {}

    def step(self, action):
        self.taken.append(action)
        return self._observe(), 1.0, False, len(self.taken) % 10 == 0, {}


def mixed(action="multi"):
    return Mixed(action)
