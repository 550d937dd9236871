#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Real spaces of Gymnasium's and dm_env's as numbers: what is no observation is refused and said, and each action is one."""

import sys
import unittest

from fetched_python import ROOT, run_inside

if __name__ == "__main__":
    run_inside("environments")

import dm_env
import gymnasium
import numpy as np
from gymnasium import spaces

sys.path.insert(0, str(ROOT / "python"))
import team_envs
from skein_env.adapters import make_batch
from skein_env.columns import new_columns


class Showing(gymnasium.Env):
    """Observes what its space samples, and in its first step `shown`."""

    action_space = spaces.Discrete(2)

    def __init__(self, space, shown):
        self.observation_space, self.shown = space, shown

    def reset(self, *, seed=None, options=None):
        return self.observation_space.sample(), {}

    def step(self, action):
        return self.shown, 1.0, False, False, {}


class ShowingAll(gymnasium.vector.VectorEnv):
    """Observes zeros, and in its steps `shown`."""

    metadata = {"autoreset_mode": gymnasium.vector.AutoresetMode.DISABLED}
    single_action_space = spaces.Discrete(2)

    def __init__(self, num_envs, space, shown):
        self.num_envs, self.single_observation_space, self.shown = num_envs, space, shown

    def reset(self, *, seed=None, options=None):
        return np.zeros((self.num_envs, *self.single_observation_space.shape), np.float32), {}

    def step(self, actions):
        none = np.zeros(self.num_envs, bool)
        return self.shown, np.ones(self.num_envs), none, none, {}


class Checking(gymnasium.Env):
    """Takes the actions of its space only, and keeps them."""

    observation_space = spaces.Box(-1, 1, (1,), np.float32)

    def __init__(self, space):
        self.action_space, self.taken = space, []

    def reset(self, *, seed=None, options=None):
        return np.zeros(1, np.float32), {}

    def step(self, action):
        assert self.action_space.contains(action), action
        self.taken.append(action)
        return np.zeros(1, np.float32), 1.0, False, False, {}


class CheckingArrays(dm_env.Environment):
    def __init__(self, spec):
        self.spec, self.taken = spec, []

    def reset(self):
        return dm_env.restart(np.zeros(1))

    def step(self, action):
        self.spec.validate(action)
        self.taken.append(action)
        return dm_env.transition(1.0, np.zeros(1))

    def observation_spec(self):
        return dm_env.specs.Array((1,), np.float64)

    def action_spec(self):
        return self.spec


def begun(make, size=2, **arguments):
    """A batch of which each environment has begun an episode, and its columns."""
    batch = make_batch(make, size, arguments)
    columns = new_columns(batch.spec, size)
    columns.mask[:] = 1
    batch.reset(columns)
    return batch, columns


