#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Environments of other libraries as the package skein_env adapts and serves them, in the Python that has the libraries."""

import contextlib
import io
import mmap
import os
import queue
import re
import socket
import subprocess
import sys
import unittest

from fetched_python import ROOT, run_inside

if __name__ == "__main__":
    run_inside("environments")

import dm_env
import dm_env.specs
import grpc
import gymnasium
import numpy as np

sys.path.insert(0, str(ROOT / "python"))
import skein_env
import team_envs
from skein_env import columns as layout
from skein_env import local, wire
from skein_env.adapters import adapt, make_batch
from skein_env.batch import close
from skein_env.columns import memory_bytes, new_columns
from skein_env.dtypes import report
from skein_env.remote import answer, is_loopback
from skein_env.spaces import actions_of, flatten

os.environ["PYTHONPATH"] = f"{ROOT / 'tests' / 'python'}:{ROOT / 'python'}"  # Of servers.


def damaged(generator, message):
    """The message with one to three faults: a bit is turned, bytes are put in, taken out or doubled, or the end is missing."""
    data = bytearray(message)
    for _ in range(generator.integers(1, 4)):
        fault, at, size = (int(generator.integers(0, limit)) for limit in (5, len(data) + 1, 16))
        if fault == 0 and at < len(data):
            data[at] ^= 1 << size % 8
        elif fault == 1:
            data[at:at] = generator.bytes(size)
        elif fault == 2:
            del data[at:at + size]
        elif fault == 3:
            data[at:at] = data[at:at + size]
        elif fault == 4:
            del data[at:]
    return bytes(data)


