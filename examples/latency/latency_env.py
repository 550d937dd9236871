# SPDX-License-Identifier: Apache-2.0
"""Latency-v0 in Python, to measure what hosting adds to environments that wait: --env python:latency_env:Latency.

Observations, rewards and limit are those of Latency-v0 (docs/environments.md). The environments of a batch wait together, so a
server makes num_envs env steps every step_ms milliseconds: N servers with E environments can make N x E / 0.01 s, no more.
"""

import time

import numpy as np
import skein_env

LIMIT = 200  # Steps of an episode.
MOST_CAUGHT_UP = 1.0  # Seconds.


class Latency(skein_env.Batch):
    def __init__(self, num_envs: int, step_ms: float = 10) -> None:
        self.num_envs = num_envs
        self.spec = skein_env.Spec(num_agents=1, obs_size=4, discrete=False, action_size=1, action_low=[-1], action_high=[1],
                                   max_episode_steps=LIMIT, name="Latency")
        self._seconds = step_ms / 1000
        self._owed = 0.0
        self._phase = np.zeros(num_envs)
        self._steps = np.zeros(num_envs, np.int64)

    def _sleep(self) -> None:
        """Sleeps so long in the mean: being woken late is caught up in the sleeps that follow, as Latency-v0 does."""
        caught_up = min(self._owed, self._seconds)
        deadline = time.monotonic() + self._seconds - caught_up
        self._owed -= caught_up
        while (left := deadline - time.monotonic()) > 0:
            time.sleep(left)
        self._owed = min(MOST_CAUGHT_UP, self._owed - left)

    def _begin(self, which: np.ndarray, columns: skein_env.Columns) -> None:
        for e in np.flatnonzero(which):
            self._phase[e] = np.random.default_rng(columns.seed[e]).uniform(-np.pi, np.pi)
        self._steps[which] = 0

    def _observe(self, out: np.ndarray) -> None:
        p = self._phase
        out[:, 0] = np.stack([np.sin(p), np.cos(p), np.sin(2 * p), np.cos(2 * p)], axis=1)

    def reset(self, columns: skein_env.Columns) -> None:
        begun = columns.mask.astype(bool)
        self._begin(begun, columns)
        self._observe(columns.observation)
        columns.active[begun] = 1

    def step(self, columns: skein_env.Columns) -> None:
        columns.reward[:, 0] = -((columns.action[:, 0, 0] - np.sin(self._phase)) ** 2)
        self._sleep()
        self._phase += 0.1
        self._steps += 1
        ended = self._steps == LIMIT
        if ended.any():
            self._observe(columns.final_observation)
            self._begin(ended, columns)
        self._observe(columns.observation)
        columns.terminated.fill(0)
        columns.truncated[:] = ended
        columns.failed.fill(0)
        columns.active.fill(1)
