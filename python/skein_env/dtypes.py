# SPDX-License-Identifier: Apache-2.0
"""Whether an environment's numbers have the types and bounds that it declares, for `skein env check`.

All numbers become float32 on their way to an actor, within bounds in which that knows each whole number. What does not
look like its declaration is named.
"""

from __future__ import annotations

import numbers
from typing import Any, Callable, Dict, Iterator, List, Optional, Set, Tuple

import numpy as np

from .adapters import adapt, is_a, takes_num_envs
from .batch import random_actions
from .errors import THROWN, text_of

STEPS = 100

Leaf = Tuple[str, Any, Any]  # Its name, what is declared (something with a dtype, or None), what came.


class _Found:
    """The types of numbers by what they are, and what is wrong with them, each once."""

    def __init__(self) -> None:
        self.types: Dict[str, Set[str]] = {}
        self.problems: List[str] = []
        self._outside: Set[str] = set()  # What has been outside of its bounds, each once.

    def problem(self, text: str) -> None:
        if text not in self.problems:
            self.problems.append(text)

    def observed(self, name: str, declared: Any, value: Any) -> None:
        array = np.asarray(value)
        self.types.setdefault("observations", set()).add(str(array.dtype))
        want = getattr(declared, "dtype", None)
        whole = want is not None and np.dtype(want).kind in "iu"
        # A choice may be an int of Python's or of any width.
        alike = want is None or array.dtype == want or (whole and array.ndim == 0 and array.dtype.kind in "iu")
        if not alike:
            self.problem(f"{name} is {array.dtype}, its space says {np.dtype(want)}")
        self._within(name, declared, array)

    def _within(self, name: str, declared: Any, array: Any) -> None:
        """Of a Box, and of a BoundedArray of dm_env's. What is NaN or of another shape, another point names."""
        low, high = (getattr(declared, of, getattr(declared, spec, None)) for of, spec in (("low", "minimum"), ("high", "maximum")))
        if name in self._outside or low is None or high is None or array.shape != declared.shape or array.dtype.kind not in "biuf":
            return
        low, high = np.broadcast_to(low, array.shape).reshape(-1), np.broadcast_to(high, array.shape).reshape(-1)
        flat = array.reshape(-1).astype(low.dtype) if array.dtype.kind == low.dtype.kind == "f" else array.reshape(-1)
        outside = np.flatnonzero((flat < low) | (flat > high))
        if outside.size:
            i = int(outside[0])
            self._outside.add(name)
            bound = f"at least {low[i]:.9g}" if flat[i] < low[i] else f"at most {high[i]:.9g}"
            self.problem(f"number {i} of {name} is {flat[i]:.9g}, its space says {bound}")

    def reward(self, value: Any) -> None:
        self.types.setdefault("rewards", set()).add(getattr(getattr(value, "dtype", None), "name", type(value).__name__))
        if not isinstance(value, numbers.Real):
            self.problem(f"a reward is {_named(value)}, want a number")

    def flag(self, name: str, value: Any) -> None:
        if not isinstance(value, (bool, np.bool_)):
            self.problem(f"{name} is {_named(value)}, want a bool")


def _named(value: Any) -> str:
    if isinstance(value, np.ndarray):
        return f"an array of {value.dtype} of the shape {value.shape}"
    return f"of type {type(value).__name__}"


def _leaves(space: Any, value: Any, name: str) -> Iterator[Leaf]:
    parts = getattr(space, "spaces", None)
    if parts is None:
        yield name, space, value
        return
    for key, part in parts.items() if hasattr(parts, "items") else enumerate(parts):
        yield from _leaves(part, value[key], f"{name}[{key!r}]")


def _look_at_gymnasium(env: Any, action: Callable[[int], Any], found: _Found) -> None:
    observed, _ = env.reset(seed=1)
    for step in range(STEPS):
        for leaf in _leaves(env.observation_space, observed, "an observation"):
            found.observed(*leaf)
        observed, reward, terminated, truncated, _ = env.step(action(step))
        found.reward(reward)
        found.flag("terminated", terminated)
        found.flag("truncated", truncated)
        if terminated or truncated:
            observed, _ = env.reset(seed=1)