class Adapters(unittest.TestCase):
    def batch(self, make, size=3, **arguments):
        batch = make_batch(make, size, arguments)
        columns = new_columns(batch.spec, size)
        columns.mask[:] = 1
        columns.seed[:] = np.arange(size) + 5
        batch.reset(columns)
        columns.seed[:] = 9
        return batch, columns

    def test_spaces_are_flat_in_the_documented_order(self):
        env = team_envs.mixed()
        flat = flatten(env.observation_space)
        row = np.full(flat.size, -1, np.float32)
        flat.write(env.reset()[0], row)
        self.assertEqual(row.tolist(), [0, 1, 2, 3, 0, 1, 0, 0, 1, 0, 1, 0, 0, 1])
        # Gymnasium's own order and numbers.
        expected = gymnasium.spaces.flatten(env.observation_space, env.reset()[0])
        self.assertEqual(row.tolist(), expected.astype(np.float32).tolist())

    def test_whatever_an_environment_throws_is_one_line_with_its_place(self):
        class Mute(Exception):
            def __str__(self):
                raise TypeError

        class Throwing(gymnasium.Wrapper):
            def step(self, action):
                raise thrown

        class Own(BaseException):
            pass

        for thrown, said in ((SystemExit(3), "SystemExit: 3"), (KeyboardInterrupt(), "KeyboardInterrupt: "), (Own("x"), "Own: x"),
                             (GeneratorExit(), "GeneratorExit: "), (Mute(), r"Mute: \(its text cannot be had: TypeError\)"),
                             (ValueError("\ud800"), r"ValueError: \?")):
            for spaces in ("one array", "parts"):
                make = team_envs.cartpole if spaces == "one array" else team_envs.mixed
                batch, columns = self.batch(lambda: Throwing(make()), 1)
                batch.step(columns)
                ((_, why),) = batch.failures()
                self.assertRegex(why, f"^{said} \\(.*adapters_test.py:[0-9]+ in step")
                batch.reset(columns)  # It goes on.
                self.assertEqual(batch.failures(), [])

    def test_all_are_closed_where_closing_one_fails(self):
        closed = []

        class Leaving(gymnasium.Wrapper):
            def close(self):
                closed.append(self)
                raise OSError("it is gone")

        batch, _ = self.batch(lambda: Leaving(gymnasium.make("CartPole-v1")))
        with contextlib.redirect_stderr(io.StringIO()) as said:
            self.assertFalse(close(batch))
        self.assertEqual(len(closed), 3)
        self.assertRegex(said.getvalue(), r"^skein-env: closing it: OSError: it is gone \(.*adapters_test.py:[0-9]+ in close\)\n$")

    def test_choices_are_numbered_with_the_last_fastest(self):
        actions = actions_of(team_envs.mixed().action_space)
        self.assertEqual((actions.discrete, actions.size), (True, 6))
        self.assertEqual([actions.read(np.array([i], np.float32)).tolist() for i in range(6)],
                         [[0, 0], [0, 1], [0, 2], [1, 0], [1, 1], [1, 2]])
        binary = actions_of(team_envs.mixed("binary").action_space)
        self.assertEqual(binary.read(np.array([5], np.float32)).tolist(), [1, 0, 1])
        for i in range(6):
            self.assertTrue(team_envs.mixed().action_space.contains(actions.read(np.array([i], np.float32))))

    def test_reals_of_a_dict(self):
        space = team_envs.mixed("reals").action_space
        actions = actions_of(space)
        self.assertEqual((actions.discrete, actions.low, actions.high), (False, [-1e6, -2, -2], [3, 2, 2]))
        taken = actions.read(np.array([1, -0.5, 0.5], np.float32))
        self.assertTrue(space.contains(taken), taken)

    def test_gymnasium_steps_as_gymnasium_does(self):
        batch, columns = self.batch(team_envs.cartpole)
        bare = [gymnasium.make("CartPole-v1") for _ in range(3)]
        first = [env.reset(seed=5 + e)[0] for e, env in enumerate(bare)]
        self.assertTrue(np.array_equal(columns.observation[:, 0], first))
        generator = np.random.default_rng(1)
        ends = 0
        for _ in range(200):
            columns.action[:] = generator.integers(0, 2, columns.action.shape)
            batch.step(columns)
            for e, env in enumerate(bare):
                obs, reward, terminated, truncated, _ = env.step(int(columns.action[e, 0, 0]))
                self.assertEqual((columns.reward[e, 0], columns.terminated[e], columns.truncated[e]),
                                 (reward, terminated, truncated))
                if terminated or truncated:
                    ends += 1
                    self.assertTrue(np.array_equal(columns.final_observation[e, 0], obs))
                    obs, _ = env.reset(seed=9)
                self.assertTrue(np.array_equal(columns.observation[e, 0], obs))
        self.assertGreater(ends, 5)

    def test_vector_environments_step_as_single_ones(self):
        one, left = self.batch(team_envs.cartpole)
        other, right = self.batch(team_envs.cartpoles)
        generator = np.random.default_rng(2)
        for _ in range(200):
            left.action[:] = right.action[:] = generator.integers(0, 2, left.action.shape)
            one.step(left)
            other.step(right)
            self.assertTrue(np.array_equal(left.observation, right.observation))
            self.assertTrue(np.array_equal(left.terminated, right.terminated))
            ended = left.terminated.astype(bool)
            self.assertTrue(np.array_equal(left.final_observation[ended], right.final_observation[ended]))
        same, columns = self.batch(team_envs.cartpoles_in_the_same_step)
        ends = 0
        for _ in range(200):
            columns.action[:] = generator.integers(0, 2, columns.action.shape)
            same.step(columns)
            ended = columns.terminated.astype(bool)
            ends += int(ended.sum())
            self.assertTrue(np.all(np.abs(columns.observation[ended]) <= 0.05))
            self.assertTrue(np.all(np.abs(columns.final_observation[ended]).max(axis=-1) > 0.2))
        self.assertGreater(ends, 5)

    def test_an_actor_begins_environments_one_by_one(self):
        for make in (team_envs.cartpoles, team_envs.cartpoles_in_the_same_step):
            batch = make_batch(make, 4, {})
            columns = new_columns(batch.spec, 4)
            for e in range(4):
                columns.mask[:] = 0
                columns.mask[e] = 1
                columns.seed[e] = 50 + 7 * e
                batch.reset(columns)
            first = gymnasium.make("CartPole-v1").reset(seed=0)[0]
            self.assertEqual(len({row.tobytes() for row in [*columns.observation[:, 0], first]}), 5)

    def open(self, address, **options):
        """A stream for one environment: what sends, and what comes."""
        sent = queue.SimpleQueue()
        channel = grpc.insecure_channel(address, options=[(f"grpc.{name}", value) for name, value in options.items()])
        self.addCleanup(channel.close)
        self.addCleanup(sent.put, None)
        answers = channel.stream_stream("/skein.env.v1.Environment/Serve")(iter(sent.get, None), timeout=100)
        sent.put(wire.put_bytes(1, wire.put_int(1, wire.VERSION) + wire.put_int(4, 1)))
        return sent, answers

    def serve(self, *arguments):
        server = subprocess.Popen([sys.executable, "-m", "skein_env", *arguments], stdout=subprocess.PIPE, text=True)
        self.addCleanup(server.wait)
        self.addCleanup(server.stdout.close)
        self.addCleanup(server.terminate)
        return re.search(r"grpc://(\S+)", server.stdout.readline()).group(1)

    def test_one_group_too_many_is_told_so_at_once(self):
        address = self.serve("team_envs:cartpole", "--max-streams", "2")
        streams = [self.open(address) for _ in range(2)]
        for _, answers in streams:
            self.assertTrue(next(answers))
        with self.assertRaises(grpc.RpcError) as refused:
            next(self.open(address)[1])
        self.assertEqual(refused.exception.code(), grpc.StatusCode.RESOURCE_EXHAUSTED)
        self.assertIn("it serves 2 env groups already (--max-streams)", refused.exception.details())
        sent, answers = streams.pop()
        sent.put(None)
        self.assertEqual(list(answers), [])
        self.assertTrue(next(self.open(address)[1]))  # Its place is free.

    def test_only_addresses_of_this_host_need_no_credentials(self):
        for host in ("localhost", "127.0.0.1", "127.8.9.1", "[::1]"):
            self.assertTrue(is_loopback(f"{host}:7200"), host)
        for host in ("127.example.org", "127.0.0.1.example.org", "localhost.example.org", "0.0.0.0", "[::]", "10.0.0.1", ""):
            self.assertFalse(is_loopback(f"{host}:7200"), host)

    def test_an_actor_that_waits_long_is_not_thrown_out(self):
        # It pings as base/net/grpc_transport.cc says.
        sent, answers = self.open(self.serve("team_envs:slow"), keepalive_time_ms=10000, keepalive_timeout_ms=5000,
                                  keepalive_permit_without_calls=1, **{"http2.max_pings_without_data": 0})
        next(answers)
        reset = wire.put_int(1, 1) + wire.put_bytes(2, b"\1") + wire.put_bytes(3, bytes(4))
        sent.put(wire.put_bytes(3, reset))
        next(answers)
        for sequence in (2, 3, 4):
            step = wire.put_int(1, sequence) + wire.put_bytes(2, bytes(4)) + wire.put_bytes(3, bytes(4))
            sent.put(wire.put_bytes(2, step))
            self.assertTrue(next(answers))

    def test_teams_shrink(self):
        batch, columns = self.batch(team_envs.shrinking, 2)
        self.assertEqual((batch.spec.num_agents, batch.spec.obs_size), (2, 2))
        active, rewards = [], []
        for step in range(6):
            batch.step(columns)
            self.assertFalse(columns.failed.any(), batch.failures())
            active.append(columns.active[0].tolist())
            rewards.append(columns.reward[0].tolist())
            self.assertEqual(columns.terminated[0], step == 5)
        self.assertEqual(active[:5], [[1, 1], [1, 1], [1, 0], [1, 0], [1, 0]])
        self.assertEqual(rewards, [[1, 1]] * 3 + [[1, 0]] * 3)
        self.assertEqual(columns.final_observation[0].tolist(), [[6, 6], [0, 0]])
        self.assertEqual(columns.observation[0].tolist(), [[0, 0], [0, 0]])
        self.assertEqual(columns.episode_metrics[0].tolist(), [1])

    def test_mpe_has_a_state_and_a_limit_of_its_own(self):
        batch, columns = self.batch(team_envs.spread, 2)
        self.assertEqual((batch.spec.num_agents, batch.spec.obs_size, batch.spec.global_state_size), (3, 18, 54))
        for step in range(25):
            batch.step(columns)
            self.assertEqual(columns.truncated.tolist(), [step == 24] * 2)
        self.assertFalse(columns.terminated.any())
        self.assertTrue(np.array_equal(columns.final_global_state[0], columns.final_observation[0].reshape(-1)))

    def test_dm_env(self):
        batch, columns = self.batch(team_envs.catch, 1)
        columns.action[:] = [[[0.25, 0.5]]]
        for step in range(5):
            batch.step(columns)
            self.assertEqual(columns.reward[0, 0], 0.75)
        self.assertEqual(columns.terminated[0], 1)
        self.assertEqual(columns.final_observation[0, 0].tolist(), [5, 5, 5, 7])

    def test_one_that_fails_is_made_anew(self):
        batch, columns = self.batch(team_envs.faulty, 2)
        team_envs.Faulty.steps = 498
        os.environ["TEAM_FAULT"] = "raise"
        columns.action[:] = 0
        batch.step(columns)
        del os.environ["TEAM_FAULT"]
        self.assertEqual(columns.failed.tolist(), [0, 1])
        ((env, why),) = batch.failures()
        self.assertEqual(env, 1)
        self.assertRegex(why, r"^ZeroDivisionError: division by zero \(.*team_envs.py:\d+ in step\)$")
        columns.mask[:] = [0, 1]
        before = columns.observation[0].copy()
        batch.reset(columns)
        self.assertEqual(columns.failed.tolist(), [0, 0])
        self.assertTrue(np.array_equal(columns.observation[0], before))
        batch.step(columns)
        self.assertEqual(columns.failed.tolist(), [0, 0])

    def test_a_step_that_returns_something_else_is_named_with_the_place_of_its_class(self):
        batch, columns = self.batch(team_envs.Four, 1)
        batch.step(columns)
        ((_, why),) = batch.failures()
        self.assertRegex(why, r"expected 5, got 4\) \(.*team_envs.py:\d+ defines Four\)$")

    def test_a_vector_environment_of_another_shape_is_named_with_the_place_of_its_class(self):
        said = r"^ValueError: an observation has the shape \(1, 2\), the space says \(1, 3\) \(.*team_envs.py:\d+ defines Short\)$"
        sent, answers = self.open(self.serve("team_envs:Short"))
        self.assertTrue(next(answers))
        reset = wire.put_int(1, 1) + wire.put_bytes(2, b"\1") + wire.put_bytes(3, bytes(4))
        sent.put(wire.put_bytes(3, reset))
        self.assertTrue(next(answers))
        sent.put(wire.put_bytes(2, wire.put_int(1, 2) + wire.put_bytes(2, bytes(4)) + wire.put_bytes(3, bytes(4))))
        with self.assertRaises(grpc.RpcError) as failed:
            next(answers)
        self.assertRegex(failed.exception.details(), said)
        # In shared memory, with a step as the first request.
        batch = make_batch(team_envs.Short, 1, {})
        size = memory_bytes(batch.spec, 1)
        memory = os.memfd_create("columns")
        self.addCleanup(os.close, memory)
        os.ftruncate(memory, size)
        with mmap.mmap(memory, size) as shared:
            shared[layout.KIND_AT] = layout.STEP
            shared[layout.REQUEST_AT] = 1
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with ours, theirs:
            ours.send(wire.put_bytes(4, wire.put_int(1, size)))
            self.assertEqual(local._serve_greeted(batch, theirs, memory), 70)
            ours.recv(1 << 18)  # The welcome.
            failure = wire.read_fields(wire.get_bytes(wire.read_fields(ours.recv(1 << 18)), 3))
        self.assertRegex(wire.get_bytes(failure, 2).decode(), said)

    def test_numbers_beyond_what_is_declared_are_named(self):
        """Of dm_env; env_check_test.py has those of Gymnasium's."""
        class Low(team_envs.Catch):
            def observation_spec(self):
                return {**super().observation_spec(), "position": dm_env.specs.BoundedArray((3,), np.float64, -1, [1, 9, 2])}

        self.assertEqual(report(team_envs.Catch, {})["verdict"], "ok")
        found = report(Low, {})
        self.assertEqual((found["verdict"], found["found"]),
                         ("fails", "number 0 of an observation['position'] is 2, its space says at most 1"))

    def test_several_from_a_function_without_num_envs_are_told_what_it_needs(self):
        def own_batch():
            return make_batch(team_envs.cartpole, 2, {})

        for make in (team_envs.short_without_a_number, own_batch):
            with self.assertRaisesRegex(skein_env.EnvError, r"returned a \S+, which is several environments; it needs a parameter num_envs"):
                make_batch(make, 2, {})

    def test_bytes_that_are_no_message(self):
        generator = np.random.default_rng(3)
        for _ in range(20000):
            data = generator.integers(0, 256, generator.integers(0, 40)).astype(np.uint8).tobytes()
            try:
                wire.read_hello(data)
            except wire.WireError:
                pass

    def test_damaged_messages_are_answered_or_refused(self):
        batch, columns = self.batch(team_envs.cartpole, 2)
        columns.action[:] = 1
        seeds = columns.seed.tobytes()
        step = wire.put_int(1, 300) + wire.put_bytes(2, columns.action.tobytes()) + wire.put_bytes(3, seeds)
        reset = wire.put_int(1, 301) + wire.put_bytes(2, b"\1\1") + wire.put_bytes(3, seeds)
        hello = wire.put_int(1, 1) + wire.put_text(2, "walk") + wire.put_text(3, '{"speed": 2}') + wire.put_int(4, 2)
        memory = wire.put_int(1, memory_bytes(batch.spec, 2))
        cases = {"hello": (wire.put_bytes(1, hello), wire.read_hello),
                 "step": (wire.put_bytes(2, step), lambda data: answer(data, columns, batch)),
                 "reset": (wire.put_bytes(3, reset), lambda data: answer(data, columns, batch)),
                 "memory": (wire.put_bytes(4, memory), wire.read_memory)}
        generator = np.random.default_rng(4)
        for name, (message, read) in cases.items():
            with self.subTest(name):
                self.assertTrue(read(message))
                outcomes = set()
                for _ in range(3000):
                    data = damaged(generator, message)
                    try:
                        read(data)
                        outcomes.add("answered")
                    except wire.WireError:
                        outcomes.add("refused")
                    except Exception as error:  # Whatever else it throws is a fault.
                        self.fail(f"{data!r}: {error!r}")
                self.assertEqual(outcomes, {"answered", "refused"})
                self.assertTrue(read(message))

    def test_the_memory_has_the_documented_size(self):
        # 320 + action 24 + seed 8 + mask 2 + observation 48 + reward 16 + three flags of 2 + active 4 + final 48 +
        # two states of 8 + metrics 8, each up to a multiple of 64.
        spec = skein_env.Spec(2, 3, False, 2, [-1, -1], [1, 1], global_state_size=1, episode_metrics=["m"])
        self.assertEqual(memory_bytes(spec, 2), 320 + 13 * 64)

    def test_strangers_are_refused(self):
        with self.assertRaisesRegex(skein_env.EnvError, "want a gymnasium.Env"):
            adapt(object())


if __name__ == "__main__":
    unittest.main()
