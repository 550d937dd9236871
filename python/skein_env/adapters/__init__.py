# SPDX-License-Identifier: Apache-2.0
"""Environments of other libraries as Skein's. They are recognised without importing a library that is not in use."""

from __future__ import annotations

import inspect
from typing import Any, Callable, Dict

from ..batch import Batch, Serial, Single
from ..errors import EnvError


def is_a(value: Any, *names: str) -> bool:
    """Whether a class of these names, "module.Class", is among the value's; the module may go on."""
    for base in type(value).__mro__:
        for name in names:
            module, _, cls = name.rpartition(".")
            if base.__name__ == cls and (base.__module__ + ".").startswith(module + "."):
                return True
    return False


def _class_of(value: Any) -> str:
    return f"{type(value).__module__}.{type(value).__qualname__}"


def adapt(env: Any) -> Single:
    """One environment. EnvError: nobody knows it, or its spaces are refused."""
    if isinstance(env, Single):
        return env
    if isinstance(env, Batch) or is_a(env, "gymnasium.vector.VectorEnv", "gym.vector.VectorEnv"):
        raise EnvError(
            f"the function returned a {_class_of(env)}, which is several environments; it needs a parameter num_envs then, "
            "which says of how many"
        )
    if is_a(env, "gymnasium.Env", "gym.Env"):
        from .gymnasium import GymnasiumEnv

        return GymnasiumEnv(env)
    if is_a(env, "pettingzoo.ParallelEnv"):
        from .pettingzoo import ParallelTeam

        return ParallelTeam(env)
    if is_a(env, "dm_env.Environment"):
        from .dm_env import DmEnv

        return DmEnv(env)
    if is_a(env, "pettingzoo.AECEnv"):
        raise EnvError("a PettingZoo environment whose agents act in turn; make its parallel_env instead")
    raise EnvError(
        f"the function returned a {_class_of(env)}; want a gymnasium.Env or VectorEnv, a "
        "pettingzoo.ParallelEnv, a dm_env.Environment, or a Batch or Single of skein_env"
    )


def _one_by_one(make: Callable[[], Single], num_envs: int) -> Batch:
    """Environments that are made one by one, in the batch that steps such ones fastest."""
    first = [make()]

    def make_next() -> Single:
        return first.pop() if first else make()

    if type(first[0]).__name__ == "GymnasiumEnv":
        from .gymnasium import GymnasiumSerial, has_one_array

        if has_one_array(first[0]):
            return GymnasiumSerial(make_next, num_envs)
    return Serial(make_next, num_envs)


def takes_num_envs(make: Callable[..., Any]) -> bool:
    """Whether the function makes several environments at once."""
    try:
        parameters = inspect.signature(make).parameters
    except (TypeError, ValueError):
        return False
    return "num_envs" in parameters and parameters["num_envs"].kind != inspect.Parameter.VAR_KEYWORD


def make_batch(make: Callable[..., Any], num_envs: int, arguments: Dict[str, Any]) -> Batch:
    """What `make` makes, as `num_envs` environments.

    A function with a parameter `num_envs` is called once and returns all of them: a gymnasium.vector.VectorEnv or a
    Batch. Any other is called for each.
    """
    if not takes_num_envs(make):
        return _one_by_one(lambda: adapt(make(**arguments)), num_envs)
    made = make(num_envs=num_envs, **arguments)
    if is_a(made, "gymnasium.vector.VectorEnv"):
        from .gymnasium_vector import GymnasiumVector

        made = GymnasiumVector(made)
    if not isinstance(made, Batch):
        raise EnvError(
            "a function with a parameter num_envs returns all environments at once, a gymnasium.vector.VectorEnv or a "
            f"skein_env.Batch; it returned a {_class_of(made)}"
        )
    if made.num_envs != num_envs:
        raise EnvError(f"the function was asked for {num_envs} environments and made {made.num_envs}")
    return made
