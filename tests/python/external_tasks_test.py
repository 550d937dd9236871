#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The worlds of scripts/external_tasks.py beside the libraries' own."""

import sys
import unittest

from fetched_python import ROOT, run_inside

if __name__ == "__main__":
    run_inside("environments")

import numpy as np
from mpe2 import simple_spread_v3

sys.path.insert(0, str(ROOT / "scripts"))
import external_tasks


class SpreadTest(unittest.TestCase):
    def test_steps_as_mpe2_does(self):
        """With the same places of landmarks, and rewards as the comment says."""
        theirs, ours = simple_spread_v3.parallel_env(max_cycles=25), external_tasks.Spread(landmarks=1)
        generator = np.random.default_rng(1)
        for seed in range(20):
            observed, expected = ours.reset(seed=seed)[0], theirs.reset(seed=seed)[0]
            for step in range(25):
                for agent in theirs.possible_agents:
                    np.testing.assert_array_equal(observed[agent], expected[agent])
                np.testing.assert_array_equal(ours.state(), theirs.state())
                actions = {agent: int(generator.integers(5)) for agent in theirs.possible_agents}
                observed, rewards, terminations, truncations, _ = ours.step(actions)
                expected, paid, *ended, _ = theirs.step(actions)
                self.assertEqual([terminations, truncations], ended)
                self.assertEqual(rewards, {agent: 2 * reward - 1 for agent, reward in paid.items()})
                self.assertEqual(ours.agents, theirs.agents)
                self.assertEqual(bool(ours.agents), step < 24)

    def test_landmarks_are_near_the_middle(self):
        near, far = external_tasks.Spread(), external_tasks.Spread(landmarks=1)
        for seed in range(20):
            one, other = near.reset(seed=seed)[0]["agent_0"], far.reset(seed=seed)[0]["agent_0"]
            np.testing.assert_array_equal(one[:4], other[:4])  # Its own speed and place.
            landmarks = [(row[4:10].reshape(3, 2) + row[2:4]) for row in (one, other)]
            np.testing.assert_allclose(landmarks[0], 0.8 * landmarks[1], atol=1e-6)


if __name__ == "__main__":
    unittest.main()
