# SPDX-License-Identifier: Apache-2.0
"""dm_env.Environment as one of Skein's.

An observation is an array, or a dict or list of such; a dict's parts are in the order of its spec. An episode whose last
step has the discount 0 terminated, any other was truncated. dm_env has no seed for a reset: if the environment has a
`seed` of its own (a method of one number), it is called before each; else episodes depend on how it was made.
"""

from __future__ import annotations

from typing import Any, Dict, List, Tuple

import numpy as np
from numpy.typing import NDArray

from ..batch import Single
from ..errors import EnvError
from ..spaces import Actions, Flat, LARGEST, MOST_CHOICES, array_of, within
from ..wire import Spec


def _array(spec: Any) -> Flat:
    shape = tuple(int(n) for n in spec.shape)
    if np.dtype(spec.dtype).kind not in "fiub":
        raise EnvError(f"an observation of dm_env's of dtype {spec.dtype} has no numbers")

    def write(value: Any, row: NDArray[np.float32]) -> None:
        row[:] = array_of(value, shape, "spec").reshape(-1)

    return Flat(int(np.prod(shape)), write, f"Array{list(shape)}")


def _flatten(spec: Any) -> Flat:
    if hasattr(spec, "shape"):
        return _array(spec)
    items = list(spec.items()) if isinstance(spec, dict) or hasattr(spec, "items") else list(enumerate(spec))
    parts: List[Tuple[Any, Flat]] = [(key, _flatten(part)) for key, part in items]
    ends = np.cumsum([part.size for _, part in parts]).tolist()

    def write(value: Any, row: NDArray[np.float32]) -> None:
        begin = 0
        for (key, part), end in zip(parts, ends):
            part.write(value[key], row[begin:end])
            begin = end

    return Flat(ends[-1] if ends else 0, write, ", ".join(f"{key}: {part.layout}" for key, part in parts))


def _actions(spec: Any) -> Actions:
    if not hasattr(spec, "shape"):
        raise EnvError(f"an action of dm_env's must be one array, not {type(spec).__name__}")
    shape, dtype = tuple(spec.shape), np.dtype(spec.dtype)
    if hasattr(spec, "num_values"):  # DiscreteArray
        count = int(spec.num_values)
        return Actions(True, count, [], [], lambda row: dtype.type(int(row[0])), f"DiscreteArray({count})")
    low = np.broadcast_to(getattr(spec, "minimum", -np.inf), shape).reshape(-1)
    high = np.broadcast_to(getattr(spec, "maximum", np.inf), shape).reshape(-1)
    if dtype.kind in "iu" and shape in ((), (1,)) and 0 < float(high[0]) - float(low[0]) + 1 <= MOST_CHOICES:
        least = int(low[0])
        return Actions(True, int(high[0]) - least + 1, [], [],
                       lambda row: np.full(shape, least + int(row[0]), dtype), f"BoundedArray{list(shape)} of {dtype}")
    if dtype.kind != "f":
        raise EnvError(f"actions of dm_env's of shape {shape} and dtype {dtype} are neither reals nor one choice")
    bounds = [[float(x) for x in np.clip(side.astype(np.float64), -LARGEST, LARGEST)] for side in (low, high)]
    own_low, own_high = low.astype(dtype), high.astype(dtype)
    return Actions(False, int(np.prod(shape)), bounds[0], bounds[1],
                   lambda row: within(row[None], own_low, own_high).reshape(shape), f"BoundedArray{list(shape)}")


class DmEnv(Single):
    def __init__(self, env: Any) -> None:
        self._env = env
        self._obs = _flatten(env.observation_spec())
        self._actions = _actions(env.action_spec())
        self._seed: Any = getattr(env, "seed", None)
        self.spec = Spec(
            num_agents=1,
            obs_size=self._obs.size,
            discrete=self._actions.discrete,
            action_size=self._actions.size,
            action_low=self._actions.low,
            action_high=self._actions.high,
            name=type(env).__name__,
            layout=f"observation {self._obs.layout}; action {self._actions.layout}",
        )
        self._infos: Dict[str, Any] = {}

    def reset(self, seed: int, obs: NDArray[np.float32]) -> None:
        if callable(self._seed):
            self._seed(seed)
        self._obs.write(self._env.reset().observation, obs[0])

    def step(
        self, action: NDArray[np.float32], obs: NDArray[np.float32], reward: NDArray[np.float32]
    ) -> Tuple[bool, bool]:
        step = self._env.step(self._actions.read(action[0]))
        reward[0] = 0.0 if step.reward is None else step.reward
        self._obs.write(step.observation, obs[0])
        terminated = bool(step.last()) and step.discount == 0
        return terminated, bool(step.last()) and not terminated

    def users_own(self) -> Any:
        return self._env

    def close(self) -> None:
        self._env.close()
