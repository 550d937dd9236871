#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs exported policies where they are meant to run: in onnxruntime, in NumPy, and in the real Gymnasium.

What they must answer comes from export-reference (tests/export), which plays each policy by Skein's own environments'
transforms and policies. NumPy reads the safetensors as docs/policy-format.md says, and must answer as ONNX does.
"""

import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

from fetched_python import ROOT, run_inside

BUILD = pathlib.Path(os.environ.get("SKEIN_BIN", ROOT / "build" / "release"))
SKEIN = BUILD / "skein"
STEPS = 10000


def run(*command, **environment):
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True, env={**os.environ, **environment})
    if done.returncode != 0:
        raise AssertionError(f"{command} ended with {done.returncode}: {done.stderr}")
    return done.stdout


def played(session, observations, resets, noise, discrete):
    """Heads, actions and sampled actions, step after step with the state handed on."""
    inputs = {one.name for one in session.get_inputs()}
    outputs = [one.name for one in session.get_outputs()]
    states = [one.shape[1] for one in session.get_inputs() if one.name == "state"]
    state = np.full((1, states[0] if states else 0), 1e9, np.float32)
    heads, actions, samples = [], [], []
    for step in range(len(observations)):
        feed = {
            "observation": observations[step : step + 1],
            "state": state,
            "reset": resets[step : step + 1] == 1,
            "noise": noise[step] if discrete else noise[step : step + 1],
        }
        result = dict(zip(outputs, session.run(None, {name: feed[name] for name in inputs})))
        heads.append(result["head"][0])
        actions.append(result["action"].reshape(-1))
        samples.append(result["sampled_action"].reshape(-1))
        state = result.get("next_state", state)
    return np.stack(heads), np.stack(actions), np.stack(samples)


def read_safetensors(file):
    """Tensors by name, and the metadata."""
    data = file.read_bytes()
    begin = 8 + int.from_bytes(data[:8], "little")
    header = json.loads(data[8:begin])
    metadata = header.pop("__metadata__")
    tensors = {}
    for name, one in header.items():
        first, last = one["data_offsets"]
        numbers = np.frombuffer(data[begin + first : begin + last], {"F32": "<f4", "F64": "<f8"}[one["dtype"]])
        tensors[name] = numbers.reshape(one["shape"])
    return tensors, metadata


def acted(tensors, metadata, observations):
    """Heads and deterministic actions of a policy without memory and transforms, by docs/policy-format.md."""
    activation = {"tanh": np.tanh, "relu": lambda x: np.maximum(x, 0)}[metadata["skein.activation"]]
    x = (observations - tensors["obs_normalizer.mean"]) * tensors["obs_normalizer.inv_std"]
    x = np.clip(x, -10, 10)
    names = [f"{where}.{i}" for where in ("policy", "trunk") for i in range(9)]
    for layer in (name for name in names if name + ".weight" in tensors):
        x = activation(x @ tensors[layer + ".weight"].T + tensors[layer + ".bias"])
    heads = x @ tensors["policy.head.weight"].T + tensors["policy.head.bias"]
    spec = json.loads(metadata["skein.spec"])
    if spec["discrete"]:
        return heads, np.argmax(heads, axis=1)
    return heads, np.clip(heads, spec["action_low"], spec["action_high"]) if spec["clip_actions"] else heads


class Hosted:
    """A policy that was trained in Gymnasium's own environment, its evaluation there, and the same policy in onnxruntime."""

    EPISODES = 10

    def __init__(self, scratch, env, recipe, *how):
        name, recorded = "hosted-" + env, pathlib.Path(scratch) / "recorded"
        (recorded / "training").mkdir(parents=True)
        python = ("--set", f"env.external.python={sys.executable}")
        path = str(ROOT / "tests/python")
        run(SKEIN, "train", "--config", ROOT / "configs" / recipe, "--env", f"python:recorded_env:make?id={env}", *python, *how,
            "--runs-dir", scratch, "--name", name, "--no-eval", PYTHONPATH=path, RECORDED=str(recorded / "training"))
        checkpoint, file = pathlib.Path(scratch) / name, pathlib.Path(scratch) / "policy.onnx"
        self.evaluation = json.loads(run(SKEIN, "eval", "--checkpoint", checkpoint, "--episodes", self.EPISODES, "--json",
                                         *python, PYTHONPATH=path, RECORDED=str(recorded)))
        run(SKEIN, "export", "--checkpoint", checkpoint, "--format", "onnx", "--out", file, PYTHONPATH=path)
        self.session = onnxruntime.InferenceSession(file, providers=["CPUExecutionProvider"])
        self.noise = np.zeros((1, json.loads(self.session.get_modelmeta().custom_metadata_map["skein.spec"])["action_size"]),
                              np.float32)
        self.episodes = [np.load(recorded / f"{i}.npz") for i in range(self.EPISODES)]
        self.make = lambda: gymnasium.make(env)

    def act(self, observation):
        row = np.asarray(observation, np.float32)[None]
        return self.session.run(["action"], {"observation": row, "noise": self.noise})[0][0]

    def play(self, episode, actions=None):
        """Observations and rewards of that episode, by its seed, with the exported policy's actions or the given ones."""
        env = self.make()
        observation, _ = env.reset(seed=int(episode["seed"]))
        observations, rewards, done = [], [], False
        while not done:
            observations.append(observation)
            action = self.act(observation) if actions is None else actions[len(rewards)]
            observation, reward, terminated, truncated, _ = env.step(action)
            rewards.append(reward)
            done = terminated or truncated
        return np.array(observations), np.array(rewards)