def _look_at_team(env: Any, action: Callable[[int], Any], found: _Found) -> None:
    observed, _ = env.reset(seed=1)
    for step in range(STEPS):
        for agent, value in observed.items():
            for leaf in _leaves(env.observation_space(agent), value, f"{agent}'s observation"):
                found.observed(*leaf)
        alive = list(env.agents)
        if strangers := [agent for agent in alive if agent not in env.possible_agents]:
            found.problem(f"agents has {strangers[0]!r}, which possible_agents has not")
            return
        observed, rewards, terminations, truncations, _ = env.step({agent: action(step) for agent in alive})
        for agent in alive:
            if agent not in rewards:
                found.problem(f"{agent!r} took a step and has no reward")
        for reward in rewards.values():
            found.reward(reward)
        for name, flags in (("terminated", terminations), ("truncated", truncations)):
            for flag in flags.values():
                found.flag(name, flag)
        if not env.agents:
            observed, _ = env.reset(seed=1)


def _look_at_dm_env(env: Any, action: Callable[[int], Any], found: _Found) -> None:
    def leaves(spec: Any, value: Any, name: str) -> Iterator[Leaf]:
        if hasattr(spec, "shape"):
            yield name, spec, value
            return
        for key, part in spec.items() if hasattr(spec, "items") else enumerate(spec):
            yield from leaves(part, value[key], f"{name}[{key!r}]")

    step = env.reset()
    for i in range(STEPS):
        for leaf in leaves(env.observation_spec(), step.observation, "an observation"):
            found.observed(*leaf)
        step = env.reset() if step.last() else env.step(action(i))
        if step.reward is not None:
            found.reward(step.reward)


def look(make: Callable[..., Any], arguments: Dict[str, Any]) -> Optional[_Found]:
    """What an environment's numbers are in its first steps. None: one of another kind, which writes float32 itself, or
    several at once. Throws whatever the environment does."""
    if takes_num_envs(make):
        return None
    env = make(**arguments)
    looks = (("gymnasium.Env", _look_at_gymnasium), ("gym.Env", _look_at_gymnasium),
             ("pettingzoo.ParallelEnv", _look_at_team), ("dm_env.Environment", _look_at_dm_env))
    for name, look_at in looks:
        if is_a(env, name):
            break
    else:
        return None
    adapted: Any = adapt(env)
    actions = random_actions(adapted.spec, STEPS)
    kind = adapted._actions[0] if isinstance(adapted._actions, list) else adapted._actions
    found = _Found()
    first = kind.read(actions[0, 0])
    found.types["actions"] = {str(np.asarray(first).dtype)} if not isinstance(first, (dict, tuple)) else {"of parts"}
    look_at(env, lambda step: kind.read(actions[step, 0]), found)
    return found


def report(make: Callable[..., Any], arguments: Dict[str, Any]) -> Dict[str, str]:
    """A point of `skein env check`: verdict, found, remedy."""
    try:
        found = look(make, arguments)
    except THROWN as error:  # Whatever a user's environment throws; another point names the place.
        return {"verdict": "not_applicable", "found": f"it fails: {type(error).__name__}: {text_of(error)}", "remedy": ""}
    if found is None:
        return {"verdict": "not_applicable", "found": "it makes several at once, or writes float32 itself", "remedy": ""}
    if found.problems:
        return {"verdict": "fails", "found": "; ".join(found.problems),
                "remedy": "give back what the spaces declare (observation.astype(space.dtype), within their bounds), or declare "
                          "wider ones; rewards as numbers, flags as bools"}
    types = ", ".join(f"{what} {' and '.join(sorted(names))}" for what, names in sorted(found.types.items()))
    return {"verdict": "ok", "found": f"{types}, as declared; Skein has them as float32", "remedy": ""}
