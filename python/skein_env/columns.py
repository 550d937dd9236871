# SPDX-License-Identifier: Apache-2.0
"""The numbers of a batch of environments, as NumPy arrays.

In shared memory they lie as env/external/world_memory.h says: a head of 320 bytes, then the columns in the order of
`Columns`, each at the next multiple of 64 bytes.
"""

from __future__ import annotations

import dataclasses
from typing import Any, Dict, List, Tuple

import numpy as np
from numpy.typing import NDArray

from .wire import Spec

HEAD_BYTES = 320
MAGIC = 0x574E4B53
REQUEST_AT, KIND_AT, REPLY_AT, SERVER_SLEEPS_AT, CLIENT_SLEEPS_AT = 64, 68, 128, 192, 256
STEP, RESET, BARE = 1, 2, 3
_OF_REQUESTS = ("action", "seed", "mask")


@dataclasses.dataclass
class Columns:
    """E environments, A agents, O floats of observation, W numbers of action (D reals, or 1 choice), G floats of global
    state, P metrics."""

    action: NDArray[np.float32]  # [E, A, W], the request's
    seed: NDArray[np.uint32]  # [E], the request's
    mask: NDArray[np.uint8]  # [E], the request's
    observation: NDArray[np.float32]  # [E, A, O]
    reward: NDArray[np.float32]  # [E, A]
    terminated: NDArray[np.uint8]  # [E]
    truncated: NDArray[np.uint8]  # [E]
    failed: NDArray[np.uint8]  # [E]
    active: NDArray[np.uint8]  # [E, A]
    final_observation: NDArray[np.float32]  # [E, A, O]
    global_state: NDArray[np.float32]  # [E, G]
    final_global_state: NDArray[np.float32]  # [E, G]
    episode_metrics: NDArray[np.float32]  # [E, P]


def _shapes(spec: Spec, num_envs: int) -> List[Tuple[str, Any, Tuple[int, ...]]]:
    e, a, o = num_envs, spec.num_agents, spec.obs_size
    g, p = spec.global_state_size, len(spec.episode_metrics)
    f32, u32, u8 = np.float32, np.uint32, np.uint8
    return [
        ("action", f32, (e, a, spec.action_width)),
        ("seed", u32, (e,)),
        ("mask", u8, (e,)),
        ("observation", f32, (e, a, o)),
        ("reward", f32, (e, a)),
        ("terminated", u8, (e,)),
        ("truncated", u8, (e,)),
        ("failed", u8, (e,)),
        ("active", u8, (e, a)),
        ("final_observation", f32, (e, a, o)),
        ("global_state", f32, (e, g)),
        ("final_global_state", f32, (e, g)),
        ("episode_metrics", f32, (e, p)),
    ]


def memory_bytes(spec: Spec, num_envs: int) -> int:
    at = HEAD_BYTES
    for _, dtype, shape in _shapes(spec, num_envs):
        at = (at + int(np.prod(shape)) * np.dtype(dtype).itemsize + 63) // 64 * 64
    return at


def reply_bytes(spec: Spec, num_envs: int) -> int:
    """Of the columns of an answer."""
    columns = [column for column in _shapes(spec, num_envs) if column[0] not in _OF_REQUESTS]
    return sum(np.dtype(dtype).itemsize * int(np.prod(shape, dtype=np.int64)) for _, dtype, shape in columns)


def columns_in(memory: Any, spec: Spec, num_envs: int) -> Columns:
    """Views into `memory`, a writable buffer of memory_bytes()."""
    views: Dict[str, Any] = {}
    at = HEAD_BYTES
    for name, dtype, shape in _shapes(spec, num_envs):
        count = int(np.prod(shape))
        if count:
            views[name] = np.frombuffer(memory, dtype, count, at).reshape(shape)
        else:
            views[name] = np.zeros(shape, dtype)
        at = (at + count * np.dtype(dtype).itemsize + 63) // 64 * 64
    return Columns(**views)


def new_columns(spec: Spec, num_envs: int) -> Columns:
    return columns_in(bytearray(memory_bytes(spec, num_envs)), spec, num_envs)
