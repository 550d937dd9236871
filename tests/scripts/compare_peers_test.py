#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What scripts/compare_peers.py makes of runs: both forms of the model, times to a return. It starts no peer."""

import importlib.util
import pathlib
import subprocess
import sys
import tempfile
import types
import unittest
import xml.etree.ElementTree

ROOT = pathlib.Path(__file__).resolve().parents[2]
SPEC = importlib.util.spec_from_file_location("compare_peers", ROOT / "scripts" / "compare_peers.py")
peers = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(peers)


def run(speed, returns=(None, None, None, None)):
    """Rows of a run at one speed, ten seconds apart."""
    return [{"env_steps": 10 * i * speed, "seconds": 10.0 * i, "return": value} for i, value in enumerate(returns, 1)]


class ComparePeers(unittest.TestCase):
    def report(self, results, **options):
        args = types.SimpleNamespace(**{"cores": 2, "target": None, "env": "native", **options})
        return peers.report(args, results)

    def test_shows_both_forms_of_the_model(self):
        results = {"skein": [run(1000), run(1200), run(1100)], "skein_published": [run(880)], "rllib": [run(110)]}
        text = self.report(results)
        self.assertIn("| Skein on_policy is faster by | with Gymnasium's model by |", text)
        self.assertIn("| RLlib 2.60.0 | 110 | 110 | 10.0 | 8.0 |", text)
        self.assertIn("| Skein, on_policy, Gymnasium's model | 880 | 880 | 1.2 | 1.0 |", text)
        del results["skein_published"]
        self.assertIn("| RLlib 2.60.0 | 110 | 110 | 10.0 |\n", self.report(results))

    def test_takes_the_time_to_a_return_of_each_recipe(self):
        quick, slow, never = [(100, 5100, 6000, 6000), (0, 1, 2, 5000), (0, 1, 2, 4999)]
        text = self.report({"skein": [run(10, quick), run(10, slow), run(10, never)]}, target=5000.0)
        self.assertIn("| Skein, on_policy | 40 | 20, 40, - | 6000 |", text)
        text = self.report({"rllib": [run(10, never)]}, target=5000.0)
        self.assertIn("| RLlib 2.60.0 | not reached | - | 4999 |", text)

    def test_refuses_the_defaults_of_a_hosted_peer_for_the_others(self):
        command = [sys.executable, ROOT / "scripts" / "compare_peers.py", "--updates", "defaults", "--out", "/nowhere"]
        refused = subprocess.run(command, capture_output=True, text=True)
        self.assertEqual(refused.returncode, 2)
        self.assertIn("--updates defaults is for --env hosted", refused.stderr)

    def test_writes_the_published_model_with_an_exclusion(self):
        with tempfile.TemporaryDirectory() as folder:
            home = pathlib.Path(folder)
            assets = home / "stable_baselines3/lib/python3.11/site-packages/gymnasium/envs/mujoco/assets"
            assets.mkdir(parents=True)
            text = "<mujoco model='cheetah'>\n<worldbody><body name='bthigh'/></worldbody>\n</mujoco>\n"
            (assets / "half_cheetah.xml").write_text(text)
            peers.HOME = home
            peers.write_published_model(home / "model.xml")
            model = xml.etree.ElementTree.parse(home / "model.xml").getroot()
            self.assertEqual(model.find("contact/exclude").attrib, {"body1": "bthigh", "body2": "fthigh"})
            model.remove(model.find("contact"))
            parts = [(part.tag, part.attrib) for part in model.iter()]
            self.assertEqual(parts, [("mujoco", {"model": "cheetah"}), ("worldbody", {}), ("body", {"name": "bthigh"})])


if __name__ == "__main__":
    unittest.main()
