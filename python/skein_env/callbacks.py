# SPDX-License-Identifier: Apache-2.0
"""Callbacks: an object that a training run tells of its course (docs/callbacks.md).

    class Mine(skein_env.Callback):
        def on_iteration(self, run, metrics):
            run.log("per_episode", metrics["env_steps"] / max(1, metrics["episodes"]))

    skein train --env CartPole-v1 --callbacks my_module:Mine

The learner starts skein_env.callback_process, which has the protocol.
"""

from __future__ import annotations

import inspect
import json
import math
import pathlib
import re
import sys
from typing import Any, Callable, Dict, List, NamedTuple

from .errors import EnvError, definition

MOST_METRICS = 64
_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_./-]{0,63}")


class Checkpoint(NamedTuple):
    """A checkpoint that was written."""

    path: pathlib.Path
    digest: str
    env_steps: int


class Run:
    """The run, as a callback sees it."""

    def __init__(self, config: Dict[str, Any], folder: str, env_steps: int, iteration: int) -> None:
        self.config = config
        """Every setting by its name: run.config["ppo.lr"]. With what was changed since the run began."""
        self.folder = pathlib.Path(folder)
        self.env_steps = env_steps
        """Trained so far."""
        self.iteration = iteration
        """Finished ones; 0 = the run is new, more in on_run_begin = it goes on."""
        self._call = ""
        self._answer: Dict[str, Any] = {}
        self._names: Dict[str, None] = {}

    def log(self, name: str, value: float) -> None:
        """Adds a number to this iteration's metrics; in on_iteration only."""
        if self._call != "iteration":
            raise RuntimeError(f"log({name!r}) is for on_iteration only")
        if not isinstance(name, str) or not _NAME.fullmatch(name):
            raise ValueError(f"a metric's name has 1 to 64 letters, digits, _ . / or -, got {name!r}")
        self._names[name] = None
        if len(self._names) > MOST_METRICS:
            raise ValueError(f"{name!r} is one more than the {MOST_METRICS} metrics that a callback may have")
        number = float(value)
        self._answer.setdefault("metrics", {})[name] = number if math.isfinite(number) else None

    def set(self, setting: str, value: Any) -> None:
        """Changes a setting from the next iteration on: set("ppo.lr", 1e-4). It stays changed when the run goes on from
        a checkpoint. In on_run_begin and on_iteration only. One that may not change ends the run."""
        if self._call not in ("begin", "iteration"):
            raise RuntimeError(f"set({setting!r}) is for on_run_begin and on_iteration only")
        if hasattr(value, "tolist"):  # NumPy's numbers and arrays.
            value = value.tolist()
        json.dumps(value, allow_nan=False)  # Here, where the caller's line is known.
        frame = sys._getframe(1)
        self._answer.setdefault("set", {})[setting] = value
        self._answer["set_at"] = f"{frame.f_code.co_filename}:{frame.f_lineno} in {frame.f_code.co_name}"
        self.config[setting] = value

    def stop(self, why: str = "") -> None:
        """Ends the run in order, with a checkpoint, from which it can go on. `why` is shown."""
        if self._call == "run_end":
            raise RuntimeError("the run has ended")
        self._answer["stop"] = str(why) or "no reason given"


class Callback:
    """What a run calls. Methods that are not overridden cost nothing. Training waits for each call."""

    def on_run_begin(self, run: Run) -> None:
        """Before the first iteration of this session of the run, which may go on from a checkpoint."""

    def on_iteration(self, run: Run, metrics: Dict[str, Any]) -> None:
        """After each iteration. `metrics`: its line of metrics.jsonl, but for what this adds to it."""

    def on_checkpoint(self, run: Run, checkpoint: Checkpoint) -> None:
        """After each checkpoint."""

    def on_run_end(self, run: Run, state: str) -> None:
        """At the end of this session. `state`: finished, stopped or failed. Not after an exception in a callback."""


def refuse_coroutine(name: str, method: str, function: Callable[..., object]) -> None:
    """EnvError: nobody would await what it returns."""
    if inspect.iscoroutinefunction(function) or inspect.isasyncgenfunction(function):
        raise EnvError(f"{name}: {method} is an `async def`, which nobody awaits; write `def` ({definition(function)})")


METHODS = ("on_run_begin", "on_iteration", "on_checkpoint", "on_run_end")


def methods_of(callback: object) -> List[str]:
    """Those that are more than Callback's own. The object need not derive from it."""
    found = []
    for name in METHODS:
        method = getattr(callback, name, None)
        if callable(method) and getattr(method, "__func__", None) is not getattr(Callback, name):
            found.append(name)
    return found
