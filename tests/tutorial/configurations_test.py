#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Every configuration and space file that a page of the documentation shows, read by `skein` as it stands there.

`skein train` plans a run with it and ends for lack of a checkpoint, `skein sweep` looks for a sweep to go on with, and
`skein resources` prints shares. With SKEIN_BIN = the folder of the programs.
"""
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
BIN = pathlib.Path(os.environ.get("SKEIN_BIN", ROOT / "build" / "release")).resolve()
sys.path.insert(0, str(ROOT / "tests/testing"))
import code_blocks  # noqa: E402

PAGES = ["README.md", *(str(page.relative_to(ROOT)) for page in sorted((ROOT / "docs").rglob("*.md")))]
# Of Prometheus and of the chart: tests/monitoring and tests/deploy read them.
OF_OTHERS = ("scrape_configs", "honor_labels", "externalRules")
A_SPACE = "space: {ppo.lr: {log_uniform: [1e-4, 1e-2]}}\nmax_trials: 2\n"


def shown():
    """(page, first key, text) of each block in YAML; lines that follow an empty one are not part of it."""
    for page in PAGES:
        for block in [*code_blocks.fenced(page, "yaml"), *code_blocks.all_indented(page)]:
            text = block.split("\n\n")[0].rstrip("\n") + "\n"
            first = re.match(r"([a-z_]+):(?: |$)", text, re.MULTILINE)
            if first and first[1] not in OF_OTHERS:
                yield page, first[1], text


class Configurations(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.blocks = list(shown())

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def skein(self, text, *words):
        """`words` with the name of a file that has `text` in the place of FILE."""
        (self.folder / "shown.yaml").write_text(text)
        command = [BIN / "skein", *("shown.yaml" if word == "FILE" else word for word in words)]
        return subprocess.run([str(word) for word in command], capture_output=True, text=True, timeout=60,
                              cwd=self.folder, env={**os.environ, "SKEIN_BOOKINGS": str(self.folder / "bookings")})

    def of(self, test):
        """The blocks that `test` is true of, by page; at least one."""
        found = [(page, text) for page, first, text in self.blocks if test(first, text)]
        self.assertTrue(found)
        return found

    def test_every_block_is_read_by_one_of_the_tests(self):
        kinds = (self.is_run, self.is_space, self.are_shares, self.are_shares_of_a_sweep)
        for page, first, text in self.blocks:
            with self.subTest(page=page, text=text):
                self.assertEqual(sum(kind(first, text) for kind in kinds), 1)
        pages = {page for page, *_ in self.blocks}
        self.assertLessEqual({"docs/environments.md", "docs/quickstart.md", "docs/resources.md", "docs/sweeps.md",
                              "docs/tuning.md"}, pages)

    @staticmethod
    def is_run(first, text):
        return first in ("total_steps", "env", "transport")

    @staticmethod
    def is_space(first, text):
        return "\nspace:" in text

    @staticmethod
    def are_shares(first, text):
        return first == "resources" and "actor:" in text

    @staticmethod
    def are_shares_of_a_sweep(first, text):
        return first == "resources" and "cpus:" in text and "actor:" not in text

    def test_runs_can_be_planned(self):
        for page, text in self.of(self.is_run):
            with self.subTest(page=page, text=text):
                env = () if "\n  id: " in text else ("--env", "Pendulum-v1")
                done = self.skein(text, "train", "--config", "FILE", *env, "--resume", "must", "--runs-dir", "no-runs")
                self.assertIn("no complete checkpoint to resume from", done.stderr)
                self.assertEqual(done.returncode, 65)

    def test_spaces_can_be_planned(self):
        base = ("--config", ROOT / "configs/pendulum_ppo.yaml")
        spaces = self.of(self.is_space)
        spaces += [(page, A_SPACE + text) for page, text in self.of(self.are_shares_of_a_sweep)]
        for page, text in spaces:
            with self.subTest(page=page, text=text):
                # No slots here: what the machine has does not matter.
                done = self.skein(text, "sweep", *base, "--space", "FILE", "--slots", "0", "--resume", "must")
                self.assertIn("no sweep to go on with", done.stderr)

    def test_shares_of_processes_are_added_up(self):
        ((page, text),) = self.of(self.are_shares)
        self.assertEqual(page, "docs/resources.md")
        done = self.skein(text, "resources", "--config", "FILE", "--actors", "2")
        self.assertEqual(done.returncode, 0, done.stderr)
        # 2 x 0.5 + 1 CPUs, 0.25 GPUs, 2 x 1 + 2 GiB.
        self.assertRegex(done.stdout, r"asked for +2 +0\.25 +4 GiB")

    def test_mistakes_are_found(self):
        done = self.skein("total_stesp: 3\n", "train", "--config", "FILE", "--env", "Pendulum-v1", "--resume", "must")
        self.assertIn("total_stesp", done.stderr)
        done = self.skein(A_SPACE.replace("ppo.lr", "ppo.lrr"), "sweep", "--env", "Pendulum-v1", "--space", "FILE",
                          "--slots", "0", "--resume", "must")
        self.assertIn("ppo.lrr", done.stderr)


if __name__ == "__main__":
    unittest.main(verbosity=2)