class Export(unittest.TestCase):
    def compare(self, name, got, want, limit=1e-6):
        error = np.abs(got.astype(np.float64) - want.reshape(got.shape)) / np.maximum(1, np.abs(want.reshape(got.shape)))
        self.assertLessEqual(float(error.max()), limit, name)

    def compare_choices(self, name, got, want, logits, noise=None, limit=2e-6):
        """Choices are the same but where those decide that may be off by half of `limit`: two logits, or where `noise` chose by
        cumulated probabilities, one of these and its like."""
        got, want = got.reshape(-1).astype(int), want.reshape(-1).astype(int)
        for step in np.flatnonzero(got != want):
            both = sorted((got[step], want[step]))
            row = logits[step].astype(np.float64)
            if noise is None:
                gap = row[want[step]] - row[got[step]]
            else:
                sums = np.cumsum(np.exp(row - row.max())) / np.exp(row - row.max()).sum()
                gap = np.abs(sums[both[0] : both[1]] - noise.reshape(-1)[step]).max()
            self.assertLessEqual(float(gap), limit, f"{name}, step {step}: {both}")

    def test_onnxruntime_acts_as_skein_does(self):
        with tempfile.TemporaryDirectory() as scratch:
            names = run(BUILD / "export-reference", scratch).split()
            self.assertGreaterEqual(len(names), 7)
            for name in names:
                folder = pathlib.Path(scratch) / name
                files = [folder / "policy.onnx", folder / "again.onnx"]
                for file in files:
                    told = json.loads(run(SKEIN, "export", "--checkpoint", folder, "--format", "onnx", "--out", file, "--json"))
                self.assertEqual(files[0].read_bytes(), files[1].read_bytes())
                session = onnxruntime.InferenceSession(files[0], providers=["CPUExecutionProvider"])
                metadata = session.get_modelmeta().custom_metadata_map
                self.assertEqual(metadata["skein.digest"], told["digest"])
                discrete = json.loads(metadata["skein.spec"])["discrete"]
                numbers = lambda what, dtype=np.float32: np.fromfile(folder / what, dtype).reshape(STEPS, -1)  # noqa: E731
                got = played(session, numbers("observations"), numbers("resets", np.uint8)[:, 0], numbers("noise"), discrete)
                self.compare(name + ": heads", got[0], numbers("heads"))
                if discrete:
                    self.compare_choices(name + ": actions", got[1], numbers("actions"), numbers("heads"))
                    self.compare_choices(name + ": samples", got[2], numbers("samples"), numbers("heads"), numbers("noise"))
                else:
                    self.compare(name + ": actions", got[1], numbers("actions"))
                    self.compare(name + ": samples", got[2], numbers("samples"))

    def test_rows_do_not_depend_on_each_other(self):
        with tempfile.TemporaryDirectory() as scratch:
            run(BUILD / "export-reference", scratch)
            folder = pathlib.Path(scratch) / "tanh"
            run(SKEIN, "export", "--checkpoint", folder, "--format", "onnx", "--out", folder / "policy.onnx")
            session = onnxruntime.InferenceSession(folder / "policy.onnx", providers=["CPUExecutionProvider"])
            observations = np.fromfile(folder / "observations", np.float32).reshape(STEPS, -1)
            heads = session.run(["head"], {"observation": observations, "noise": np.zeros((STEPS, 6), np.float32)})[0]
            self.compare("all rows at once", heads, np.fromfile(folder / "heads", np.float32))

    def test_numpy_acts_by_the_documented_format_as_onnx_does(self):
        rows = 100
        with tempfile.TemporaryDirectory() as scratch:
            run(BUILD / "export-reference", scratch)
            for name, layers in (("tanh", 2), ("relu_choices", 1), ("unclipped", 1), ("linear", 0)):
                folder = pathlib.Path(scratch) / name
                for form in ("onnx", "safetensors"):
                    run(SKEIN, "export", "--checkpoint", folder, "--format", form, "--out", folder / f"policy.{form}")
                tensors, metadata = read_safetensors(folder / "policy.safetensors")
                hidden = [one for one in tensors if re.fullmatch(r"(policy|trunk)\.\d\.weight", one)]
                self.assertEqual(len(hidden), layers, name)
                self.assertEqual((metadata["skein.memory"], json.loads(metadata["skein.transforms"])), ("none", []))
                discrete = json.loads(metadata["skein.spec"])["discrete"]
                observations = np.fromfile(folder / "observations", np.float32).reshape(STEPS, -1)[:rows]
                session = onnxruntime.InferenceSession(folder / "policy.onnx", providers=["CPUExecutionProvider"])
                head, action = acted(tensors, metadata, observations)
                noise = np.zeros(rows if discrete else head.shape, np.float32)
                wanted = session.run(["head", "action"], {"observation": observations, "noise": noise})
                self.compare(name + ": heads", head, wanted[0], limit=1e-5)
                if discrete:
                    self.compare_choices(name + ": actions", action, wanted[1], wanted[0], limit=2e-5)
                else:
                    self.compare(name + ": actions", action, wanted[1], limit=1e-5)

    def check_actions_and_returns(self, hosted):
        """What was recorded is what was evaluated, and the exported policy does the same where it sees the same."""
        for episode, evaluated in zip(hosted.episodes, hosted.evaluation["returns"]):
            rewards = episode["rewards"].astype(np.float32)  # As they travel.
            self.assertAlmostEqual(float(rewards.sum(dtype=np.float64)), evaluated, delta=1e-6 * max(1, abs(evaluated)))
            actions = np.stack([hosted.act(observation) for observation in episode["observations"]])
            self.compare("actions along an episode", actions, episode["actions"])
            observations, again = hosted.play(episode, episode["actions"])
            self.assertEqual((observations.tobytes(), again.tobytes()),
                             (episode["observations"].tobytes(), episode["rewards"].tobytes()))

    def test_each_return_in_gymnasium_is_the_evaluations(self):
        # The largest difference seen is 6e-6 of the return.
        for env, recipe in (("Swimmer-v5", "swimmer_ppo.yaml"), ("Pendulum-v1", "pendulum_ppo.yaml")):
            with self.subTest(env), tempfile.TemporaryDirectory() as scratch:
                hosted = Hosted(scratch, env, recipe, "--steps", "30000")
                self.check_actions_and_returns(hosted)
                for episode, evaluated in zip(hosted.episodes, hosted.evaluation["returns"]):
                    self.assertAlmostEqual(hosted.play(episode)[1].sum(), evaluated, delta=1e-4 * max(1, abs(evaluated)))

    def test_a_cheetah_is_the_checkpoints_as_long_as_rounding_allows(self):
        # Half a cheetah is chaotic: rounding of 5e-7 in the actions grows by a factor of about 2 a step, and after 30 steps the
        # two are elsewhere. Seen after ten steps: 4e-4; with noise of 5e-7 on the same policy's actions: 1.3e-3.
        with tempfile.TemporaryDirectory() as scratch:
            run(SKEIN, "train", "--config", ROOT / "configs" / "half_cheetah_ppo.yaml", "--steps", "300000", "--runs-dir",
                scratch, "--name", "native", "--no-eval")
            hosted = Hosted(scratch, "HalfCheetah-v5", "half_cheetah_ppo.yaml", "--init-from", scratch + "/native", "--steps", "1")
            self.check_actions_and_returns(hosted)
        ours, returns = hosted.evaluation, []
        self.assertGreater(ours["return_mean"], 1000)
        for episode in hosted.episodes:
            observations, rewards = hosted.play(episode)
            self.assertLess(np.abs(observations[:11] - episode["observations"][:11]).max(), 1e-2)
            returns.append(rewards.sum())
        error = ((ours["return_std"] ** 2 + np.std(returns) ** 2) / len(returns)) ** 0.5
        self.assertLess(abs(ours["return_mean"] - np.mean(returns)), 5 * error + 0.01 * ours["return_mean"])

    def test_the_mean_return_in_gymnasium_is_that_of_a_native_checkpoint(self):
        with tempfile.TemporaryDirectory() as scratch:
            run(SKEIN, "train", "--config", ROOT / "configs" / "half_cheetah_ppo.yaml", "--steps", "300000",
                "--runs-dir", scratch, "--name", "run", "--no-eval")
            checkpoint, file = pathlib.Path(scratch) / "run", pathlib.Path(scratch) / "cheetah.onnx"
            ours = json.loads(run(SKEIN, "eval", "--checkpoint", checkpoint, "--episodes", "20", "--json"))
            run(SKEIN, "export", "--checkpoint", checkpoint, "--format", "onnx", "--out", file)
            script = ROOT / "scripts" / "play_onnx.py"
            printed = run(sys.executable, script, file, "--episodes", "20", "--seed", "1")
        mean, std = map(float, re.search(r": return (\S+) \+- (\S+) in 20 episodes", printed).groups())
        self.assertGreater(ours["return_mean"], 1000)
        error = ((ours["return_std"] ** 2 + std**2) / 20) ** 0.5
        self.assertLess(abs(ours["return_mean"] - mean), 5 * error + 0.01 * ours["return_mean"])


if __name__ == "__main__":
    run_inside("onnx")
    import gymnasium
    import numpy as np
    import onnxruntime

    unittest.main(verbosity=2)
