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

    def test_a_checkpoint_says_the_bounds_to_which_actions_are_clipped(self):
        def spec(folder):
            return json.loads((folder / "checkpoints/latest/manifest.json").read_text()).get("spec")

        bounds = {"action_low": [-2], "action_high": [2]}
        self.assertEqual(spec(self.trained("env.transforms=[squash]")), bounds)
        self.assertIsNone(spec(self.trained(env="CartPole-v1")))
        folder = self.trained("model.policy_head_scale=100")
        self.assertEqual(spec(folder), bounds)
        policy = skein.load(folder)
        observations = np.random.default_rng(3).normal(size=(50, policy.obs_size)).astype(np.float32)
        heads = policy.head(observations)
        self.assertGreater(np.abs(heads).max(), 2)
        np.testing.assert_array_equal(policy(observations), np.clip(heads, -2, 2))

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

    def test_transforms_that_this_release_does_not_know_are_refused(self):
        folder = self.trained("env.transforms=[squash]")
        manifest = folder / "checkpoints/latest/manifest.json"
        manifest.write_text(manifest.read_text().replace('"squash"', '"twist"'))
        with self.assertRaisesRegex(skein.SkeinError, "env.transforms twist, which this release does not know") as caught:
            skein.load(folder)
        self.assertEqual(caught.exception.code, 65)

    def reference(self):
        """Folders of checkpoints, with what Skein's own environments and policies do in them (tests/export), by their names, and
        the exported file of each."""
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        names = subprocess.run([BIN / "export-reference", folder.name], check=True, capture_output=True, text=True).stdout.split()
        for name in names:
            here = pathlib.Path(folder.name) / name
            file = here / "policy.safetensors"
            subprocess.run([BIN / "skein", "export", "--checkpoint", here, "--format", "safetensors", "--out", file], check=True,
                           stdout=subprocess.DEVNULL)
            yield name, here, file

    def test_actions_are_those_of_skein_through_every_transform(self):
        steps, seen = 1500, set()
        for name, folder, file in self.reference():
            metadata = skein.policy._split(file.read_bytes())[0]["__metadata__"]
            transforms, spec = json.loads(metadata["skein.transforms"]), json.loads(metadata["skein.spec"])
            seen.update(*transforms)
            # Of a checkpoint that says what its file says.
            manifest = folder / "checkpoints/latest/manifest.json"
            manifest.write_text(json.dumps({**json.loads(manifest.read_text()), "transforms": transforms, "spec": spec}))
            resets = np.fromfile(folder / "resets", np.uint8)
            observations, heads, actions = (np.fromfile(folder / what, np.float32).reshape(resets.size, -1)[:steps]
                                            for what in ("observations", "heads", "actions"))
            self.assertGreater(resets[:steps].sum(), 20)
            for policy in (skein.load(file), skein.load(folder)):
                got = []
                for observation, begins in zip(observations, resets):
                    if begins:
                        policy.reset()
                    got.append(policy(observation))
                if policy.discrete:  # But where two logits are as good as equal.
                    chosen = np.take_along_axis(heads, np.array(got)[:, None], axis=1)
                    self.assertLess(float((heads.max(axis=1, keepdims=True) - chosen).max()), 1e-5, name)
                else:
                    size = float(np.max(np.subtract(spec["action_high"], spec["action_low"])))
                    np.testing.assert_allclose(got, actions, rtol=0, atol=1e-5 * size, err_msg=name)
                    self.assertEqual(np.abs(actions).max() > np.max(spec["action_high"]), name == "unclipped", name)
            if name in ("tanh", "linear"):  # There was something to clip.
                self.assertGreater(np.abs(heads).max(), 1, name)
        self.assertEqual(seen, {"hide", "stack", "scale", "squash", "clip"})

    def test_rows_that_begin_anew_forget_what_was_stacked(self):
        for name, _, file in self.reference():
            together, apart = skein.load(file), [skein.load(file) for _ in range(3)]
            if not together.has_memory:
                continue
            size = json.loads(skein.policy._split(file.read_bytes())[0]["__metadata__"]["skein.spec"])["observation_size"]
            for step, rows in enumerate(np.random.default_rng(5).normal(size=(12, 3, size)).astype(np.float32)):
                if step in (4, 5, 9):
                    mask = [step == 5, True, step == 9]
                    together.reset(mask)
                    for one, begins in zip(apart, mask):
                        if begins:
                            one.reset()
                want = [one.head(row) for one, row in zip(apart, rows)]
                np.testing.assert_allclose(together.head(rows), want, rtol=1e-5, atol=1e-6, err_msg=f"{name}, step {step}")
            with self.assertRaisesRegex(ValueError, "call reset"):
                together(rows[0])
            for wrong in (size - 1, size + 1, size * 3):  # A refused one is not remembered.
                with self.assertRaisesRegex(ValueError, f"is {size} numbers"):
                    together(np.zeros((3, wrong)))
            for wrong in (np.nan, np.inf):
                with self.assertRaisesRegex(ValueError, "has a number that is not finite"):
                    together(np.full((3, size), wrong))
            rows = np.ones((3, size), np.float32)
            np.testing.assert_allclose(together.head(rows), [one.head(row) for one, row in zip(apart, rows)], rtol=1e-5, atol=1e-6)

    def test_actions_are_scaled_and_clipped_by_the_formulas(self):
        """Of trained checkpoints, whose heads stand in as the oracle's."""
        for transform, bound, change in (("scale", 1, lambda x: x), ("squash", 10, math.tanh), ("clip", 2, lambda x: x / 2)):
            with self.subTest(transform):
                policy = skein.load(self.trained(f"env.transforms=[{transform}]", "model.init_log_std=2"))
                for seed in range(100):  # Of Pendulum-v1, whose actions are in [-2, 2].
                    observation = np.random.default_rng(seed).normal(size=3)
                    noise = np.random.default_rng(seed).standard_normal(1)
                    std = np.exp(policy._tensors["log_std"].astype(np.float64))
                    raw = float((policy.head(observation) + std * noise)[0])
                    want = -2 + (change(min(bound, max(-bound, raw))) + 1) / 2 * 4
                    got = policy(observation, deterministic=False, rng=np.random.default_rng(seed))
                    self.assertAlmostEqual(float(got[0]), want, delta=4e-6)

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
                    np.testing.assert_allclose(policy.head(rows), want, rtol=1e-4, atol=1e-5)
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
