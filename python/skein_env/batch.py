# SPDX-License-Identifier: Apache-2.0
"""Batches of environments: what a server steps.

Batch is the interface. Serial makes one of environments that are stepped one after the other.
"""

from __future__ import annotations

import abc
import itertools
import sys
from typing import Any, Callable, Iterator, List, Optional, Sequence, Tuple, Union

import numpy as np
from numpy.typing import NDArray

from .columns import Columns
from .errors import THROWN, describe
from .wire import Spec


# A prime, so that of any number of environments each has all of them in its turns.
BARE_ACTIONS = 4093


class Batch(abc.ABC):
    """`num_envs` environments that are stepped together.

    Write your own for environments that compute in NumPy, or in another library's batches.
    """

    spec: Spec
    num_envs: int
    _turns: Optional[Iterator[None]] = None  # Of `bare`.

    @abc.abstractmethod
    def reset(self, columns: Columns) -> None:
        """Begins an episode where columns.mask is 1, with columns.seed: writes observation and global_state there."""

    @abc.abstractmethod
    def step(self, columns: Columns) -> None:
        """Steps all with columns.action, and writes all other columns.

        Where an episode ends, the next one begins with columns.seed: observation and global_state are then of the next
        one, final_observation and final_global_state of the one that ended. `failed` and `active` are 0 and 1 before.
        """

    def failures(self) -> List[Tuple[int, str]]:
        """Why environments failed in the last call, by index."""
        return []

    def bare(self, steps: int, columns: Columns) -> None:
        """Takes `steps` steps, of all in turn, as a loop in Python without Skein does, for `skein bench env`."""
        if self._turns is None:
            columns.mask[:], columns.seed[:] = 1, np.arange(self.num_envs)
            self.reset(columns)
            self._turns = self._take_turns(columns)
        for _ in range(max(1, steps // self.num_envs)):
            next(self._turns)

    def _take_turns(self, columns: Columns) -> Iterator[None]:
        """In each turn a step of all, with random actions of its own."""
        actions = random_actions(self.spec, BARE_ACTIONS)
        actions = np.concatenate([actions, actions.take(range(self.num_envs), axis=0, mode="wrap")])
        for turn in itertools.count(1):
            first = turn * self.num_envs % BARE_ACTIONS
            columns.action[:] = actions[first : first + self.num_envs]
            columns.seed[:], columns.failed[:], columns.active[:] = turn, 0, 1
            self.step(columns)
            yield

    def users_own(self) -> Any:
        """The object whose class a user has written, for messages."""
        return self

    def close(self) -> None:
        """Frees what the environments hold."""


class Single(abc.ABC):
    """One environment of `spec.num_agents` agents, as Serial steps it."""

    spec: Spec

    @abc.abstractmethod
    def reset(self, seed: int, obs: NDArray[np.float32]) -> None:
        """Begins an episode; writes its first observation [A, O]."""

    @abc.abstractmethod
    def step(
        self, action: NDArray[np.float32], obs: NDArray[np.float32], reward: NDArray[np.float32]
    ) -> Tuple[bool, bool]:
        """Takes a step with `action` [A, W]; writes the observation [A, O] and the rewards [A].

        Returns whether the episode terminated, and whether it was truncated.
        """

    def active(self, active: NDArray[np.uint8]) -> None:
        """Writes which agents are alive in the next step, [A]; all, unless overridden."""

    def global_state(self, state: NDArray[np.float32]) -> None:
        """Writes the global state [G]."""

    def metrics(self, metrics: NDArray[np.float32]) -> None:
        """Writes the metrics of the episode so far [P]."""

    def users_own(self) -> Any:
        """The object whose class a user has written, for messages."""
        return self

    @staticmethod
    def bare(envs: Sequence[Any]) -> Iterator[None]:
        """A loop as one without Skein, for `skein bench env`: each turn takes a step of each of `envs`, which have been
        reset, with random actions of its own."""
        spec = envs[0].spec
        actions = itertools.cycle(random_actions(spec, BARE_ACTIONS))
        obs = np.zeros((spec.num_agents, spec.obs_size), np.float32)
        reward = np.zeros(spec.num_agents, np.float32)
        for turn in itertools.count():
            for env, action in zip(envs, actions):
                if any(env.step(action, obs, reward)):
                    env.reset(turn, obs)
            yield

    def close(self) -> None:
        """Frees what the environment holds."""


def close(env: Union[Batch, Single]) -> bool:
    """Closes it and returns whether that went well. What it throws is one line: it is not needed any more."""
    try:
        env.close()
        return True
    except THROWN as error:
        print(f"skein-env: closing it: {describe(error, env.users_own())}", file=sys.stderr)
        return False


def random_actions(spec: Spec, count: int) -> NDArray[np.float32]:
    """`count` actions [A, W] within the bounds."""
    generator = np.random.default_rng(0)
    shape = (count, spec.num_agents, spec.action_width)
    if spec.discrete:
        return generator.integers(0, spec.action_size, shape).astype(np.float32)
    low, high = np.asarray(spec.action_low, np.float32), np.asarray(spec.action_high, np.float32)
    return generator.uniform(low, high, shape).astype(np.float32)


class Serial(Batch):
    """Environments that are stepped one after the other. One that throws is made anew; the others go on."""

    def __init__(self, make: Callable[[], Single], num_envs: int) -> None:
        self._make = make
        self._envs: List[Optional[Single]] = [make() for _ in range(num_envs)]
        first = self._envs[0]
        assert first is not None
        self.spec = first.spec
        self.num_envs = num_envs
        self._failures: List[Tuple[int, str]] = []
        self._many = self.spec.num_agents > 1
        self._has_state = self.spec.global_state_size > 0
        self._has_metrics = len(self.spec.episode_metrics) > 0
        self._bare: Optional[Iterator[None]] = None
        self._columns: Optional[Columns] = None
        self._rows: List[Tuple[NDArray[np.float32], NDArray[np.float32], NDArray[np.float32]]] = []

    def failures(self) -> List[Tuple[int, str]]:
        return self._failures

    def _fail(self, e: int, columns: Columns, error: BaseException) -> None:
        columns.failed[e] = 1
        env, self._envs[e] = self._envs[e], None
        self._failures.append((e, describe(error, None if env is None else env.users_own())))
        if env is not None:
            close(env)

    def _begin(self, e: int, columns: Columns) -> None:
        env = self._envs[e]
        if env is None:
            env = self._envs[e] = self._make()
        env.reset(int(columns.seed[e]), columns.observation[e])
        if self._has_state:
            env.global_state(columns.global_state[e])

    def reset(self, columns: Columns) -> None:
        self._failures = []
        for e in np.flatnonzero(columns.mask):
            columns.failed[e] = 0
            columns.reward[e] = 0
            columns.terminated[e] = columns.truncated[e] = 0
            columns.active[e] = 1
            try:
                self._begin(int(e), columns)
            except THROWN as error:  # Whatever a user's environment throws.
                self._fail(int(e), columns, error)

    def step(self, columns: Columns) -> None:
        self._failures = []
        columns.failed[:] = 0
        columns.active[:] = 1
        if columns is not self._columns:  # Rows are made once: an index of NumPy's costs more than a call.
            self._columns = columns
            self._rows = list(zip(columns.action, columns.observation, columns.reward))
        terminated, truncated = [False] * self.num_envs, [False] * self.num_envs
        for e, env in enumerate(self._envs):
            try:
                if env is None:
                    raise RuntimeError("it failed before and has not been reset")
                ended, late = env.step(*self._rows[e])
                if self._many:
                    env.active(columns.active[e])
                if self._has_metrics:
                    env.metrics(columns.episode_metrics[e])
                if ended or late:
                    terminated[e], truncated[e] = ended, not ended
                    columns.final_observation[e] = columns.observation[e]
                    if self._has_state:
                        env.global_state(columns.final_global_state[e])
                    self._begin(e, columns)
                elif self._has_state:
                    env.global_state(columns.global_state[e])
            except THROWN as error:  # Whatever a user's environment throws.
                self._fail(e, columns, error)
        columns.terminated[:] = terminated
        columns.truncated[:] = truncated

    def bare(self, steps: int, columns: Columns) -> None:
        if self._bare is None:
            envs = [env for env in self._envs if env is not None]
            if not envs:
                return
            for e, env in enumerate(envs):
                env.reset(e, columns.observation[e])
            self._bare = type(envs[0]).bare(envs)
        for _ in range(max(1, steps // self.num_envs)):
            next(self._bare)

    def close(self) -> None:
        """Closes all, and then throws what the first one threw that did."""
        thrown: Optional[BaseException] = None
        for env in self._envs:
            try:
                if env is not None:
                    env.close()
            except THROWN as error:
                thrown = thrown or error
        if thrown is not None:
            raise thrown
