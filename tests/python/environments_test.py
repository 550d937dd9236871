#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Environments of other libraries in Skein: training, faults and servers, with the real libraries."""

import json
import os
import pathlib
import re
import shlex
import subprocess
import sys
import tempfile
import time
import unittest

from fetched_python import ROOT, fetch, python_of

sys.path.insert(0, str(ROOT / "tests/testing"))
from code_blocks import fenced, indented  # noqa: E402

BIN = pathlib.Path(os.environ.get("SKEIN_BIN", ROOT / "build" / "release"))
PYTHON = python_of("environments")
HERE = pathlib.Path(__file__).resolve().parent
ENVIRONMENT = {**os.environ, "PYTHONPATH": f"{HERE}:{ROOT / 'python'}"}
OWN_PYTHON = ("--set", f"env.external.python={PYTHON}")


def run(*command, code=0, cwd=None, **more):
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True, timeout=240, cwd=cwd,
                          env={**ENVIRONMENT, **more})
    if done.returncode != code:
        raise AssertionError(f"{command} ended with {done.returncode}, want {code}: {done.stdout} {done.stderr}")
    return done


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

    def test_the_file_and_the_command_of_the_documentation_train(self):
        (block,) = fenced("docs/environments.md", "python")
        program, *words = shlex.split(indented("docs/environments.md", "skein train --env python:my_env:make"))
        with tempfile.TemporaryDirectory() as folder:
            (pathlib.Path(folder) / "my_env.py").write_text(block)
            run(BIN / program, *words, *OWN_PYTHON, "--steps", "4096", "--name", "run", "--no-eval", cwd=folder)
            manifest = json.loads((pathlib.Path(folder) / "runs/run/checkpoints/latest/manifest.json").read_text())
            self.assertEqual(manifest["env_id"], "python:my_env:make")

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
        for fault, said in (("kill", "was ended by signal 9"), ("sigint", "was ended by signal 2"), ("hang", "has not answered within 1 s"),
                            ("raise", r"ZeroDivisionError: division by zero \(.*team_envs.py:\d+ in step"),
                            ("often", r"ZeroDivisionError: division by zero \(.*team_envs.py:\d+ in step"),
                            ("exit", r"SystemExit: 3 \(.*team_envs.py:\d+ in step"),
                            ("interrupt", r"KeyboardInterrupt: +\(.*team_envs.py:\d+ in step"),
                            ("nan", "number 0 of the observation is -?nan"),
                            ("shape", r"an observation has the shape \(5,\), the space says \(4,\)")):
            with self.subTest(fault), tempfile.TemporaryDirectory() as folder:
                done = self.train(folder, "python:team_envs:faulty", "--steps", "8000", "--set",
                                  "rollout.steps_per_iteration=2048", "--set", "rollout.step_timeout_seconds=1", "--runners",
                                  "2", *([] if fault == "raise" else ["--no-eval"]), TEAM_FAULT=fault)
                log = "".join(path.read_text() for path in pathlib.Path(folder).glob("run/**/*.log")) + done.stderr
                self.assertRegex(log, said)
                self.assertNotIn("built anew", log)
                lines = [json.loads(line) for line in (pathlib.Path(folder) / "run/metrics.jsonl").read_text().splitlines()]
                failed = sum(line["failed_episodes"] for line in lines)
                self.assertGreater(failed, 0)
                if fault == "often":  # 8,000 steps / 20 = 400.
                    self.assertGreater(failed, 200)
                self.assertGreater(lines[-1]["episodes"], 50)
                if fault not in ("kill", "sigint", "hang"):  # Nothing but the episode.
                    self.assertNotIn("its server", log)
                if fault == "raise":  # The evaluation loses episodes, too: they are no results.
                    found = json.loads((pathlib.Path(folder) / "run/eval.json").read_text())
                    self.assertEqual(found["episodes"] + found["failed_episodes"], 10)
                    self.assertGreater(found["failed_episodes"], 0)
                    self.assertIn("of 10 episodes failed and are left out", done.stderr)

    def test_episodes_that_failed_are_in_no_mean_of_the_training(self):
        with tempfile.TemporaryDirectory() as folder:
            self.train(folder, "python:team_envs:fragile", "--steps", "4000", "--set", "rollout.steps_per_iteration=2048",
                       "--no-eval")
            lines = [json.loads(line) for line in (pathlib.Path(folder) / "run/metrics.jsonl").read_text().splitlines()]
            self.assertGreater(lines[-1]["episodes"], 100)
            self.assertGreater(lines[-1]["failed_episodes"], 30)
            for line in lines:
                self.assertEqual((line["episode_return_mean"], line["episode_metrics"]), (10, {"whole": 1}))

    def test_a_training_in_which_every_episode_fails_warns_and_its_evaluation_ends_it(self):
        for more, code in ((["--no-eval"], 0), ([], 65)):
            with tempfile.TemporaryDirectory() as folder:
                done = self.train(folder, "python:team_envs:doomed", "--steps", "4000", "--set", "rollout.steps_per_iteration=1024",
                                  *more, code=code)
                said = re.findall(r"warning: each of the (\d+) episodes that have ended failed", done.stderr + done.stdout)
                self.assertEqual(len(said), 1, done.stderr)
                self.assertGreaterEqual(int(said[0]), 20)
                lines = [json.loads(line) for line in (pathlib.Path(folder) / "run/metrics.jsonl").read_text().splitlines()]
                self.assertEqual((lines[-1]["episodes"], lines[-1]["episode_return_mean"]), (0, None))
                self.assertGreater(sum(line["failed_episodes"] for line in lines), 500)
                if code == 65:
                    self.assertIn("all 10 episodes failed", done.stderr.splitlines()[-1])

    def test_an_evaluation_in_which_everything_fails_has_no_result(self):
        with tempfile.TemporaryDirectory() as folder:
            self.train(folder, "python:team_envs:faulty", "--steps", "1000", "--set", "rollout.steps_per_iteration=1024",
                       "--no-eval")
            evaluate = [BIN / "skein", "eval", "--checkpoint", folder + "/run", "--episodes", "3", "--json", *OWN_PYTHON,
                        "--set", "rollout.step_timeout_seconds=1"]
            done = run(*evaluate, code=65, TEAM_FAULT="all")
            self.assertIn("all 3 episodes failed", done.stderr.splitlines()[-1])
            self.assertEqual(done.stdout, "")
            begin = time.monotonic()
            done = run(*evaluate, code=65, TEAM_FAULT="reset")
            self.assertRegex(done.stderr.splitlines()[-1], "servers hung 3 times in a row, .* has not answered within 1 s")
            self.assertLess(time.monotonic() - begin, 60)

    def test_a_training_in_which_everything_hangs_ends_after_three_times_the_limit(self):
        for fault in ("reset", "step"):
            with self.subTest(fault), tempfile.TemporaryDirectory() as folder:
                done = self.train(folder, "python:team_envs:faulty", "--steps", "8000", "--set", "rollout.steps_per_iteration=2048",
                                  "--set", "rollout.step_timeout_seconds=1", "--runners", "2", "--no-eval", code=65,
                                  TEAM_FAULT=fault)
                self.assertRegex(done.stderr.splitlines()[-1], "^skein train: actor-1 ended with code 65: .*servers hung 3 times in "
                                 "a row, and no environment of this process has taken a step meanwhile .*, the last time: its "
                                 "server has not answered within 1 s")
                self.assertNotIn("starting again", done.stderr)
                log = (pathlib.Path(folder) / "run/log/actor-1.log").read_text()
                self.assertLessEqual(log.count("and is ended; "), 6)  # Three of each runner.

    def test_why_no_episode_begins_is_on_the_terminal(self):
        with tempfile.TemporaryDirectory() as folder:
            training = subprocess.Popen([str(part) for part in (BIN / "skein", "train", "--env", "python:team_envs:without_a_map",
                                                                "--runs-dir", folder, *OWN_PYTHON)],
                                        env=ENVIRONMENT, stderr=subprocess.STDOUT, stdout=subprocess.PIPE, text=True)
            self.addCleanup(training.stdout.close)
            self.addCleanup(training.kill)
            begin = time.monotonic()
            said = next((line for line in training.stdout if "first error" in line), "")
            training.terminate()
            training.wait(60)
            self.assertRegex(said, r"first error: actor-\d+: .*ValueError: no map of this arena \(.*team_envs.py:\d+ in reset")
            self.assertLess(time.monotonic() - begin, 40)

    def test_mistakes_are_one_line_with_what_and_where(self):
        for env, code, said in (
            ("python:no_such_module:make", 65, "no module 'no_such_module'"),
            ("python:team_envs:no_such", 65, r"team_envs \(.*team_envs.py\) has no function 'no_such'"),
            ("python:team_envs:raises", 65, r"ValueError: no map of this arena \(.*team_envs.py:\d+ in raises\)"),
            ("python:team_envs:a_number", 65, "the function returned a builtins.int"),
            ("python:team_envs:short_without_a_number", 65, r"returned a team_envs.Short, .* it needs a parameter num_envs"),
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

    def test_a_search_refuses_actions_without_bounds(self):
        with tempfile.TemporaryDirectory() as folder:
            config = pathlib.Path(folder) / "mine.yaml"
            config.write_text("env:\n  id: python:team_envs:mixed?action=reals\nars: {top_dirs: 1}\n")
            done = run(BIN / "skein", "train", "--config", config, "--runs-dir", folder + "/runs", *OWN_PYTHON, code=64)
            self.assertEqual(len(done.stderr.splitlines()), 1, done.stderr)
            self.assertRegex(done.stderr, "mine.yaml:2:7: env.id: element 0 of the actions of .* has no fixed bounds")
            self.assertFalse((pathlib.Path(folder) / "runs").exists())

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
        for listen in ("127.0.0.1:99999", "127.0.0.1:abc", "foo"):
            done = run(PYTHON, "-m", "skein_env", "team_envs:cartpole", "--listen", listen, code=64)
            self.assertIn(f"--listen {listen}: want HOST:PORT", done.stderr)
        done = run(PYTHON, "-m", "skein_env", "team_envs:cartpole", "--listen", address.split("/")[0], code=69)
        self.assertEqual(done.stderr, f"skein-env: cannot listen on {address.split('/')[0]}: Address already in use\n")
        done = run(BIN / "skein", "train", "--env", "grpc://127.0.0.1:99999", code=64)
        self.assertIn("want grpc://host:port/name", done.stderr)

    def test_what_cannot_be_made_is_not_served(self):
        for name, said in (("team_envs:nope", "has no function 'nope'"), ("nomod:x", "no module 'nomod'"),
                           ("broken_envs:FailingAsItIsMade", "the parts are missing (")):
            done = run(PYTHON, "-m", "skein_env", name, code=65)
            self.assertIn(said, done.stderr.splitlines()[-1])

    def test_an_evaluation_of_endless_episodes_ends(self):
        done = run(BIN / "skein", "eval", "--baseline", "random", "--env", "python:broken_envs:Endless", "--episodes", "2",
                   "--set", f"env.external.python={PYTHON}", code=65)
        self.assertRegex(done.stderr, r"episode 0 has not ended after 100000 steps.*env\.max_episode_steps=N\n$")

    def test_benchmarks_say_why_an_environment_fails(self):
        done = run(BIN / "skein", "bench", "env", "--env", "python:broken_envs:Raising", "--seconds", "1", "--rounds", "1",
                   "--set", f"env.external.python={PYTHON}", code=69)
        self.assertRegex(done.stderr.splitlines()[-1], r"ValueError: no such cell \(.*broken_envs.py:\d+ in step\)")

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


if __name__ == "__main__":
    fetch("environments")
    unittest.main()
