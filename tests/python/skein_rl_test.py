#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The Python package skein_rl with the real programs: runs that are followed and stopped, their policies, mistakes.

Exits with 77, skipped, where NumPy and mypy cannot be had (scripts/fetch_python.sh).
"""

import decimal
import json
import math
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

    def test_settings_of_numpy(self):
        numbers = {"a": np.float32(1), "b": np.int64(7), "c": np.bool_(True), "d": np.arange(3), "e": [np.float64(0.5), (1, 2)],
                   "f": np.str_("text"), "g": pathlib.Path("/a/b"), "h": {"x": np.uint8(3), "y": None}, "i": "[1, 2]", "j": np.array(2.5)}
        settings, words = self.given(settings=numbers, seed=np.int64(3), steps=np.float32(1e6), no_eval=np.bool_(True),
                                     no_such=np.bool_(False))
        self.assertEqual(settings, {"a": "1.0", "b": "7", "c": "true", "d": "[0, 1, 2]", "e": "[0.5, [1, 2]]", "f": "text",
                                    "g": "/a/b", "h": '{"x": 3, "y": null}', "i": "[1, 2]", "j": "2.5"})
        self.assertEqual([words[words.index(flag) + 1] for flag in ("--seed", "--steps")], ["3", "1000000.0"])
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
            (folder / "skein").write_text('#!/bin/sh\necho "$@" >"${0%/*}/arguments"\nexit 64\n')
            (folder / "skein").chmod(0o700)
            (folder / "own.yaml").write_text("env:\n  id: python:a.b:make\n")
            (folder / "flow.yaml").write_text("env: {id: 'python:a.b:make'}\n")
            (folder / "other.yaml").write_text("env:\n  id: python:a.b:make\n  external:\n    python: python3.9\n")
            (folder / "native.yaml").write_text("env: {id: CartPole-v1}\n")
            os.environ["SKEIN_BIN"] = name
            try:
                for flags, mine in (({"env": "python:a:make"}, True), ({"env": "CartPole-v1"}, False), ({}, False),
                                    ({"settings": {"env.id": "python:a:make"}}, True),
                                    ({"env": "python:a:make", "settings": {"env.external.python": "x"}}, False),
                                    ({"config": folder / "own.yaml"}, True), ({"config": folder / "flow.yaml"}, True),
                                    ({"config": folder / "own.yaml", "env": "CartPole-v1"}, False),
                                    ({"config": folder / "other.yaml"}, False), ({"config": folder / "native.yaml"}, False)):
                    with self.subTest(flags=flags), self.assertRaises(skein.SkeinError):
                        skein.train(quiet=True, **flags)
                    self.assertEqual(f"env.external.python={sys.executable}" in (folder / "arguments").read_text(), mine, flags)
            finally:
                os.environ["SKEIN_BIN"] = str(BIN)

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


def sigmoid(x):
    return 1 / (1 + math.exp(-x))


class Oracle:
    """One row, number by number, in double precision, from the formulas of docs/policy-format.md."""

    def __init__(self, tensors, memory, activation):
        self.tensors, self.memory, self.activation = tensors, memory, activation
        self.state = None

    def product(self, weight, bias, x):
        w, b = self.tensors[weight], self.tensors[bias]
        return [b[i] + sum(w[i][j] * x[j] for j in range(len(x))) for i in range(len(b))]

    def act(self, observation):
        t = self.tensors
        x = [min(10, max(-10, (o - m) / math.sqrt(v + 1e-8))) for o, m, v in
             zip(observation, t["obs_normalizer.mean"], t["obs_normalizer.variance"])]
        size = len(t["memory.weight_hh"][0])
        h, c = self.state or ([0.0] * size, [0.0] * size)
        a = self.product("memory.weight_ih", "memory.bias_ih", x)
        b = self.product("memory.weight_hh", "memory.bias_hh", h)
        if self.memory == "gru":
            new_h = []
            for k in range(size):
                r, z = sigmoid(a[k] + b[k]), sigmoid(a[size + k] + b[size + k])
                n = math.tanh(a[2 * size + k] + r * b[2 * size + k])
                new_h.append((1 - z) * n + z * h[k])
        else:
            gates = [a[k] + b[k] for k in range(4 * size)]
            c = [sigmoid(gates[size + k]) * c[k] + sigmoid(gates[k]) * math.tanh(gates[2 * size + k])
                 for k in range(size)]
            new_h = [sigmoid(gates[3 * size + k]) * math.tanh(c[k]) for k in range(size)]
        self.state = (new_h, c)
        x = new_h
        layer = 0
        while f"policy.{layer}.weight" in t:
            x = [self.activation(v) for v in self.product(f"policy.{layer}.weight", f"policy.{layer}.bias", x)]
            layer += 1
        return self.product("policy.head.weight", "policy.head.bias", x)


class Policies(unittest.TestCase):
    def trained(self, *settings, env="Pendulum-v1"):
        """The folder of a checkpoint that real programs have made."""
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        given = {**SMALL, **dict(setting.split("=", 1) for setting in settings)}
        run = skein.train(env=env, steps=1024, runs_dir=folder.name, name="run", no_eval=True, quiet=True,
                          settings=given)
        run.wait()
        return run.folder

    def test_an_exported_file_acts_as_its_checkpoint(self):
        folder = self.trained("model.memory=gru")
        file = folder / "policy.safetensors"
        subprocess.run([BIN / "skein", "export", "--checkpoint", folder, "--format", "safetensors", "--out", file], check=True,
                       stdout=subprocess.DEVNULL)
        ours, exported = skein.load(folder), skein.load(file)
        self.assertEqual((exported.env_id, exported.env_steps, exported.digest), (ours.env_id, ours.env_steps, ours.digest))
        for observation in np.random.default_rng(3).normal(size=(20, 2, ours.obs_size)).astype(np.float32):
            np.testing.assert_allclose(exported(observation), ours(observation), rtol=1e-5, atol=1e-6)
        for damaged in (b"", b"no tensors", b"\2" + bytes(7) + b"[]"):
            file.write_bytes(damaged)
            with self.assertRaises(skein.SkeinError) as caught:
                skein.load(file)
            self.assertEqual(caught.exception.code, 65)

    def test_columns_that_are_hidden_are_left_out_of_whole_observations_only(self):
        folder = self.trained("env.hide=[1]")
        file = folder / "policy.safetensors"
        subprocess.run([BIN / "skein", "export", "--checkpoint", folder, "--format", "safetensors", "--out", file], check=True,
                       stdout=subprocess.DEVNULL)
        for policy in (skein.load(folder), skein.load(file)):
            self.assertEqual(policy.obs_size, 2)
            for row in (np.array([0.3, 5, -0.2]), np.zeros((4, 3))):
                other = row.copy()
                other[..., 1] = 9  # Hidden.
                self.assertTrue(np.array_equal(policy(row), policy(other)))
            for size in (0, 1, 2, 4, 7):
                with self.assertRaisesRegex(ValueError, rf"Pendulum-v1 is 3 numbers, of which its policy sees 2, got shape \({size},\)"):
                    policy(np.zeros(size))
            with self.assertRaisesRegex(ValueError, "3 numbers"):
                policy(0.0)
        # Of a file that does not say of how many.
        manifest = folder / "checkpoints/latest/manifest.json"
        manifest.write_text(re.sub(r',\s*"of":\s*3', "", manifest.read_text()))
        older = skein.load(folder)
        self.assertTrue(np.array_equal(older(np.ones(3)), skein.load(file)(np.ones(3))))
        with self.assertRaisesRegex(ValueError, "is more than 2 numbers"):
            older(np.zeros(2))

    @staticmethod
    def give_memory(folder, memory, size, hidden):
        """Puts a memory of random weights before the hidden layers of a checkpoint."""
        checkpoint = folder / "checkpoints/latest"
        tensors = skein.policy.read_safetensors(checkpoint / "model.safetensors")
        gates, observations = {"gru": 3, "lstm": 4}[memory] * size, tensors["policy.0.weight"].shape[1]
        rng = np.random.default_rng(7)
        shapes = {"memory.weight_ih": (gates, observations), "memory.weight_hh": (gates, size),
                  "memory.bias_ih": (gates,), "memory.bias_hh": (gates,), "policy.0.weight": (hidden, size)}
        tensors = {**tensors, **{name: rng.normal(size=shape).astype(np.float32) for name, shape in shapes.items()}}
        header, body = {}, b""
        for name, tensor in tensors.items():
            begin = len(body)
            body += tensor.tobytes()
            header[name] = {"dtype": {"float32": "F32", "float64": "F64"}[tensor.dtype.name], "shape": tensor.shape,
                            "data_offsets": [begin, len(body)]}
        text = json.dumps(header).encode()
        (checkpoint / "model.safetensors").write_bytes(len(text).to_bytes(8, "little") + text + body)
        manifest = (checkpoint / "manifest.json").read_text()
        (checkpoint / "manifest.json").write_text(manifest.replace("memory: none", f"memory: {memory}"))

    def test_memories_are_the_formulas(self):
        for memory in ("gru", "lstm"):
            with self.subTest(memory=memory):
                folder = self.trained("model.hidden=[7, 6]", "model.activation=elu")
                self.give_memory(folder, memory, size=5, hidden=7)
                policy = skein.load(folder)
                self.assertTrue(policy.has_memory)
                tensors = skein.policy.read_safetensors(folder / "checkpoints/latest/model.safetensors")
                oracles = [Oracle(tensors, memory, lambda v: v if v > 0 else math.expm1(v)) for _ in range(2)]
                rng = np.random.default_rng(1)
                for step in range(30):
                    if step == 12:  # A new episode in the second row only.
                        policy.reset([False, True])
                        oracles[1].state = None
                    rows = rng.normal(size=(2, policy.obs_size)) * 3
                    rows = rows.astype(np.float32)
                    want = [oracle.act(row) for oracle, row in zip(oracles, rows.tolist())]
                    np.testing.assert_allclose(policy(rows), want, rtol=1e-4, atol=1e-5)
                with self.assertRaisesRegex(ValueError, "call reset"):
                    policy(rows[0])
                policy.reset()
                self.assertEqual(policy(rows[0]).shape, (policy.action_size,))

    def test_drawn_actions_have_the_distribution(self):
        policy = skein.load(self.trained())
        observation = np.ones(policy.obs_size)
        rng = np.random.default_rng(2)
        drawn = np.array([policy(observation, deterministic=False, rng=rng) for _ in range(4000)])
        # The mean of 4000 is off by std / 63; five of those.
        std = math.exp(float(policy._tensors["log_std"][0]))
        self.assertLess(abs(drawn.mean() - policy(observation)[0]), 5 * std / 63)
        self.assertLess(abs(drawn.std() - std), 0.1 * std)
        choices = skein.load(self.trained(env="CartPole-v1"))
        self.assertTrue(choices.discrete)
        rows = np.tile(np.ones(choices.obs_size), (4000, 1))
        logits = choices.head(rows[0]).astype(float)
        want = np.exp(logits) / np.exp(logits).sum()
        drawn = choices(rows, deterministic=False, rng=rng)
        self.assertLess(abs((drawn == 1).mean() - want[1]), 5 * 0.5 / 63)
        self.assertEqual(int(choices(rows[0])), int(np.argmax(logits)))
        with self.assertRaisesRegex(ValueError, "4 numbers"):
            choices([1, 2, 3])


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
