#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Policies of the Python package skein_rl, made by the real programs, beside the formulas of their format.

Exits with 77, skipped, where NumPy cannot be had (scripts/fetch_python.sh).
"""

import json
import math
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

from fetched_python import ROOT, run_inside

BIN = pathlib.Path(os.environ.get("SKEIN_BIN", ROOT / "build" / "release"))
if __name__ == "__main__":
    run_inside("wheel")  # NumPy.
    os.environ["SKEIN_BIN"] = str(BIN)
    sys.path[:0] = [str(ROOT / "python")]

import numpy as np  # noqa: E402
import skein_rl as skein  # noqa: E402

SMALL = {"rollout.num_envs": 8, "rollout.envs_per_runner": 8, "rollout.steps_per_iteration": 512,
         "ppo.minibatch_size": 256, "checkpoint.interval_steps": 512}


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

    def test_transforms_that_the_class_does_not_apply_are_refused(self):
        for transform in ("squash", "scale", "{stack: 2}"):
            folder = self.trained(f"env.transforms=[{transform}]")
            with self.assertRaisesRegex(skein.SkeinError, "env.transforms " + transform.strip("{: 2}")) as caught:
                skein.load(folder)
            self.assertEqual(caught.exception.code, 65)

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


if __name__ == "__main__":
    unittest.main(verbosity=2)
