#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Every Markdown page of this tree, rendered, shows no broken table and no markup, and what it names is there.

Run in the root of the tree, with Debian's Python: python3-markdown-it renders the pages.
"""

import pathlib
import re
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import markdown_check

APART = ("build", "third_party", "runs", ".")
# Names in pages that no source has, and why.
EXCEPTIONS = {
    "BehaviourInWords": "stands for a test's name",
    "CheckpointCallback": "of Stable-Baselines3",
    "DefaultCallbacks": "of RLlib",
    "KillMode": "a setting of Slurm's service in systemd",
    "MakeName": "stands for a function that a reader writes",
    "NameSpec": "stands for a function that a reader writes",
    "SkeinActorLost": "what an alert was called before",
    "StopTrainingOnRewardThreshold": "of Stable-Baselines3",
    "VecEnv": "of Stable-Baselines3",
    "VecFrameStack": "of Stable-Baselines3",
    "VecVideoRecorder": "of Stable-Baselines3",
}


# Words that pages do not use, and what they say instead. Records of measurements stay as they were made.
RETIRED = {
    "whoever": "the process, member or user that is meant",
    "somebody": "the process, member or user that is meant",
    "anybody": "the process, member or user that is meant",
    "nobody": "no process, member or user",
    "newcomer": "a rank that joins",
    "the books": "the step account",
}
RECORDS = pathlib.Path("docs/benchmarks")
DECISIONS = pathlib.Path("docs/decisions")

README = pathlib.Path("README.md").read_text()


def Files():
    """Of the folders of the tree: not what a build or a run makes."""
    folders = [path for path in pathlib.Path(".").iterdir() if path.is_dir() and not path.name.startswith(APART)]
    return [path for folder in folders for path in folder.rglob("*") if path.is_file()]


class TreeTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.pages = {
            path: markdown_check.PageOf(path.read_text())
            for path in sorted(pathlib.Path(".").rglob("*.md"))
            if not path.parts[0].startswith(APART)
        }

    def Find(self, check):
        return [f"{path}:{line}: {what}" for path, page in self.pages.items() for line, what in check(path, page)]

    def test_enough_is_found(self):  # Else it looked in the wrong place, or the renderer knows no tables or links.
        self.assertGreater(len(self.pages), 40)
        self.assertGreater(sum(len(page.rows) for page in self.pages.values()), 1000)
        self.assertGreater(sum(len(page.links) for page in self.pages.values()), 300)
        self.assertGreater(sum(len(page.codes) for page in self.pages.values()), 1000)

    def test_tables(self):
        self.assertEqual(self.Find(lambda path, page: markdown_check.BrokenTables(page)), [])

    def test_markup(self):
        self.assertEqual(self.Find(lambda path, page: markdown_check.LeftMarkup(page)), [])

    def test_links(self):
        self.assertEqual(self.Find(markdown_check.DeadLinks), [])

    def test_paths(self):
        files = [str(path) for path in Files()]
        self.assertEqual(self.Find(lambda path, page: markdown_check.DeadPaths(page, files)), [])

    def test_names(self):
        words = set()
        for path in Files():
            if path.parts[:2] == ("tests", "architecture"):
                continue  # What is planted there is not meant.
            if path.suffix in (".cc", ".h", ".js", ".json", ".proto", ".py", ".sh", ".yaml", ".yml"):
                words.update(re.findall(r"\w+", path.read_text()))
        self.assertGreater(len(words), 10000)
        self.assertEqual(EXCEPTIONS.keys() & words, set())
        found = self.Find(lambda path, page: markdown_check.DeadNames(page, words | EXCEPTIONS.keys()))
        self.assertEqual(found, [])

    def test_words(self):
        def Retired(path, page):
            return [(line, f"'{word}': say {RETIRED[word]}") for line, text in page.texts for word in RETIRED
                    if word in text.lower() and RECORDS not in path.parents]

        self.assertEqual(self.Find(Retired), [])

    def test_headings(self):
        """Those of records and decisions stay as they are."""
        self.assertGreater(sum(len(page.headings) for page in self.pages.values()), 300)
        found = self.Find(lambda path, page: [] if {RECORDS, DECISIONS} & set(path.parents) else
                          markdown_check.QuestionHeadings(page))
        self.assertEqual(found, [])

    def test_the_readme_names_each_folder(self):
        """Of those with sources: those of the tree, and those of base."""
        section = README.partition("## Folders, lowest first\n")[2].partition("\n## ")[0]
        listed = {line.split()[0] for line in section.split("\n") if line.startswith("    ") and line.strip()}
        sources = [path for path in Files() if path.suffix in (".cc", ".proto")]
        top = {path.parts[0] for path in sources if len(path.parts) > 1}
        self.assertGreater(len(top), 10)
        self.assertEqual(top - listed, set())
        base = next(line for line in section.split("\n") if line.startswith("    base "))
        parts = {path.parts[1] for path in sources if path.parts[0] == "base"}
        self.assertEqual(parts - set(re.findall(r"\w+", base)), set())


class PlantedTest(unittest.TestCase):
    """A page of this tree's kinds, and the faults that each check must find in it."""

    GOOD = """# Page

Text with `code | and a bar`, **bold** and [a link](#page).

| a | b |
|---|---|
| `x\\|y` | 2 |
| | [4](#page) |

- A list

      | indented | code |

```
| a |
```
"""

    def Lines(self, text):
        page = markdown_check.Page(text)
        return {line for line, _ in markdown_check.BrokenTables(page) + markdown_check.LeftMarkup(page)}

    def test_a_good_page_has_none(self):
        self.assertEqual(self.Lines(self.GOOD), set())

    def test_faults_are_found(self):
        for right, wrong, line in (
                ("| | [4](#page) |", "| 4 |", 8),  # A cell too few: it would be shown empty.
                ("| | [4](#page) |", "| 3 | 4 | 5 |", 8),  # A cell too many: it would not be shown.
                ("`x\\|y`", "`x|y`", 7),  # A bar in code splits the cell.
                ("|---|---|", "|---|", 5),  # The rule has too few cells: no table.
                ("|---|---|\n", "", 5),  # No rule: no table.
                ("| a | b |\n|---|---|\n", "", 5),  # No header.
                ("`code | and a bar`", "`code | and a bar", 3),  # The code does not end.
                ("**bold**", "**bold", 3),
                ("(#page).", "(#page.", 3),
                ("(#page).", "(#pa ge).", 3)):
            with self.subTest(wrong):
                self.assertIn(right, self.GOOD)
                self.assertIn(line, self.Lines(self.GOOD.replace(right, wrong, 1)))

    def test_headings_that_ask_are_found(self):
        page = markdown_check.Page("# What it is\n\nWhat it is.\n\n## Somewhat\n\n### Known, and by `who`\n\nWho may\n---\n")
        self.assertEqual(markdown_check.QuestionHeadings(page),
                         [(1, "What it is"), (7, "Known, and by who"), (9, "Who may")])
        self.assertEqual(markdown_check.QuestionHeadings(markdown_check.Page(self.GOOD)), [])

    def test_the_html_is_that_of_the_page(self):
        page = markdown_check.Page(self.GOOD)
        self.assertEqual(page.rows, [(5, 2, 2), (7, 2, 2), (8, 2, 2)])
        self.assertEqual(page.codes, [(3, "code | and a bar"), (7, "x|y")])
        self.assertEqual(page.links, [(3, "#page"), (8, "#page")])
        self.assertEqual(page.anchors, {"page"})


