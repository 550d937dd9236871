#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Every Markdown page of this tree, rendered, shows no broken table, no markup and no dead relative link.

Run in the root of the tree, with Debian's Python: python3-markdown-it renders the pages.
"""

import pathlib
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import markdown_check

APART = ("build", "third_party", "runs", ".")


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
        # Folders of the tree alone: what a build or a run makes is not there.
        folders = [path for path in pathlib.Path(".").iterdir() if path.is_dir() and not path.name.startswith(APART)]
        files = [str(path) for folder in folders for path in folder.rglob("*") if path.is_file()]
        self.assertEqual(self.Find(lambda path, page: markdown_check.DeadPaths(page, files)), [])


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
        self.assertEqual(Dead("`a/c.h`\n\n| a |\n|---|\n| `d/e.cc` |\n"), [(1, "a/c.h"), (5, "d/e.cc")])


if __name__ == "__main__":
    unittest.main()
