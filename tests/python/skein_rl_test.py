#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The Python package skein_rl with the real programs: runs that are followed and stopped, mistakes, types.

Exits with 77, skipped, where NumPy and mypy cannot be had (scripts/fetch_python.sh).
"""

import decimal
import importlib
import json
import os
import pathlib
import re
import signal
import socket
import subprocess
import sys
import tempfile
import textwrap
import time
import unittest
import unittest.mock

from fetched_python import ROOT, python_of, run_inside

BIN = pathlib.Path(os.environ.get("SKEIN_BIN", ROOT / "build" / "release"))
TOOLS = python_of("wheel").parent
if __name__ == "__main__":
    run_inside("wheel")  # NumPy, mypy.
    os.environ["SKEIN_BIN"] = str(BIN)
    sys.path[:0] = [str(ROOT / "python"), str(ROOT / "tests" / "testing")]

import code_blocks  # noqa: E402
import numpy as np  # noqa: E402
import skein_rl as skein  # noqa: E402

SMALL = {"rollout.num_envs": 8, "rollout.envs_per_runner": 8, "rollout.steps_per_iteration": 512,
         "ppo.minibatch_size": 256, "checkpoint.interval_steps": 512}


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def running(folder):
    """The names of the runs in the folder that a process has."""
    listed = subprocess.run([BIN / "skein", "runs", "list", "--runs-dir", folder, "--json"], capture_output=True, text=True,
                            check=True).stdout
    return [run["name"] for run in json.loads(listed) if run["running"]]


class Runs(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.runs = pathlib.Path(folder.name)

    def train(self, **flags):
        flags = {"env": "CartPole-v1", "runs_dir": self.runs, "name": "run", "no_eval": True, "quiet": True,
                 "settings": SMALL, **flags}
        run = skein.train(**flags)
        self.addCleanup(lambda: run.running and run.stop())
        return run

    def test_a_run_is_followed_to_its_end(self):
        run = self.train(steps=2048, seed=3)
        lines = list(run)
        self.assertEqual([line["iteration"] for line in lines], [1, 2, 3, 4])
        self.assertEqual(lines[-1]["env_steps"], 2048)
        self.assertEqual(lines, [json.loads(line) for line in (run.folder / "metrics.jsonl").read_text().splitlines()])
        result = run.wait()
        self.assertEqual((result["env_steps"], result["exit_code"]), (2048, 0))
        self.assertEqual(run.folder, self.runs / "run")
        self.assertFalse(run.running)
        self.assertEqual(run.policy().digest, result["digest"])
        # Another iterator, and one of the session that goes on, have all lines.
        self.assertEqual(len(list(run)), 4)
        longer = self.train(steps=3072, seed=3)
        self.assertEqual([line["iteration"] for line in longer], [1, 2, 3, 4, 5, 6])

    def test_a_run_is_stopped_in_order_and_goes_on(self):
        port = free_port()
        run = self.train(steps=10**9, port=port)
        for line in run:
            if line["iteration"] == 3:
                status = skein.connect(f"127.0.0.1:{port}").status()
                self.assertIn("actor", [member["role"] for member in status["members"]])
                self.assertTrue(run.running)
                result = run.stop()
        self.assertGreaterEqual(result["env_steps"], 3 * 512)
        self.assertFalse(run.running)
        with self.assertRaises(skein.SkeinError) as caught:
            skein.connect(f"127.0.0.1:{port}").status()
        self.assertEqual(caught.exception.code, 69)
        with self.train(steps=result["env_steps"] + 512) as again:
            pass
        self.assertEqual(again.policy().env_steps, result["env_steps"] + 512)

    def test_python_that_ends_ends_its_run(self):
        program = textwrap.dedent(f"""
            import skein_rl as skein
            run = skein.train(env="CartPole-v1", runs_dir={str(self.runs)!r}, name="run", no_eval=True, quiet=True,
                              settings={SMALL!r}, steps=10**9)
            next(iter(run))
        """)
        done = subprocess.run([sys.executable, "-c", program], env={**os.environ, "PYTHONPATH": str(ROOT / "python")},
                              capture_output=True, text=True, timeout=120)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertTrue((self.runs / "run/checkpoints/latest/DONE").is_file())
        self.train(steps=1)  # Refused while another process has the folder.

    def test_python_that_is_killed_ends_its_run(self):
        # Of a thread that has ended, which is no reason.
        program = textwrap.dedent(f"""
            import threading, time
            import skein_rl as skein
            def train():
                global run
                run = skein.train(env="CartPole-v1", runs_dir={str(self.runs)!r}, name="run", no_eval=True, quiet=True,
                                  settings={SMALL!r}, steps=10**9)
            thread = threading.Thread(target=train)
            thread.start()
            thread.join()
            lines = iter(run)
            for _ in range(3):
                next(lines)
            print("trains", flush=True)
            time.sleep(600)
        """)
        for signum in (signal.SIGTERM, signal.SIGKILL):
            with self.subTest(signum):
                child = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True,
                                         env={**os.environ, "PYTHONPATH": str(ROOT / "python")})
                self.addCleanup(child.stdout.close)
                self.addCleanup(child.kill)
                self.assertEqual(child.stdout.readline(), "trains\n")
                child.send_signal(signum)
                child.wait(60)
                end = time.monotonic() + 30
                while "run" in running(self.runs):
                    self.assertLess(time.monotonic(), end)
                    time.sleep(0.1)
                self.assertTrue((self.runs / "run/checkpoints/latest/DONE").is_file())

    def test_iterating_over_a_run_that_fails_says_so(self):
        run = self.train(steps=10**9)
        with self.assertRaises(skein.SkeinError) as caught:
            for metrics in run:
                if metrics["iteration"] == 1:
                    run.folder.rename(run.folder.with_name("gone"))
        self.assertEqual(caught.exception.code, 74)

    def test_mistakes_have_a_message_and_a_code(self):
        for flags, code, message in (
                ({"num_envs": 3}, 64, "--envs"),
                ({"settings": {"ppo.learning_rate": 1}}, 64, "ppo.lr"),
                ({"env": "CartPol-v1"}, 64, "CartPole-v1"),
                ({"config": "none.yaml"}, 65, "none.yaml")):
            with self.subTest(flags=flags), self.assertRaises(skein.SkeinError) as caught:
                self.train(**flags)
            self.assertIn(message, str(caught.exception))
            self.assertEqual(caught.exception.code, code, caught.exception)
            self.assertNotIn("\n", str(caught.exception))
        with self.assertRaises(skein.SkeinError) as caught:
            skein.load(self.runs)
        self.assertEqual(caught.exception.code, 65)
        os.environ["SKEIN_BIN"] = str(self.runs)
        try:
            with self.assertRaises(skein.SkeinError) as caught:
                skein.version()
        finally:
            os.environ["SKEIN_BIN"] = str(BIN)
        self.assertEqual(caught.exception.code, 69)

    def given(self, **flags):
        """The words after --set of the program that train() starts, by their names; and all of its words."""
        with tempfile.TemporaryDirectory() as folder:
            stand_in = pathlib.Path(folder) / "skein"
            stand_in.write_text('#!/bin/sh\nprintf "%s\\n" "$@" >"${0%/*}/arguments"\nexit 64\n')
            stand_in.chmod(0o700)
            os.environ["SKEIN_BIN"] = folder
            try:
                with self.assertRaises(skein.SkeinError):
                    skein.train(quiet=True, **flags)
            finally:
                os.environ["SKEIN_BIN"] = str(BIN)
            words = (stand_in.parent / "arguments").read_text().splitlines()
        return dict(word.split("=", 1) for word, before in zip(words[1:], words) if before == "--set"), words

    def test_a_shipped_file_by_its_name_alone(self):
        self.assertEqual(skein.CONFIGS, ROOT / "configs")  # The wheel's: wheel_test.py.
        for given, config in (("half_cheetah_ppo.yaml", ROOT / "configs/half_cheetah_ppo.yaml"), ("none.yaml", "none.yaml"),
                              ("here/half_cheetah_ppo.yaml", "here/half_cheetah_ppo.yaml")):
            _, words = self.given(config=given)
            self.assertEqual(words[words.index("--config") + 1], str(config))

    def test_callbacks_are_named_by_what_makes_them(self):
        steps_to = importlib.import_module("skein_env.steps_to")
        for callbacks, name in ((steps_to.StepsTo, "skein_env.steps_to:StepsTo"), ("my_module:make?a=1", "my_module:make?a=1"),
                                (code_blocks.fenced, "code_blocks:fenced"),
                                (importlib.import_module("skein_env").Run.stop, "skein_env.callbacks:Run.stop")):
            _, words = self.given(callbacks=callbacks)
            self.assertEqual(words[words.index("--callbacks") + 1], name)
        self.assertNotIn("--callbacks", self.given(callbacks=None)[1])

        class Local:
            pass

        of_main = type("Mine", (), {"__module__": "__main__", "__qualname__": "Mine"})
        another = type("StepsTo", (), {"__module__": "skein_env.steps_to", "__qualname__": "StepsTo"})
        for callbacks, said in ((of_main, "callbacks: Mine is of __main__, .* put it into a file of its own"),
                                (Local, "callbacks: .*<locals>.Local is .* put it into a file of its own"),
                                (lambda: None, "callbacks: .*<lambda> is .* put it into a file of its own"),
                                (steps_to.StepsTo(1), "callbacks is an object of type skein_env.steps_to.StepsTo; want a class or function"),
                                (another, "callbacks: skein_env.steps_to:StepsTo is another object")):
            with self.subTest(said), self.assertRaisesRegex(skein.SkeinError, f"^{said}[^\n]*$") as caught:
                skein.train(env="CartPole-v1", callbacks=callbacks, quiet=True)
            self.assertEqual(caught.exception.code, 64)

    def test_a_run_calls_back_an_object_that_was_given_as_a_class(self):
        (self.runs / "mine_of_a_file.py").write_text("class Mine:\n    def on_iteration(self, run, metrics):\n"
                                                     "        run.log('seven', 7)\n        run.stop()\n")
        with unittest.mock.patch.dict(os.environ, PYTHONPATH=str(self.runs)), \
                unittest.mock.patch.object(sys, "path", [*sys.path, str(self.runs)]):
            run = self.train(steps=10**9, callbacks=importlib.import_module("mine_of_a_file").Mine)
            self.assertEqual([line["callback"] for line in run], [{"seven": 7}])

    def test_settings_of_numpy(self):
        numbers = {"a": np.float32(1), "b": np.int64(7), "c": np.bool_(True), "d": np.arange(3), "e": [np.float64(0.5), (1, 2)],
                   "f": np.str_("text"), "g": pathlib.Path("/a/b"), "h": {"x": np.uint8(3), "y": None}, "i": "[1, 2]", "j": np.array(2.5)}
        settings, words = self.given(settings=numbers, seed=np.int64(3), steps=np.float32(1e6), no_eval=np.bool_(True),
                                     no_such=np.bool_(False))
        self.assertEqual(settings, {"a": "1.0", "b": "7", "c": "true", "d": "[0, 1, 2]", "e": "[0.5, [1, 2]]", "f": "text",
                                    "g": "/a/b", "h": '{"x": 3, "y": null}', "i": "[1, 2]", "j": "2.5"})
        self.assertEqual([words[words.index(flag) + 1] for flag in ("--seed", "--steps")], ["3", "1000000"])
        self.assertIn("--no-eval", words)
        self.assertFalse({"True", "False", "--no-such"} & set(words))

    def test_what_can_be_no_setting_is_named_with_its_type(self):
        for value, said in ((decimal.Decimal("0.1"), "decimal.Decimal; want a number"), ({1, 2}, "set; want"),
                            ([1, object()], "list with object in it; want"), (np.complex64(1j), "numpy.complex64; want"),
                            (np.array([1j]), "numpy.ndarray; want"), (1j, "complex; want"), ({(1, 2): 3}, "dict (keys must be ")):
            with self.subTest(value), self.assertRaises(skein.SkeinError) as caught:
                skein.train(env="CartPole-v1", settings={"ppo.lr": value}, quiet=True)
            self.assertEqual(caught.exception.code, 64)
            self.assertTrue(str(caught.exception).startswith(f"settings['ppo.lr'] is of type {said}"), caught.exception)

    def test_python_environments_run_in_this_python(self):
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            (folder / "skein").write_text('#!/bin/sh\necho "$SKEIN_PYTHON" "$@" >"${0%/*}/called"\nexit 64\n')
            (folder / "skein").chmod(0o700)
            os.environ["SKEIN_BIN"] = name
            before = os.environ.pop("SKEIN_PYTHON", None)
            try:
                for python in (sys.executable, "/another"):
                    with self.assertRaises(skein.SkeinError):
                        skein.train(env="python:a:make", quiet=True)
                    self.assertEqual((folder / "called").read_text().split()[0], python)
                    os.environ["SKEIN_PYTHON"] = "/another"
            finally:
                os.environ["SKEIN_BIN"] = str(BIN)
                os.environ.pop("SKEIN_PYTHON")
                if before is not None:
                    os.environ["SKEIN_PYTHON"] = before

    def test_damaged_files_are_named(self):
        run = self.train(steps=512)
        run.wait()
        for name in ("manifest.json", "model.safetensors"):
            file = run.folder / "checkpoints/latest" / name
            whole = file.read_bytes()
            for damaged in (b"", whole[:9], whole[:len(whole) // 2]):
                file.write_bytes(damaged)
                with self.assertRaises(skein.SkeinError) as caught:
                    run.policy()
                self.assertEqual(caught.exception.code, 65)
            file.write_bytes(whole)
        run.policy()

    def test_the_program_of_the_page_runs(self):
        """docs/python.md, as it stands there."""
        (program,) = [text for text in code_blocks.fenced("docs/python.md", "python") if "skein.train(" in text
                      and "run.policy()" in text]
        done = subprocess.run([sys.executable, "-c", program], env={**os.environ, "PYTHONPATH": str(ROOT / "python")},
                              cwd=self.runs, capture_output=True, text=True, timeout=300)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertRegex(done.stdout, r"(?s)4096 .*\n.*\n")


class Types(unittest.TestCase):
    def test_mypy_finds_nothing(self):
        with tempfile.TemporaryDirectory() as cache:
            done = subprocess.run([TOOLS / "mypy", "--strict", "--cache-dir", cache, ROOT / "python" / "skein_rl",
                                   ROOT / "python" / "skein_env"],
                                  capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stdout)

    def test_programs_know_this_interpreter(self):
        with tempfile.TemporaryDirectory() as folder:
            stand_in = pathlib.Path(folder) / "skein"
            stand_in.write_text("#!/bin/sh\necho \"$SKEIN_PYTHON\"\n")
            stand_in.chmod(0o755)
            call = [sys.executable, "-c", "import sys; sys.argv[0] = 'skein'; from skein_rl.programs import main; main()"]
            variables = {**os.environ, "SKEIN_BIN": folder, "PYTHONPATH": str(ROOT / "python")}
            variables.pop("SKEIN_PYTHON", None)
            for given, expected in (({}, sys.executable), ({"SKEIN_PYTHON": "/another"}, "/another")):
                done = subprocess.run(call, env={**variables, **given}, capture_output=True, text=True)
                self.assertEqual(done.stdout.strip(), expected, done.stderr)

    def test_version_is_the_programs(self):
        version = re.search(r"project\(skein VERSION (\S+)", (ROOT / "CMakeLists.txt").read_text())[1]
        self.assertIn(f"skein {version}\n", skein.version())
        # What cannot read it from there says the same.
        for file, text in (("deploy/Dockerfile", f"ARG VERSION={version}"),
                           ("deploy/kubernetes/helm/skein/Chart.yaml", f"appVersion: {version}"),
                           ("python/skein_env/version.py", f'__version__ = "{version}"')):
            self.assertIn(text, (ROOT / file).read_text(), file)


if __name__ == "__main__":
    unittest.main(verbosity=2)
