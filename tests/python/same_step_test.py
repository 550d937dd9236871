#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Vector environments of Gymnasium with autoreset SAME_STEP, where Skein begins an episode itself."""

import sys
import unittest

from fetched_python import ROOT, run_inside

if __name__ == "__main__":
    run_inside("environments")

import gymnasium
import numpy as np
from gymnasium import spaces

sys.path.insert(0, str(ROOT / "python"))
from skein_env.adapters import make_batch
from skein_env.columns import new_columns

SAME_STEP = gymnasium.vector.AutoresetMode.SAME_STEP


class Counted(gymnasium.Env):
    """Observes its seed, or 0, and the steps since; episodes of six steps. `wrong` is NaN in the steps `at`."""

    observation_space = spaces.Box(-1e6, 1e6, (2,), np.float64)
    action_space = spaces.Discrete(2)

    def __init__(self, wrong="", at=()):
        self.wrong, self.at, self.steps, self.closed = wrong, at, 0, False

    def reset(self, *, seed=None, options=None):
        self.seed, self.count = seed or 0, 0
        begun = np.nan if self.wrong == "beginning" and self.steps in self.at and not seed else 0
        return np.array([self.seed, begun]), {}

    def step(self, action):
        self.count, self.steps = self.count + 1, self.steps + 1
        wrong = self.wrong if self.steps in self.at else ""
        seen = np.array([self.seed, np.nan if wrong == "observation" else self.count])
        return seen, np.nan if wrong == "reward" else 1.0, self.count == 6, False, {}


class Deaf(gymnasium.vector.VectorWrapper):
    """Its reset drops the options."""

    def reset(self, *, seed=None, options=None):
        return self.env.reset(seed=seed)


class Frail(gymnasium.vector.VectorWrapper):
    """Its reset of some throws."""

    def reset(self, *, seed=None, options=None):
        if options is not None:
            raise NotImplementedError("only all together")
        return self.env.reset(seed=seed)


class SameStep(unittest.TestCase):
    def begun(self, wrong="", at=(), around=lambda env: env, kind=gymnasium.vector.SyncVectorEnv):
        """Three environments, the second one of which goes wrong."""
        def make(num_envs):
            return around(kind([Counted, lambda: Counted(wrong, at), Counted], autoreset_mode=SAME_STEP))

        batch = make_batch(make, 3, {})
        self.addCleanup(batch.close)
        columns = new_columns(batch.spec, 3)
        columns.mask[:], columns.seed[:] = 1, [10, 20, 30]
        batch.reset(columns)
        return batch, columns

    def begin(self, batch, columns, e, seed):
        """As an actor does where it has refused what environment `e` sent, or has ended its episode."""
        columns.mask[:] = np.arange(3) == e
        columns.seed[e] = seed
        batch.reset(columns)

    def test_one_nan_costs_the_episode_of_its_environment_only(self):
        for wrong in ("observation", "reward"):
            for kind in (gymnasium.vector.SyncVectorEnv, gymnasium.vector.AsyncVectorEnv):
                with self.subTest(f"{wrong} {kind.__name__}"):
                    batch, columns = self.begun(wrong, (3, 5), kind=kind)
                    for _ in range(3):
                        batch.step(columns)
                    numbers = columns.observation if wrong == "observation" else columns.reward
                    self.assertEqual(np.isnan(numbers.reshape(3, -1)).any(axis=1).tolist(), [False, True, False])
                    self.begin(batch, columns, 1, 21)
                    self.assertEqual(columns.observation[:, 0].tolist(), [[10, 3], [21, 0], [30, 3]])
                    self.assertFalse(columns.failed.any())
                    batch.step(columns)
                    batch.step(columns)  # Wrong again.
                    self.begin(batch, columns, 1, 22)
                    batch.step(columns)
                    # The others' episodes are whole.
                    self.assertEqual(columns.terminated.tolist(), [1, 0, 1])
                    self.assertEqual(columns.final_observation[[0, 2], 0].tolist(), [[10, 6], [30, 6]])
                    self.assertEqual(columns.observation[:, 0].tolist(), [[0, 0], [22, 1], [0, 0]])
                    for _ in range(5):
                        batch.step(columns)
                    self.assertEqual(columns.terminated.tolist(), [0, 1, 0])

    def test_an_episode_that_begins_with_nan_is_begun_again(self):
        batch, columns = self.begun("beginning", (6,))
        for _ in range(6):
            batch.step(columns)
        self.assertTrue(np.isnan(columns.observation[1]).any())
        self.begin(batch, columns, 1, 21)
        self.assertEqual(columns.observation[:, 0].tolist(), [[0, 0], [21, 0], [0, 0]])

    def test_what_has_begun_by_itself_is_not_begun_again(self):
        batch, columns = self.begun()
        for _ in range(6):
            batch.step(columns)
        self.begin(batch, columns, 1, 21)
        self.assertEqual(columns.observation[1, 0].tolist(), [0, 0])

    def test_an_episode_that_skein_ends_is_followed_by_one_of_its_seed(self):
        batch, columns = self.begun()
        batch.step(columns)
        batch.step(columns)
        for e, seed in ((0, 11), (1, 21), (2, 31)):
            self.begin(batch, columns, e, seed)
        self.assertEqual(columns.observation[:, 0].tolist(), [[11, 0], [21, 0], [31, 0]])

    def test_one_that_cannot_begin_alone_says_which_and_why(self):
        failed = r"in environment 1 \(it sent a number that is not finite or beyond 1e\+06\)"
        for around, said in (
                (Deaf, r', but its reset began others, too: a vector environment must heed options\["reset_mask"\]'),
                (Frail, r"; its reset then failed: NotImplementedError: .* \(.*same_step_test.py:\d+ in reset")):
            with self.subTest(around.__name__):
                batch, columns = self.begun("observation", (2,), around)
                batch.step(columns)
                batch.step(columns)
                with self.assertRaisesRegex(RuntimeError, failed + said):
                    self.begin(batch, columns, 1, 21)
                batch, columns = self.begun(around=around)
                batch.step(columns)
                limited = r"in environment 2 \(it failed, or env.max_episode_steps is under"
                with self.assertRaisesRegex(RuntimeError, limited):
                    self.begin(batch, columns, 2, 31)


if __name__ == "__main__":
    unittest.main()
