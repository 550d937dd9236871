#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""scripts/deeplog_study.py: it trains no seed twice, mixes no rows of other data or configurations, and its page has the seeds
and keeps its last section."""
import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
# "Trains" at once, and finds sessions with key 9 anomalous. Notes each call.
FAKE = """#!/usr/bin/env python3
import json, pathlib, sys
verb, *words = sys.argv[1:]
with pathlib.Path(__file__).with_name("calls").open("a") as file:
    print(verb, *words, file=file)
value = lambda flag: words[words.index(flag) + 1]
if verb == "fit":
    run = pathlib.Path(value("--run-dir"))
    run.mkdir()
    (run / "metrics.jsonl").write_text(json.dumps({"held_out_loss": 0.25}) + "\\n")
else:
    for line in open(value("--data")):
        print(json.dumps({"anomalous": "9" in line.split()}))
"""


class Study(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.folder = pathlib.Path(scratch.name)
        self.fake = self.folder / "skein"
        self.fake.write_text(FAKE)
        self.fake.chmod(0o755)
        (self.folder / "normal").write_text("1 2 3\n" * 40 + "\n")
        (self.folder / "abnormal").write_text("1 9 3\n" * 3 + "1 3 2\n")

    def run_study(self, *more, code=0):
        done = subprocess.run([sys.executable, ROOT / "scripts/deeplog_study.py", "--train", self.folder / "normal", "--abnormal",
                               self.folder / "abnormal", "--skein", self.fake, "--out", self.folder / "study.json", *more],
                              capture_output=True, text=True)
        self.assertEqual(done.returncode, code, done.stderr)
        return done.stderr

    def calls(self):
        return len((self.folder / "calls").read_text().splitlines())

    def study(self):
        return json.loads((self.folder / "study.json").read_text())

    def test_goes_on_where_it_stopped_and_makes_its_page(self):
        page = self.folder / "study.md"
        page.write_text("an older page\n\n## How fast it trains\n\nas measured\n")
        for seeds, calls in (("1", 5), ("2", 10), ("2", 10)):  # A seed: one training, and two verdicts of two files.
            self.run_study("--seeds", seeds)
            self.assertEqual(self.calls(), calls)
        study = self.study()
        self.assertEqual([seed["seed"] for seed in study["seeds"]], [1, 2])
        for seed in study["seeds"]:
            self.assertEqual((seed["hits"], seed["abnormal"], seed["alarms"]), (3, 4, 0))
            self.assertEqual(seed["held_out_loss"], 0.25)
            self.assertEqual(seed["alone"]["hits"], 3)
        self.assertEqual(study["baselines"]["unseen 2-gram"]["recall"], 1)  # 1 3 is new, too.
        text = page.read_text()
        self.assertNotIn("an older page", text)
        self.assertIn("Data: 40 normal sessions (1 distinct) and 4 abnormal ones (2 distinct).", text)
        # No false alarm and a recall of 3/4: F1 = 2 x 0.75 / (0.75 + 1). A count vector with a 9 is new, that of 1 3 2 is not.
        self.assertIn("Mean F1 of 2 seeds: **0.8571** (standard deviation 0.0000).", text)
        self.assertIn("| unseen key | 75.00 % | 0.000 % | 0.8571 | 50.00 % | 0.00 % |", text)
        self.assertIn("| the same of the model alone | 0.8571; together 0.8571, where the rule \"unseen count vector\", which learns "
                      "nothing, has 0.8571 | **missed** |", text)
        self.assertIn("| seed 1 has 0.8571, seed 2 has 0.8571 | **missed** |", text)
        self.assertTrue(text.endswith("\n## How fast it trains\n\nas measured\n"))

    def test_refuses_rows_of_another_configuration_or_other_data_until_it_may_drop_them(self):
        self.run_study("--seeds", "2")
        before, page = self.study(), (self.folder / "study.md").read_text()
        for digest in before["of"].values():
            self.assertIn(digest, page)
        self.assertIn("seeds 1, 2 are of other data or another configuration",
                      self.run_study("--seeds", "2", "--set", "model.hidden=8", code=65))
        (self.folder / "abnormal").write_text("1 9 3\n" * 4)
        self.run_study("--seeds", "2", code=65)
        self.assertEqual(self.study(), before)
        self.assertEqual((self.folder / "study.md").read_text(), page)
        self.assertEqual(self.calls(), 10)

        self.run_study("--seeds", "1", "--replace")
        after = self.study()
        self.assertEqual([(seed["seed"], seed["hits"], seed["of"]) for seed in after["seeds"]], [(1, 4, after["of"])])
        self.assertEqual(after["of"]["train"], before["of"]["train"])
        self.assertNotEqual(after["of"]["abnormal"], before["of"]["abnormal"])
        self.assertEqual(after["baselines"]["unseen key"]["recall"], 1)  # Of the new sessions.
        self.assertEqual(self.calls(), 15)

        self.run_study("--seeds", "1", "--replace", "--set", "model.hidden=8")
        self.assertNotEqual(self.study()["of"]["configuration"], after["of"]["configuration"])
        self.assertEqual(self.calls(), 20)

    def test_refuses_rows_that_do_not_say_what_they_are_of(self):
        self.run_study("--seeds", "1")
        study = self.study()
        del study["seeds"][0]["of"]
        (self.folder / "study.json").write_text(json.dumps(study))
        self.assertIn("seeds 1 are", self.run_study("--seeds", "1", code=65))


if __name__ == "__main__":
    unittest.main()