class LinkTest(unittest.TestCase):
    def test_targets_are_files_and_headings(self):
        with tempfile.TemporaryDirectory() as root:
            folder = pathlib.Path(root) / "docs"
            folder.mkdir()
            (folder / "b.md").write_text("# The `B` page (one)\n\n## Twice\n\n## Twice\n")

            def Dead(text):
                return [target for _, target in markdown_check.DeadLinks("docs/a.md", markdown_check.Page(text), root)]

            (folder / "a.md").write_text("")
            good = "[b](b.md) [b](../docs/b.md#the-b-page-one) [two](b.md#twice-1) [up](#here) [web](https://x.org/y)\n"
            self.assertEqual(Dead("# Here\n\n" + good), [])
            self.assertEqual(Dead("[c](c.md) ![p](p.png) [b](b.md#three) [up](#there) [r][r]\n\n[r]: r.md\n"),
                             ["c.md", "p.png", "b.md#three", "#there", "r.md"])
            self.assertEqual(Dead("Code: `[c](c.md)`\n\n    [c](c.md)\n"), [])

    def test_paths_are_files_pairs_or_folders(self):
        files = ["a/b/c.h", "a/b/c.cc", "d/e.py"]

        def Dead(text):
            return markdown_check.DeadPaths(markdown_check.Page(text), files)

        self.assertEqual(Dead("`a/b/c.h` `a/b/c` `a/b` `a/b/` `d/e.py` `elsewhere/x.h` `c.h` `a/N.cc` `a/my_b.cc`\n"), [])
        names = markdown_check.Page("`PutBatch` `PutFragment(x)` `put`\n")
        self.assertEqual(markdown_check.DeadNames(names, {"PutFragment"}), [(1, "PutBatch")])
        self.assertEqual(Dead("`a/c.h`\n\n| a |\n|---|\n| `d/e.cc` |\n"), [(1, "a/c.h"), (5, "d/e.cc")])


if __name__ == "__main__":
    unittest.main()
