# SPDX-License-Identifier: Apache-2.0
"""pettingzoo.ParallelEnv as an environment of a team.

Agents are those of `possible_agents`, in that order. An agent that is not in `agents` any more takes no further part:
its observation is zero, its action has no effect, and it has no reward. The episode ends when nobody is left: truncated
if somebody was truncated in that step, else terminated. Observations of different sizes are filled up with zeros; the
agents' actions must be alike. The global state is what `state()` returns, if the environment has it.
"""

from __future__ import annotations

from typing import Any, Dict, List, Tuple

import numpy as np
from numpy.typing import NDArray

from ..batch import Single
from ..errors import EnvError
from ..spaces import Actions, Flat, actions_of, flatten
from ..wire import Spec
from .gymnasium import metric_names, metric_of, number


def _state_size(env: Any) -> int:
    """Floats that state() returns; 0 if there is none. The environment has been reset."""
    try:
        state = env.state()
    except (NotImplementedError, AttributeError):
        return 0
    return int(np.asarray(state).size) if state is not None else 0


class ParallelTeam(Single):
    def __init__(self, env: Any) -> None:
        self._env = env
        self._agents: List[Any] = list(env.possible_agents)
        if not self._agents:
            raise EnvError("the environment has no possible_agents")
        self._obs: List[Flat] = [flatten(env.observation_space(agent)) for agent in self._agents]
        self._actions: List[Actions] = [actions_of(env.action_space(agent)) for agent in self._agents]
        first = self._actions[0]
        for agent, actions in zip(self._agents, self._actions):
            alike = (actions.discrete, actions.size, actions.low, actions.high)
            if alike != (first.discrete, first.size, first.low, first.high):
                raise EnvError(
                    f"agents of a team act alike: {agent} has {actions.layout}, {self._agents[0]} has {first.layout}"
                )
        env.reset(seed=0)
        metadata: Dict[str, Any] = getattr(env, "metadata", None) or {}
        sizes = [obs.size for obs in self._obs]
        layout = self._obs[0].layout if len(set(sizes)) == 1 else f"of {sizes} numbers, filled up with zeros"
        self.spec = Spec(
            num_agents=len(self._agents),
            obs_size=max(sizes),
            discrete=first.discrete,
            action_size=first.size,
            action_low=first.low,
            action_high=first.high,
            global_state_size=_state_size(env),
            episode_metrics=metric_names(env),
            name=str(metadata.get("name", type(env).__name__)),
            layout=f"agents {', '.join(map(str, self._agents))}; observation {layout}; action {first.layout}",
        )
        self._info: Dict[str, Any] = {}

    def _write(self, observed: Dict[Any, Any], obs: NDArray[np.float32]) -> None:
        for a, agent in enumerate(self._agents):
            obs[a] = 0
            if agent in observed:
                self._obs[a].write(observed[agent], obs[a, : self._obs[a].size])

    def reset(self, seed: int, obs: NDArray[np.float32]) -> None:
        observed, self._info = self._env.reset(seed=seed)
        if set(self._env.agents) != set(self._agents):
            raise EnvError(
                f"an episode begins with the agents {self._env.agents}, not with all possible_agents {self._agents}"
            )
        self._write(observed, obs)

    def step(
        self, action: NDArray[np.float32], obs: NDArray[np.float32], reward: NDArray[np.float32]
    ) -> Tuple[bool, bool]:
        alive = set(self._env.agents)
        chosen = {agent: self._actions[a].read(action[a]) for a, agent in enumerate(self._agents) if agent in alive}
        observed, rewards, terminations, truncations, self._info = self._env.step(chosen)
        for a, agent in enumerate(self._agents):
            reward[a] = number(rewards.get(agent, 0.0))
        self._write(observed, obs)
        if self._env.agents:
            return False, False
        truncated = any(truncations.get(agent, False) for agent in alive)
        return not truncated, truncated

    def active(self, active: NDArray[np.uint8]) -> None:
        alive = set(self._env.agents)
        if not alive:
            return  # The episode is over, for all of those who were left.
        for a, agent in enumerate(self._agents):
            active[a] = agent in alive

    def global_state(self, state: NDArray[np.float32]) -> None:
        row = np.asarray(self._env.state()).reshape(-1)
        if row.shape != state.shape:
            raise ValueError(f"state() has {row.size} numbers, it had {state.size} before")
        state[:] = row

    def metrics(self, metrics: NDArray[np.float32]) -> None:
        for i, name in enumerate(self.spec.episode_metrics):
            ended = not self._env.agents
            values = [metric_of(info, name, ended) for info in self._info.values() if name in info]
            metrics[i] = float(np.mean(values)) if values else 0.0

    def users_own(self) -> Any:
        return getattr(self._env, "unwrapped", self._env)

    def close(self) -> None:
        self._env.close()
