#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`pip install ./python/skein_env` into a fresh virtual environment: the package serves an environment, to skein's programs
and by its own command line, with nothing else of the tree in sight.

Exits with 77, skipped, where pip cannot fetch what the package needs (scripts/fetch_python.sh).
"""

import os
import pathlib
import re
import shutil
import subprocess
import tempfile
import unittest
import venv

from fetched_python import ROOT, fetch

BIN = pathlib.Path(os.environ.get("SKEIN_BIN", ROOT / "build" / "release"))
OWN_ENV = '''
import numpy as np
import skein_env


class Walk(skein_env.Single):
    """Walks along a line, and ends after ten steps."""

    spec = skein_env.Spec(num_agents=1, obs_size=1, discrete=False, action_size=1, action_low=[-1], action_high=[1])

    def reset(self, seed, obs):
        self.steps, self.at = 0, seed / 2**31
        obs[:] = self.at

    def step(self, action, obs, reward):
        self.steps += 1
        self.at += float(action[0, 0])
        obs[:], reward[:] = self.at, -abs(self.at)
        return self.steps == 10, False
'''


class EnvPackage(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.folder = pathlib.Path(folder.name)
        (cls.folder / "own_env.py").write_text(OWN_ENV)
        # pip builds in the folder that it is given.
        shutil.copytree(ROOT / "python" / "skein_env", cls.folder / "clone" / "skein_env",
                        ignore=shutil.ignore_patterns("__pycache__", "build", "*.egg-info"))
        venv.create(cls.folder / "venv", with_pip=True)
        cls.python = cls.folder / "venv" / "bin" / "python"
        cls.plain = {"PATH": "/usr/bin:/bin", "HOME": str(cls.folder)}  # No PYTHONPATH.
        cls.run_in_venv("-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-input",
                        cls.folder / "clone" / "skein_env")

    @classmethod
    def run_in_venv(cls, *arguments, program=None, code=0):
        command = [str(part) for part in (program or cls.python, *arguments)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=240, env=cls.plain, cwd=cls.folder)
        if done.returncode != code:
            raise AssertionError(f"{command} ended with {done.returncode}: {done.stdout[-2000:]} {done.stderr[-2000:]}")
        return done

    def test_all_of_the_package_is_installed(self):
        done = self.run_in_venv("-c", "import skein_env, skein_env.adapters.gymnasium; print(skein_env.__file__)")
        installed = pathlib.Path(done.stdout.strip()).parent
        self.assertIn(self.folder / "venv", installed.parents)
        ours = ROOT / "python" / "skein_env"
        files = {path.relative_to(ours) for path in ours.rglob("*") if path.suffix in (".py", ".typed")}
        self.assertEqual({path for path in files if not (installed / path).exists()}, set())
        for package in ("numpy", "grpc"):
            self.run_in_venv("-c", f"import {package}")

    def test_it_has_a_command_line(self):
        self.assertRegex(self.run_in_venv("-m", "skein_env", "--version").stdout, r"\d+\.\d+\.\d+")
        self.assertIn("--max-streams", self.run_in_venv("-m", "skein_env", "--help").stdout)

    def test_it_serves_an_environment(self):
        server = subprocess.Popen([self.python, "-m", "skein_env", "own_env:Walk", "--listen", "127.0.0.1:0"], env=self.plain,
                                  cwd=self.folder, stdout=subprocess.PIPE, text=True)
        try:
            address = re.search(r"grpc://(\S+)", server.stdout.readline()).group(1)
            said = self.run_in_venv("env", "check", f"grpc://{address}", "--num-envs", "2", "--seconds", "1",
                                    program=BIN / "skein").stdout
        finally:
            server.terminate()
            server.communicate(timeout=30)
        self.assertIn("it keeps the contract", said)

    def test_skein_starts_it(self):
        said = self.run_in_venv("env", "check", "python:own_env:Walk", "--num-envs", "2", "--seconds", "1", "--set",
                                f"env.external.python={self.python}", program=BIN / "skein").stdout
        self.assertIn("it keeps the contract", said)


if __name__ == "__main__":
    fetch("environments")
    unittest.main()
