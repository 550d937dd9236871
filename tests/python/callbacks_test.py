#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""skein_env's callbacks alone, by the protocol that the learner speaks. Needs neither NumPy nor Skein's programs."""

import json
import os
import pathlib
import socket
import subprocess
import sys
import tempfile
import textwrap
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "python"))

import skein_env  # noqa: E402
from skein_env.callbacks import methods_of  # noqa: E402

BEGIN = {"begin": {"config": {"ppo.lr": 0.1}, "folder": "/tmp/run", "env_steps": 0, "iteration": 0}}
LINE = {"iteration": {"iteration": 1, "env_steps": 512, "episode_return_mean": None}}
MODULE = textwrap.dedent("""\
    import skein_env


    class Mine(skein_env.Callback):
        def __init__(self, what=""):
            self.what = what

        def on_iteration(self, run, metrics):
            print("this is no answer")
            exec(self.what)


    def number():
        return 3
    """)


class Process:
    """skein_env.callback_process, as a learner has it."""

    def __init__(self, folder, name):
        here, there = socket.socketpair()
        self.child = subprocess.Popen([sys.executable, "-m", "skein_env.callback_process", name], stdin=there, stdout=there,
                                      stderr=subprocess.DEVNULL, cwd=folder,
                                      env={**os.environ, "PYTHONPATH": str(ROOT / "python")})
        there.close()
        self.socket = here
        self.answers = here.makefile("r")

    def ask(self, request):
        self.socket.sendall((json.dumps(request) + "\n").encode())
        return json.loads(self.answers.readline())

    def end(self):
        self.answers.close()
        self.socket.close()
        return self.child.wait(30)


