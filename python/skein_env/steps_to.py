# SPDX-License-Identifier: Apache-2.0
"""A callback for sweeps that look for settings which learn a task in few steps (docs/sweeps.md).

    skein train --env CartPole-v1 --callbacks 'skein_env.steps_to:StepsTo?target=475'
"""

from __future__ import annotations

import json
from typing import Any, Dict, Optional

from .callbacks import Callback, Run

# An estimate is at most so many times the steps that are trained.
_MOST_TIMES = 100.0


class StepsTo(Callback):
    """Logs `steps_to_return`: the env steps after which the mean return of the last episodes first was `target`.

    Until it is, an estimate stands there: what it would be if the return went on rising evenly from the first one. It is more
    than all that is trained, so that at the same steps each run that is there has less than each that is not.
    """

    def __init__(self, target: float) -> None:
        self._target = target
        self._first: Optional[float] = None
        self._reached: Optional[int] = None

    def on_run_begin(self, run: Run) -> None:
        path = run.folder / "metrics.jsonl"
        if run.iteration == 0 or not path.exists():
            return
        with open(path) as file:  # Of the sessions before this one.
            for line in map(json.loads, file):
                if line["env_steps"] <= run.env_steps:
                    self._look(line)

    def on_iteration(self, run: Run, metrics: Dict[str, Any]) -> None:
        self._look(metrics)
        mean = metrics["episode_return_mean"]
        if self._reached is not None:
            run.log("steps_to_return", self._reached)
        elif mean is not None:  # An episode has ended.
            assert self._first is not None
            part = (mean - self._first) / (self._target - self._first)
            run.log("steps_to_return", run.env_steps / max(part, 1 / _MOST_TIMES))

    def _look(self, metrics: Dict[str, Any]) -> None:
        mean = metrics.get("episode_return_mean")
        if mean is None:
            return
        if self._first is None:
            self._first = mean
        if self._reached is None and mean >= self._target:
            self._reached = metrics["env_steps"]
