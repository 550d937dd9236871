#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The Markdown pages of this tree have no broken table and no dead relative link. Run in the root of the tree."""

import pathlib
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import markdown_check

APART = ("build", "third_party", "runs", ".")


class TreeTest(unittest.TestCase):
    def setUp(self):
        self.pages = {
            path: path.read_text()
            for path in sorted(pathlib.Path(".").rglob("*.md"))
            if not path.parts[0].startswith(APART)
        }

    def test_enough_is_found(self):
        self.assertGreater(len(self.pages), 40)

    def test_tables(self):
        found = [f"{path}:{line}: {what}" for path, text in self.pages.items()
                 for line, what in markdown_check.BrokenTables(text)]
        self.assertEqual(found, [])

    def test_links(self):
        found = [f"{path}:{line}: {what}" for path, text in self.pages.items()
                 for line, what in markdown_check.DeadLinks(path, text)]
        self.assertEqual(found, [])

    def test_paths(self):
        # Folders of the tree alone: what a build or a run makes is not there.
        folders = [path for path in pathlib.Path(".").iterdir() if path.is_dir() and not path.name.startswith(APART)]
        files = [str(path) for folder in folders for path in folder.rglob("*") if path.is_file()]
        found = [f"{path}:{line}: {what}" for path, text in self.pages.items()
                 for line, what in markdown_check.DeadPaths(text, files)]
        self.assertEqual(found, [])


class TableTest(unittest.TestCase):
    def test_a_row_with_another_number_of_cells_is_found(self):
        table = "| a | b |\n|---|---|\n| 1 | 2 |\n"
        self.assertEqual(markdown_check.BrokenTables(table), [])
        self.assertEqual([line for line, _ in markdown_check.BrokenTables(table + "| 1 | 2 | 3 |\n| 1 |\n")], [4, 5])

    def test_a_bar_within_code_splits_a_cell_unless_it_is_escaped(self):
        head = "| a | b |\n|---|---|\n"
        self.assertEqual([line for line, _ in markdown_check.BrokenTables(head + "| `x|y` | 2 |\n")], [3])
        self.assertEqual(markdown_check.BrokenTables(head + "| `x\\|y` | 2 |\n"), [])

    def test_the_rule_counts(self):
        self.assertEqual([line for line, _ in markdown_check.BrokenTables("| a | b |\n|---|\n")], [2])
        self.assertEqual([line for line, _ in markdown_check.BrokenTables("Text.\n\n| a | b |\n| 1 | 2 |\n")], [3, 4])

    def test_code_is_no_table(self):
        self.assertEqual(markdown_check.BrokenTables("    | a |\n    | b |\n\n```\n| a |\n```\n"), [])


class LinkTest(unittest.TestCase):
    def test_targets_are_files_and_headings(self):
        with tempfile.TemporaryDirectory() as root:
            folder = pathlib.Path(root) / "docs"
            folder.mkdir()
            (folder / "b.md").write_text("# The `B` page (one)\n\n## Twice\n\n## Twice\n")

            def Dead(text):
                return [target for _, target in markdown_check.DeadLinks("docs/a.md", text, root)]

            (folder / "a.md").write_text("")
            good = "[b](b.md) [b](../docs/b.md#the-b-page-one) [two](b.md#twice-1) [up](#here) [web](https://x.org/y)\n"
            self.assertEqual(Dead("# Here\n" + good), [])
            self.assertEqual(Dead("[c](c.md) ![p](p.png) [b](b.md#three) [up](#there)\n"),
                             ["c.md", "p.png", "b.md#three", "#there"])
            self.assertEqual(Dead("Code: `[c](c.md)`\n\n    [c](c.md)\n"), [])

    def test_paths_are_files_pairs_or_folders(self):
        files = ["a/b/c.h", "a/b/c.cc", "d/e.py"]
        good = "`a/b/c.h` `a/b/c` `a/b` `a/b/` `d/e.py` `elsewhere/x.h` `c.h` `a/NAME.cc` `a/my_b.cc`\n"
        self.assertEqual(markdown_check.DeadPaths(good, files), [])
        self.assertEqual(markdown_check.DeadPaths("`a/c.h` and\n`d/e.cc`\n", files), [(1, "a/c.h"), (2, "d/e.cc")])


if __name__ == "__main__":
    unittest.main()
