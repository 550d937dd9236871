#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What the documentation says to type about heads, workers and Prometheus is typed, literally, and Prometheus must then
scrape every process. Nothing is replaced: the test runs in network, mount and process namespaces of its own, where HEAD
and coordinator are names of this machine and every port is free. Only `global` is put in front of a configuration, so that
Prometheus does not take a minute for its first scrape.

Run in the root of the tree, with SKEIN_BIN = the folder of the programs. Needs iproute2, and root or a kernel that lets
users make namespaces. SKEIN_ALLOW_NO_NETNS=1: without them it is skipped (77) instead of failing.
"""
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time
import unittest
import urllib.parse
import urllib.request

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/testing"))
from code_blocks import commands, fenced, indented  # noqa: E402

INSIDE = "SKEIN_SNIPPETS_INSIDE"
ADDRESS = "10.99.0.1"
FAST = "global: {scrape_interval: 500ms, scrape_timeout: 500ms, evaluation_interval: 500ms}\n"
# Trains for as long as the test takes.
RUN = """
total_steps: 1000000000
env: {id: CartPole-v1}
rollout: {num_envs: 16, envs_per_runner: 8, steps_per_iteration: 1024}
ppo: {minibatch_size: 1024}
"""


def wait_until(what, condition, seconds=60):
    deadline = time.monotonic() + seconds
    while True:
        last = condition()
        if last is True:
            return
        if time.monotonic() > deadline:
            raise AssertionError(f"waited {seconds} s in vain for {what}: {last}")
        time.sleep(0.1)


def ask(path):
    """Prometheus' API, or what went wrong."""
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:9090/api/v1/{path}", timeout=5) as answer:
            return json.load(answer)["data"]
    except OSError as error:
        return {"error": str(error)}


