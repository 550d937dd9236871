#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The Python server's decoder with bytes of which most are no message: it answers or raises WireError, and an environment
sees nothing that the protocol excludes.

    SKEIN_FUZZ_INPUTS=1000000 tests/python/hostile_requests_test.py    # of each kind of message; default 20,000
"""

import os
import random
import sys
import unittest
import warnings

from fetched_python import ROOT, run_inside

if __name__ == "__main__":
    run_inside("environments")

import numpy as np

sys.path.insert(0, str(ROOT / "python"))
import skein_env
from skein_env import remote, wire
from skein_env.adapters import make_batch
from skein_env.columns import new_columns

INPUTS = int(os.environ.get("SKEIN_FUZZ_INPUTS", 20000))
REALS = {"num_agents": 2, "obs_size": 3, "discrete": False, "action_size": 2, "action_low": [-1, -2], "action_high": [1, 2]}
CHOICES = {"num_agents": 1, "obs_size": 2, "discrete": True, "action_size": 3}
NUM_ENVS = 3


class Watched(skein_env.Single):
    """Fails the test if it is asked for what the protocol excludes."""

    calls = 0

    def __init__(self, spec):
        self.spec = skein_env.Spec(**spec)

    def reset(self, seed, obs):
        Watched.calls += 1
        assert 0 <= seed < 2**31, seed

    def step(self, action, obs, reward):
        Watched.calls += 1
        if self.spec.discrete:
            assert np.isin(action, np.arange(self.spec.action_size)).all(), action
        else:
            assert (action >= self.spec.action_low).all() and (action <= self.spec.action_high).all(), action
        return Watched.calls % 3 == 0, False  # An episode that ends begins the next one with its seed.


def step_of(random_numbers, spec):
    shape = (NUM_ENVS, spec["num_agents"], 1 if spec["discrete"] else spec["action_size"])
    action = random_numbers.choice([0, 1], size=shape).astype("<f4")
    seeds = random_numbers.integers(0, 2**31, NUM_ENVS).astype("<u4")
    parts = wire.put_bytes(2, action.tobytes()) + wire.put_bytes(3, seeds.tobytes())
    return wire.put_bytes(2, wire.put_int(1, int(random_numbers.integers(0, 2**40))) + parts)


def reset_of(random_numbers, _):
    mask = random_numbers.integers(0, 2, NUM_ENVS).astype(np.uint8)
    seeds = random_numbers.integers(0, 2**31, NUM_ENVS).astype("<u4")
    return wire.put_bytes(3, wire.put_int(1, 7) + wire.put_bytes(2, mask.tobytes()) + wire.put_bytes(3, seeds.tobytes()))


def hello_of(random_numbers, _):
    body = wire.put_int(1, 1) + wire.put_text(2, "a/b") + wire.put_text(3, '{"id": "x"}')
    return wire.put_bytes(1, body + wire.put_int(4, int(random_numbers.integers(1, 100))))


def mutate(choose, message, other):
    """One to three changes of bytes, ends, order or lengths; some messages stay as they are."""
    data = bytearray(message)
    for _ in range(choose.randint(0, 3)):
        kind, at = choose.randrange(8), choose.randrange(len(data) + 1)
        if kind == 0:
            del data[at:]
        elif kind == 1:
            del data[at : at + choose.randint(1, 8)]
        elif kind == 2:
            data[at:at] = choose.randbytes(choose.randint(1, 12))
        elif kind == 3:
            data += other
        elif kind == 4:
            data[at:at] = b"\xff" * choose.randint(1, 11)
        elif kind == 5:  # A field that nobody knows.
            data += wire.put_int(choose.randint(5, 2**29), choose.getrandbits(64))
        elif data:
            at = min(at, len(data) - 1)
            data[at] = choose.getrandbits(8) if kind == 6 else data[at] ^ 1 << choose.randrange(8)
    return bytes(data)


class HostileRequests(unittest.TestCase):
    def inputs(self, make, other, spec):
        choose, random_numbers = random.Random(1), np.random.default_rng(1)
        samples = [make(random_numbers, spec) for _ in range(50)]
        others = [other(random_numbers, spec) for _ in range(50)]
        return (mutate(choose, choose.choice(samples), choose.choice(others)) for _ in range(INPUTS))

    def check_answers(self, make, other, spec):
        batch = make_batch(lambda: Watched(spec), NUM_ENVS, {})
        columns = new_columns(batch.spec, NUM_ENVS)
        answered = refused = 0
        for message in self.inputs(make, other, spec):
            before = Watched.calls
            try:
                reply = remote.answer(message, columns, batch)
            except wire.WireError as error:
                refused += 1
                self.assertLess(len(str(error)), 200, message)
                self.assertEqual(Watched.calls, before, message)
                continue
            answered += 1
            self.assertEqual(batch.failures(), [], message)
            fields = wire.read_fields(wire.get_bytes(wire.read_fields(reply), 2))
            self.assertLess(wire.get_int(fields, 1), 2**64, message)
            self.assertEqual(len(wire.get_bytes(fields, 2)), columns.observation.nbytes, message)
        # Both are tried.
        self.assertGreater(answered, INPUTS // 20)
        self.assertGreater(refused, INPUTS // 20)

    def test_a_number_of_more_than_64_bits_is_answered_with_one_of_64(self):
        batch = make_batch(lambda: Watched(CHOICES), NUM_ENVS, {})
        parts = wire.put_bytes(2, bytes(4 * NUM_ENVS)) + wire.put_bytes(3, bytes(4 * NUM_ENVS))
        step = wire.put_bytes(2, b"\x08" + b"\xff" * 9 + b"\x7f" + parts)
        reply = remote.answer(step, new_columns(batch.spec, NUM_ENVS), batch)
        self.assertEqual(wire.get_int(wire.read_fields(wire.get_bytes(wire.read_fields(reply), 2)), 1), 2**64 - 1)

    def test_an_action_that_is_a_signalling_nan_is_refused_without_a_warning(self):
        batch = make_batch(lambda: Watched(CHOICES), NUM_ENVS, {})
        action = np.full(NUM_ENVS, 0x7F800001, "<u4").tobytes()
        step = wire.put_bytes(2, wire.put_int(1, 7) + wire.put_bytes(2, action) + wire.put_bytes(3, bytes(4 * NUM_ENVS)))
        with warnings.catch_warnings(), self.assertRaises(wire.WireError):
            warnings.simplefilter("error")
            remote.answer(step, new_columns(batch.spec, NUM_ENVS), batch)

    def test_steps_of_real_actions(self):
        self.check_answers(step_of, reset_of, REALS)

    def test_steps_of_choices(self):
        self.check_answers(step_of, hello_of, CHOICES)

    def test_resets(self):
        self.check_answers(reset_of, step_of, CHOICES)

    def test_hellos(self):
        read = refused = 0
        for message in self.inputs(hello_of, reset_of, CHOICES):
            try:
                hello = wire.read_hello(message)
            except wire.WireError:
                refused += 1
                continue
            read += 1
            self.assertIsInstance(hello.environment, str)
            self.assertIsInstance(hello.arguments, str)
            self.assertTrue(0 <= hello.version < 2**64 and 0 <= hello.num_envs < 2**64, message)
        self.assertGreater(read, INPUTS // 20)
        self.assertGreater(refused, INPUTS // 20)


if __name__ == "__main__":
    unittest.main()
