#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Every header and proto says what it is for: a comment before its first declaration begins with its subject or verb.

Run in the root of the tree.
"""

import pathlib
import re
import subprocess
import unittest

APART = ("tests", "build", "third_party", "runs", ".")
QUESTIONS = "what|whatever|where|when|how|why|whether|who|whom|whose|which"
CLAUSE = re.compile(rf"// *((in|by|to|for|from|of|on) )?({QUESTIONS})\b", re.IGNORECASE)


def BeginsWithAComment(text):
    """True if a header or proto begins with a comment, apart from its licence, includes and forward declarations.

    A comment that begins with a clause ("What ...", "How ...") does not count: it names neither a thing nor an action.
    """
    for line in text.split("\n"):
        line = line.strip()
        if not line or line.startswith(("#", "// SPDX", "namespace ", "}  // namespace")):
            continue
        if line == "}" or re.fullmatch(r"(class|struct) \w+;( .*)?", line):
            continue
        return line.startswith("//") and len(line) > 20 and not CLAUSE.match(line)
    return True  # It declares nothing.


def Tracked(pattern):
    """The files in Git that must have been looked at; none outside of a checkout."""
    listed = subprocess.run(["git", "ls-files", pattern], capture_output=True, text=True)
    return {name for name in listed.stdout.split() if not name.startswith(APART) and pathlib.Path(name).exists()}


class TreeTest(unittest.TestCase):
    def test_headers_and_protos_begin_with_a_comment(self):
        for pattern, at_least in (("*.h", 450), ("*.proto", 15)):
            paths = [path for path in pathlib.Path(".").rglob(pattern) if not path.parts[0].startswith(APART)]
            self.assertGreater(len(paths), at_least)
            self.assertGreaterEqual({str(path) for path in paths}, Tracked(pattern))
            self.assertEqual([str(path) for path in paths if not BeginsWithAComment(path.read_text())], [])


class CommentTest(unittest.TestCase):
    HEAD = "// SPDX-License-Identifier: Apache-2.0\n#pragma once\n\n#include <string>\n\n"

    def test_what_counts(self):
        for text, counts in {
                "// Counts every step once.\nnamespace skein {\nint F();\n}\n": True,
                "namespace skein {\n\n// Counts every step once.\nclass A {\n};\n}\n": True,
                "namespace skein {\nclass B;\n\n// Counts every step once.\nclass A {\n};\n}\n": True,
                "namespace skein {\nstruct B {\n  int a;\n};\n// Counts every step once.\nclass A {\n};\n}\n": False,
                "namespace skein {\nint F();  // Counts every step once.\n}\n": False,
                "namespace skein {\n//\nint F();\n}\n": False,
                "// What counts every step once.\nnamespace skein {\nint F();\n}\n": False,
                "// In which order steps are counted.\nnamespace skein {\nint F();\n}\n": False,
                "// Whatever counts every step once.\nnamespace skein {\nint F();\n}\n": False,
                "// Whole steps, each counted once.\nnamespace skein {\nint F();\n}\n": True,
                '// Steps, each counted once.\nsyntax = "proto3";\n': True,
                'syntax = "proto3";\n// Steps, each counted once.\nmessage Step {}\n': False,
        }.items():
            with self.subTest(text):
                self.assertEqual(BeginsWithAComment(self.HEAD + text), counts)


if __name__ == "__main__":
    unittest.main()
