#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Requests that the Python server for gRPC refuses, as Skein's own does (env/external/remote_messages.cc)."""

import contextlib
import io
import sys
import types
import unittest

from fetched_python import ROOT, run_inside

if __name__ == "__main__":
    run_inside("environments")

import grpc
import numpy as np

sys.path.insert(0, str(ROOT / "python"))
import skein_env
from skein_env import remote, wire
from skein_env.adapters import make_batch
from skein_env.columns import new_columns, reply_bytes


class Still(skein_env.Single):
    """Counts its steps and resets."""

    calls = 0

    def __init__(self, **spec):
        self.spec = skein_env.Spec(**{"num_agents": 2, "obs_size": 1, "discrete": True, "action_size": 3, **spec})

    def reset(self, seed, obs):
        Still.calls += 1

    def step(self, action, obs, reward):
        Still.calls += 1
        return False, False


REALS = {"discrete": False, "action_size": 2, "action_low": [-1, -2], "action_high": [1, 2]}


def step_of(action, seeds=(0, 0)):
    action, seeds = np.asarray(action, "<f4"), np.asarray(seeds, "<u4")
    parts = wire.put_bytes(2, action.tobytes()) + wire.put_bytes(3, seeds.tobytes())
    return wire.put_bytes(2, wire.put_int(1, 7) + parts)


def reset_of(mask, seeds=(0, 0)):
    parts = wire.put_bytes(2, bytes(mask)) + wire.put_bytes(3, np.asarray(seeds, "<u4").tobytes())
    return wire.put_bytes(3, wire.put_int(1, 7) + parts)


def hello_of(num_envs, environment=""):
    return wire.put_bytes(1, wire.put_int(1, wire.VERSION) + wire.put_text(2, environment) + wire.put_int(4, num_envs))


class Aborted(Exception):
    pass


class Context:
    def invocation_metadata(self):
        return []

    def abort(self, code, details):
        raise Aborted(code, details)

    def is_active(self):
        return True


