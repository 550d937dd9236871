#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`skein env check` of broken_envs.py: the verdict names what is broken."""

import json
import os
import pathlib
import re
import signal
import subprocess
import tempfile
import time
import unittest

from fetched_python import ROOT, fetch, python_of

BIN = pathlib.Path(os.environ.get("SKEIN_BIN", ROOT / "build" / "release"))
PYTHON = python_of("environments")
HERE = pathlib.Path(__file__).resolve().parent
ENVIRONMENT = {**os.environ, "PYTHONPATH": f"{HERE}:{ROOT / 'python'}"}


def command(name, *more):
    return [str(part) for part in (BIN / "skein", "env", "check", f"python:broken_envs:{name}", "--json", "--num-envs", "4", "--seconds",
                                   "3", "--set", f"env.external.python={PYTHON}", *more)]


def check(name, *more):
    """(exit code, {point: what was found}, points that fail)"""
    done = subprocess.run(command(name, *more), capture_output=True, text=True, timeout=120, env=ENVIRONMENT)
    try:
        points = json.loads(done.stdout)["points"]
    except ValueError as error:
        raise AssertionError(f"{name}: no JSON: {done.stdout} {done.stderr}") from error
    for point in points:
        assert (point["verdict"] == "fails") == bool(point["remedy"]), point
    return (done.returncode, {point["point"]: point["found"] for point in points},
            [point["point"] for point in points if point["verdict"] == "fails"])


class EnvCheck(unittest.TestCase):
    def test_one_that_keeps_the_contract_has_no_fault(self):
        code, found, failing = check("Line")
        self.assertEqual((code, failing), (0, []), found)
        self.assertEqual(found["dtypes"], "actions int64, observations float32, rewards float, as declared; Skein has them as float32")
        self.assertRegex(found["speed"], r"one alone \d+ steps/s, 4 in a vector environment \d+ steps/s, in an actor \d+ steps/s$")

    def test_each_fault_is_named(self):
        for name, point, said, *more in (
            ("Unseeded", "seeds", "two with the same seed and the same actions differ in their first observation"),
            ("Sharing", "seeds", r"it differs from step \d+ on where another one is stepped beside it"),
            ("EndingAtItsLimit", "ends", "terminated in their last allowed step, the 20th", "--set", "env.max_episode_steps=20"),
            ("Endless", "ends", r"no episode of \d+ steps ended"),
            ("OfAnotherType", "dtypes", r"an observation is float64, its space says float32; a reward is an array of float64"),
            ("OutOfItsBox", "dtypes", r"number 0 of an observation\['at'\] is 0.5, its space says at most 0.25; "
                                      r"number 0 of an observation\['steps'\] is 6, its space says at most 5$"),
            ("Unpaid", "dtypes", "'b' took a step and has no reward$"),
            ("FlaggingWithNumbers", "dtypes", "terminated is of type int, want a bool"),
            ("Leaving", "closes", "its environments could not be closed; what its server said of it stands above"),
            ("ResettingEarly", "final observation", r"after each of \d+ episodes it is the first one of the next episode"),
        ):
            with self.subTest(name):
                code, found, failing = check(name, *more)
                self.assertEqual((code, failing), (65, [point]), found)
                self.assertRegex(found[point], said)

    def test_what_fails_in_steps_is_named_with_its_place(self):
        for name, said in (
            ("Raising", r"ValueError: no such cell \(.*broken_envs.py:\d+ in step\)"),
            ("NotANumber", "number 0 of the observation is -?nan"),
            ("OfAnotherShape", r"an observation has the shape \(3,\), the space says \(2,\)"),
            ("Dying", "its server was ended by signal 9"),
        ):
            with self.subTest(name):
                code, found, failing = check(name)
                self.assertEqual((code, failing), (65, ["numbers"]), found)
                self.assertRegex(found["numbers"], said)
                self.assertEqual(len(re.findall(said, found["numbers"])), 1)
                self.assertNotIn("env.external.restarts", found["numbers"])

    def test_one_that_hangs_takes_no_longer_than_its_steps_may(self):
        begin = time.monotonic()
        code, found, failing = check("Hanging", "--set", "rollout.step_timeout_seconds=1")
        self.assertEqual(code, 65, found)
        self.assertRegex(found["numbers"], "its server has not answered within 1 s")
        self.assertNotIn("env.external.restarts", found["numbers"])
        self.assertNotIn("started again", found["numbers"])
        self.assertLess(time.monotonic() - begin, 40)

    def test_a_library_that_hangs_ends_it(self):
        plugin = BIN / "tests/env/external/stuck.so"
        done = subprocess.run([BIN / "skein", "env", "check", f"plugin:{plugin}", "--set", "env.external.arguments=hangs",
                               "--set", "rollout.step_timeout_seconds=1"], capture_output=True, text=True, timeout=60)
        self.assertEqual(done.returncode, 65, done)
        self.assertRegex(done.stderr, r"environment \d+, step 3 of episode \d+ has taken longer than 1 s "
                                      r"\(rollout.step_timeout_seconds\)")
        self.assertRegex(done.stdout, r"ok +made ")

    def test_a_signal_ends_it_and_all_that_it_has_started(self):
        hangs_in = {name: command(name, "--set", "rollout.step_timeout_seconds=60")
                    for name in ("HangingAsItIsMade", "Hanging", "HangingAsItsTypesAreSeen", "HangingInAnActor")}
        hangs_in["server"] = [str(BIN / "skein"), "env", "serve", "python:broken_envs:HangingAsItIsMade", "--listen", "127.0.0.1:0",
                              "--set", f"env.external.python={PYTHON}"]
        for name, words in hangs_in.items():
            for number in (signal.SIGTERM, signal.SIGINT) if name == "Hanging" else (signal.SIGTERM,):
                with self.subTest(f"{name} {number.name}"), tempfile.TemporaryDirectory() as folder:
                    hangs = pathlib.Path(folder) / "hangs"
                    checking = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                                env={**ENVIRONMENT, "BROKEN_HANGS": str(hangs)})
                    self.addCleanup(checking.kill)
                    self.wait(hangs.exists, 60)
                    self.assertTrue(self.processes_with(hangs))
                    begin = time.monotonic()
                    checking.send_signal(number)
                    out, err = checking.communicate(timeout=30)
                    self.assertEqual((checking.returncode, out), (75, ""), err)
                    self.assertEqual(err.splitlines()[-1], f"skein env {words[2]}: stopped on request", err)
                    self.assertLess(time.monotonic() - begin, 6)
                    self.wait(lambda: not self.processes_with(hangs), 10)

    def processes_with(self, hangs):
        """Those that have the file in their environment variables."""
        found = []
        for path in pathlib.Path("/proc").glob("[0-9]*"):
            try:
                if f"BROKEN_HANGS={hangs}".encode() in (path / "environ").read_bytes():
                    found.append(int(path.name))
            except OSError:
                continue
        return found

    def wait(self, condition, seconds):
        end = time.monotonic() + seconds
        while not condition():
            self.assertLess(time.monotonic(), end)
            time.sleep(0.05)


if __name__ == "__main__":
    fetch("environments")
    unittest.main()
