#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""docs/troubleshooting.md quotes what programs really say, and names settings that exist. Run in the root of the tree."""

import pathlib
import re
import unittest

FOLDERS = ("actor", "base", "bench", "cli", "coordinator", "env", "eval", "launch", "learner", "member", "policy",
           "sweep")
PAGE = pathlib.Path("docs/troubleshooting.md")


def Literals(text):
    """The string literals of a C++ source, those that follow each other joined."""
    pieces = re.findall(r'"((?:\\.|[^"\\\n])*)"(\s*(?=["]))?', text)
    joined, literals = "", []
    for piece, follows in pieces:
        joined += piece.replace('\\"', '"').replace("\\n", "\n")
        if not follows:
            literals.append(joined)
            joined = ""
    return literals


def Symptoms(page):
    """What is quoted in the first column of its tables."""
    for line in page.splitlines():
        if line.startswith("| ") and not line.startswith("| you see"):
            yield from re.findall(r"`([^`]+)`", line.split(" | ")[0])


class Troubleshooting(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.page = PAGE.read_text()
        sources = [path for folder in FOLDERS for path in sorted(pathlib.Path(folder).rglob("*.cc"))]
        sources += [path for folder in FOLDERS for path in sorted(pathlib.Path(folder).rglob("*.h"))]
        cls.said = "\0".join(literal for path in sources for literal in Literals(path.read_text()))
        cls.said += "\0" + "\0".join(path.read_text() for path in sorted(pathlib.Path("scripts").glob("*.sh")))

    def test_literals_are_joined(self):
        self.assertEqual(Literals('f("a " "b", "c\\"d",\n  "e"\n  "f")'), ["a b", 'c"d', "ef"])

    def test_what_is_quoted_is_said_by_a_program(self):
        quoted = [piece.strip() for symptom in Symptoms(self.page) for piece in symptom.split("...")]
        quoted = [piece for piece in quoted if len(piece) > 8 and " " in piece]
        self.assertGreater(len(quoted), 30)
        self.assertEqual([piece for piece in quoted if piece not in self.said], [])

    def test_settings_exist(self):
        proto = pathlib.Path("proto/skein/v1/config.proto").read_text()
        field = re.compile(r"^ +(?:optional |repeated )?(\w+) (\w+) = \d", re.MULTILINE)
        messages = {name: {field_name: kind for kind, field_name in field.findall(body)}
                    for name, body in re.findall(r"^message (\w+) \{\n(.*?)^\}", proto, re.MULTILINE | re.DOTALL)}
        sections = messages["RunConfig"]
        named = re.findall(r"`([a-z_]+)\.([a-z_]+)(?::[^`]*)?`", self.page)
        named = [(section, field) for section, field in named if section in sections]
        self.assertGreater(len(named), 12)
        self.assertEqual([f"{section}.{field}" for section, field in named
                          if field not in messages[sections[section]]], [])


if __name__ == "__main__":
    unittest.main()
