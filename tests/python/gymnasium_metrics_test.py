#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Episode metrics out of `info`, whose numbers may be there at the end of an episode only."""

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


class Undecided(gymnasium.Env):
    """Episodes of four steps. The metric is `before` until the last step and `last` in it, where alone "rare" is."""

    observation_space = spaces.Box(-10, 10, (1,), np.float32)
    action_space = spaces.Discrete(2)
    metadata = {"episode_metrics": ["is_success", "rare", "never"]}

    def __init__(self, before=None, last=1, late=False):
        self.before, self.last, self.late, self.count = before, last, late, 0

    def _observe(self):
        return np.full(1, self.count, np.float32)

    def reset(self, *, seed=None, options=None):
        self.count = 0
        return self._observe(), {}

    def step(self, action):
        self.count += 1
        ended = self.count == 4
        info = {"is_success": self.last, "rare": 7} if ended else {"is_success": self.before}
        return self._observe(), 1.0, ended and not self.late, ended and self.late, info


class InParts(Undecided):
    observation_space = spaces.Dict({"a": Undecided.observation_space})

    def _observe(self):
        return {"a": super()._observe()}


def vector(mode):
    def of(make):
        return lambda num_envs: gymnasium.vector.SyncVectorEnv([make] * num_envs, autoreset_mode=mode)

    return of


MODES = gymnasium.vector.AutoresetMode


class Metrics(unittest.TestCase):
    def begun(self, make):
        batch = make_batch(make, 2, {})
        columns = new_columns(batch.spec, 2)
        columns.mask[:] = 1
        batch.reset(columns)
        return batch, columns

    def kinds(self, *arguments):
        """Functions that make such environments, each for another way through the adapters."""
        one, parts = lambda: Undecided(*arguments), lambda: InParts(*arguments)
        yield from (("one array", one), ("parts", parts), ("vector", vector(MODES.DISABLED)(one)),
                    ("same step", vector(MODES.SAME_STEP)(one)))

    def test_what_is_no_number_before_the_end_is_zero(self):
        for before in (None, "not yet", float("nan"), [1, 2]):
            for late in (False, True):
                for name, make in self.kinds(before, np.float64(0.5) if isinstance(before, float) else True, late):
                    if isinstance(before, list) and name in ("vector", "same step"):
                        continue  # Gymnasium itself refuses to join these.
                    with self.subTest(f"{before} {name} {late}"):
                        batch, columns = self.begun(make)
                        for step in range(1, 9):
                            batch.step(columns)
                            self.assertEqual((columns.failed.tolist(), batch.failures()), ([0, 0], []))
                            expected = [0.5 if isinstance(before, float) else 1, 7, 0] if step % 4 == 0 else [0, 0, 0]
                            self.assertEqual(columns.episode_metrics.tolist(), [expected] * 2)

    def test_numbers_before_the_end_are_there_where_skein_ends_the_episode(self):
        for name, make in self.kinds(0.25, 0.75):
            with self.subTest(name):
                batch, columns = self.begun(make)
                batch.step(columns)
                self.assertEqual(columns.episode_metrics[:, 0].tolist(), [0.25] * 2)

    def test_an_episode_that_ends_leaves_the_others_numbers(self):
        """In the step in which one ends, Skein may end the other."""
        for mode in (MODES.DISABLED, MODES.SAME_STEP):
            envs = [Undecided(0.25, 0.75), Undecided(0.25, 0.75)]
            batch, columns = self.begun(
                lambda num_envs: gymnasium.vector.SyncVectorEnv([envs.pop, envs.pop], autoreset_mode=mode))
            columns.mask[:] = [1, 0]
            for _ in range(3):
                batch.step(columns)
            batch._env.envs[1].count = 1
            batch.step(columns)
            self.assertEqual(columns.terminated.tolist(), [1, 0])
            self.assertEqual(columns.episode_metrics[:, 0].tolist(), [0.75, 0.25])

    def test_what_is_no_number_at_the_end_is_named(self):
        for last, said in ((None, "None"), ("yes", "'yes'"), (float("inf"), "inf")):
            for name, make in self.kinds(None, last):
                with self.subTest(f"{last} {name}"):
                    batch, columns = self.begun(make)
                    for _ in range(4):
                        self.assertFalse(columns.failed.any())
                        batch.step(columns)
                    self.assertEqual(columns.failed.tolist(), [1, 1])
                    for _, why in batch.failures():
                        self.assertIn(f"ValueError: info['is_success'] is {said} at the end of the episode, want", why)
                    columns.mask[:] = 1
                    batch.reset(columns)
                    self.assertEqual((columns.failed.tolist(), batch.failures()), ([0, 0], []))
                    batch.step(columns)
                    self.assertFalse(columns.failed.any())

    def test_a_team_has_the_mean_of_its_numbers(self):
        def make():
            team = team_envs.shrinking()
            own_step = team.step

            def step(actions):
                observed, rewards, terminations, truncations, infos = own_step(actions)
                infos = {agent: {"left": None if team.agents else 3} for agent in infos}
                return observed, rewards, terminations, truncations, infos

            team.step = step
            return team

        batch, columns = self.begun(make)
        for step in range(1, 7):
            batch.step(columns)
            self.assertFalse(columns.failed.any(), batch.failures())
            self.assertEqual(columns.episode_metrics.tolist(), [[3 if step == 6 else 0]] * 2)

    def test_a_text_is_one_name(self):
        for given, names in (("is_success", ["is_success"]), (None, []), (("a", "b"), ["a", "b"])):
            metadata = {"episode_metrics": given}
            make = type("Named", (Undecided,), {"metadata": metadata})
            self.assertEqual(list(make_batch(make, 1, {}).spec.episode_metrics), names)


if __name__ == "__main__":
    unittest.main()
