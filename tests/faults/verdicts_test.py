#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""scripts/test_faults.py on test binaries that are scripts: what it makes of each outcome."""

import json
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]

# A stand-in for a test binary: lists LISTING, and reports RESULTS unless it "crashes".
BINARY = """#!{python}
import json, os, sys
listing, results = {listing!r}, {results!r}
arguments = dict(a.lstrip("-").split("=", 1) for a in sys.argv[1:] if "=" in a)
if "--gtest_list_tests" in sys.argv:
    print(listing)
    sys.exit(0)
assert os.environ["SKEIN_FAULT_SEED"] == "7", os.environ["SKEIN_FAULT_SEED"]
wanted = arguments["gtest_filter"].split(":")
if results is None:
    sys.exit(139)
print("seed", os.environ["SKEIN_FAULT_SEED"] + ": chosen")
suites = {{}}
for name in wanted:
    case = {{"name": name.split(".")[1], "result": "COMPLETED", "time": "0.5s"}}
    case.update(results.get(name, {{}}))
    suites.setdefault(name.split(".")[0], []).append(case)
report = {{"testsuites": [{{"name": n, "testsuite": cases}} for n, cases in suites.items()]}}
open(arguments["gtest_output"].removeprefix("json:"), "w").write(json.dumps(report))
"""


class VerdictsTest(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.build = pathlib.Path(self.folder.name)
        (self.build / "tests").mkdir()

    def tearDown(self):
        self.folder.cleanup()

    def add(self, name, listing, results):
        binary = self.build / "tests" / name
        binary.write_text(BINARY.format(python=sys.executable, listing=listing, results=results))
        binary.chmod(0o755)

    def run_script(self, *arguments):
        """(exit code, {row: verdict})"""
        verdicts = self.build / "verdicts.json"
        if "--json" in arguments:
            verdicts = arguments[arguments.index("--json") + 1]
        result = subprocess.run([ROOT / "scripts/test_faults.py", self.build, "--seed", "7", "--json", verdicts,
                                 *arguments], cwd=ROOT, capture_output=True, text=True)
        self.output = result.stdout
        rows = json.loads(verdicts.read_text())["rows"]
        return result.returncode, {row["row"]: row["verdict"] for row in rows}

    def test_a_row_passes_if_all_its_tests_in_all_binaries_do(self):
        self.add("one_test", "Other.\n  Test\nFaultRow01.\n  A\n  B", {})
        self.add("two_test", "FaultRow01.\n  C\nModes/FaultRow18.\n  D/0  # GetParam() = 1", {})
        code, verdicts = self.run_script("--rows", "1,18")
        self.assertEqual((code, verdicts), (0, {1: "pass", 18: "pass"}))
        self.assertIn("2 of 2 rows pass, seed 7", self.output)
        self.assertIn("\n      seed 7: chosen\n", self.output)

    def test_one_failure_fails_the_row_and_the_run(self):
        self.add("one_test", "FaultRow01.\n  A\n  B\nFaultRow02.\n  C", {"FaultRow01.B": {"failures": [{}]}})
        code, verdicts = self.run_script("--rows", "1-2")
        self.assertEqual((code, verdicts), (1, {1: "fail", 2: "pass"}))

    def test_a_rerun_does_only_what_failed(self):
        self.add("one_test", "FaultRow01.\n  A\nFaultRow02.\n  B", {"FaultRow01.A": {"failures": [{}]}})
        before = self.build / "before.json"
        self.assertEqual(self.run_script("--rows", "1-2", "--jobs", "2", "--json", before)[0], 1)
        self.assertEqual(self.run_script("--rerun-failed", before), (1, {1: "fail"}))
        self.add("one_test", "FaultRow01.\n  A\nFaultRow02.\n  B", {})
        self.assertEqual(self.run_script("--rerun-failed", before), (0, {1: "pass"}))

    def test_a_binary_that_crashes_fails(self):
        self.add("one_test", "FaultRow01.\n  A", None)
        self.assertEqual(self.run_script("--rows", "1"), (1, {1: "fail"}))

    def test_what_is_missing_or_skipped_in_part_has_not_passed(self):
        self.add("one_test", "FaultRow01.\n  A\nFaultRow02.\n  B\n  C",
                 {"FaultRow01.A": {"result": "SKIPPED"}, "FaultRow02.B": {"result": "SKIPPED"}})
        code, verdicts = self.run_script("--rows", "1-3")
        self.assertEqual((code, verdicts), (1, {1: "skipped", 2: "skipped", 3: "missing"}))
        self.assertIn("\n      skipped: FaultRow02.B\n", self.output)
        self.assertNotIn("skipped: FaultRow02.C", self.output)
        self.assertEqual(self.run_script("--rows", "1,2", "--allow-skipped")[0], 0)
        self.assertEqual(self.run_script("--rows", "1,3", "--allow-skipped")[0], 1)

    def test_all_rows_of_the_document_are_there_and_a_quick_run_leaves_some_out(self):
        code, verdicts = self.run_script()
        self.assertEqual(code, 1)
        rows = [int(line.split("|")[1]) for line in (ROOT / "docs/faults.md").read_text().splitlines()
                if line.startswith("| ") and line[2].isdigit()]
        self.assertEqual(rows, sorted(set(rows)))
        self.assertEqual(list(verdicts), rows)
        self.assertLess(len(self.run_script("--quick")[1]), len(rows))

    def test_the_document_names_metrics_that_there_are(self):
        name = re.compile(r"`((?:skein|process)_[a-z0-9_]+)[`{]")
        known = set(name.findall((ROOT / "docs/metrics.md").read_text()))
        self.assertEqual(set(name.findall((ROOT / "docs/faults.md").read_text())) - known, set())


if __name__ == "__main__":
    unittest.main()
