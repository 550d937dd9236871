# SPDX-License-Identifier: Apache-2.0
"""gymnasium.vector.VectorEnv as a batch of Skein's.

Its autoreset mode must be DISABLED (then each episode begins with the seed that Skein gives it) or SAME_STEP (then it
begins as the vector environment likes, unless Skein ends the one before it: that environment alone is reset).
NEXT_STEP, which spends a step on each reset, is refused.
"""

from __future__ import annotations

from typing import Any, List, Mapping, Tuple

import numpy as np
from numpy.typing import NDArray

from ..batch import Batch
from ..columns import Columns
from ..errors import EnvError, describe
from ..spaces import LARGEST, actions_of, array_of, batched, flatten
from .gymnasium import make_spec, no_metric, number_or_nan

_UNSOUND = f"it sent a number that is not finite or beyond {LARGEST:g}"


def _one(value: Any, e: int) -> Any:
    """Environment e's part of a batched observation."""
    if isinstance(value, dict):
        return {key: _one(part, e) for key, part in value.items()}
    if isinstance(value, tuple):
        return tuple(_one(part, e) for part in value)
    return value[e]


def _all_within(numbers: NDArray[np.float32]) -> bool:
    return bool(np.all(np.abs(numbers) <= LARGEST))  # NaN is not.


def _why_again(again: NDArray[np.bool_], sound: NDArray[np.bool_]) -> str:
    """Why environments are to begin an episode in the middle of another one, as far as one sees it from here."""
    of_each = ", ".join(
        f"environment {e} ({'it failed, or env.max_episode_steps is under its own limit' if sound[e] else _UNSOUND})"
        for e in np.flatnonzero(again)
    )
    return f"an episode was to begin before the end of the one before it in {of_each}"


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
        self._failures: List[Tuple[int, str]] = []

    def failures(self) -> List[Tuple[int, str]]:
        return self._failures

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
        self._failures = []
        mask = columns.mask.astype(bool)
        sound = np.ones(self.num_envs, bool)
        for e in np.flatnonzero(mask):
            sound[e] = _all_within(columns.observation[e]) and _all_within(columns.reward[e])
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
        else:
            # What has begun by itself is as good as begun now, unless that is what Skein refused.
            again = mask & ~(self._fresh & sound)
            if again.any():
                self._begin_again(again, seeds, sound)
            observed = self._last
        for e in np.flatnonzero(mask):
            self._obs.write(_one(observed, int(e)), columns.observation[e, 0])

    def _begin_again(self, again: NDArray[np.bool_], seeds: List[int], sound: NDArray[np.bool_]) -> None:
        """SAME_STEP: begins an episode where `again` says so, in the middle of another one. The other environments must
        not notice."""
        before = self._rows_of(self._last)
        try:
            self._last, _ = self._env.reset(seed=seeds, options={"reset_mask": again.copy()})
        except Exception as error:
            raise RuntimeError(f"{_why_again(again, sound)}; its reset then failed: {describe(error)}") from error
        others = ~again
        if not np.array_equal(before[others], self._rows_of(self._last)[others], equal_nan=True):
            raise RuntimeError(
                f"{_why_again(again, sound)}, but its reset began others, too: a vector environment must heed "
                'options["reset_mask"], as Gymnasium\'s SyncVectorEnv and AsyncVectorEnv do'
            )
        self._fresh[again] = True

    def _rows_of(self, observed: Any) -> NDArray[np.float32]:
        rows = np.zeros((self.num_envs, 1, self.spec.obs_size), np.float32)
        self._write_all(observed, rows)
        return rows

    def _metric(self, info: Mapping[str, Any], name: str) -> NDArray[np.float64]:
        """The metric of each environment, 0 where it is not there; NaN: it is no number."""
        values = np.broadcast_to(np.asarray(info.get(name, 0.0)), self.num_envs)
        if values.dtype.kind not in "biuf":
            values = np.array([number_or_nan(value) for value in values])
        return np.where(info.get("_" + name, True), values, 0.0).astype(np.float64)

    def _write_metrics(self, info: Mapping[str, Any], ended: NDArray[np.bool_], columns: Columns) -> None:
        """As metric_of() says. The info of an episode that has ended in the same step is apart, in final_info."""
        final = info.get("final_info", info)
        for i, name in enumerate(self.spec.episode_metrics):
            metrics = self._metric(info, name)
            if ended.any():
                metrics = np.where(ended, self._metric(final, name), metrics)
            missing = ~np.isfinite(metrics)
            columns.episode_metrics[:, i] = np.where(missing, 0.0, metrics)
            for e in np.flatnonzero(missing & ended):
                columns.failed[e] = 1
                value = np.broadcast_to(np.asarray(final[name]), self.num_envs).tolist()[e]
                self._failures.append((int(e), "ValueError: " + no_metric(name, value)))

    def step(self, columns: Columns) -> None:
        self._failures = []
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
        if self.spec.episode_metrics:
            self._write_metrics(info, ended, columns)
        if not ended.any():
            return
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

    def users_own(self) -> Any:
        return getattr(self._env, "unwrapped", self._env)

    def close(self) -> None:
        self._env.close()
