#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The wheel and the tarball that `make wheel` and `make tarball` build, used as their users do: installed into a fresh
virtual environment, with nothing else on the PATH, far from the tree.

Exits with 77, skipped, where pip cannot fetch what it needs (scripts/fetch_python.sh wheel).
"""

import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time
import unittest
import venv
import zipfile

from fetched_python import ROOT, fetch

BIN = pathlib.Path(os.environ.get("SKEIN_BIN", ROOT / "build" / "release"))
PROGRAMS = ("skein", "skein-actor", "skein-bench", "skein-coordinator", "skein-eval", "skein-fit", "skein-learner",
            "skein-policy")
SMALL = ("--set", "rollout.num_envs=8", "--set", "rollout.envs_per_runner=8", "--set",
         "rollout.steps_per_iteration=512", "--set", "ppo.minibatch_size=256")
# Of the GPL; nothing that we distribute may have them.
GPL = re.compile(r"x264|x265|xvid|poppler|opencv|gdal|avcodec", re.IGNORECASE)


def run(*command, **options):
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True, **options)
    if done.returncode != 0:
        raise AssertionError(f"{command[0]} ended with {done.returncode}: {done.stdout[-2000:]} {done.stderr[-2000:]}")
    return done.stdout


def mapped_libraries(pid):
    """Files of shared libraries that a process has loaded."""
    maps = pathlib.Path(f"/proc/{pid}/maps").read_text()
    return {pathlib.Path(path) for path in re.findall(r"(/\S+\.so[.\d]*)$", maps, re.MULTILINE)}


def check_completion(test, share):
    """That bash, zsh and fish find the files below this share/ where each looks for them, and can use them."""
    environment = {"PATH": f"{share.parent}/bin:/usr/bin:/bin", "HOME": str(share), "XDG_DATA_DIRS": str(share), "TERM": "dumb"}
    scripts = {
        "bash": ("source bash-completion/completions/skein; complete -p skein", "-F"),
        "zsh": ("fpath=($PWD/zsh/site-functions $fpath); autoload -Uz compinit; compinit -u -D; print $_comps[skein]; "
                "autoload +X _skein && whence -w _skein", "_skein\n_skein: function\n"),
        "fish": ("complete -C 'skein trai'", "train\t"),
    }
    places = ("bash-completion/completions/skein", "zsh/site-functions/_skein", "fish/vendor_completions.d/skein.fish")
    for (shell, (script, wanted)), place in zip(scripts.items(), places):
        test.assertTrue((share / place).is_file(), place)
        if shutil.which(shell) is None:
            print(f"{place} is not tried: there is no {shell}")
            continue
        test.assertIn(wanted, run(shell, "-c", script, env=environment, cwd=share))


def children_of(pid):
    found = {}
    for folder in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            stat = (folder / "stat").read_text()
        except OSError:
            continue
        if int(stat.rsplit(")", 1)[1].split()[1]) == pid:
            found[os.path.basename(os.readlink(folder / "exe"))] = int(folder.name)
    return found


class Wheel(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.folder = pathlib.Path(folder.name)
        cls.wheel = pathlib.Path(run(ROOT / "scripts/make_wheel.py", BIN, cls.folder / "made").strip())
        begin = time.monotonic()
        venv.create(cls.folder / "venv", with_pip=True)
        cls.bin = cls.folder / "venv/bin"
        run(cls.bin / "pip", "install", "--quiet", "--disable-pip-version-check", "--no-input", cls.wheel)
        cls.install_seconds = time.monotonic() - begin
        cls.plain = {"PATH": str(cls.bin), "HOME": str(cls.folder)}  # No compiler, not even a shell.

    def test_the_first_line_of_training(self):
        begin = time.monotonic()
        process = subprocess.Popen(
            [self.bin / "skein", "train", "--env", "CartPole-v1", "--steps", "1000000000", "--no-eval", *SMALL],
            env=self.plain, cwd=self.folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        try:
            lines = []
            metrics = self.folder / "runs/CartPole-v1-s1/metrics.jsonl"
            while not metrics.exists() or not metrics.read_text().count("\n"):
                self.assertIsNone(process.poll(), process.stdout.read() if process.poll() is not None else "")
                time.sleep(0.05)
            seconds = time.monotonic() - begin
            # What is loaded comes from the package, or belongs to the C library; and nothing twice.
            package = next((self.folder / "venv").glob("lib/python*/site-packages/skein_rl"))
            base = {pathlib.Path(p).resolve() for p in run("dpkg", "-L", "libc6").split() if ".so" in p}
            children = children_of(process.pid)
            self.assertEqual(sorted(children), ["skein-actor", "skein-coordinator", "skein-learner"])
            for name, pid in {**children, "skein": process.pid}.items():
                loaded = mapped_libraries(pid)
                strangers = [path for path in loaded if package not in path.parents and path.resolve() not in base]
                self.assertEqual(strangers, [], name)
                self.assertEqual(len([path for path in loaded if "libprotobuf.so" in path.name]), 1, name)
            self.assertTrue(any("libtorch_cpu" in path.name for path in mapped_libraries(children["skein-learner"])))
            # The status page's address comes before anything slow.
            while not any("skein top" in line or "run directory" in line for line in lines):
                lines.append(process.stdout.readline())
        finally:
            process.terminate()
            rest = process.communicate(timeout=60)[0]
        self.assertEqual(process.returncode, 0, rest)
        # What is printed to be typed names the command.
        self.assertNotIn("site-packages", "".join(lines) + rest)
        megabytes = self.wheel.stat().st_size / 1e6
        print(f"{megabytes:.0f} MB installed in {self.install_seconds:.1f} s, first line of metrics after {seconds:.1f} s more")

    def test_shells_complete_its_command(self):
        check_completion(self, self.folder / "venv/share")

    def test_every_program_starts_and_says_the_versions(self):
        for name in PROGRAMS:
            said = run(self.bin / name, "--version", env=self.plain)
            self.assertRegex(said, rf"^{name} \d+\.\d+\.\d+\ncommit ")
        self.assertIn("LibTorch", run(self.bin / "skein-learner", "--version", env=self.plain))
        refused = subprocess.run([self.bin / "skein", "trian"], env=self.plain, capture_output=True, text=True)
        self.assertEqual(refused.returncode, 64)
        self.assertIn("train", refused.stderr)

    def test_python_trains_and_acts(self):
        program = """if True:
            import skein_rl as skein
            run = skein.train(env="HalfCheetah-v5", steps=1, no_eval=True, quiet=True, settings={
                "rollout.num_envs": 8, "rollout.envs_per_runner": 8, "rollout.steps_per_iteration": 512,
                "ppo.minibatch_size": 256})
            assert len(list(run)) == 1
            print(run.wait()["env_steps"], run.policy()([0.0] * 17).shape)
        """
        self.assertEqual(run(self.bin / "python", "-c", program, env=self.plain, cwd=self.folder), "512 (6,)\n")

    def test_python_finds_the_shipped_configurations(self):
        program = """if True:
            import pathlib
            import skein_rl as skein
            small = {"rollout.num_envs": 8, "rollout.envs_per_runner": 8, "rollout.steps_per_iteration": 512,
                     "ppo.minibatch_size": 256}
            run = skein.train("half_cheetah_ppo.yaml", steps=1, name="shipped", no_eval=True, quiet=True, settings=small)
            run.wait()
            print("gae_lambda: 0.9\\n" in (run.folder / "config.yaml").read_text())
            pathlib.Path("half_cheetah_ppo.yaml").write_text("env: {id: CartPole-v1}\\n")  # A file here comes first.
            run = skein.train("half_cheetah_ppo.yaml", steps=1, name="own", no_eval=True, quiet=True, settings=small)
            run.wait()
            print("CartPole-v1" in (run.folder / "config.yaml").read_text())
            print((skein.CONFIGS / "sweeps" / "cartpole_grid.yaml").is_file())
        """
        self.assertEqual(run(self.bin / "python", "-c", program, env=self.plain, cwd=self.folder), "True\nTrue\nTrue\n")

    def test_python_serves_an_environment_of_its_own(self):
        (self.folder / "reach.py").write_text("""if True:
            import numpy as np
            import skein_env

            class Reach(skein_env.Single):
                spec = skein_env.Spec(num_agents=1, obs_size=1, discrete=False, action_size=1, action_low=[-1],
                                      action_high=[1], max_episode_steps=10)

                def reset(self, seed, obs):
                    self.at = obs[0, 0] = np.random.default_rng(seed).uniform(-1, 1)

                def step(self, action, obs, reward):
                    self.at = obs[0, 0] = self.at + action[0, 0]
                    reward[0] = -abs(self.at)
                    return False, False
        """)
        # No python3 on the PATH: it is this Python that serves.
        program = """if True:
            import skein_env
            import skein_rl as skein
            run = skein.train(env="python:reach:Reach", steps=1, quiet=True, settings={
                "rollout.num_envs": 8, "rollout.envs_per_runner": 8, "rollout.steps_per_iteration": 512,
                "ppo.minibatch_size": 256})
            assert len(list(run)) == 1
            assert run.wait()["evaluation"]["episodes"] > 0
            print(skein_env.__version__)
        """
        said = run(self.bin / "python", "-c", program, env={**self.plain, "PATH": "/nowhere"}, cwd=self.folder)
        self.assertRegex(said, r"^\d+\.\d+\.\d+\n$")

    def test_what_is_inside(self):
        names = zipfile.ZipFile(self.wheel).namelist()
        (metadata,) = [name for name in names if name.endswith(".dist-info/METADATA")]
        metadata = zipfile.ZipFile(self.wheel).read(metadata).decode()
        self.assertIn("Provides-Extra: sweep\n", metadata)
        self.assertIn('Requires-Dist: optuna>=4; extra == "sweep"\n', metadata)
        self.assertEqual([name for name in names if GPL.search(name)], [])
        libraries = [name for name in names if name.startswith("skein_rl/lib/")]
        self.assertEqual(len([name for name in libraries if "libprotobuf.so" in name]), 1)
        # A licence for each library's package: the bill has them all.
        (bill,) = [name for name in names if name.endswith("sboms/skein.cdx.json")]
        components = json.loads(zipfile.ZipFile(self.wheel).read(bill))["components"]
        listed = {prop["value"].split()[0] for component in components for prop in component.get("properties", [])
                  if prop["name"] == "skein:file"}
        self.assertEqual(listed, {pathlib.PurePath(name).name for name in libraries})
        licensed = {pathlib.PurePath(name).parent.name for name in names if ".dist-info/licenses/" in name}
        for component in components:
            if any(prop["name"] == "skein:file" for prop in component.get("properties", [])):
                self.assertIn(component["name"], licensed)
        self.assertIn("uplot", licensed)
        self.assertTrue(any(name.endswith("man/man1/skein.1") for name in names))


class Tarball(unittest.TestCase):
    def test_unpacked_anywhere_it_trains_and_cmake_finds_it(self):
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            made = pathlib.Path(run(ROOT / "scripts/make_wheel.py", "--tarball", BIN, folder / "made").strip())
            tarfile.open(made).extractall(folder, filter="data")
            (tree,) = [path for path in folder.iterdir() if path.name.startswith("skein-")]
            plain = {"PATH": "/nowhere", "HOME": name}
            result = json.loads(run(tree / "bin/skein", "train", "--config", tree / "share/skein/configs/cartpole_ppo.yaml",
                                    "--steps", "1", "--no-eval", "--json", *SMALL, env=plain, cwd=folder))
            self.assertEqual(result["env_steps"], 512)
            self.assertTrue((tree / "share/man/man1/skein.1").is_file())
            check_completion(self, tree / "share")
            self.assertTrue((tree / "share/doc/skein/LICENSE").is_file())
            self.assertTrue((tree / "share/skein/python/skein_env/adapters/gymnasium.py").is_file())
            user = folder / "user"
            user.mkdir()
            (user / "CMakeLists.txt").write_text("""
                cmake_minimum_required(VERSION 3.22)
                project(user LANGUAGES NONE)
                find_package(skein 0.1 REQUIRED)
                get_target_property(program skein::skein IMPORTED_LOCATION)
                message(STATUS "program ${program}")
                if(NOT TARGET skein::plugin)
                  message(FATAL_ERROR "no skein::plugin")
                endif()
            """)
            said = run("cmake", "-S", user, "-B", user / "build", f"-DCMAKE_PREFIX_PATH={tree}")
            self.assertIn(f"program {tree}/bin/skein", said)
            # The example of a user's project, built against what was unpacked.
            run("cmake", "-S", ROOT / "examples/plugin", "-B", folder / "plugin", f"-DCMAKE_PREFIX_PATH={tree}")
            run("cmake", "--build", folder / "plugin")
            for name, env in (("library", f"plugin:{folder}/plugin/libcart.so"), ("program", f"exec:{folder}/plugin/cart_server")):
                checked = json.loads(run(tree / "bin/skein", "env", "check", env, "--json", env=plain, cwd=folder))
                self.assertTrue(checked["ok"], checked)
                trained = json.loads(run(tree / "bin/skein", "train", "--env", env, "--name", name, "--steps", "1", "--no-eval",
                                         "--json", *SMALL, env=plain, cwd=folder))
                self.assertEqual(trained["env_steps"], 512)


class Mistakes(unittest.TestCase):
    def test_are_one_line_with_a_code(self):
        with tempfile.TemporaryDirectory() as folder:
            for arguments, code in (([], 64), (["--wrong", folder], 64), ([folder], 69)):
                done = subprocess.run([ROOT / "scripts/make_wheel.py", *arguments], capture_output=True, text=True)
                self.assertEqual(done.returncode, code, done.stderr)
                self.assertNotIn("Traceback", done.stderr)


if __name__ == "__main__":
    fetch("wheel")
    built = subprocess.run(["cmake", "--build", BIN, "--target", "skein-bench", "man", "completion"])
    if built.returncode != 0:
        sys.exit(1)
    unittest.main(verbosity=2)
