#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Shares of a machine (docs/resources.md) with real programs and the real kernel: a worker holds itself to its run's
share, exports it, and uses no more; an actor that needs more memory than its share fails by itself, and the run says
why; trainings of a sweep have theirs.

With SKEIN_BIN = the folder of the programs.
"""
import json
import os
import pathlib
import re
import socket
import subprocess
import tempfile
import time
import unittest
import urllib.request

ROOT = pathlib.Path(__file__).resolve().parents[2]
BIN = pathlib.Path(os.environ.get("SKEIN_BIN", ROOT / "build" / "release")).resolve()


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def wait_until(what, condition, seconds=90):
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            raise AssertionError(f"waited {seconds} s in vain for {what}")
        time.sleep(0.05)


class Resources(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.environment = {**os.environ, "SKEIN_BOOKINGS": str(self.folder / "bookings")}

    def start(self, name, *arguments):
        log = open(self.folder / f"{name}.log", "w")
        self.addCleanup(log.close)
        process = subprocess.Popen([BIN / "skein", *map(str, arguments)], stdout=log, stderr=log, cwd=self.folder,
                                   env=self.environment)

        def end():
            process.terminate()
            process.wait(timeout=60)
        self.addCleanup(end)
        return process

    def log(self, name):
        return (self.folder / f"{name}.log").read_text()

    def test_a_worker_holds_itself_to_its_share(self):
        port, metrics = free_port(), free_port()
        self.start("head", "head", "--env", "CartPole-v1", "--port", port, "--http-port", 0, "--steps", 10**9,
                   "--no-eval", "--set", "sync.mode=overlapped", "--set", "resources.actor.cpus=0.25", "--set",
                   "resources.actor.memory=1GiB")
        self.start("worker", "worker", "--address", f"127.0.0.1:{port}", "--runners", 1, "--metrics",
                   f"127.0.0.1:{metrics}")
        wait_until("the worker's share", lambda: "share of this actor: CPU by" in self.log("worker"))

        def scrape():
            text = urllib.request.urlopen(f"http://127.0.0.1:{metrics}/metrics", timeout=10).read().decode()
            return {name: float(value) for name, value in re.findall(r"^(\w+) (\S+)$", text, re.MULTILINE)}

        wait_until("the policy", lambda: scrape()["process_cpu_seconds_total"] > 0.3)
        self.assertEqual(scrape()["skein_process_requested_cpus"], 0.25)
        self.assertEqual(scrape()["skein_process_requested_memory_bytes"], 2**30)
        if "CPU by a control group" not in self.log("worker"):
            return  # Affinity and priority give it more where the machine is idle.
        begin, before = time.monotonic(), scrape()["process_cpu_seconds_total"]
        time.sleep(3)
        used = (scrape()["process_cpu_seconds_total"] - before) / (time.monotonic() - begin)
        # A period of 0.1 s and a sample of 0.5 s more or less: 0.25 x (1 + 0.6 / 3). Less on a machine that is busy.
        self.assertLess(used, 0.3)

    def test_an_actor_that_needs_more_memory_fails_by_itself(self):
        done = subprocess.run(
            [BIN / "skein", "train", "--env", "CartPole-v1", "--name", "run", "--no-eval", "--envs", "65536",
             "--envs-per-runner", "65536", "--runners", "1", "--set", "rollout.steps_per_iteration=4194304", "--set",
             "resources.actor.memory=64MiB"],
            capture_output=True, text=True, cwd=self.folder, env=self.environment, timeout=280)
        self.assertNotEqual(done.returncode, 0)
        last = done.stderr.strip().splitlines()[-1]
        self.assertIn("actor-1", last)
        self.assertIn("raise resources.actor.memory", last)
        # The learner did not suffer: nothing in its log but that it was told to end.
        self.assertNotIn("error", (self.folder / "runs/run/log/learner.log").read_text())

    def test_what_is_booked_is_not_left(self):
        def left():
            said = subprocess.run([BIN / "skein", "resources", "--json"], capture_output=True, text=True,
                                  env=self.environment)
            return json.loads(said.stdout)

        before = left()
        self.assertEqual(before["runs"], [])
        self.start("train", "train", "--env", "CartPole-v1", "--name", "run", "--runners", 1, "--steps", 10**9, "--set",
                   "resources.learner.cpus=0.5", "--set", "resources.actor.cpus=0.25")
        wait_until("the run", lambda: "share of each actor" in self.log("train"))
        during = left()
        self.assertEqual([(run["run"], run["cpus"]) for run in during["runs"]], [("run", 0.75)])
        self.assertAlmostEqual(during["left"]["cpus"], before["left"]["cpus"] - 0.75)
        refused = subprocess.run([BIN / "skein", "train", "--env", "CartPole-v1", "--name", "other", "--set",
                                  f"resources.learner.cpus={before['left']['cpus']}"], capture_output=True, text=True,
                                 cwd=self.folder, env=self.environment)
        self.assertEqual(refused.returncode, 64)
        self.assertIn("run run (process", refused.stderr)
        self.assertFalse((self.folder / "runs/other").exists())

    def scrape(self, port):
        text = urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=10).read().decode()
        return {name: float(value) for name, value in re.findall(r"^(\w+) (\S+)$", text, re.MULTILINE)}

    def sweep(self, resources, name, *arguments, space="ppo.lr: [1e-3, 1e-4]"):
        (self.folder / f"{name}.yaml").write_text(
            f"sampler: {{kind: grid}}\ntest_seeds: 0\nresources: {resources}\nspace:\n  {space}\n")
        return ["sweep", "--env", "CartPole-v1", "--space", self.folder / f"{name}.yaml", *arguments]

    def test_trainings_of_a_sweep_have_their_share(self):
        metrics = free_port()
        self.start("sweep", *self.sweep("{cpus: 0.3, memory: 1GiB}", "space", "--steps", 10**9, "--slots", 2,
                                        "--metrics-listen", f"127.0.0.1:{metrics}"))
        wait_until("the trainings", lambda: "share of each training: CPU by" in self.log("sweep"))
        self.assertIn("2 slots of 0.3 cores, 1 GiB", self.log("sweep"))
        said = subprocess.run([BIN / "skein", "resources", "--json"], capture_output=True, text=True,
                              env=self.environment)
        booked = json.loads(said.stdout)["runs"]
        self.assertEqual([(run["run"], run["cpus"], run["memory_bytes"]) for run in booked], [("space", 0.6, 2**31)])
        # More than is left.
        cpus = f"{json.loads(said.stdout)['machine']['cpus']:g}"
        refused = subprocess.run([BIN / "skein", *map(str, self.sweep(f"{{cpus: {cpus}}}", "other", "--slots", 1))],
                                 capture_output=True, text=True, cwd=self.folder, env=self.environment)
        self.assertEqual(refused.returncode, 64, refused.stderr)
        self.assertIn(f"resources.cpus: the trainings of 1 slot ask for {cpus} of CPUs, and "
                      f"{float(cpus) - 0.6:g} of {cpus} is left on this machine: run space (process ", refused.stderr)
        self.assertFalse((self.folder / "runs/other").exists())
        wait_until("the use", lambda: self.scrape(metrics)["skein_sweep_used_cpu_seconds"] > 1)
        seen = self.scrape(metrics)
        self.assertEqual(seen["skein_sweep_slot_requested_cpus"], 0.3)
        self.assertEqual(seen["skein_sweep_slot_requested_memory_bytes"], 2**30)
        self.assertGreater(seen["skein_sweep_used_memory_bytes"], 2**20)
        if "CPU by a control group" not in self.log("sweep"):
            return  # Affinity and priority give them more where the machine is idle.
        begin, before = time.monotonic(), seen["skein_sweep_used_cpu_seconds"]
        time.sleep(10)
        used = (self.scrape(metrics)["skein_sweep_used_cpu_seconds"] - before) / (time.monotonic() - begin)
        # A second between samples, and a period of 0.1 s of each slot: 0.6 x (1 + 1.1 / 10). Less where others work.
        self.assertLess(used, 0.67)

    def test_a_training_that_needs_more_memory_than_its_share_fails_and_the_other_does_not(self):
        arguments = self.sweep("{memory: 700MiB}", "space", "--steps", 65536, "--slots", 1,
                               space="model.hidden: [[64], [8192, 8192]]")
        done = subprocess.run([BIN / "skein", *map(str, arguments)], capture_output=True, text=True, cwd=self.folder,
                              env=self.environment, timeout=400)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        rows = (self.folder / "runs/space/sweep.csv").read_text().splitlines()
        self.assertEqual([row.split(",")[1] for row in rows[1:]], ["complete", "failed"], done.stdout)
        if "memory by a control group" in done.stdout:
            self.assertIn("it needed more memory than its share of 700 MiB; raise resources.memory", rows[2])


if __name__ == "__main__":
    unittest.main(verbosity=2)