class Observations(unittest.TestCase):
    def refused(self, space, shown):
        """Why the first of two environments failed when it observed `shown`, which the other did as well."""
        batch, columns = begun(lambda: Showing(space, shown))
        self.assertEqual(columns.failed.tolist(), [0, 0])
        batch.step(columns)
        self.assertEqual(columns.failed.tolist(), [1, 1], (space, shown))
        return dict(batch.failures())[0]

    def test_other_shapes_are_refused_and_never_repeated(self):
        box, bits = spaces.Box(-1, 1, (2,), np.float32), spaces.MultiBinary([2, 3])
        for space, shown, shapes in (
            (box, np.float32(0.5), (r"\(\)", r"\(2,\)")),
            (box, np.zeros(1, np.float32), (r"\(1,\)", r"\(2,\)")),
            (box, np.zeros((1, 2), np.float32), (r"\(1, 2\)", r"\(2,\)")),
            (bits, np.array([1], np.int8), (r"\(1,\)", r"\(2, 3\)")),
            (bits, np.zeros(6, np.int8), (r"\(6,\)", r"\(2, 3\)")),
            (spaces.MultiDiscrete([[2, 3], [2, 2]]), np.zeros(4, np.int64), (r"\(4,\)", r"\(2, 2\)")),
            (spaces.Dict({"a": spaces.MultiBinary(3)}), {"a": [1]}, (r"\(1,\)", r"\(3,\)")),
            (spaces.Tuple((spaces.Discrete(2), box)), (1, [0.5]), (r"\(1,\)", r"\(2,\)")),
        ):
            with self.subTest(f"{space} {shown}"):
                said = "an observation has the shape {}, the space says {}".format(*shapes)
                self.assertRegex(self.refused(space, shown), f"^ValueError: {said}")

    def test_what_is_no_real_number_is_refused(self):
        for space in (spaces.Box(-1, 1, (2,), np.float32), spaces.MultiBinary(2)):
            for shown in (np.array([1j, 0], np.complex64), np.array(["1", "0"]), np.array([None, 1], object)):
                with self.subTest(f"{space} {shown}"):
                    self.assertRegex(self.refused(space, shown), f"ValueError: an observation is an array of {shown.dtype}, want real")

    def test_choices_that_are_none_of_the_spaces(self):
        for space, shown in ((spaces.Discrete(3, start=2), 1), (spaces.Discrete(3, start=2), 5),
                             (spaces.MultiDiscrete([2, 3]), [1, 3]), (spaces.Discrete(3), [0, 1])):
            with self.subTest(f"{space} {shown}"):
                self.assertRegex(self.refused(space, shown), "^ValueError: an observation is .*, the space is ")

    def test_what_a_vector_environment_observes_is_not_repeated_either(self):
        space = spaces.Box(-1, 1, (3,), np.float32)
        for shown in (np.zeros((2, 1), np.float32), np.zeros(3, np.float32), np.zeros((1, 3), np.float32)):
            batch, columns = begun(lambda num_envs: ShowingAll(num_envs, space, shown))
            with self.assertRaisesRegex(ValueError, r"an observation has the shape .*, the space says \(2, 3\)"):
                batch.step(columns)
        batch, columns = begun(lambda num_envs: ShowingAll(num_envs, space, np.full((2, 3), 0.5, np.float32)))
        batch.step(columns)
        self.assertTrue(np.all(columns.observation == 0.5))

    def test_a_state_of_another_size_is_refused(self):
        def make():
            env = team_envs.shrinking()
            env.state = lambda: np.zeros(1 if env.count == 1 else 4, np.float32)
            return env

        batch, columns = begun(make)
        self.assertEqual(batch.spec.global_state_size, 4)
        batch.step(columns)
        self.assertEqual(columns.failed.tolist(), [1, 1])
        self.assertRegex(batch.failures()[0][1], r"^ValueError: state\(\) has 1 numbers, it had 4 before")


LONG = np.iinfo(np.int64)
BOXES = [
    # The float32 beside 0.3 and -0.1 lies beyond them.
    spaces.Box(0.1, 0.3, (2,), np.float64), spaces.Box(-0.1, 0.7, (2, 3), np.float64), spaces.Box(-0.1, 0.3, (), np.float64),
    spaces.Box(0.1, 0.3, (2,), np.float32), spaces.Box(0.1, 0.3, (2, 3), np.float32), spaces.Box(0.1, 0.3, (), np.float32),
    spaces.Box(0.1, 0.3, (2,), np.float16),
    spaces.Box(np.array([0.1, -3.7]), np.array([0.3, 1e-9]), dtype=np.float64),
    spaces.Box(-np.inf, np.inf, (2,), np.float64), spaces.Box(-np.inf, 0.3, (2,), np.float32), spaces.Box(-5, 2e6, (1,), np.float64),
    spaces.Box(0, 3, (2,), np.int64), spaces.Box(-128, 127, (2,), np.int8), spaces.Box(0, 255, (2,), np.uint8),
    spaces.Box(LONG.min, LONG.max, (2,), np.int64),
]


