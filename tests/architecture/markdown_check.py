# SPDX-License-Identifier: Apache-2.0
"""Finds what of a Markdown page would not be shown as it is meant: broken tables and dead relative links.

Tables are read as GitHub reads them: a '|' splits cells within `code`, too, unless it is written '\\|'.
"""

import pathlib
import re

DELIMITER = re.compile(r"^\s*\|?\s*:?-+:?\s*(\|\s*:?-+:?\s*)*\|?\s*$")
LINK = re.compile(r"\[(?:[^\[\]]|\[[^\[\]]*\])*\]\(\s*<?([^)\s>]+)>?(?:\s+\"[^\"]*\")?\s*\)")


def Cells(row):
    """How many cells a table's row has."""
    row = row.strip().replace("\\|", "")
    return len(row.removeprefix("|").removesuffix("|").split("|"))


def Prose(text):
    """The page's lines, those of code blocks emptied."""
    lines, fence, before_is_text = [], None, False
    for line in text.split("\n"):
        mark = re.match(r"\s*(```+|~~~+)", line)
        if fence is not None:
            fence = None if mark and mark.group(1).startswith(fence) else fence
            lines.append("")
        elif mark:
            fence = mark.group(1)
            lines.append("")
        elif line.startswith("    ") and not before_is_text:
            lines.append("")
        else:
            lines.append(line)
            before_is_text = bool(line.strip()) and not line.startswith("#")
            continue
        before_is_text = False
    return lines


def BrokenTables(text):
    """(line number, what is wrong)."""
    problems = []
    lines = Prose(text)
    i = 0
    while i < len(lines):
        if i + 1 < len(lines) and "|" in lines[i] and DELIMITER.match(lines[i + 1]) and "-" in lines[i + 1]:
            columns = Cells(lines[i])
            if Cells(lines[i + 1]) != columns:
                problems.append((i + 2, f"the rule has {Cells(lines[i + 1])} cells, the header {columns}"))
            i += 2
            while i < len(lines) and lines[i].strip():
                if Cells(lines[i]) != columns:
                    problems.append((i + 1, f"a row has {Cells(lines[i])} cells, the header {columns}"))
                i += 1
        else:
            if lines[i].startswith("|"):
                problems.append((i + 1, "a row without a header and a rule above it"))
            i += 1
    return problems


def Anchors(text):
    """Names of the page's headings as GitHub makes them."""
    names = {}
    for line in Prose(text):
        heading = re.match(r"#{1,6}\s+(.*?)\s*#*$", line)
        if not heading:
            continue
        shown = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading.group(1)).replace("`", "")
        name = re.sub(r"[^\w\- ]", "", shown.lower()).replace(" ", "-")
        count = names.get(name, 0)
        names[name] = count + 1
        if count:
            names[f"{name}-{count}"] = 1
    return set(names) | set(re.findall(r'<a (?:id|name)="([^"]+)"', text))


def DeadLinks(path, text, root="."):
    """(line number, target) of relative links that lead nowhere. `path` is from `root`."""
    root = pathlib.Path(root)
    problems = []
    for number, line in enumerate(Prose(text), 1):
        for target in LINK.findall(re.sub(r"`[^`]*`", "`", line)):
            if re.match(r"[a-z]+:", target):
                continue
            file, _, anchor = target.partition("#")
            page = root / pathlib.Path(path).parent / file if file else root / path
            if not page.exists():
                problems.append((number, target))
            elif anchor and page.suffix == ".md" and anchor not in Anchors(page.read_text() if file else text):
                problems.append((number, target))
    return problems


def DeadPaths(text, files):
    """(line number, path) of `paths` into the tree that name no file, folder or pair of files of it.

    `files`: all paths of the tree. A path with a capital letter or "my_" stands for one that a reader chooses.
    """
    known = set(files)
    for file in files:
        known.add(file.rpartition(".")[0])
        known.update(str(folder) for folder in pathlib.PurePosixPath(file).parents)
    top = {file.split("/")[0] for file in files if "/" in file}
    problems = []
    for number, line in enumerate(Prose(text), 1):
        for path in re.findall(r"`([a-z0-9_./-]+)`", line):
            path = path.rstrip("/")
            if "/" in path and "my_" not in path and path.split("/")[0] in top and path not in known:
                problems.append((number, path))
    return problems
