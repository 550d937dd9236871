# SPDX-License-Identifier: Apache-2.0
"""Gymnasium's spaces as the flat numbers of Skein.

Observations, in this order:
  Box            its elements in C order, as they are
  Discrete(n)    n numbers: 1 at the choice, else 0
  MultiDiscrete  the same for each of its elements in C order
  MultiBinary    its elements in C order, 0 or 1
  Dict           its parts in the order of `space.spaces` (Gymnasium sorts the keys of a plain dict)
  Tuple          its parts in their order

Actions are of one of two kinds, since an agent of Skein's has either reals or one choice:
  Box, and Dict and Tuple of Boxes   reals, in the order of observations. A bound that is infinite or beyond 1e6 becomes
                                     1e6. `step` gets numbers of the Box's type within its own bounds.
  Discrete(n)                        a choice
  MultiDiscrete, MultiBinary, and Dict and Tuple of them and of Discrete: one choice for each combination, if there are
  at most 1,024; the last element changes fastest
Anything else is refused: reals beside choices, texts, graphs, sequences.
"""

from __future__ import annotations

import dataclasses
import math
from typing import Any, Callable, List, Optional, Sequence, Tuple, Union

import numpy as np
from numpy.typing import NDArray

from .errors import EnvError

MOST_CHOICES = 1024
LARGEST = 1e6

Write = Callable[[Any, NDArray[np.float32]], None]


def _kind(space: Any) -> str:
    """The space's class of Gymnasium's, however it was derived; by name, so that old releases and forks are known."""
    for base in type(space).__mro__:
        if base.__name__ in ("Box", "Discrete", "MultiDiscrete", "MultiBinary", "Dict", "Tuple"):
            return str(base.__name__)
    return type(space).__name__


def _parts(space: Any) -> List[Tuple[Any, Any]]:
    """(key, space) of a Dict's or Tuple's parts."""
    if _kind(space) == "Dict":
        return list(space.spaces.items())
    return list(enumerate(space.spaces))


@dataclasses.dataclass
class Flat:
    """How an observation becomes `size` numbers."""

    size: int
    write: Write  # (observation, row of `size`)
    layout: str
    shape: Optional[Tuple[int, ...]] = None  # Of the array that an observation is, of which all numbers are taken.


def array_of(value: Any, shape: Tuple[int, ...], declared: str = "space") -> NDArray[Any]:
    """An observation as the array that it is. ValueError: one of another shape, or of no real numbers."""
    array = np.asarray(value)
    if array.shape != shape:
        raise ValueError(f"an observation has the shape {array.shape}, the {declared} says {shape}")
    if array.dtype.kind not in "biuf":
        raise ValueError(f"an observation is an array of {array.dtype}, want real numbers")
    return array


def _box(space: Any) -> Flat:
    shape = tuple(int(n) for n in space.shape)
    size = int(np.prod(shape))

    flat = len(shape) == 1

    def write(value: Any, row: NDArray[np.float32]) -> None:
        array = array_of(value, shape)
        row[:] = array if flat else array.reshape(-1)

    return Flat(size, write, f"Box{list(shape)}", shape)


def _one_hot(
    sizes: NDArray[np.int64], starts: NDArray[np.int64], layout: str, shape: Optional[Tuple[int, ...]] = None
) -> Flat:
    """`shape` None: one choice, as a number or an array of one."""
    offsets = np.concatenate(([0], np.cumsum(sizes)[:-1]))

    def write(value: Any, row: NDArray[np.float32]) -> None:
        array = np.asarray(value) if shape is None else array_of(value, shape)
        choice = array.reshape(-1) - starts
        if choice.shape != sizes.shape or np.any((choice < 0) | (choice >= sizes)):
            raise ValueError(f"an observation is {value!r}, the space is {layout}")
        row[:] = 0
        row[offsets + choice] = 1

    return Flat(int(sizes.sum()), write, layout)