class RemoteRequests(unittest.TestCase):
    def answers(self, *messages, **spec):
        """What a stream answers."""
        self.made = []

        def make(num_envs, arguments):
            self.made.append(num_envs)
            if num_envs > 1000:  # Nobody wants that many objects in a test.
                return types.SimpleNamespace(spec=Still(**spec).spec, num_envs=num_envs, close=lambda: None)
            return make_batch(lambda: Still(**spec), num_envs, {})

        service = remote._Service(make, "", "", 1)
        return list(service.serve(iter(messages), Context()))

    def refused(self, message, said, **spec):
        Still.calls = 0
        with self.assertRaises(Aborted) as caught:
            self.answers(hello_of(2), message, **spec)
        self.assertEqual(caught.exception.args, (grpc.StatusCode.INVALID_ARGUMENT, said))
        self.assertEqual(Still.calls, 0)  # No environment has seen it.

    def failure(self, *messages, **spec):
        """The message of the one answer, a failure that no other try would mend."""
        (answer,) = self.answers(*messages, **spec)
        failure = wire.read_fields(wire.get_bytes(wire.read_fields(answer), 3))
        self.assertEqual(wire.get_int(failure, 3), 1)
        return wire.get_text(failure, 2)

    def test_what_is_within_all_bounds_is_answered(self):
        largest = 2**31 - 1
        for action, spec in (([[[0], [2]], [[1], [2]]], {}), ([[[-1, -2], [1, 2]], [[0, 0.5], [-0.0, 2]]], REALS)):
            requests = reset_of([1, 1], [0, largest]), step_of(action, [largest, 1]), reset_of([0, 1])
            answers = self.answers(hello_of(2), *requests, **spec)
            self.assertEqual(len(answers), 4)

    def test_choices(self):
        for number, text in ((3, "3"), (-1, "-1"), (0.5, "0.5"), (np.nan, "nan"), (np.inf, "inf"), (-np.inf, "-inf")):
            said = f"number 2 of action is {text}, want a whole one from 0 to 2"
            self.refused(step_of([[[0], [1]], [[number], [2]]]), said)

    def test_reals(self):
        for i, number, text, bounds in ((1, 2.5, "2.5", "-2 to 2"), (4, -1.25, "-1.25", "-1 to 1"),
                                        (7, np.nan, "nan", "-2 to 2"), (0, np.inf, "inf", "-1 to 1")):
            action = np.zeros((2, 2, 2), np.float32)
            action.reshape(-1)[i] = number
            self.refused(step_of(action), f"number {i} of action is {text}, want one from {bounds}", **REALS)

    def test_seeds(self):
        for make in (lambda seeds: step_of(np.zeros((2, 2, 1)), seeds), lambda seeds: reset_of([1, 1], seeds)):
            self.refused(make([5, 2**31]), "seed 1 is 2147483648, want one under 2147483648")
            self.refused(make([2**32 - 1, 0]), "seed 0 is 4294967295, want one under 2147483648")

    def test_masks(self):
        for mask in ([2, 0], [1, 255]):
            self.refused(reset_of(mask), "mask has a byte that is neither 0 nor 1")

    def test_sizes_are_said_first(self):
        self.refused(step_of([np.nan]), "action has 4 bytes, want 16")
        self.refused(step_of(np.full(4, np.nan), [0]), "next_seed has 4 bytes, want 8")
        self.refused(reset_of([2]), "mask has 1 bytes, want 2")

    def test_numbers_of_environments(self):
        for count in (0, 65537, 2**40):
            self.assertEqual(self.failure(hello_of(count)), f"num_envs is {count}, want 1 to 65536")
            self.assertEqual(self.made, [])
        self.assertEqual(len(self.answers(hello_of(1))), 1)
        self.assertEqual(len(self.answers(hello_of(65536))), 1)

    def test_answers_that_no_message_can_have(self):
        # Of each: observations 2 * 2 * 4 * 1000, rewards 2 * 4, three flags, active 2.
        spec = Still(obs_size=1000).spec
        self.assertEqual(reply_bytes(spec, 3), 3 * 16013)
        most = (31 << 20) // 16013
        said = self.failure(hello_of(most + 1), obs_size=1000)
        size = (most + 1) * 16013
        self.assertEqual(said, f"an answer of {most + 1} environments has {size} bytes, want at most {31 << 20}; lower "
                               "rollout.envs_per_runner")
        self.assertEqual(len(self.answers(hello_of(most), obs_size=1000)), 1)

    def test_the_size_of_an_answer_is_what_it_has(self):
        batch = make_batch(lambda: Still(global_state_size=3, episode_metrics=["a"], obs_size=5), 2, {})
        columns = new_columns(batch.spec, 2)
        columns.mask[:] = 1
        for field in vars(columns).values():
            field[...] = 1
        reply = remote._reply(7, columns, batch)
        fields = wire.read_fields(wire.get_bytes(wire.read_fields(reply), 2))
        parts = [wire.get_bytes(fields, number) for number in range(2, 12)]
        self.assertEqual(sum(map(len, parts)), reply_bytes(batch.spec, 2))

    def test_a_server_refuses_over_the_network(self):
        said = io.StringIO()
        with contextlib.redirect_stderr(said):
            service = remote._Service(lambda count, _: make_batch(Still, count, {}), "", "", 1)
            server = grpc.server(remote.futures.ThreadPoolExecutor(2))
            handler = grpc.stream_stream_rpc_method_handler(service.serve)
            handlers = grpc.method_handlers_generic_handler("skein.env.v1.Environment", {"Serve": handler})
            server.add_generic_rpc_handlers((handlers,))
            port = server.add_insecure_port("127.0.0.1:0")
            server.start()
            with grpc.insecure_channel(f"127.0.0.1:{port}") as channel:
                serve = channel.stream_stream("/skein.env.v1.Environment/Serve")
                answers = serve(iter([hello_of(2), step_of([[[0], [1]], [[9], [2]]])]), timeout=60)
                next(answers)
                with self.assertRaises(grpc.RpcError) as caught:
                    next(answers)
            server.stop(0).wait()
        self.assertEqual(caught.exception.code(), grpc.StatusCode.INVALID_ARGUMENT)
        self.assertEqual(caught.exception.details(), "number 2 of action is 9, want a whole one from 0 to 2")
        self.assertEqual(said.getvalue(), "")


if __name__ == "__main__":
    unittest.main()