class Snippets(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp())
        self.running = []
        (self.folder / "run.yaml").write_text(RUN)
        for name in ("configs", "deploy"):
            shutil.copytree(ROOT / name, self.folder / name)
        self.environment = {"PATH": f"{os.environ['SKEIN_BIN']}:{os.environ['PATH']}", "HOME": str(self.folder)}

    def tearDown(self):
        for process, _ in reversed(self.running):
            process.terminate()
        for process, name in reversed(self.running):
            try:
                process.wait(timeout=20)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        shutil.rmtree(self.folder)

    def log(self, name):
        path = self.folder / f"{name}.log"
        return path.read_text() if path.exists() else ""

    def start(self, command, name):
        """The line as it is; bash becomes the program."""
        with open(self.folder / f"{name}.log", "w") as log:
            process = subprocess.Popen(["bash", "-c", f"exec {command}"], cwd=self.folder, env=self.environment,
                                       stdout=log, stderr=subprocess.STDOUT)
        self.running.append((process, name))
        return process

    def type(self, block):
        """Runs the commands of a block; heads and workers go on beside it."""
        for line in commands(block):
            export = re.match(r"export (\w+)=(\S+)", line)
            if export:
                self.environment[export[1]] = export[2]
            elif line.startswith("skein head"):
                self.start(line, "head")
                self.wait_for_learner()
            elif line.startswith("skein worker"):
                self.start(line, "worker")
                wait_until("the worker", lambda: "joined" in self.log("worker") or self.log("worker"))
            else:
                done = subprocess.run(["bash", "-c", line], cwd=self.folder, env=self.environment, capture_output=True,
                                      text=True)
                self.assertEqual(done.returncode, 0, f"{line}: {done.stdout}{done.stderr}")

    def wait_for_learner(self):
        def listens():
            logs = [path.read_text() for path in self.folder.glob("runs/*/log/learner*.log")]
            return any("learner listening" in text for text in logs) or (self.log("head"), *logs)

        wait_until("the learner", listens)

    def watch(self, configuration):
        (self.folder / "prometheus.yml").write_text(FAST + configuration)
        self.start("prometheus --config.file=prometheus.yml", "prometheus")

    def expect_targets_up(self, *roles):
        """Of each of these roles there is a target, and every target is scraped."""
        def up():
            targets = ask("targets?state=active").get("activeTargets", [])
            have = {t["labels"].get("role") for t in targets if t["health"] == "up"}
            down = [(t["scrapeUrl"], t["lastError"]) for t in targets if t["health"] != "up"]
            return (have == set(roles) and not down) or f"up: {have}, not: {down}\n{self.log('prometheus')[-1500:]}"

        wait_until(f"{roles} to be scraped", up)

    def test_token(self):
        self.type(indented("docs/security.md", "skein certs init"))
        self.watch(fenced("docs/security.md", "yaml")[0])
        self.expect_targets_up("coordinator", "learner")  # A worker's metrics are on its loopback, unless it is told.

    def test_token_and_tls(self):
        start = indented("docs/security.md", "skein certs init").splitlines()
        self.type(start[0])
        self.type(indented("docs/security.md", "skein head   --config run.yaml --host 0.0.0.0 --tls-cert"))
        self.watch(fenced("docs/security.md", "yaml")[1])
        self.expect_targets_up("coordinator", "learner")

    def test_quickstart(self):
        self.type(indented("docs/quickstart.md", "skein certs init"))
        self.watch(fenced("docs/security.md", "yaml")[0])
        self.expect_targets_up("coordinator", "learner")

    def start_open_head(self):
        self.start("skein head --config run.yaml --host 0.0.0.0 --insecure", "head")
        self.wait_for_learner()

    def test_quickstart_without_a_token(self):
        self.start_open_head()
        self.watch(indented("docs/quickstart.md", "scrape_configs:"))
        self.expect_targets_up("coordinator", "learner")

    def test_monitoring(self):
        self.start_open_head()  # As the coordinator of compose.yaml: nobody is asked.
        self.start("skein worker --address HEAD:7070 --metrics 0.0.0.0:0 --insecure", "worker")
        wait_until("the worker", lambda: "joined" in self.log("worker") or self.log("worker"))
        self.start(indented("docs/monitoring.md", "prometheus --config.file=").strip(), "prometheus")
        self.expect_targets_up("coordinator", "learner", "actor")

        # The adapter's rule of docs/kubernetes.md, filled in as prometheus-adapter does.
        rule = indented("docs/kubernetes.md", "externalRules:")
        (series,) = re.findall(r"seriesQuery: '(.*)'", rule)
        (query,) = re.findall(r"metricsQuery: '(.*)'", rule)
        (run,) = {t["labels"]["run"] for t in ask("targets?state=active")["activeTargets"]}
        query = query.replace("<<.Series>>", series).replace("<<.LabelMatchers>>", f'run="{run}"')

        def wanted():
            result = ask("query?query=" + urllib.parse.quote(query)).get("result", [])
            return (len(result) == 1 and result[0]["metric"] == {"run": run}
                    and float(result[0]["value"][1]) >= 1) or f"{query}: {result}"

        wait_until("the number of actors wanted", wanted)

    def test_where_alerts_lead_to(self):
        rules = self.folder / "deploy/prometheus/rules/alerts.yml"
        alerts = rules.read_text().count("- alert: ")
        self.type(indented("docs/monitoring.md", "sed -i"))
        self.assertEqual(rules.read_text().count("runbook_url: https://git.example.org/skein/docs/monitoring.md#"), alerts)
        checked = subprocess.run(["promtool", "check", "rules", rules], capture_output=True, text=True)
        self.assertEqual(checked.returncode, 0, checked.stderr)


def enter():
    """Begins this script anew in namespaces of its own."""
    unshare = ["unshare", "--net", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc"]
    if os.geteuid() != 0:
        unshare += ["--user", "--map-root-user"]
    if subprocess.run([*unshare, "true"], capture_output=True).returncode != 0:
        print("snippets_test: this system allows no namespaces; run as root, or set SKEIN_ALLOW_NO_NETNS=1 to skip",
              file=sys.stderr)
        sys.exit(77 if os.environ.get("SKEIN_ALLOW_NO_NETNS") == "1" else 1)
    sys.exit(subprocess.run([*unshare, sys.executable, __file__, *sys.argv[1:]],
                            env={**os.environ, INSIDE: "1"}).returncode)


def name_this_machine(folder):
    names = f"HEAD head.example.org coordinator {os.uname().nodename}"
    hosts = pathlib.Path(folder, "hosts")
    hosts.write_text(f"127.0.0.1 localhost\n{ADDRESS} {names}\n")
    for command in (["ip", "link", "set", "lo", "up"], ["ip", "addr", "add", f"{ADDRESS}/24", "dev", "lo"],
                    ["mount", "--bind", hosts, "/etc/hosts"]):
        subprocess.run(command, check=True)


if __name__ == "__main__":
    if INSIDE not in os.environ:
        enter()
    with tempfile.TemporaryDirectory() as scratch:
        name_this_machine(scratch)
        result = unittest.main(exit=False).result
    sys.exit(0 if result.wasSuccessful() else 1)