def flatten(space: Any) -> Flat:
    """EnvError: a space that has no numbers."""
    kind = _kind(space)
    if kind == "Box":
        return _box(space)
    if kind == "Discrete":
        start = int(getattr(space, "start", 0))
        return _one_hot(np.array([int(space.n)]), np.array([start]), f"Discrete({int(space.n)})")
    if kind == "MultiDiscrete":
        sizes = np.asarray(space.nvec, np.int64).reshape(-1)
        starts = np.asarray(getattr(space, "start", np.zeros_like(sizes)), np.int64).reshape(-1)
        return _one_hot(sizes, starts, f"MultiDiscrete{sizes.tolist()}", tuple(int(n) for n in space.shape))
    if kind == "MultiBinary":
        bits = tuple(int(n) for n in space.shape)
        size = int(np.prod(bits))

        def write_bits(value: Any, row: NDArray[np.float32]) -> None:
            row[:] = array_of(value, bits).reshape(-1)

        return Flat(size, write_bits, f"MultiBinary({size})")
    if kind in ("Dict", "Tuple"):
        parts = [(key, flatten(part)) for key, part in _parts(space)]
        ends = np.cumsum([part.size for _, part in parts]).tolist()

        def write_parts(value: Any, row: NDArray[np.float32]) -> None:
            begin = 0
            for (key, part), end in zip(parts, ends):
                part.write(value[key], row[begin:end])
                begin = end

        names = ", ".join(f"{key}: {part.layout}" for key, part in parts)
        return Flat(ends[-1] if ends else 0, write_parts, f"{kind}({names})")
    raise EnvError(f"an observation space {type(space).__name__} has no numbers; leave it out with a wrapper: {space}")


@dataclasses.dataclass
class Actions:
    """How Skein's actions become the environment's."""

    discrete: bool
    size: int  # Choices, or reals.
    low: List[float]
    high: List[float]
    read: Callable[[NDArray[np.float32]], Any]  # An agent's row [W] as what `step` takes.
    layout: str
    # Rows [E, W] as what the `step` of each takes, of a Box as one array; shares no memory with them. None: one call of
    # `read` for each.
    read_all: Optional[Callable[[NDArray[np.float32]], Union[Sequence[Any], NDArray[Any]]]] = None


def _bound(values: Any, infinite: float) -> List[float]:
    flat = np.asarray(values, np.float64).reshape(-1)
    return [float(np.clip(x, -LARGEST, LARGEST)) if math.isfinite(x) else infinite for x in flat]


def within(rows: NDArray[np.float32], low: NDArray[Any], high: NDArray[Any]) -> NDArray[Any]:
    """Rows [E, D] with the type of the bounds [D] and within them; a copy. Bounds travel as float32, and the one that is
    nearest to a float64 may lie beyond it."""
    whole = low.dtype.kind in "iub"
    taken = (np.rint(rows) if whole else rows).astype(low.dtype)
    return np.asarray(np.minimum(np.maximum(taken, low), high))


def _box_actions(space: Any) -> Actions:
    shape, dtype = tuple(space.shape), np.dtype(space.dtype)
    low, high = np.asarray(space.low, dtype).reshape(-1), np.asarray(space.high, dtype).reshape(-1)

    def read(row: NDArray[np.float32]) -> Any:
        return within(row[None], low, high).reshape(shape)

    def read_all(rows: NDArray[np.float32]) -> NDArray[Any]:
        return within(rows, low, high).reshape(len(rows), *shape)

    def read_floats(row: NDArray[np.float32]) -> Any:
        return row.copy()  # The environment may write into it.

    plain = len(shape) == 1 and dtype == np.float32  # As they came, which is within the bounds.
    return Actions(False, low.size, _bound(low, -LARGEST), _bound(high, LARGEST), read_floats if plain else read,
                   f"Box{list(shape)}", np.copy if plain else read_all if shape else None)


