# SPDX-License-Identifier: Apache-2.0
"""gymnasium.Env as one of Skein's, and several as a batch."""

from __future__ import annotations

import itertools
import math
import reprlib
from typing import Any, Callable, Dict, Iterator, List, Mapping, Optional, Sequence, Tuple, cast

import numpy as np
from numpy.typing import NDArray

from ..batch import BARE_ACTIONS, Serial, Single, random_actions
from ..columns import Columns
from ..errors import THROWN
from ..spaces import Actions, Flat, actions_of, array_of, flatten
from ..wire import Spec


def step_limit(env: Any) -> int:
    """The limit that Gymnasium's registration gave the environment; 0: none that is known. The environment ends its
    episodes by itself either way."""
    registered = getattr(env, "spec", None)
    return int(getattr(registered, "max_episode_steps", None) or 0)


def metric_names(env: Any) -> List[str]:
    """env.metadata["episode_metrics"]: keys of the last `info` of an episode that are numbers. A text is one name."""
    metadata: Dict[str, Any] = getattr(env, "metadata", None) or {}
    names = metadata.get("episode_metrics") or []
    return [names] if isinstance(names, str) else [str(name) for name in names]


def number_or_nan(value: Any) -> float:
    """The value as a number; NaN: it is none."""
    try:
        return float(value)
    except (TypeError, ValueError, OverflowError):
        return math.nan


def no_metric(name: str, value: Any) -> str:
    """What is said of an episode metric that is no number at the end."""
    return f"info[{name!r}] is {reprlib.repr(value)} at the end of the episode, want a number: it is an episode metric"


def metric_of(info: Mapping[str, Any], name: str, ended: bool) -> float:
    """The episode metric `name` in the info of a step; 0: it is not there. Any step may be the last one for Skein
    (env.max_episode_steps), so before the environment's own end what is no number yet, like None, is 0 as well.
    ValueError: it is no number at that end."""
    value = info.get(name, 0.0)
    metric = number_or_nan(value)
    if math.isfinite(metric):
        return metric
    if ended:
        raise ValueError(no_metric(name, value))
    return 0.0


def number(reward: Any) -> Any:
    """The reward. ValueError: None, of which NumPy makes NaN."""
    if reward is None:
        raise ValueError("the reward is None, want a number")
    return reward


def make_spec(env: Any, obs: Flat, actions: Actions, agents: int = 1, state: int = 0) -> Spec:
    registered = getattr(env, "spec", None)
    return Spec(
        num_agents=agents,
        obs_size=obs.size,
        discrete=actions.discrete,
        action_size=actions.size,
        action_low=actions.low,
        action_high=actions.high,
        global_state_size=state,
        max_episode_steps=step_limit(env),
        reward_threshold=float(getattr(registered, "reward_threshold", None) or 0.0),
        episode_metrics=metric_names(env),
        name=str(getattr(registered, "id", "") or type(getattr(env, "unwrapped", env)).__name__),
        layout=f"observation {obs.layout}; action {actions.layout}",
    )


class GymnasiumEnv(Single):
    def __init__(self, env: Any) -> None:
        self._env = env
        self._obs = flatten(env.observation_space)
        self._actions = actions_of(env.action_space)
        self.spec = make_spec(env, self._obs, self._actions)
        self._info: Dict[str, Any] = {}
        self._ended = False
        self._write = self._obs.write
        self._read = self._actions.read
        self._keeps_info = len(self.spec.episode_metrics) > 0
        self._given: Any = None  # The last rows of step.
        self._row: Any = None

    def reset(self, seed: int, obs: NDArray[np.float32]) -> None:
        first, self._info = self._env.reset(seed=seed)
        self._ended = False
        self._write(first, obs[0])

    def step(
        self, action: NDArray[np.float32], obs: NDArray[np.float32], reward: NDArray[np.float32]
    ) -> Tuple[bool, bool]:
        if obs is not self._given:
            self._given, self._row = obs, obs[0]
        observed, given, terminated, truncated, info = self._env.step(self._read(action[0]))
        reward[0] = number(given)
        self._write(observed, self._row)
        if self._keeps_info:
            self._info, self._ended = info, bool(terminated or truncated)
        return bool(terminated), bool(truncated)

    def metrics(self, metrics: NDArray[np.float32]) -> None:
        for i, name in enumerate(self.spec.episode_metrics):
            metrics[i] = metric_of(self._info, name, self._ended)

    @staticmethod
    def bare(envs: Sequence[Any]) -> Iterator[None]:
        read = envs[0]._read
        actions = itertools.cycle([read(action[0]) for action in random_actions(envs[0].spec, BARE_ACTIONS)])
        bare = [env._env for env in envs]
        for turn in itertools.count():
            for env, action in zip(bare, actions):
                _, _, terminated, truncated, _ = env.step(action)
                if terminated or truncated:
                    env.reset(seed=turn)
            yield

    def users_own(self) -> Any:
        return getattr(self._env, "unwrapped", self._env)

    def close(self) -> None:
        self._env.close()


