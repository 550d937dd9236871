#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""scripts/soak_report.py: that it sees a leak, a broken history, a return that does not rise, and says so."""

import collections
import json
import pathlib
import sys
import tempfile
import types
import unittest

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "scripts"))
import soak_report

FLAT = {"rss_mib": 100.0, "fds": 20, "threads": 10, "series": 50}
EVENTS = {event: 10 for event in soak_report.RECORDED}
HISTORY = {"processes": 9, "seconds": 1.0, "events": EVENTS, "batches": {"accepted": 10}, "accepted_more_than_once": 0,
           "breaches": 0, "first_breaches": []}


class SoakReport(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        options = types.SimpleNamespace(seconds=1000.0, seed=1, actors=4, pause=3.0, bin=self.folder, settings=[],
                                        least_return=None)
        (self.folder / "history").mkdir()
        self.soak = types.SimpleNamespace(
            options=options, failures=[], injected=collections.Counter({"kill actor": 2}), leaves=[], ended_by_itself=1,
            recoveries={"kill actor": [1.0, 2.0]}, rolled_back=0, account={"collected": 10, "lost": 1},
            usage={(name, 1): [(at, dict(FLAT)) for at in range(0, 1000, 5)] for name in soak_report.WATCHED},
            cluster=types.SimpleNamespace(history=self.folder / "history", run_directory=self.folder))
        self.soak.fail = self.soak.failures.append
        self.soak.recoveries = collections.defaultdict(list, self.soak.recoveries)
        self.write_returns(range(20, 120))

    def write_returns(self, returns):
        (self.folder / "metrics.jsonl").write_text("".join(f'{{"episode_return_mean":{one}}}\n' for one in returns))

    def check_history_says(self, judged, code=0):
        program = self.folder / "skein"
        program.write_text(f"#!/bin/sh\n[ $1 = check-history ] && cat <<'END'\n{judged}\nEND\nexit {code}\n")
        program.chmod(0o755)

    def summary(self, judged=None, code=0):
        self.check_history_says(json.dumps(judged or HISTORY), code)
        machine = {"cpu": "C", "cores": 2, "memory_gib": 1.0, "os": "O", "load_average": 0.5, "programs": "skein 1, MuJoCo 2",
                   "commit": "abc", "started": "today"}
        return soak_report.summarize(self.soak, ["kill actor"], soak_report.judge_history(self.soak), machine)

    def test_all_is_well(self):
        summary = self.summary()
        self.assertEqual(summary["failures"], [])
        self.assertTrue(summary["verdict"].startswith("PASSED"), summary["verdict"])
        text = soak_report.as_markdown(summary, "reliability")
        for words in ("| kill actor | 2 | 2 | 1.5 s | 2.0 s |", "| batches accepted more than once | 0 |",
                      "| lost | 1 | 10.000% |", "MuJoCo 2, commit abc", "(reliability.json)", "scripts/soak.py --seconds 1000",
                      "2 of 2 faults recovered from, 10.00% of the steps lost, 0 batches accepted twice"):
            self.assertIn(words, text)
        self.assertEqual(len(soak_report.as_csv(self.soak.usage, 1000.0).splitlines()), 1 + 3 * 100)

    def test_another_environment_says_which_return_it_wants(self):
        self.soak.options.settings = ["env.id=MyEnv-v0"]
        self.soak.options.least_return = -5.0
        self.write_returns([-50] + [-4] * 99)
        summary = self.summary()
        self.assertEqual(summary["failures"], [])
        self.assertIn("--set env.id=MyEnv-v0 --least-return -5", summary["command"])
        self.soak.options.least_return = -3.0
        self.assertEqual(self.summary()["failures"], ["the return does not rise: -50.0 at first, -4.0 at last"])

    def test_a_leak_is_seen_even_if_it_is_jagged(self):
        for at, usage in self.soak.usage["learner", 1]:
            usage["rss_mib"] += at / 20 + (30 if at % 20 == 0 else 0)  # By 17 MiB over the window of 345 s.
            usage["fds"] += at % 3
        failures = self.summary()["failures"]
        self.assertEqual(len(failures), 1, failures)
        self.assertRegex(failures[0], r"^learner: RSS \(MiB\) grew by 17")

    def test_who_died_meanwhile_was_not_watched(self):
        self.soak.usage["actor-1", 1] = self.soak.usage["actor-1", 1][:150]
        self.assertEqual(self.summary()["failures"], ["too few samples of actor-1 to tell whether it leaks"])

    def test_a_breach_of_the_history(self):
        broken = {**HISTORY, "accepted_more_than_once": 1, "breaches": 1, "first_breaches": ["batch 1 was accepted twice"]}
        summary = self.summary(broken, code=65)
        self.assertEqual(summary["failures"], ["history: batch 1 was accepted twice"])
        self.assertTrue(summary["verdict"].startswith("FAILED: 1 "), summary["verdict"])

    def test_a_history_that_lacks_a_process(self):
        events = {event: count for event, count in EVENTS.items() if event != "policy"}
        self.assertEqual(self.summary({**HISTORY, "events": events})["failures"], ["the history has no policy"])

    def test_a_history_that_cannot_be_judged(self):
        self.check_history_says("", code=65)
        soak_report.judge_history(self.soak)
        self.assertRegex(self.soak.failures[0], "the history cannot be judged")

    def test_a_return_that_does_not_rise(self):
        self.write_returns([20] * 80 + [25] * 20)
        self.assertEqual(self.summary()["failures"], ["the return does not rise: 20.0 at first, 25.0 at last"])
        self.write_returns([20])
        self.soak.failures.clear()
        self.assertRegex(self.summary()["failures"][0], "too few iterations")


if __name__ == "__main__":
    unittest.main()
