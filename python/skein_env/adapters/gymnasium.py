# SPDX-License-Identifier: Apache-2.0
"""gymnasium.Env as one of Skein's."""

from __future__ import annotations

from typing import Any, Dict, List, Sequence, Tuple

import numpy as np
from numpy.typing import NDArray

from ..batch import Single, random_actions
from ..spaces import Actions, Flat, actions_of, flatten
from ..wire import Spec


def step_limit(env: Any) -> int:
    """The limit that Gymnasium's registration gave the environment; 0: none that is known. The environment ends its
    episodes by itself either way."""
    registered = getattr(env, "spec", None)
    return int(getattr(registered, "max_episode_steps", None) or 0)


def metric_names(env: Any) -> List[str]:
    """env.metadata["episode_metrics"]: keys of the last `info` of an episode that are numbers."""
    metadata: Dict[str, Any] = getattr(env, "metadata", None) or {}
    return [str(name) for name in metadata.get("episode_metrics", [])]


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
        self._write = self._obs.write
        self._read = self._actions.read
        self._keeps_info = len(self.spec.episode_metrics) > 0
        self._given: Any = None  # The last rows of step.
        self._row: Any = None

    def reset(self, seed: int, obs: NDArray[np.float32]) -> None:
        first, self._info = self._env.reset(seed=seed)
        self._write(first, obs[0])

    def step(
        self, action: NDArray[np.float32], obs: NDArray[np.float32], reward: NDArray[np.float32]
    ) -> Tuple[bool, bool]:
        if obs is not self._given:
            self._given, self._row = obs, obs[0]
        observed, reward[0], terminated, truncated, info = self._env.step(self._read(action[0]))
        self._write(observed, self._row)
        if self._keeps_info:
            self._info = info
        return bool(terminated), bool(truncated)

    def metrics(self, metrics: NDArray[np.float32]) -> None:
        for i, name in enumerate(self.spec.episode_metrics):
            metrics[i] = float(self._info.get(name, 0.0))

    @staticmethod
    def bare(envs: Sequence[Any], steps: int) -> None:
        actions = [envs[0]._read(action[0]) for action in random_actions(envs[0].spec, 256)]
        bare = [env._env for env in envs]
        for i in range(steps // len(bare)):
            for env in bare:
                _, _, terminated, truncated, _ = env.step(actions[i % 256])
                if terminated or truncated:
                    env.reset(seed=i)

    def close(self) -> None:
        self._env.close()