def has_one_array(env: Single) -> bool:
    """Whether an observation is one array, as GymnasiumSerial has them."""
    return type(env) is GymnasiumEnv and env._obs.shape is not None


class GymnasiumSerial(Serial):
    """As Serial, for observations that are one array: those of a step are written together, and so are rewards and
    actions. NumPy's calls cost more than its copies, and what a step costs is what hosting costs."""

    def __init__(self, make: Callable[[], Single], num_envs: int) -> None:
        super().__init__(make, num_envs)
        first = cast(GymnasiumEnv, self._envs[0])
        assert first._obs.shape is not None
        self._shape = first._obs.shape
        self._actions = first._actions
        self._nothing = np.zeros(self._shape, np.float32)
        self._axis = 0 if len(self._shape) == 1 else None

    def _read(self, columns: Columns) -> Sequence[Any]:
        rows = columns.action[:, 0]
        if self._actions.read_all is not None:
            return list(self._actions.read_all(rows))
        return [self._actions.read(row) for row in rows]

    def step(self, columns: Columns) -> None:
        self._failures = []
        columns.failed[:] = 0
        columns.active[:] = 1
        shape, array = self._shape, np.ndarray
        observations: List[Any] = [self._nothing] * self.num_envs
        rewards: List[Any] = [0.0] * self.num_envs
        columns.terminated[:] = 0
        columns.truncated[:] = 0
        actions = self._read(columns)
        for e, env in enumerate(cast(List[Optional[GymnasiumEnv]], self._envs)):
            try:
                if env is None:
                    raise RuntimeError("it failed before and has not been reset")
                observed, given, ended, late, info = env._env.step(actions[e])
                rewards[e] = number(given)
                if type(observed) is not array or observed.shape != shape:
                    observed = array_of(observed, shape)
                observations[e] = observed.copy()  # It may be the array of all environments, or of all steps.
                if self._has_metrics:
                    env._info, env._ended = info, bool(ended or late)
                    env.metrics(columns.episode_metrics[e])
                if ended or late:
                    columns.terminated[e], columns.truncated[e] = bool(ended), not ended
                    env._write(observed, columns.final_observation[e, 0])
                    self._begin(e, columns)
                    observations[e] = columns.observation[e, 0].reshape(shape).copy()
            except THROWN as error:  # Whatever a user's environment throws.
                self._fail(e, columns, error)
                observations[e], rewards[e] = self._nothing, 0.0
        self._write_all(columns, observations, rewards)

    def _write_all(self, columns: Columns, observations: List[Any], rewards: List[Any]) -> None:
        try:
            np.concatenate(observations, self._axis, columns.observation.reshape(-1), casting="same_kind")
            columns.reward[:, 0] = np.fromiter(rewards, np.float64, self.num_envs)
            return
        except (TypeError, ValueError):
            pass  # One of them is no number.
        for e, env in enumerate(self._envs):
            try:
                columns.observation[e, 0] = array_of(observations[e], self._shape).reshape(-1)
                columns.reward[e, 0] = rewards[e]
            except (TypeError, ValueError) as error:
                if env is not None:
                    self._fail(e, columns, error)
