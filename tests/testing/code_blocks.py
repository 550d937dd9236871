# SPDX-License-Identifier: Apache-2.0
"""The code blocks of documentation pages, for tests that run them as they are.   page -> blocks -> commands"""
import pathlib
import re
import textwrap

ROOT = pathlib.Path(__file__).resolve().parents[2]


def fenced(page, language):
    """Fenced blocks of that language, in order."""
    return re.findall(rf"^```{language}\n(.*?)^```$", (ROOT / page).read_text(), re.MULTILINE | re.DOTALL)


def all_indented(page):
    blocks = re.findall(r"(?:^    .*\n|^\n(?=    ))+", (ROOT / page).read_text(), re.MULTILINE)
    return [textwrap.dedent(block).strip("\n") + "\n" for block in blocks]


def indented(page, beginning):
    """The one block of indented lines whose first line begins so."""
    (found,) = [block for block in all_indented(page) if block.startswith(beginning)]
    return found


def commands(block):
    """Its lines, with continued ones joined."""
    return re.sub(r"\\\n", " ", block).splitlines()
