#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The built wheel on a machine without compilers: in a bare Debian with Python's venv (scripts/fetch_bare_root.sh), which of
this machine has the kernel, the name server, the certificates, and the wheel.

    [SKEIN_WHEEL=FILE] tests/python/bare_machine_test.py        # without FILE, a wheel of the programs in SKEIN_BIN

Prints the seconds from the fresh virtual environment to the first line of training (docs/python.md). Exits with 77, skipped,
where there is no root, no debootstrap or no network.
"""

import json
import os
import pathlib
import re
import shutil
import subprocess
import tempfile
import time
import unittest

from fetched_python import ROOT, fetch, fetch_by

BIN = pathlib.Path(os.environ.get("SKEIN_BIN", ROOT / "build" / "release"))
CERTIFICATES = "etc/ssl/certs/ca-certificates.crt"
COMPILERS = re.compile(r"gcc|g\+\+|cc|c\+\+|clang|ld|make|cmake|ninja|nvcc")
# What Skein links, but for what Debian itself has everywhere: the C and the C++ library, zlib, zstd, OpenSSL.
LIBRARIES = re.compile(r"torch|blas|gomp|grpc|proto|mujoco|absl|yaml|spdlog|prometheus", re.IGNORECASE)


def make_wheel(folder):
    if "SKEIN_WHEEL" in os.environ:
        return pathlib.Path(os.environ["SKEIN_WHEEL"])
    fetch("wheel")
    subprocess.run(["cmake", "--build", BIN, "--target", "skein-bench", "man", "completion"], check=True)
    made = subprocess.run([ROOT / "scripts/make_wheel.py", BIN, folder], stdout=subprocess.PIPE, text=True, check=True)
    return pathlib.Path(made.stdout.strip())


class BareMachine(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        wheel = make_wheel(pathlib.Path(folder.name) / "made")
        cls.root = pathlib.Path(folder.name) / "root"
        subprocess.run(["cp", "-a", ROOT / ".deps/bare-root", cls.root], check=True)
        cls.home = cls.root / "home"
        shutil.copy(wheel, cls.home)
        shutil.copy("/etc/resolv.conf", cls.root / "etc/resolv.conf")
        shutil.copy(os.environ.get("PIP_CERT", f"/{CERTIFICATES}"), cls.root / CERTIFICATES)
        cls.begin = time.monotonic()
        cls.run_there("python3 -m venv venv")
        cls.run_there("venv/bin/pip install --quiet --disable-pip-version-check --no-input ./skein_rl-*.whl")
        cls.installed = time.monotonic()

    @classmethod
    def start_there(cls, command):
        """A shell in the bare root, with processes of its own, which all end with it."""
        asked = {name: value for name, value in os.environ.items() if name.endswith("INDEX_URL") or name.endswith("_proxy")}
        return subprocess.Popen(
            ["unshare", "--mount", "--pid", "--fork", "--kill-child", f"--mount-proc={cls.root}/proc", shutil.which("chroot"),
             cls.root, "/bin/sh", "-ec", f"cd /home; {command}"],
            env={"PATH": "/usr/sbin:/usr/bin:/bin", "HOME": "/home", "PIP_CERT": f"/{CERTIFICATES}", **asked},
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)

    @classmethod
    def run_there(cls, command):
        process = cls.start_there(command)
        said = process.communicate()[0]
        if process.returncode != 0:
            raise AssertionError(f"{command} ended with {process.returncode}: {said[-2000:]}")
        return said

    # First by its name: the seconds that it prints are those since the virtual environment was begun.
    def test_a_first_cartpole(self):
        process = self.start_there("exec venv/bin/skein train --env CartPole-v1 --name first")
        metrics = self.home / "runs/first/metrics.jsonl"
        while process.poll() is None and not (metrics.exists() and metrics.read_text().count("\n")):
            time.sleep(0.05)
        first_line = time.monotonic()
        said = process.communicate()[0]
        self.assertEqual(process.returncode, 0, said)
        self.assertEqual(json.loads((self.home / "runs/first/eval.json").read_text())["return_mean"], 500, said)
        print(f"from a fresh virtual environment to the first line of training {first_line - self.begin:.1f} s, of which"
              f" {self.installed - self.begin:.1f} s to install; trained and evaluated after {time.monotonic() - self.begin:.1f} s")

    def test_mujoco_and_python_come_along(self):
        (self.home / "cheetah.py").write_text("""if True:
            import skein_rl as skein
            run = skein.train("half_cheetah_ppo.yaml", steps=1, quiet=True)
            print(run.wait()["env_steps"] > 0, run.policy()([0.0] * 17).shape)
        """)
        self.assertEqual(self.run_there("venv/bin/python cheetah.py"), "True (6,)\n")
        self.assertIn("HalfCheetah-v5", self.run_there("venv/bin/skein export --checkpoint runs/HalfCheetah-v5-s1 --format c --json"))

    def test_there_was_nothing_to_help_it(self):
        programs = self.run_there("ls /usr/bin /usr/sbin /usr/local/bin").split()
        self.assertEqual([name for name in programs if COMPILERS.fullmatch(name)], [])
        self.assertEqual(LIBRARIES.findall(self.run_there("ldconfig -p")), [])


if __name__ == "__main__":
    fetch_by("fetch_bare_root.sh")
    unittest.main(verbosity=2)