def batched(space: Any, actions: Sequence[Any]) -> Any:
    """Actions of a space as the one of Gymnasium's batch of that space: a dict or tuple of arrays, or an array."""
    kind = _kind(space)
    if kind == "Dict":
        return {key: batched(part, [action[key] for action in actions]) for key, part in _parts(space)}
    if kind == "Tuple":
        return tuple(batched(part, [action[key] for action in actions]) for key, part in _parts(space))
    return np.array(actions, space.dtype)


def _choices(space: Any) -> Tuple[int, Callable[[int], Any], str]:
    """How many combinations a space of choices has, what each is, and its layout. EnvError: it is no such space."""
    kind = _kind(space)
    if kind == "Discrete":
        start = int(getattr(space, "start", 0))
        return int(space.n), lambda choice: start + choice, f"Discrete({int(space.n)})"
    if kind in ("MultiDiscrete", "MultiBinary"):
        shape = tuple(space.shape)
        sizes = [2] * int(np.prod(shape)) if kind == "MultiBinary" else np.asarray(space.nvec).reshape(-1).tolist()
        first = np.asarray(getattr(space, "start", 0))
        dtype = np.dtype(space.dtype)

        def elements(choice: int) -> Any:
            array = np.array(np.unravel_index(choice, sizes)).reshape(shape)
            return (array + first).astype(dtype)

        return math.prod(int(n) for n in sizes), elements, f"{kind}{sizes}"
    if kind in ("Dict", "Tuple"):
        parts = [(key, *_choices(part)) for key, part in _parts(space)]
        sizes = [count for _, count, _, _ in parts]

        def combine(choice: int) -> Any:
            which = np.unravel_index(choice, sizes)
            values = [(key, of(int(i))) for (key, _, of, _), i in zip(parts, which)]
            return dict(values) if kind == "Dict" else tuple(value for _, value in values)

        return math.prod(sizes), combine, f"{kind}({', '.join(f'{key}: {text}' for key, _, _, text in parts)})"
    raise EnvError(f"an action space of choices cannot have {space}")


def _leaves(space: Any) -> List[str]:
    kind = _kind(space)
    if kind in ("Dict", "Tuple"):
        return [leaf for _, part in _parts(space) for leaf in _leaves(part)]
    return [kind]


def _reals(space: Any) -> Actions:
    if _kind(space) == "Box":
        return _box_actions(space)
    parts = [(key, _reals(part)) for key, part in _parts(space)]
    ends = np.cumsum([part.size for _, part in parts]).tolist()
    named = _kind(space) == "Dict"

    def read(row: NDArray[np.float32]) -> Any:
        begins = [0, *ends]
        values = [(key, part.read(row[begin:end])) for (key, part), begin, end in zip(parts, begins, ends)]
        return dict(values) if named else tuple(value for _, value in values)

    layout = f"{_kind(space)}({', '.join(f'{key}: {part.layout}' for key, part in parts)})"
    low = [x for _, part in parts for x in part.low]
    high = [x for _, part in parts for x in part.high]
    return Actions(False, ends[-1], low, high, read, layout)


def actions_of(space: Any) -> Actions:
    """EnvError: actions that Skein cannot have."""
    leaves = set(_leaves(space))
    if leaves == {"Box"}:
        return _reals(space)
    if not leaves <= {"Discrete", "MultiDiscrete", "MultiBinary"} or not leaves:
        raise EnvError(
            f"an agent of Skein's has either reals or one choice, and the action space has {', '.join(sorted(leaves))}: "
            f"{space}"
        )
    count, of, layout = _choices(space)
    if count > MOST_CHOICES:
        raise EnvError(
            f"the action space has {count} combinations, at most {MOST_CHOICES} can be numbered as choices: {space}"
        )
    if _kind(space) == "Discrete":
        start = int(getattr(space, "start", 0))

        def read_all(rows: NDArray[np.float32]) -> Sequence[Any]:
            return [start + choice for choice in rows[:, 0].astype(np.int64).tolist()]

        return Actions(True, count, [], [], lambda row: start + int(row[0]), layout, read_all)
    table = [of(choice) for choice in range(count)]
    return Actions(True, count, [], [], lambda row: table[int(row[0])], layout)