class Callbacks(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        (pathlib.Path(self.folder) / "mine.py").write_text(MODULE)

    def started(self, name="mine:Mine", **arguments):
        process = Process(self.folder, name + "".join(f"?{key}={value}" for key, value in arguments.items()))
        self.addCleanup(process.end)
        return process

    def test_numpy_is_not_needed(self):
        code = "import sys; sys.modules['numpy'] = None; import skein_env; print(skein_env.Callback, skein_env.Run)"
        subprocess.run([sys.executable, "-c", code], check=True, capture_output=True,
                       env={**os.environ, "PYTHONPATH": str(ROOT / "python")})
        with self.assertRaises(AttributeError):
            skein_env.no_such_name

    def test_only_what_is_overridden_is_called(self):
        class Some(skein_env.Callback):
            def on_checkpoint(self, run, checkpoint):
                pass

        class Duck:
            def on_run_end(self, run, state):
                pass

        self.assertEqual(methods_of(skein_env.Callback()), [])
        self.assertEqual(methods_of(Some()), ["on_checkpoint"])
        self.assertEqual(methods_of(Duck()), ["on_run_end"])

    def test_an_answer_has_what_was_done(self):
        process = self.started(what="run.log('a',2);run.log('b',float('inf'));run.set('ppo.lr',0.5);run.stop('so')")
        self.assertEqual(process.ask(BEGIN), {"has": ["on_iteration"]})
        answer = process.ask(LINE)
        self.assertEqual(answer.pop("set_at"), "<string>:1 in <module>")  # Of what exec runs.
        self.assertEqual(answer, {"metrics": {"a": 2.0, "b": None}, "set": {"ppo.lr": 0.5}, "stop": "so"})
        self.assertEqual(process.end(), 0)

    def test_mistakes_name_file_and_line(self):
        for what, said in (("1/0", "ZeroDivisionError: division by zero"), ("run.log('a b',1)", "a metric's name has"),
                           ("run.log('a','x')", "ValueError: could not convert"),
                           ("run.set('ppo.lr',float('nan'))", "ValueError: Out of range"),
                           ("raise SystemExit(3)", "SystemExit: 3"),
                           ("raise KeyboardInterrupt", "KeyboardInterrupt: "),
                           ("raise ValueError(chr(0xd800))", "ValueError: ?"),
                           ("list(map(run.log,map(str,range(65)),range(65)))", "one more than the 64 metrics")):
            with self.subTest(what):
                process = self.started(what=what)
                process.ask(BEGIN)
                error = process.ask(LINE)["error"]
                self.assertIn(said, error)
                self.assertIn("mine.py:10 in on_iteration", error)
                self.assertNotIn("/json/", error)  # Nothing of Python's own library.

    def test_numbers_of_numpy_are_settings(self):
        class Number:
            def tolist(self):
                return 0.25

        run = skein_env.Run({}, "/tmp", 0, 0)
        run._call = "iteration"
        run.set("ppo.lr", Number())
        self.assertEqual(run._answer["set"], {"ppo.lr": 0.25})

    def test_coroutines_are_refused(self):
        (pathlib.Path(self.folder) / "late.py").write_text("class Late:\n    async def on_iteration(self, run, metrics):\n"
                                                           "        pass\n")
        error = self.started("late:Late").ask(BEGIN)["error"]
        self.assertIn("late:Late: on_iteration is an `async def`", error)
        self.assertIn("late.py:2 defines Late.on_iteration", error)

    def test_a_method_that_takes_something_else_is_named_with_its_place(self):
        (pathlib.Path(self.folder) / "other.py").write_text("class Other:\n    def on_iteration(self, run):\n        pass\n")
        process = self.started("other:Other")
        process.ask(BEGIN)
        error = process.ask(LINE)["error"]
        self.assertIn("takes 2 positional arguments but 3 were given", error)
        self.assertIn("other.py:2 defines Other.on_iteration", error)

    def test_a_stop_needs_no_reason(self):
        for what in ("run.stop()", "run.stop('')"):
            process = self.started(what=what)
            process.ask(BEGIN)
            self.assertEqual(process.ask(LINE), {"stop": "no reason given"})

    def test_log_and_set_have_their_place(self):
        run = skein_env.Run({}, "/tmp", 0, 0)
        for call in (lambda: run.log("a", 1), lambda: run.set("ppo.lr", 1)):
            with self.assertRaises(RuntimeError):
                call()

    def test_steps_to_a_return_over_two_sessions(self):
        with tempfile.TemporaryDirectory() as folder:
            log = pathlib.Path(folder) / "metrics.jsonl"
            lines = [{"iteration": i, "env_steps": 100 * i, "episode_return_mean": mean}
                     for i, mean in enumerate((None, None, -50, 0, 60, 40))]

            def logged(first, last):
                process = Process(folder, "skein_env.steps_to:StepsTo?target=50")
                begin = {"config": {}, "folder": folder, "env_steps": 100 * (first - 1), "iteration": first - 1}
                self.assertEqual(process.ask({"begin": begin})["has"], ["on_run_begin", "on_iteration"])
                answers = [process.ask({"iteration": line}) for line in lines[first:last + 1]]
                self.assertEqual(process.end(), 0)
                return [answer.get("metrics", {}).get("steps_to_return") for answer in answers]

            # No episode has ended; at most a hundred times the steps; half of the way from -50 to 50; it is there.
            self.assertEqual(logged(1, 4), [None, 20000, 600, 400])
            log.write_text("".join(json.dumps(line) + "\n" for line in lines[:5]))
            self.assertEqual(logged(5, 5), [400])
            # A session that goes on from an older checkpoint has not been there.
            self.assertEqual(logged(3, 5), [600, 400, 400])

    def test_what_cannot_be_made_is_said(self):
        for name, said in (("mine:number", "an object of type int, which has none of on_run_begin"),
                           ("mine:none", "has no function 'none'"), ("nothing:at_all", "no module 'nothing'")):
            self.assertIn(said, self.started(name).ask(BEGIN)["error"])

    def test_it_ends_with_the_learner(self):
        process = self.started()
        process.ask(BEGIN)
        self.assertEqual(process.end(), 0)


if __name__ == "__main__":
    unittest.main()
