#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What `skein completion` prints, in the shells that it is for: types into a terminal and reads what the shell adds.

completion_test.py FOLDER_OF_PROGRAMS
"""

import os
import pty
import select
import subprocess
import sys
import tempfile
import time
import unittest

BIN = ""
DEADLINE_SECONDS = 20.0


class Terminal:
    """A shell in a pseudo terminal."""

    def __init__(self, argv, environment):
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            os.execvpe(argv[0], argv, environment)
        self.seen = ""

    def type(self, text):
        os.write(self.fd, text.encode())

    def wait_for(self, text):
        """Reads until `text` is on the screen; what was read before it is forgotten."""
        until = time.monotonic() + DEADLINE_SECONDS
        while text not in self.seen:
            left = until - time.monotonic()
            if left <= 0 or not select.select([self.fd], [], [], left)[0]:
                raise AssertionError(f"{text!r} does not come; there is {self.seen!r}")
            self.seen += os.read(self.fd, 4096).decode(errors="replace")
        self.seen = self.seen[self.seen.index(text) + len(text):]

    def close(self):
        os.close(self.fd)
        os.waitpid(self.pid, 0)


class Completion(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.environment = {"PATH": BIN + ":" + os.environ["PATH"], "HOME": self.folder.name, "TERM": "dumb",
                            "LC_ALL": "C", "PS1": "ready> "}

    def script(self, shell):
        path = os.path.join(self.folder.name, "skein." + shell)
        with open(path, "w") as file:
            subprocess.run([BIN + "/skein", "completion", shell], stdout=file, check=True)
        return path

    def make_files(self):
        open(os.path.join(self.folder.name, "only-config.yaml"), "w").close()
        for run in ("runs/first-run", "runs/other-run", "runs/odd$(touch it)", "elsewhere/else-run"):
            os.makedirs(os.path.join(self.folder.name, run))

    def check_terminal(self, argv, setup):
        shell = Terminal(argv, self.environment)
        self.addCleanup(shell.close)
        shell.wait_for("ready> ")
        # Not the text that is typed, which the terminal echoes.
        shell.type(setup + "; echo set 'up'\n")
        shell.wait_for("set up")
        shell.wait_for("ready> ")
        self.make_files()
        for typed, completed in [("skein trai", "skein train "),
                                 ("skein train --resum", "skein train --resume "),
                                 ("skein train --resume mus", "skein train --resume must "),
                                 ("skein train --env CartP", "skein train --env CartPole-v1 "),
                                 ("skein train --set ppo.gam", "skein train --set ppo.gamma="),
                                 ("skein train --config only", "skein train --config only-config.yaml "),
                                 ("skein train --config=only", "skein train --config=only-config.yaml "),
                                 ("skein train --env=CartP", "skein train --env=CartPole-v1 "),
                                 ("skein envs CartP", "skein envs CartPole-v1 "),
                                 ("skein env check CartP", "skein env check CartPole-v1 "),
                                 ("skein runs show fir", "skein runs show first-run "),
                                 ("skein runs compare first-run oth", "skein runs compare first-run other-run "),
                                 ("skein runs show --runs-dir elsewhere els", "skein runs show --runs-dir elsewhere else-run "),
                                 ("skein runs show --runs-dir=elsewhere els", "skein runs show --runs-dir=elsewhere else-run "),
                                 ("skein runs show odd", "skein runs show odd\\$\\(touch\\ it\\)"),
                                 ("skein certs ini", "skein certs init "),
                                 ("skein bench scaling --warm", "skein bench scaling --warmup "),
                                 ("skein completion fi", "skein completion fish ")]:
            shell.type(typed + "\t")
            shell.wait_for(typed)
            shell.wait_for(completed[len(typed):])
            shell.type("\x15\n")  # Forgets the line.
            shell.wait_for("ready> ")
        shell.type("skein train --set ppo.gam\t7")  # No blank before the value.
        shell.wait_for("ppo.gam")
        shell.wait_for("ma=7")

    def test_bash(self):
        self.environment["INPUTRC"] = "/dev/null"
        setup = f"cd {self.folder.name}; bind 'set bell-style none'; source {self.script('bash')}"
        self.check_terminal(["bash", "--norc", "--noprofile", "-i"], setup)

    def test_zsh(self):
        setup = (f"cd {self.folder.name}; autoload -Uz compinit; compinit -u -D; unsetopt prompt_cr prompt_sp; "
                 f"source {self.script('zsh')}")
        self.check_terminal(["zsh", "-f", "-i"], setup)

    def test_fish(self):
        script = self.script("fish")

        def complete(line):
            ran = subprocess.run(["fish", "--no-config", "-c", f"source {script}; complete -C '{line}'"],
                                 capture_output=True, text=True, env=self.environment, cwd=self.folder.name, check=True)
            self.assertEqual(ran.stderr, "")
            return [found.split("\t")[0] for found in ran.stdout.splitlines()]

        self.make_files()
        self.assertEqual(complete("skein trai"), ["train"])
        self.assertEqual(complete("skein train --resum"), ["--resume"])
        self.assertEqual(sorted(complete("skein train --resume ")), ["auto", "must", "never"])
        self.assertEqual(complete("skein train --env CartP"), ["CartPole-v1"])
        self.assertEqual(complete("skein train --set ppo.gam"), ["ppo.gamma="])
        self.assertEqual(complete("skein train --config only"), ["only-config.yaml"])
        self.assertEqual(complete("skein train --config=only"), ["--config=only-config.yaml"])
        self.assertEqual(complete("skein train --env=CartP"), ["--env=CartPole-v1"])
        self.assertEqual(complete("skein envs CartP"), ["CartPole-v1"])
        self.assertEqual(complete("skein env check CartP"), ["CartPole-v1"])
        self.assertEqual(complete("skein runs show fir"), ["first-run"])
        self.assertEqual(complete("skein runs compare first-run oth"), ["other-run"])
        self.assertEqual(complete("skein runs show --runs-dir elsewhere els"), ["else-run"])
        self.assertEqual(complete("skein runs show --runs-dir=elsewhere els"), ["else-run"])
        self.assertEqual(complete("skein runs show odd"), ["odd$(touch it)"])
        self.assertFalse(os.path.exists(os.path.join(self.folder.name, "it")))
        self.assertEqual(complete("skein certs ini"), ["init"])
        self.assertEqual(complete("skein bench scaling --warm"), ["--warmup"])

    def test_hidden_verbs_are_in_no_script(self):
        for shell in ("bash", "zsh", "fish"):
            with open(self.script(shell)) as script:
                self.assertNotIn("check-history", script.read())


if __name__ == "__main__":
    BIN = os.path.abspath(sys.argv.pop(1))
    unittest.main()
