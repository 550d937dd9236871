#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""What docs/kubernetes.md and docs/cluster.md say to type, as far as that needs no cluster: helm renders each release as
it is written there, what kubectl and docker name exists, and a coordinator takes the sizes that sbatch is given.

Exits with 77, skipped, if the tools cannot be had.
"""
import os
import pathlib
import re
import shlex
import signal
import subprocess
import sys
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
if __name__ == "__main__":
    fetched = subprocess.run([ROOT / "scripts/fetch_kubernetes_tools.sh"])
    if fetched.returncode != 0:
        sys.exit(77)

import yaml  # noqa: E402  (installed by the line above)

import schemas  # noqa: E402
from chart import BIN, HELM  # noqa: E402

sys.path.insert(0, str(ROOT / "tests/testing"))
import code_blocks  # noqa: E402

PAGES = ("docs/kubernetes.md", "docs/cluster.md")


def typed(program):
    """(page, words) of each command of that program in a block."""
    found = []
    for page in PAGES:
        for block in code_blocks.all_indented(page):
            for line in code_blocks.commands(block):
                if line.startswith(program + " "):
                    found.append((page, shlex.split(line, comments=True)))
    return found


def render(words):
    """Of `helm install` or `helm upgrade`; without a cluster there is no release to take values from."""
    arguments = [word for word in words[2:] if word != "--reuse-values"]
    done = subprocess.run([HELM, "template", *arguments, "--kube-version", "1.28.0"], cwd=ROOT, capture_output=True,
                          text=True)
    if done.returncode != 0:
        raise AssertionError(f"{words}: {done.stderr}")
    return [document for document in yaml.safe_load_all(done.stdout) if document]


class Documentation(unittest.TestCase):
    def test_each_release_is_valid(self):
        releases = typed("helm")
        self.assertGreaterEqual(len(releases), 4)
        for page, words in releases:
            with self.subTest(page=page, words=words):
                self.assertIn(words[1], ("install", "upgrade"))
                for document in render(words):
                    for version in schemas.KUBERNETES_VERSIONS:
                        self.assertEqual(schemas.problems_of_object(document, version), [])

    def test_kubectl_names_what_the_release_has(self):
        install = next(words for _, words in typed("helm") if words[1] == "install")
        objects = {(d["kind"].lower(), d["metadata"]["name"]): d for d in render(install)}
        namespace = install[install.index("--namespace") + 1]
        named = typed("kubectl")
        self.assertTrue(named)
        for _, words in named:
            self.assertEqual(words[words.index("-n") + 1], namespace)
            (name,) = [word.removeprefix("svc/") for word in words if word.startswith("svc/")]
            ports = [port["port"] for port in objects["service", name]["spec"]["ports"]]
            self.assertIn(int(words[-1]), ports)

    def test_certificates_name_the_host_that_keda_calls(self):
        (release, namespace) = next((words[2], words[words.index("--namespace") + 1]) for _, words in typed("helm")
                                    if "--namespace" in words)
        (host,) = [words[words.index("--host") + 1] for _, words in typed("skein") if words[1] == "certs"]
        documents = render(["helm", "install", release, "deploy/kubernetes/helm/skein", "--namespace", namespace,
                            "--set", "autoscaling.kind=keda", "--set", "security.tlsSecret=x"])
        (trigger,) = [t for d in documents if d["kind"] == "ScaledObject" for t in d["spec"]["triggers"]]
        self.assertEqual(trigger["metadata"]["scalerAddress"].rsplit(":", 1)[0], host)

    def test_docker_builds_targets_and_arguments_that_there_are(self):
        dockerfile = (ROOT / "deploy/Dockerfile").read_text()
        builds = typed("docker")
        self.assertTrue(builds)
        for _, words in builds:
            self.assertTrue((ROOT / words[words.index("-f") + 1]).is_file())
            self.assertRegex(dockerfile, rf"(?m)^FROM \S+ AS {words[words.index('--target') + 1]}$")
            for flag, value in zip(words, words[1:]):
                if flag == "--build-arg":
                    self.assertRegex(dockerfile, rf"(?m)^ARG {value.split('=')[0]}\b")
        for _, words in typed("deploy/docker/pin_base.sh") or []:
            self.assertTrue(os.access(ROOT / words[0], os.X_OK))

    def test_a_coordinator_takes_the_sizes_of_jobs(self):
        flags = {"--envs": "rollout.num_envs", "--envs-per-runner": "rollout.envs_per_runner"}
        jobs = [words for _, words in typed("sbatch") if words[1].startswith("deploy/")]
        self.assertEqual([words[1] for words in jobs], ["deploy/slurm/plain.sh", "deploy/slurm/heterogeneous.sh"])
        for words in jobs:
            script, config, _, *rest = words[1:]
            self.assertEqual(subprocess.run(["bash", "-n", ROOT / script]).returncode, 0)
            settings = []
            for flag, value in zip(rest[::2], rest[1::2]):
                settings += ["--set", value if flag == "--set" else f"{flags[flag]}={value}"]
            process = subprocess.Popen([BIN / "skein-coordinator", "--config", ROOT / config, *settings, "--listen",
                                        "127.0.0.1:0"], stdout=subprocess.PIPE, text=True)
            self.assertIn("coordinator listening", process.stdout.readline(), words)
            process.send_signal(signal.SIGTERM)
            process.communicate(timeout=20)
            self.assertEqual(process.returncode, 0)
            usage = re.search(r"^#\s+(--(?:.*\\\n#\s+)*.*)$", (ROOT / script).read_text(), re.MULTILINE).group(1)
            self.assertEqual(re.sub(r"\\\n#", " ", usage).split(), rest, f"{script} says something else at its top")


if __name__ == "__main__":
    unittest.main()
