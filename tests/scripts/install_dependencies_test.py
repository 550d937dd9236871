#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""scripts/install_dependencies.sh on systems with other packages, with an apt that answers as told."""
import os
import pathlib
import shutil
import subprocess
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
TOOLS = ("sh", "cat", "dirname", "env", "sed", "grep", "tr", "awk", "flock")
FAKES = {
    "id": "echo 0",
    "dpkg-query": "cat installed",
    # Of versions sort -V knows enough.
    "dpkg": 'newest=$(printf "%s\\n" "$2" "$4" | /usr/bin/sort -V | /usr/bin/tail -n 1); [ "$newest" = "$2" ]',
    "apt-cache": 'grep "^$2 |" offered || true',
    "apt-get": 'echo "apt-get $*" >>did',
    "python3": "exit 0",
}
DEBIAN = {"libgrpc++-dev": "1.51.1", "libtorch-dev": "1.13.1", "libgloo-dev": "0.0", "libopenblas0-pthread": "0.3.21"}


class InstallDependencies(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name)
        self.bin = self.root / "bin"
        self.bin.mkdir()
        for tool in TOOLS:
            (self.bin / tool).symlink_to(shutil.which(tool))
        (self.root / "scripts").mkdir()
        shutil.copy(ROOT / "scripts/install_dependencies.sh", self.root / "scripts")
        for name in ("fetch_torch", "fetch_mujoco"):
            self.script(self.root / f"scripts/{name}.sh", f"echo {name} >>did")
        (self.root / "installed").touch()

    def script(self, path, text):
        path.write_text(f"#!/bin/sh\n{text}\n")
        path.chmod(0o755)

    def packages(self):
        """All of purpose build, by the script's own words where there is no apt."""
        return self.run_script().stderr.split("what Debian calls ")[1].split(", then")[0].split()

    def offer(self, versions):
        lines = [f"{name} | {versions.get(name, '1.0')} | archive" for name in self.packages()
                 if versions.get(name, "1.0")]
        (self.root / "offered").write_text("\n".join(lines) + "\n")
        for name, text in FAKES.items():
            self.script(self.bin / name, text)

    def run_script(self, **environment):
        return subprocess.run([self.root / "scripts/install_dependencies.sh", "build"], cwd=self.root, text=True,
                              capture_output=True, env={"PATH": str(self.bin), **environment})

    def did(self):
        path = self.root / "did"
        return path.read_text() if path.exists() else ""

    def test_without_apt_one_line_names_what_to_install(self):
        ended = self.run_script()
        self.assertEqual(ended.returncode, 69)
        self.assertEqual(ended.stderr.count("\n"), 1, ended.stderr)
        self.assertIn("libgrpc++-dev", ended.stderr)
        self.assertIn("INSTALL=no", ended.stderr)

    def test_debian_gets_all_from_apt(self):
        self.offer(DEBIAN)
        ended = self.run_script()
        self.assertEqual((ended.returncode, ended.stderr), (0, ""))
        self.assertIn(" libtorch-dev libgloo-dev libopenblas0-pthread", self.did())
        self.assertTrue(self.did().endswith("\nfetch_mujoco\n"), self.did())
        self.assertNotIn("fetch_torch", self.did())

    def test_pip_and_venv_come_where_python_has_none(self):
        self.offer(DEBIAN)
        self.run_script()
        self.assertNotIn("python3-", self.did())
        self.script(self.bin / "python3", "exit 1")
        with open(self.root / "offered", "a") as offered:
            offered.write("python3-pip | 1.0 | archive\npython3-venv | 1.0 | archive\n")
        ended = self.run_script()
        self.assertEqual((ended.returncode, ended.stderr), (0, ""))
        self.assertIn(" python3-pip python3-venv", self.did())

    def test_without_a_libtorch_in_apt_it_is_fetched_after_the_packages(self):
        for version in (None, "1.8.1"):  # Ubuntu 24.04's, were gRPC new enough that of 22.04.
            (self.root / "did").unlink(missing_ok=True)
            for name in FAKES:
                (self.bin / name).unlink(missing_ok=True)
            self.offer({**DEBIAN, "libtorch-dev": version})
            ended = self.run_script()
            self.assertEqual((ended.returncode, ended.stderr), (0, ""))
            update, install, torch, mujoco = self.did().splitlines()
            self.assertEqual((torch, mujoco), ("fetch_torch", "fetch_mujoco"))
            self.assertIn("libgrpc++-dev", install)
            self.assertNotIn("torch", install)
            self.assertNotIn("gloo", install)

    def test_a_fetched_or_a_users_own_libtorch_is_left_in_place(self):
        self.offer({**DEBIAN, "libtorch-dev": None})
        self.assertEqual(self.run_script(CMAKE_PREFIX_PATH="/opt/torch").returncode, 0)
        (self.root / ".deps/torch").mkdir(parents=True)
        self.assertEqual(self.run_script().returncode, 0)
        self.assertNotIn("torch", self.did())

    def test_too_old_packages_are_refused_by_name_before_anything_is_installed(self):
        self.offer({**DEBIAN, "libgrpc++-dev": "1.30.2", "libtorch-dev": None, "prometheus-cpp-dev": None})
        ended = self.run_script()
        self.assertEqual(ended.returncode, 69)
        self.assertIn("libgrpc++-dev of 1.51 or newer prometheus-cpp-dev", ended.stderr)
        self.assertEqual(ended.stderr.count("\n"), 1, ended.stderr)
        self.assertEqual(self.did(), "apt-get update -q\n")


unittest.main()
