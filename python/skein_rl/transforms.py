# SPDX-License-Identifier: Apache-2.0
"""What env.hide and env.transforms put between an environment and its policy, in NumPy (docs/policy-format.md).

    observation -> hide, stack -> policy -> clip to the policy's bounds -> squash, scale, clip -> action
"""

from __future__ import annotations

from typing import Any, Optional

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]
Bounds = tuple[Floats, Floats]
KNOWN = {"hide", "stack", "scale", "squash", "clip", "time_limit", "reward_scale", "reward_clip"}
_POLICY_BOUND = {"scale": 1, "squash": 10}  # Of actions before these.


class Observations:
    """Rows [..., O] of an environment's observations as the rows [..., `sees`] that its policy sees. Keeps older ones of
    each row from call to call where they are stacked. ValueError: an observation of another size."""

    def __init__(self, env_id: str, transforms: list[dict[str, Any]], sees: int) -> None:
        self._env_id = env_id
        self._steps = [transform for transform in transforms if transform.keys() & {"hide", "stack"}]
        self._size, self._exact = sees, True
        for step in reversed(self._steps):
            if "stack" in step:
                self._size = -(-self._size // step["stack"])
            else:  # An older file does not say of how many.
                self._exact = "of" in step["hide"]
                self._size = step["hide"]["of"] if self._exact else max(step["hide"]["keep"], default=-1) + 1
        self._older: dict[int, Floats] = {}

    @property
    def remembers(self) -> bool:
        return any("stack" in step for step in self._steps)

    def check(self, x: Floats) -> None:
        if x.ndim > 0 and (x.shape[-1] == self._size if self._exact else x.shape[-1] >= self._size):
            if np.isfinite(x).all():
                return
            raise ValueError(f"an observation of {self._env_id} has a number that is not finite")
        want = f"{self._size} numbers" if self._exact else f"more than {self._size - 1} numbers"
        if self._steps and "hide" in self._steps[0]:
            want += f", of which its policy sees {len(self._steps[0]['hide']['keep'])}"
        raise ValueError(f"an observation of {self._env_id} is {want}, got shape {x.shape}")

    def see(self, x: Floats, begins: NDArray[np.bool_]) -> Floats:
        """begins [...]: rows in which an episode begins. REQUIRES: check(x), and the same rows as before."""
        for i, step in enumerate(self._steps):
            x = x[..., step["hide"]["keep"]] if "hide" in step else self._stack(i, step["stack"], x, begins)
        return x

    def _stack(self, i: int, count: int, x: Floats, begins: NDArray[np.bool_]) -> Floats:
        newest = x[..., None, :]
        older = np.repeat(newest, count - 1, axis=-2)
        if i in self._older:
            older = np.where(begins[..., None, None], older, self._older[i])
        frames: Floats = np.concatenate([older, newest], axis=-2)  # [..., count, O], the newest last.
        self._older[i] = frames[..., 1:, :]
        return frames.reshape(*x.shape[:-1], count * x.shape[-1])

    def reset(self) -> None:
        self._older = {}


class Actions:
    """Real actions [..., D] of a policy as those of its environment. `bounds`: the environment's own, None if nobody says
    them; `clips`: whether actions of the policy are clipped first, to the bounds on its side."""

    def __init__(self, transforms: list[dict[str, Any]], bounds: Optional[Bounds], clips: bool) -> None:
        self._changes: list[tuple[str, Bounds]] = []
        for transform in transforms:
            ((kind, given),) = transform.items()
            if kind not in ("scale", "squash", "clip"):
                continue
            inner = bounds_of(given["low"], given["high"])
            self._changes.insert(0, (kind, inner))
            most = np.full_like(inner[0], _POLICY_BOUND.get(kind, 0))
            bounds = inner if kind == "clip" else (-most, most)
        if clips and bounds is not None:
            self._changes.insert(0, ("clip", bounds))

    def __call__(self, action: Floats) -> Floats:
        for kind, (low, high) in self._changes:
            if kind == "clip":
                action = np.where(action >= low, np.minimum(action, high), low)  # Of NaN `low`, as in Skein.
                continue
            if kind == "squash":  # Of double, whose tanh differs between libraries by less than a float's last bit.
                action = np.tanh(action.astype(np.float64)).astype(np.float32)
            action = low + (action + np.float32(1)) * np.float32(0.5) * (high - low)
        return action


def bounds_of(low: list[float], high: list[float]) -> Bounds:
    return np.array(low, np.float32), np.array(high, np.float32)