class Actions(unittest.TestCase):
    def reals(self, spec):
        """Rows of actions as an actor has them: float32 at the bounds as they travel, and between them."""
        low, high = np.asarray(spec.action_low, np.float32), np.asarray(spec.action_high, np.float32)
        self.assertTrue(np.all(np.abs([low, high]) <= 1e6) and np.all(low < high), (low, high))
        generator = np.random.default_rng(1)
        return [low, high, *(np.clip(generator.uniform(low, high).astype(np.float32), low, high) for _ in range(30))]

    def taken(self, make, envs, **arguments):
        """What `envs`, which `make` makes, got of all rows: the batch refused none."""
        batch, columns = begun(make, 2, **arguments)
        rows = self.reals(batch.spec) if not batch.spec.discrete else np.arange(batch.spec.action_size).reshape(-1, 1)
        for i in range(len(rows)):
            columns.action[0, 0], columns.action[1, 0] = rows[i], rows[-1 - i]
            batch.step(columns)
            self.assertEqual(batch.failures(), [])
        for first, second in zip(envs[0].taken, reversed(envs[1].taken)):
            self.assertEqual(repr(first), repr(second))
        self.assertEqual(len(envs[0].taken), len(rows))
        return envs[0].taken

    def in_turn(self, kind, space):
        envs = []

        def make():
            envs.append(kind(space))
            return envs[-1]

        return make, envs

    def test_actions_are_within_every_box(self):
        for space in BOXES:
            with self.subTest(str(space)):
                taken = self.taken(*self.in_turn(Checking, space))
                for one in taken:
                    self.assertEqual((type(one), one.dtype, one.shape), (np.ndarray, space.dtype, space.shape))
                # The bounds themselves are reached, where they are within 1e6.
                for got, bound in ((taken[0], space.low), (taken[1], space.high)):
                    near = np.clip(bound.astype(np.float64), -1e6, 1e6)
                    np.testing.assert_allclose(got.astype(np.float64), near, rtol=1e-6)

    def test_actions_are_within_parts_of_a_dict(self):
        space = spaces.Dict({"z": spaces.Box(-0.1, 0.3, (2,), np.float64),
                             "a": spaces.Tuple((spaces.Box(0, 5, (1,), np.int32), spaces.Box(-np.inf, np.inf, (), np.float32)))})
        self.taken(*self.in_turn(Checking, space))

    def test_vector_environments_take_every_action_of_their_space(self):
        modes = gymnasium.vector.AutoresetMode
        parts = spaces.Dict({"z": spaces.Box(-0.1, 0.3, (2,), np.float64),
                             "a": spaces.Tuple((spaces.Box(0, 5, (1,), np.int32), spaces.Box(-1, 1, (), np.float32)))})
        choices = spaces.Dict({"z": spaces.Discrete(3, start=2),
                               "a": spaces.Tuple((spaces.MultiBinary(2), spaces.MultiDiscrete([2, 2])))})
        for space in (*BOXES, parts, choices, spaces.Tuple((spaces.Discrete(2), spaces.Discrete(3))), spaces.MultiBinary([2, 2]),
                      spaces.MultiDiscrete([[2, 3], [2, 2]]), spaces.Discrete(4, start=-1)):
            for mode in (modes.DISABLED, modes.SAME_STEP):
                with self.subTest(f"{space} {mode}"):
                    make_one, envs = self.in_turn(Checking, space)

                    def make(num_envs):
                        return gymnasium.vector.SyncVectorEnv([make_one] * num_envs, autoreset_mode=mode)

                    self.taken(make, envs)

    def test_whole_numbers_are_rounded_in_vector_environments_too(self):
        make_one, envs = self.in_turn(Checking, spaces.Box(0, 3, (2,), np.int64))
        batch, columns = begun(lambda num_envs: gymnasium.vector.SyncVectorEnv(
            [make_one] * num_envs, autoreset_mode=gymnasium.vector.AutoresetMode.DISABLED))
        columns.action[:] = [[[1.9, 0.4]], [[2.6, 3]]]
        batch.step(columns)
        self.assertEqual([env.taken[0].tolist() for env in envs], [[2, 0], [3, 3]])

    def test_an_environment_may_write_into_its_action(self):
        for space in (BOXES[0], BOXES[3]):
            batch, columns = begun(lambda: Checking(space), 2)
            columns.action[:] = 0.2
            batch.step(columns)
            for env in batch._envs:
                env._env.taken[0][:] = 7
            self.assertEqual(columns.action.tolist(), np.full((2, 1, 2), 0.2, np.float32).tolist())

    def test_actions_are_within_the_arrays_of_dm_env(self):
        specs = dm_env.specs
        for spec in (specs.BoundedArray((2,), np.float64, -0.1, 0.3), specs.BoundedArray((2,), np.float32, -0.1, 0.3),
                     specs.BoundedArray((2, 2), np.float64, np.full((2, 2), 0.1), 0.3), specs.BoundedArray((), np.float64, 0.1, 0.3),
                     specs.Array((2,), np.float64), specs.BoundedArray((), np.int32, 2, 5), specs.DiscreteArray(4)):
            with self.subTest(str(spec)):
                self.taken(*self.in_turn(CheckingArrays, spec))


if __name__ == "__main__":
    unittest.main()
