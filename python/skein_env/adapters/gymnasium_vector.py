# SPDX-License-Identifier: Apache-2.0
"""gymnasium.vector.VectorEnv as a batch of Skein's.

Its autoreset mode must be DISABLED (then each episode begins with the seed that Skein gives it) or SAME_STEP (then it
begins as the vector environment likes). NEXT_STEP, which spends a step on each reset, is refused.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..batch import Batch
from ..columns import Columns
from ..errors import EnvError
from ..spaces import actions_of, array_of, batched, flatten
from .gymnasium import make_spec


def _one(value: Any, e: int) -> Any:
    """Environment e's part of a batched observation."""
    if isinstance(value, dict):
        return {key: _one(part, e) for key, part in value.items()}
    if isinstance(value, tuple):
        return tuple(_one(part, e) for part in value)
    return value[e]


class GymnasiumVector(Batch):
    def __init__(self, env: Any) -> None:
        self._env = env
        self.num_envs = int(env.num_envs)
        mode = (env.metadata or {}).get("autoreset_mode")
        self._mode = str(getattr(mode, "name", mode)).upper()
        if self._mode not in ("DISABLED", "SAME_STEP"):
            raise EnvError(
                f"the vector environment's autoreset_mode is {self._mode}; make it with "
                "gymnasium.vector.AutoresetMode.DISABLED or SAME_STEP"
            )
        self._obs = flatten(env.single_observation_space)
        self._actions = actions_of(env.single_action_space)
        self.spec = make_spec(env, self._obs, self._actions)
        # Of all observations as one array; None: they are of parts, or choices.
        self._all = None if self._obs.shape is None else (self.num_envs, *self._obs.shape)
        self._fresh = np.zeros(self.num_envs, bool)  # SAME_STEP: at the first observation of an episode.
        self._begun = False

    def _read(self, rows: NDArray[np.float32]) -> Any:
        """Rows [E, W] as what `step` takes, an action of the environment's own `action_space`."""
        of_each: Any = [self._actions.read(row) for row in rows] if self._actions.read_all is None else self._actions.read_all(rows)
        return of_each if isinstance(of_each, np.ndarray) else batched(self._env.single_action_space, of_each)

    def _write_all(self, observed: Any, rows: Any) -> None:
        if self._all is not None:
            rows[:, 0, :] = array_of(observed, self._all).reshape(self.num_envs, -1)
        else:
            for e in range(self.num_envs):
                self._obs.write(_one(observed, e), rows[e, 0])

    def reset(self, columns: Columns) -> None:
        mask = columns.mask.astype(bool)
        columns.failed[mask] = 0
        columns.reward[mask] = 0
        columns.terminated[mask] = columns.truncated[mask] = 0
        columns.active[mask] = 1
        seeds = [int(seed) for seed in columns.seed]
        if self._mode == "DISABLED" and self._begun:
            observed, _ = self._env.reset(seed=seeds, options={"reset_mask": mask})
        elif not self._begun:
            # Those that nobody asked for begin as well: each with a seed of its own.
            first = int(np.flatnonzero(mask)[0])
            seeds = [seed if mask[e] else (seeds[first] + e - first) % 2**31 for e, seed in enumerate(seeds)]
            observed, _ = self._env.reset(seed=seeds)
            self._fresh[:] = True
            self._begun = True
            self._last = observed
        elif np.all(self._fresh[mask]):
            observed = self._last  # It has begun by itself.
        else:
            raise RuntimeError(
                "an episode was to begin before its end (env.max_episode_steps under the environment's own limit), which "
                "a vector environment with autoreset SAME_STEP cannot; make it with AutoresetMode.DISABLED"
            )
        for e in np.flatnonzero(mask):
            self._obs.write(_one(observed, int(e)), columns.observation[e, 0])

    def step(self, columns: Columns) -> None:
        observed, reward, terminated, truncated, info = self._env.step(self._read(columns.action[:, 0, :]))
        columns.failed[:] = 0
        columns.active[:] = 1
        columns.reward[:, 0] = reward
        columns.terminated[:] = terminated
        columns.truncated[:] = np.logical_and(truncated, np.logical_not(terminated))
        ended = np.logical_or(terminated, truncated)
        self._write_all(observed, columns.observation)
        self._last = observed
        self._fresh[:] = False
        names = list(self.spec.episode_metrics)
        if not ended.any() and not names:
            return
        source = info.get("final_info", info) if ended.any() else info
        for i, name in enumerate(names):
            columns.episode_metrics[:, i] = np.asarray(source.get(name, 0.0), np.float32)
        if self._mode == "SAME_STEP":
            self._fresh[:] = ended
            for e in np.flatnonzero(ended):
                self._obs.write(info["final_obs"][e], columns.final_observation[e, 0])
        elif ended.any():
            columns.final_observation[ended] = columns.observation[ended]
            seeds = [int(seed) for seed in columns.seed]
            observed, _ = self._env.reset(seed=seeds, options={"reset_mask": ended})
            for e in np.flatnonzero(ended):
                self._obs.write(_one(observed, int(e)), columns.observation[e, 0])

    def close(self) -> None:
        self._env.close()
