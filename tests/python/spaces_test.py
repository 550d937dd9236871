#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Observations of real spaces as rows of numbers: what is not of its space is refused and said."""

import sys
import unittest

from fetched_python import ROOT, run_inside

if __name__ == "__main__":
    run_inside("environments")

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


if __name__ == "__main__":
    unittest.main()
