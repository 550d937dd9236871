# SPDX-License-Identifier: Apache-2.0
"""Renders a Markdown page and finds in its HTML what is not shown as it is meant.

text -> markdown-it -> HTML with line numbers -> Page -> broken tables, markup left in the text, dead links and names.
markdown-it follows CommonMark, tables are GitHub's: a '|' splits cells within `code`, too, unless it is written '\\|'.
"""

import functools
import html.parser
import pathlib
import re

import markdown_it

RENDERER = markdown_it.MarkdownIt("commonmark").enable("table")
# A reader sees these only where a page's author meant something else. |x| is an absolute value.
MARKUP = re.compile(r"(?:^|\s)\|(?=\s|$)|\|-|`|\]\(|\*\*")


def Render(text):
    """The page's HTML. Each block's first tag has the line where the block begins: data-line."""
    env = {}
    tokens = RENDERER.parse(text, env)
    for token in tokens:
        if token.map and token.nesting >= 0 and token.type != "inline":
            token.attrSet("data-line", str(token.map[0] + 1))
    return RENDERER.renderer.render(tokens, RENDERER.options, env)


class Page(html.parser.HTMLParser):
    """What a reader sees of a rendered page, each thing with its line."""

    def __init__(self, text):
        super().__init__()
        self.lines = text.split("\n")
        self.texts = []  # (line, text) of a run of text outside of code.
        self.codes = []  # (line, text) of `code` in text.
        self.links = []  # (line, target) of links and pictures.
        self.rows = []  # (line, cells, columns) of a table's row: cells in the HTML, and columns of the table's header.
        self.anchors = set()
        self.headings = []  # (line, text).
        self._line = 1
        self._open = []  # Names of open elements.
        self._heading = None
        self._columns = 0
        self._cells = 0
        self.feed(Render(text))
        self.close()

    def handle_starttag(self, tag, attrs):
        attrs = dict(attrs)
        self._line = int(attrs.get("data-line", self._line))
        if "href" in attrs or "src" in attrs:
            self.links.append((self._line, attrs.get("href") or attrs.get("src")))
        for name in ("id", "name"):
            if name in attrs:
                self.anchors.add(attrs[name])
        if tag == "code" and self._open[-1:] != ["pre"]:
            self.codes.append((self._line, ""))
        elif re.fullmatch("h[1-6]", tag):
            self._heading = ""
        elif tag == "thead":
            self._columns = 0
        elif tag == "tr":
            self._cells = 0
        elif tag in ("td", "th"):
            self._cells += 1
        if tag not in ("br", "hr", "img"):
            self._open.append(tag)

    def handle_endtag(self, tag):
        if tag == "tr":
            self._columns = self._columns or self._cells
            self.rows.append((self._line, self._cells, self._columns))
        elif self._heading is not None and re.fullmatch("h[1-6]", tag):
            self._AddAnchor(self._heading)
            self.headings.append((self._line, self._heading))
            self._heading = None
        while self._open and self._open.pop() != tag:
            pass

    def handle_data(self, data):
        if self._heading is not None:
            self._heading += data
        if "code" not in self._open:
            self.texts.append((self._line, data))
        elif "pre" not in self._open:
            line, text = self.codes[-1]
            self.codes[-1] = (line, text + data)

    def _AddAnchor(self, heading):
        """The heading's name as GitHub makes it."""
        name = re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")
        count = 0
        while (f"{name}-{count}" if count else name) in self.anchors:
            count += 1
        self.anchors.add(f"{name}-{count}" if count else name)


@functools.lru_cache(maxsize=None)
def PageOf(text):
    return Page(text)


@functools.lru_cache(maxsize=None)
def HasCells(row, columns):
    """Whether a source line of a table has that many cells. A renderer fills a table's row up or cuts it off without a
    word, but takes a line as a header only if it has as many cells as the rule below it."""
    page = Page(row.strip().lstrip(">").strip() + "\n" + "|---" * columns + "|\n")
    return [cells for _, cells, _ in page.rows] == [columns]


def BrokenTables(page):
    """(line number, what is wrong)."""
    return [(line, f"a row has not as many cells as its header, {columns}") for line, cells, columns in page.rows
            if cells != columns or not HasCells(page.lines[line - 1], columns)]


def LeftMarkup(page):
    """(line number, what is wrong): markup that a reader would see, as of a table that is none."""
    return [(line, f"'{found.group().strip()}' is shown: {text.strip()}") for line, text in page.texts
            for found in MARKUP.finditer(text)]


def QuestionHeadings(page):
    """(line number, heading) of headings that ask instead of naming their subject."""
    return [(line, text) for line, text in page.headings if re.search(r"\b(who|whoever|what)\b", text, re.IGNORECASE)]


def DeadLinks(path, page, root="."):
    """(line number, target) of relative links that lead nowhere. `path` is from `root`."""
    root = pathlib.Path(root)
    problems = []
    for line, target in page.links:
        if re.match(r"[a-z]+:", target):
            continue
        file, _, anchor = target.partition("#")
        other = root / pathlib.Path(path).parent / file if file else root / path
        if not other.exists():
            problems.append((line, target))
        elif anchor and other.suffix == ".md":
            if anchor not in (PageOf(other.read_text()) if file else page).anchors:
                problems.append((line, target))
    return problems


def DeadPaths(page, files):
    """(line number, path) of `paths` into the tree that name no file, folder or pair of files of it.

    `files`: all paths of the tree. A path with a capital letter or "my_" stands for one that a reader chooses.
    """
    known = set(files)
    for file in files:
        known.add(file.rpartition(".")[0])
        known.update(str(folder) for folder in pathlib.PurePosixPath(file).parents)
    top = {file.split("/")[0] for file in files if "/" in file}
    problems = []
    for line, path in page.codes:
        path = path.rstrip("/")
        if re.fullmatch(r"[a-z0-9_./-]+", path) and "/" in path and "my_" not in path:
            if path.split("/")[0] in top and path not in known:
                problems.append((line, path))
    return problems


def DeadNames(page, known):
    """(line number, name) of `NamesLikeThis` that are not among the words `known`."""
    name = re.compile(r"\b[A-Z][a-z0-9]+(?:[A-Z][a-z0-9]+)+\b")
    return [(line, found) for line, code in page.codes for found in name.findall(code) if found not in known]
