#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""scripts/deeplog_study.py: it trains no seed twice, and its page has the seeds and keeps its last section."""
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
    def test_goes_on_where_it_stopped_and_makes_its_page(self):
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            fake = folder / "skein"
            fake.write_text(FAKE)
            fake.chmod(0o755)
            (folder / "normal").write_text("1 2 3\n" * 40 + "\n")
            (folder / "abnormal").write_text("1 9 3\n" * 3 + "1 3 2\n")
            page = folder / "study.md"
            page.write_text("an older page\n\n## How fast it trains\n\nas measured\n")
            words = [sys.executable, ROOT / "scripts/deeplog_study.py", "--train", folder / "normal", "--abnormal",
                     folder / "abnormal", "--skein", fake, "--out", folder / "study.json"]
            for seeds, calls in (("1", 5), ("2", 10), ("2", 10)):  # A seed: one training, and two verdicts of two files.
                done = subprocess.run([*words, "--seeds", seeds], capture_output=True, text=True)
                self.assertEqual(done.returncode, 0, done.stderr)
                self.assertEqual(len((folder / "calls").read_text().splitlines()), calls)
            study = json.loads((folder / "study.json").read_text())
            self.assertEqual([seed["seed"] for seed in study["seeds"]], [1, 2])
            for seed in study["seeds"]:
                self.assertEqual((seed["hits"], seed["abnormal"], seed["alarms"]), (3, 4, 0))
                self.assertEqual(seed["held_out_loss"], 0.25)
                self.assertEqual(seed["alone"]["hits"], 3)
            self.assertEqual(study["baselines"]["unseen 2-gram"]["recall"], 1)  # 1 3 is new, too.
            text = page.read_text()
            self.assertNotIn("an older page", text)
            self.assertIn("Data: 40 normal sessions (1 distinct) and 4 abnormal ones (2 distinct).", text)
            # No false alarm and a recall of 3/4: F1 = 2 x 0.75 / (0.75 + 1).
            self.assertIn("Mean F1 of 2 seeds: **0.8571** (standard deviation 0.0000).", text)
            self.assertIn("| unseen key | 75.00 % | 0.000 % | 0.8571 | 50.00 % | 0.00 % |", text)
            self.assertTrue(text.endswith("\n## How fast it trains\n\nas measured\n"))


if __name__ == "__main__":
    unittest.main()
