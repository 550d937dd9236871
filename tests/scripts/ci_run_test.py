#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The control flow of .ci/run, with a make that only says what it was asked for and fails where it is told to."""

import os
import pathlib
import shutil
import subprocess
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
MAKE = """#!/bin/bash
case " $* " in
  *" test-faults "*) target=test-faults; sleep 0.2 ;;
  *" test-cluster "*) target=test-cluster ;;
  *" test-core test "*) target=test ;;
  *) target=$1 ;;
esac
echo "begin $target"
# Rows fail in the first run only.
[ "$target $FAILS" != "test-faults rows once" ] || case "$*" in *--rerun-failed*) ;; *) exit 1 ;; esac
[ "$target" != "$FAILS" ] && [ "$FAILS" != both -o "${target#test-}" = "$target" ] && echo "end $target"
"""


class CiRun(unittest.TestCase):
    def run_with(self, fails):
        """(exit code, lines of its output) of .ci/run where the target `fails` does."""
        with tempfile.TemporaryDirectory() as folder:
            folder = pathlib.Path(folder)
            for name, text in {"scripts/install_dependencies.sh": "#!/bin/bash\necho install\n", "bin/make": MAKE}.items():
                (folder / name).parent.mkdir()
                (folder / name).write_text(text)
                (folder / name).chmod(0o755)
            (folder / ".ci").mkdir()
            (folder / "tmp").mkdir()
            shutil.copy(ROOT / ".ci" / "run", folder / ".ci")
            environment = dict(os.environ, FAILS=fails, TMPDIR=str(folder / "tmp"),
                               PATH=f"{folder / 'bin'}:{os.environ['PATH']}")
            done = subprocess.run([folder / ".ci" / "run"], env=environment, text=True, stdout=subprocess.PIPE,
                                  stderr=subprocess.STDOUT, timeout=60, check=False)
            self.assertEqual(list((folder / "tmp").iterdir()), [], "leaves nothing behind")
            return done.returncode, done.stdout.splitlines()

    def test_all_pass_and_the_cluster_tests_are_shown_last(self):
        code, lines = self.run_with("")
        self.assertEqual(code, 0)
        self.assertEqual(lines, ["install", *(f"{word} {target}" for target in
                                              ("check-format", "test", "test-faults", "tsa", "check-mujoco",
                                               "test-cluster")
                                              for word in ("begin", "end"))])

    def test_what_comes_before_them_ends_it(self):
        for target in ("check-format", "test"):
            code, lines = self.run_with(target)
            self.assertNotEqual(code, 0, target)
            self.assertEqual(lines[-1], f"begin {target}")

    def test_rows_of_faults_that_fail_once_are_tried_again_at_the_end(self):
        code, lines = self.run_with("rows once")
        self.assertEqual((code, lines[-2:]), (0, ["begin test-faults", "end test-faults"]))
        self.assertLess(lines.index("end test-cluster"), len(lines) - 2)

    def test_each_of_the_last_ones_fails_it_and_all_are_shown(self):
        for fails, word in (("test-faults", "test-faults"), ("test-cluster", "test-cluster"), ("tsa", "tsa"),
                            ("check-mujoco", "check-mujoco"), ("both", "test-cluster test-faults")):
            code, lines = self.run_with(fails)
            self.assertEqual(code, 1, fails)
            self.assertEqual(lines[-1], f".ci/run: failed: {word}")
            self.assertIn("begin test-faults", lines)
            self.assertIn("begin test-cluster", lines)
            self.assertIn("begin tsa", lines)
            self.assertLess(lines.index("begin test-faults"), lines.index("begin tsa"))
            self.assertLess(lines.index("begin tsa"), lines.index("begin test-cluster"))
            self.assertEqual(lines.count("begin test-faults"), 2 if fails in ("test-faults", "both") else 1)
            for target in {"test-faults", "test-cluster", "tsa", "check-mujoco"} - set(word.split()):
                self.assertIn(f"end {target}", lines)


if __name__ == "__main__":
    unittest.main()
