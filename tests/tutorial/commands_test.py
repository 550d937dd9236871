#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Every command of Skein's programs that a page of the documentation shows, read by the programs themselves.

All: the program has the verb, its flags with values of their types and its settings (`--print-flags`, `skein resources
--set`). Besides, `skein train` and `skein head` plan the run and end for lack of a checkpoint, `eval`, `export` and
`serve` look for theirs, and what only prints prints. With SKEIN_BIN = the folder of the programs.
"""
import json
import os
import pathlib
import re
import shlex
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
BIN = pathlib.Path(os.environ.get("SKEIN_BIN", ROOT / "build" / "release")).resolve()
sys.path.insert(0, str(ROOT / "tests/testing"))
import code_blocks  # noqa: E402

PAGES = ["README.md", "CONTRIBUTING.md", *(str(page.relative_to(ROOT)) for page in sorted((ROOT / "docs").rglob("*.md")))]
PROGRAMS = ("skein", "skein-actor", "skein-bench", "skein-coordinator", "skein-eval", "skein-fit", "skein-learner",
            "skein-policy")
# Verbs of `skein` that are other programs: program, words before the user's.
ELSEWHERE = {"eval": ("skein-eval", []), "export": ("skein-policy", ["export"]), "serve": ("skein-policy", ["serve"]),
             "fit": ("skein-fit", ["fit"]), "detect": ("skein-fit", ["detect"]), "bench": ("skein-bench", []),
             "tune": ("skein-bench", ["tune"]), "env": ("skein-policy", ["env"])}
# What a reader has to fill in: a word in capitals, a variable of a shell, one of several choices, something left out.
OPEN = re.compile(r"[A-Z][A-Z_]*\b|\$|\||\.\.\.|\[|<")
NUMBER = {"UINT": r"[0-9]+(\.[0-9]+)?(e[0-9]+)?", "INT": r"-?[0-9]+", "FLOAT": r"-?[0-9.]+(e-?[0-9]+)?"}


def run(words, **more):
    return subprocess.run([str(word) for word in words], capture_output=True, text=True, timeout=60, **more)


def words_of(line):
    """The words of the first command of a line that is one of the programs; [] if there is none."""
    line = re.sub(r"\s{3,}[^-#\s'\"\\].*", "", line.strip())  # A remark in the next column.
    lexer = shlex.shlex(line, posix=True, punctuation_chars="();<>|&")
    lexer.whitespace_split = True
    words = []
    for word in lexer:
        if re.fullmatch(r"[();<>|&]+", word) and words:
            break
        if words or word.rsplit("/", 1)[-1] in PROGRAMS:
            words.append(word)
    return [words[0].rsplit("/", 1)[-1], *words[1:]] if words else []


def shown():
    """(page, line, words) of each command in a block."""
    for page in PAGES:
        blocks = [*code_blocks.all_indented(page), *code_blocks.fenced(page, "sh")]
        for line in (line for block in blocks for line in code_blocks.commands(block)):
            # Commands, not what programs print: the name stands first, or after `exec`, `srun`, a prompt.
            if re.match(r"\s*(?:\S*/)?(?:" + "|".join(PROGRAMS) + r") +[a-z-]", line) and not re.match(r"\s*skein \w+:", line):
                yield page, line.strip(), words_of(line)


def mentioned():
    """The same of code within sentences, with one flag at least."""
    for page in PAGES:
        for code in re.findall(r"`(skein(?:-[a-z]+)? [^`]*--[^`]*)`", (ROOT / page).read_text()):
            code = " ".join(code.split())
            # A flag alone stands for its use with a value.
            yield page, code, words_of(re.sub(r"(--[a-z-]+)$", r"\1=...", code))


class Command:
    """A program or a verb, as --print-flags describes it."""
    tables = {}

    def __init__(self, words):
        """Raises ValueError where the program has no such verb, flag or value."""
        program, rest = words[0], list(words[1:])
        if program == "skein" and rest and rest[0] in ELSEWHERE:
            program, first = ELSEWHERE[rest[0]]
            rest = first + rest[1:]
        self.name, self.flags, self.arguments = program, [], []
        table = self.table(program)
        while rest:
            word = rest.pop(0)
            verb = next((one for one in table["verbs"] if one["name"] == word), None)
            if verb:
                table, self.name = verb, f"{self.name} {word}"
            elif word.startswith("-"):
                self.take_flag(table, word, rest)
            elif table["arguments"] or (program, word) in (("skein", "help"), ("skein", "version")):
                self.arguments.append(word)
                if word == "help":
                    rest.clear()
            elif not OPEN.search(word):
                raise ValueError(f"{self.name} has neither a verb nor a place for '{word}'")

    @classmethod
    def table(cls, program):
        if program not in cls.tables:
            cls.tables[program] = json.loads(run([BIN / program, "--print-flags"]).stdout)
        return cls.tables[program]

    def take_flag(self, table, word, rest):
        name, equals, value = word.partition("=")
        known = {flag["name"]: flag for flag in [*table["flags"], *self.table(self.name.split()[0])["flags"]]}
        if name in ("--help", "--version", "-h", "-V"):
            return
        if name not in known:
            raise ValueError(f"{self.name} has no flag {name}")
        flag = known[name]
        if value == "..." or not flag["value"] and not flag["choices"]:
            self.flags.append((name, value))
            return
        if not equals:
            if not rest or rest[0].startswith("--"):
                raise ValueError(f"{name}: no value")
            value = rest.pop(0)
        self.flags.append((name, value))
        kind = re.match(r"[A-Z]+", flag["value"] or "")
        pattern = NUMBER.get(kind.group() if kind else "")
        if OPEN.search(value) and name != "--set":
            return
        if flag["choices"] and value not in flag["choices"]:
            raise ValueError(f"{name}: '{value}' is none of {flag['choices']}")
        if pattern and not re.fullmatch(rf"({pattern})(,({pattern}))*", value):
            raise ValueError(f"{name}: '{value}' is no {flag['value']}")

    def values(self, name):
        return [value for flag, value in self.flags if flag == name]


class Documentation(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.commands = list(shown())
        cls.folder = tempfile.TemporaryDirectory()
        cls.home = pathlib.Path(cls.folder.name)
        (cls.home / "configs").symlink_to(ROOT / "configs")
        pendulum = code_blocks.indented("docs/quickstart.md", "total_steps: 500000").split("\n\n")[0]
        for name in ("mine.yaml", "run.yaml", "shares.yaml"):
            (cls.home / name).write_text(pendulum)
        cls.environment = {name: value for name, value in os.environ.items() if not name.startswith("SKEIN_TLS_")}
        cls.environment |= {"PATH": f"{BIN}:{os.environ['PATH']}", "SKEIN_BOOKINGS": str(cls.home / "bookings"),
                            "SKEIN_TOKEN_FILE": str(cls.home / "credentials/token")}
        run([BIN / "skein", "certs", "init", cls.home / "credentials"], check=True)

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def run_here(self, words):
        return run([BIN / words[0], *words[1:]], cwd=self.home, env=self.environment)

    def test_verbs_flags_and_values_are_those_of_the_programs(self):
        self.assertGreater(len(self.commands), 120)
        for page, line, words in [*self.commands, *mentioned()]:
            with self.subTest(page=page, line=line):
                Command(words)

    def test_settings_are_known(self):
        settings = set()
        for page, line, words in [*self.commands, *mentioned()]:
            command = Command(words)
            if not command.name.startswith("skein-fit"):
                settings |= {(page, setting) for setting in command.values("--set")}
        self.assertGreater(len(settings), 30)
        for page, setting in sorted(settings):
            with self.subTest(page=page, setting=setting):
                key, equals, value = setting.partition("=")
                if re.search(r"[A-Z.]\.[A-Z]|^[A-Z]|\.\.\.", key):
                    continue
                done = run([BIN / "skein", "resources", "--set", setting if not OPEN.match(value) else f"{key}=@"])
                self.assertNotIn("unknown key", done.stderr)
                if equals and not OPEN.search(value):
                    self.assertNotIn(f"--set {key}", done.stderr)

    def test_runs_can_be_planned(self):
        planned = 0
        for page, line, words in self.commands:
            command = Command(words)
            name, environment = command.name, "".join(command.values("--env"))
            if name not in ("skein train", "skein head") or OPEN.search(" ".join(words[2:]).replace("[", "")):
                continue
            if "://" in environment or ":" in environment or "--help" in words:
                continue  # A program, a library or a server of the reader's own.
            with self.subTest(page=page, line=line):
                done = self.run_here([*words, "--resume", "must", "--runs-dir", "no-runs"])
                if "--device" in words and "cuda" in done.stderr:
                    continue
                self.assertIn("no complete checkpoint to resume from", done.stderr)
                self.assertEqual(done.returncode, 65)
                planned += 1
        self.assertGreater(planned, 25)

    def test_checkpoints_are_looked_for(self):
        looked = 0
        for page, line, words in self.commands:
            checkpoints = Command(words).values("--checkpoint")
            if words[0] != "skein" or not checkpoints or OPEN.search(checkpoints[0]) or words[1] == "detect":
                continue
            with self.subTest(page=page, line=line):
                done = self.run_here(words)
                self.assertEqual(done.returncode, 65, done.stderr)
                self.assertIn(checkpoints[0], done.stderr)
                looked += 1
        self.assertGreater(looked, 12)

    def test_what_only_prints_prints(self):
        printed = 0
        for page, line, words in self.commands:
            help_or_version = {"--help", "--version", "help", "version"} & set(words)
            if not help_or_version and words[:2] not in (["skein", "envs"], ["skein", "completion"], ["skein", "resources"]):
                continue
            with self.subTest(page=page, line=line):
                done = self.run_here(words)
                self.assertEqual(done.returncode, 0, done.stderr)
                self.assertTrue(done.stdout or words[1] == "resources")  # A configuration without shares has none.
                printed += 1
        self.assertGreater(printed, 6)

    def test_the_configuration_of_the_quickstart_is_the_recipe_that_it_says(self):
        wanted = run([BIN / "skein", "envs", "Pendulum-v1", "--recipe"], check=True).stdout
        def settings(text):
            return [line for line in (re.sub(r"\s*#.*", "", one) for one in text.splitlines()) if line]
        self.assertEqual(settings((self.home / "mine.yaml").read_text()), settings(wanted))


class Reading(unittest.TestCase):
    def test_words(self):
        self.assertEqual(words_of("build/release/skein bench env      --threads 2     ours    / bare"),
                         ["skein", "bench", "env", "--threads", "2"])
        self.assertEqual(words_of("skein train --set 'a=[1, 2]' > log &"), ["skein", "train", "--set", "a=[1, 2]"])
        self.assertEqual(words_of("make build"), [])

    def test_what_programs_do_not_have_is_found(self):
        for line, what in (("skein trian", "trian"), ("skein train --stpes 3", "--stpes"), ("skein train --seed x", "--seed"),
                           ("skein train --resume sometimes", "--resume"), ("skein bench warp", "warp"),
                           ("skein eval --checkpoint", "--checkpoint"), ("skein-actor --colour", "--colour")):
            with self.assertRaisesRegex(ValueError, what):
                Command(words_of(line))


if __name__ == "__main__":
    unittest.main(verbosity=2)
