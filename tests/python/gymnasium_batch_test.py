#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Environments of Gymnasium whose arrays are written together, beside the same ones written one by one."""

import sys
import unittest

from fetched_python import ROOT, run_inside

if __name__ == "__main__":
    run_inside("environments")

import numpy as np

sys.path.insert(0, str(ROOT / "python"))
import team_envs
from skein_env.adapters import adapt, make_batch
from skein_env.adapters.gymnasium import GymnasiumSerial
from skein_env.batch import Batch, Serial
from skein_env.columns import new_columns


class GymnasiumBatch(unittest.TestCase):
    def test_arrays_that_are_written_together_are_as_those_written_one_by_one(self):
        together = make_batch(team_envs.odd, 4, {})
        self.assertIs(type(together), GymnasiumSerial)
        one_by_one = Serial(lambda: adapt(team_envs.odd()), 4)
        left, right = (new_columns(together.spec, 4) for _ in range(2))
        both = ((together, left), (one_by_one, right))
        for batch, columns in both:
            columns.mask[:], columns.seed[:] = 1, np.arange(4) + 5
            batch.reset(columns)
        generator = np.random.default_rng(4)
        reasons, ends = set(), 0
        for step in range(100):
            action, seed = generator.uniform(-2, 2, left.action.shape), generator.integers(0, 1000, 4)
            for batch, columns in both:
                columns.action[:], columns.seed[:] = action, seed
                batch.step(columns)
            self.assertTrue(np.array_equal(left.action, action.astype(np.float32)))
            failures = [sorted((e, why.split(":")[0]) for e, why in batch.failures()) for batch, _ in both]
            self.assertEqual(*failures, step)
            reasons |= {why for _, why in failures[0]}
            self.assertTrue(np.array_equal(left.failed, right.failed))
            good = left.failed == 0
            for name in ("observation", "reward", "terminated", "truncated", "active", "episode_metrics"):
                one, other = getattr(left, name)[good], getattr(right, name)[good]
                self.assertTrue(np.array_equal(one, other), (step, name))
                self.assertTrue(np.all(np.isfinite(one)), (step, name))
            ended = good & ((left.terminated | left.truncated) != 0)
            ends += int(ended.sum())
            self.assertTrue(np.array_equal(left.final_observation[ended], right.final_observation[ended]))
            for batch, columns in both:
                columns.mask[:] = columns.failed
                if columns.mask.any():
                    batch.reset(columns)
            self.assertTrue(np.array_equal(left.observation, right.observation))
        self.assertGreater(ends, 20)
        self.assertEqual(reasons, {"OSError", "ValueError"})

    def test_the_bare_loop_takes_other_actions_for_each_environment_and_turn(self):
        for batch in (make_batch(team_envs.odd, 3, {}), Serial(lambda: adapt(team_envs.odd()), 3)):
            columns = new_columns(batch.spec, 3)
            columns.mask[:] = 1
            taken = [[] for _ in batch._envs]
            for env, actions in zip(batch._envs, taken):
                env._env.step = lambda action, actions=actions: (
                    actions.append(action.tobytes()) or (np.zeros((3, 2), np.float32), 0.0, False, False, {}))
            for _ in range(4):
                batch.bare(3 * 5, columns)
            self.assertEqual([len(actions) for actions in taken], [20, 20, 20])
            self.assertEqual(len({action for actions in taken for action in actions}), 60)

    def test_so_does_that_of_environments_that_are_stepped_together(self):
        class Recording(Batch):
            spec, num_envs = adapt(team_envs.odd()).spec, 3
            resets, actions = [], []

            def reset(self, columns):
                self.resets.append((columns.mask.tolist(), columns.seed.tolist()))

            def step(self, columns):
                self.actions += [action.tobytes() for action in columns.action]

        batch = Recording()
        columns = new_columns(batch.spec, 3)
        for _ in range(4):
            columns.seed[0] = 3 * 5
            batch.bare(3 * 5, columns)
        self.assertEqual(batch.resets, [([1, 1, 1], [0, 1, 2])])
        self.assertEqual((len(batch.actions), len(set(batch.actions))), (60, 60))

    def test_a_reward_that_is_none_is_said(self):
        team = lambda: team_envs.paying(None)  # noqa: E731
        for make in (team, team_envs.unpaid, lambda: team_envs.unpaid(team_envs.mixed)):
            batch = make_batch(make, 2, {})
            columns = new_columns(batch.spec, 2)
            columns.mask[:] = 1
            batch.reset(columns)
            batch.step(columns)
            self.assertEqual(columns.failed.tolist(), [1, 1])
            self.assertRegex(batch.failures()[1][1], "^ValueError: the reward is None, want a number")

    def test_environments_that_share_an_array_observe_each_its_own(self):
        for make in (team_envs.sharing, team_envs.sharing_in_parts):
            batch = make_batch(make, 3, {})
            columns = new_columns(batch.spec, 3)
            columns.mask[:], columns.seed[:] = 1, [4, 5, 6]
            batch.reset(columns)
            kept = [columns.observation[:, 0].copy()]
            for _ in range(4):
                batch.step(columns)
                kept.append(columns.observation[:, 0].copy())
            # Each counts on from its seed, after three steps anew.
            seen = [[step[e, 0] for step in kept] for e in range(3)]
            self.assertEqual(seen, [[seed, seed + 1, seed + 2, seed, seed + 1] for seed in (4, 5, 6)])
            self.assertEqual(columns.final_observation[:, 0].tolist(), [[seed + 3] * 2 for seed in (4, 5, 6)])

    def test_observations_of_several_parts_are_written_one_by_one(self):
        self.assertIs(type(make_batch(team_envs.mixed, 2, {})), Serial)

    def test_a_function_is_called_once_for_each_environment(self):
        made = []

        def make():
            made.append(team_envs.odd())
            return made[-1]

        make_batch(make, 3, {})
        self.assertEqual(len(made), 3)


if __name__ == "__main__":
    unittest.main()
