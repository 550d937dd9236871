#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Environments of other libraries in Skein: adapters, servers, faults and training, with the real libraries."""

import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
BIN = pathlib.Path(os.environ.get("SKEIN_BIN", ROOT / "build" / "release"))
PYTHON = ROOT / ".deps" / "environments" / "bin" / "python"
HERE = pathlib.Path(__file__).resolve().parent
ENVIRONMENT = {**os.environ, "PYTHONPATH": f"{HERE}:{ROOT / 'python'}"}
OWN_PYTHON = ("--set", f"env.external.python={PYTHON}")


def run(*command, code=0, **more):
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True, timeout=240,
                          env={**ENVIRONMENT, **more})
    if done.returncode != code:
        raise AssertionError(f"{command} ended with {done.returncode}, want {code}: {done.stdout} {done.stderr}")
    return done


class Adapters(unittest.TestCase):
    """In the Python that has the libraries: this file calls itself there."""

    def test_all(self):
        print(run(PYTHON, __file__, "--inside").stderr, file=sys.stderr)


class Training(unittest.TestCase):
    def train(self, folder, env, *more, code=0, **environment):
        return run(BIN / "skein", "train", "--env", env, "--runs-dir", folder, "--name", "run", *OWN_PYTHON, *more, code=code,
                   **environment)

    def test_gymnasium_cartpole_reaches_500(self):
        with tempfile.TemporaryDirectory() as folder:
            self.train(folder, "python:team_envs:cartpole", "--config", ROOT / "configs" / "cartpole_ppo.yaml", "--set",
                       "rollout.num_envs=16", "--set", "rollout.envs_per_runner=8", "--no-eval")
            result = json.loads(run(BIN / "skein", "eval", "--checkpoint", folder + "/run/checkpoints/latest", "--episodes", "20",
                                    "--json", *OWN_PYTHON).stdout)
            self.assertEqual(result["env_id"], "python:team_envs:cartpole")
            self.assertGreaterEqual(result["return_mean"], 475)

    def test_a_team_and_a_grid_train_without_a_recipe(self):
        for env in ("python:team_envs:spread", "python:team_envs:minigrid", "python:team_envs:catch",
                    "python:gymnasium:make?id=Pendulum-v1"):
            with self.subTest(env), tempfile.TemporaryDirectory() as folder:
                self.train(folder, env, "--steps", "1000", "--set", "rollout.steps_per_iteration=1024", "--no-eval")

    def test_vector_environments_begin_with_seeds_of_their_own(self):
        with tempfile.TemporaryDirectory() as folder:
            seeds = pathlib.Path(folder) / "seeds"
            self.train(folder, "python:team_envs:recorded_cartpoles", "--steps", "1000", "--set", "rollout.num_envs=8",
                       "--set", "rollout.envs_per_runner=4", "--set", "rollout.steps_per_iteration=1024", "--runners", "2",
                       "--no-eval", TEAM_SEEDS=str(seeds))
            groups = [json.loads(line) for line in seeds.read_text().splitlines()]
            begun = [seed for group in groups if len(group) == 4 for seed in group]
            self.assertGreaterEqual(len(begun), 8)
            self.assertEqual(len(set(begun)), len(begun), begun)
            self.assertNotIn(0, begun)

    def test_an_environments_own_metrics_are_in_the_metrics_of_the_run(self):
        with tempfile.TemporaryDirectory() as folder:
            self.train(folder, "python:team_envs:shrinking", "--steps", "2000", "--set", "rollout.steps_per_iteration=1024",
                       "--no-eval")
            last = json.loads((pathlib.Path(folder) / "run" / "metrics.jsonl").read_text().splitlines()[-1])
            self.assertEqual(last["episode_metrics"], {"left": 1})  # One of two agents is there at the end.

    def test_faults_cost_their_episodes_only(self):
        for fault, said in (("kill", "was ended by signal 9"), ("hang", "has not answered within 1 s"),
                            ("raise", r"ZeroDivisionError: division by zero \(.*team_envs.py:\d+ in step"),
                            ("often", r"ZeroDivisionError: division by zero \(.*team_envs.py:\d+ in step"),
                            ("nan", "number 0 of the observation is -?nan"),
                            ("shape", r"an observation has the shape \(5,\), the space says \(4,\)")):
            with self.subTest(fault), tempfile.TemporaryDirectory() as folder:
                done = self.train(folder, "python:team_envs:faulty", "--steps", "8000", "--set",
                                  "rollout.steps_per_iteration=2048", "--set", "rollout.step_timeout_seconds=1", "--runners",
                                  "2", "--no-eval", TEAM_FAULT=fault)
                log = "".join(path.read_text() for path in pathlib.Path(folder).glob("run/**/*.log")) + done.stderr
                self.assertRegex(log, said)
                self.assertNotIn("built anew", log)

    def test_mistakes_are_one_line_with_what_and_where(self):
        for env, code, said in (
            ("python:no_such_module:make", 65, "no module 'no_such_module'"),
            ("python:team_envs:no_such", 65, r"team_envs \(.*team_envs.py\) has no function 'no_such'"),
            ("python:team_envs:raises", 65, r"ValueError: no map of this arena \(.*team_envs.py:\d+ in raises\)"),
            ("python:team_envs:a_number", 65, "the function returned a builtins.int"),
            ("python:team_envs:minigrid_with_its_text", 65, "MissionSpace has no numbers"),
            ("python:team_envs:cartpoles_in_the_next_step", 65, "autoreset_mode is NEXT_STEP"),
            ("python:team_envs:mixed?action=many", 65, "10000 combinations, at most 1024"),
            ("python:team_envs:mixed?action=both", 65, "either reals or one choice"),
            ("python:team_envs", 64, "want python:package.module:function"),
        ):
            with self.subTest(env), tempfile.TemporaryDirectory() as folder:
                done = self.train(folder, env, code=code)
                self.assertRegex(done.stderr.splitlines()[-1], said)
        with tempfile.TemporaryDirectory() as folder:
            done = run(BIN / "skein", "train", "--env", "python:team_envs:cartpole", "--runs-dir", folder, "--set",
                       "env.external.python=/usr/bin/no-python", code=65)
            self.assertIn("no such program", done.stderr.splitlines()[-1])

    def test_nothing_is_left_running(self):
        with tempfile.TemporaryDirectory() as folder:
            training = subprocess.Popen([BIN / "skein", "train", "--env", "python:team_envs:cartpole", "--runs-dir", folder,
                                         "--steps", "1e9", *OWN_PYTHON], env={**ENVIRONMENT, "TEAM_MARK": folder},
                                        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            servers = lambda: self.marked(folder)  # noqa: E731
            self.wait(lambda: len(servers()) >= 2 and "skein-actor" in self.names(folder))
            (actor,) = [pid for pid, name in self.processes(folder) if name == "skein-actor"][:1]
            before = servers()
            os.kill(actor, 9)
            self.wait(lambda: not set(before) & set(servers()))
            training.terminate()
            self.assertIn(training.wait(60), (0, 75))
            self.wait(lambda: not servers())

    def processes(self, mark):
        found = []
        for path in pathlib.Path("/proc").glob("[0-9]*"):
            try:
                if f"TEAM_MARK={mark}".encode() in (path / "environ").read_bytes():
                    found.append((int(path.name), (path / "comm").read_text().strip()))
            except OSError:
                continue
        return found

    def names(self, mark):
        return [name for _, name in self.processes(mark)]

    def marked(self, mark):
        return [pid for pid, name in self.processes(mark) if name.startswith("python")]

    def wait(self, condition, seconds=60):
        end = time.monotonic() + seconds
        while not condition():
            self.assertLess(time.monotonic(), end)
            time.sleep(0.1)


class Remote(unittest.TestCase):
    def serve(self, *arguments):
        server = subprocess.Popen([PYTHON, "-m", "skein_env", *arguments], stdout=subprocess.PIPE, text=True, env=ENVIRONMENT)
        self.addCleanup(server.wait)
        self.addCleanup(server.stdout.close)
        self.addCleanup(server.terminate)
        return re.search(r"grpc://(\S+)", server.stdout.readline()).group(1)

    def test_training_over_grpc_with_a_token(self):
        with tempfile.TemporaryDirectory() as folder:
            token = pathlib.Path(folder) / "token"
            token.write_text("a-token-of-some-length\n")
            token.chmod(0o600)
            address = self.serve("team_envs:cartpole", "--token-file", token)
            command = [BIN / "skein", "train", "--env", f"grpc://{address}", "--runs-dir", folder, "--name", "run", "--steps",
                       "2000", "--set", "rollout.steps_per_iteration=1024"]
            self.assertIn("another token is wanted", run(*command, code=64).stderr.splitlines()[-1])
            self.evaluate(folder, run(*command, "--token-file", token), "--token-file", token)
            bench = [BIN / "skein", "bench", "env", "--env", f"grpc://{address}", "--rounds", "1", "--seconds", "0.2",
                     "--threads", "1"]
            self.assertIn("another token is wanted", run(*bench, code=64).stderr)
            run(*bench, "--token-file", token)

    def test_training_over_grpc_with_tls(self):
        with tempfile.TemporaryDirectory() as folder:
            run(BIN / "skein", "certs", "init", folder + "/credentials")
            tls = [f"--tls-{flag}={folder}/credentials/{file}"
                   for flag, file in (("cert", "node.crt"), ("key", "node.key"), ("ca", "ca.crt"))]
            address = self.serve("team_envs:cartpole", *tls)
            command = [BIN / "skein", "train", "--env", f"grpc://{address}", "--runs-dir", folder, "--name", "run", "--steps",
                       "2000", "--set", "rollout.steps_per_iteration=1024", "--set", "env.external.start_timeout_seconds=5"]
            run(*command, code=69)  # It cannot even shake hands.
            self.evaluate(folder, run(*command, *tls), *tls)

    def evaluate(self, folder, trained, *credentials):
        """The run has evaluated itself at its end, and `skein eval` does the same."""
        result = json.loads((pathlib.Path(folder) / "run" / "eval.json").read_text())
        self.assertTrue(result["env_id"].startswith("grpc://"), trained.stdout)
        again = [BIN / "skein", "eval", "--checkpoint", folder + "/run", "--episodes", "2", "--json"]
        self.assertEqual(json.loads(run(*again, *credentials).stdout)["episodes"], 2)
        self.assertNotEqual(subprocess.run([*again, "--set", "env.external.start_timeout_seconds=5"], env=ENVIRONMENT,
                                           capture_output=True).returncode, 0)

    def test_names_and_addresses(self):
        address = self.serve("team_envs:cartpole", "--name", "cart")
        with tempfile.TemporaryDirectory() as folder:
            done = run(BIN / "skein", "train", "--env", f"grpc://{address.split('/')[0]}/arm", "--runs-dir", folder, code=65)
            self.assertIn("no environment 'arm'; there is 'cart'", done.stderr.splitlines()[-1])
        done = run(PYTHON, "-m", "skein_env", "team_envs:cartpole", "--listen", "0.0.0.0:0", code=64)
        self.assertIn("can be reached from outside", done.stderr)

    def test_tokens_are_as_everywhere(self):
        with tempfile.TemporaryDirectory() as folder:
            token = pathlib.Path(folder) / "token"
            for text, mode, said in (("", 0o600, "has 0 characters"), ("short\n", 0o600, "has 5 characters"),
                                     ("a token of many words", 0o600, "one word of printable ASCII"),
                                     ("a-token-of-some-length", 0o644, "every user of this machine has access")):
                token.write_text(text)
                token.chmod(mode)
                done = run(PYTHON, "-m", "skein_env", "team_envs:cartpole", "--token-file", token, code=64)
                self.assertIn(said, done.stderr)


def inside():
    """Tests of the package itself, in the Python that has it."""
    import queue

    import grpc
    import gymnasium
    import numpy as np

    import skein_env
    import team_envs
    from skein_env import wire
    from skein_env.adapters import adapt, make_batch
    from skein_env.columns import memory_bytes, new_columns
    from skein_env.spaces import actions_of, flatten

    class Inside(unittest.TestCase):
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

        def test_bytes_that_are_no_message(self):
            generator = np.random.default_rng(3)
            for _ in range(20000):
                data = generator.integers(0, 256, generator.integers(0, 40)).astype(np.uint8).tobytes()
                try:
                    wire.read_hello(data)
                except wire.WireError:
                    pass

        def test_the_memory_has_the_documented_size(self):
            # 320 + action 24 + seed 8 + mask 2 + observation 48 + reward 16 + three flags of 2 + active 4 + final 48 +
            # two states of 8 + metrics 8, each up to a multiple of 64.
            spec = skein_env.Spec(2, 3, False, 2, [-1, -1], [1, 1], global_state_size=1, episode_metrics=["m"])
            self.assertEqual(memory_bytes(spec, 2), 320 + 13 * 64)

        def test_strangers_are_refused(self):
            with self.assertRaisesRegex(skein_env.EnvError, "want a gymnasium.Env"):
                adapt(object())

    suite = unittest.defaultTestLoader.loadTestsFromTestCase(Inside)
    sys.exit(not unittest.TextTestRunner().run(suite).wasSuccessful())


if __name__ == "__main__":
    if "--inside" in sys.argv:
        inside()
    fetched = subprocess.run([str(ROOT / "scripts" / "fetch_python.sh"), "environments"])
    if fetched.returncode == 75:
        print("skipped: the packages cannot be fetched")
        sys.exit(77)
    fetched.check_returncode()
    unittest.main()
