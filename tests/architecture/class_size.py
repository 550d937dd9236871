# SPDX-License-Identifier: Apache-2.0
"""Measures every C++ class over all of its files: lines and data members. Also the length of each main().

Source text -> Blank -> Scan -> Measure -> [ClassSize]. The text is not compiled: scopes are found by their braces, so
macros that open or close a brace, and K&R definitions, are not understood.
"""

import dataclasses
import re

# Of a class: its definition, nested classes with it, and every definition of a member function outside of it.
MAX_LINES = 500
MAX_MEMBERS = 20
MAX_MAIN_LINES = 40


@dataclasses.dataclass
class ClassSize:
    name: str  # With its namespaces: "skein::Outbox".
    path: str  # Of its definition.
    lines: int = 0
    members: int = 0  # Non-static data members; those of nested classes do not count.


def Blank(text):
    """The text without comments and preprocessor lines, strings emptied; line breaks stay."""
    token = re.compile(
        r'//[^\n]*|/\*.*?\*/|R"([^(\s]*)\(.*?\)\1"|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])+\'|(?<=\n)[ \t]*#(?:\\\n|[^\n])*',
        re.DOTALL)

    def replace(match):
        found = match.group(0)
        breaks = "\n" * found.count("\n")
        if found.startswith(('"', 'R"')):
            return '""' + breaks
        if found.startswith("'"):
            return "0"
        return breaks or " "

    text = re.sub(r"(?<=[0-9a-fA-F])'(?=[0-9a-fA-F])", "", text)  # 1'000'000
    return token.sub(replace, "\n" + text)[1:]


def WithoutTemplates(text):
    """`text` with what stands in <angle brackets> and in macros' (parentheses) taken out."""
    text = re.sub(r"operator\s*(<=>|<<|>>|<=|>=|<|>|->)", "operator@", text)
    text = re.sub(r"\b(ABSL|SKEIN)_[A-Z_]+\b(\s*\((?:[^()]|\([^()]*\))*\))?", " ", text)
    text = re.sub(r"\balignas\s*\([^()]*\)|\[\[[^\]]*\]\]", " ", text)
    text = text.replace("->", "  ")
    previous = None
    while previous != text:
        previous = text
        text = re.sub(r"<[^<>;{}]*>", " ", text)
    return text


def DataMembers(statement):
    """How many non-static data members a statement of a class declares; its braces are taken out already."""
    text = WithoutTemplates(re.sub(r"\b(public|protected|private)\s*:", " ", statement)).strip()
    if not text or re.match(r"(using|typedef|friend|static|template|enum|static_assert|constexpr)\b", text):
        return 0
    if re.search(r"\boperator\b", text):
        return 0
    declared = text.split("=")[0]
    # A function, unless it is a pointer to one.
    if "(" in declared and not re.search(r"\(\s*\*", declared):
        return 0
    if re.match(r"(class|struct|union)\s+\w+\s*$", text):
        return 0  # Declared, not defined.
    depth, names = 0, 1
    for letter in text:
        depth += (letter in "([") - (letter in ")]")
        names += letter == "," and depth == 0
    return names


@dataclasses.dataclass
class Function:
    scope: str  # The namespaces and classes around it, then its qualification: "skein::Outbox".
    name: str
    path: str
    lines: int


class Scanner:
    """Finds classes and functions in one file."""

    def __init__(self, path, text):
        self.path = path
        self.text = Blank(text)
        self.classes = []
        self.functions = []
        self.nested = set()  # Names of classes defined within another one's definition.

    def Run(self):
        self.Scope(0, [], None)
        return self

    def Line(self, position):
        return self.text.count("\n", 0, position)

    def Skip(self, position):
        """The position after the brace that closes the one before `position`."""
        depth = 1
        while position < len(self.text) and depth > 0:
            depth += (self.text[position] == "{") - (self.text[position] == "}")
            position += 1
        return position

    def Scope(self, position, names, owner):
        """Reads a namespace or, with an owner, a class; returns the position after its closing brace."""
        begin = position
        while position < len(self.text):
            letter = self.text[position]
            if letter == ";":
                self.Statement(self.text[begin:position], owner)
                position += 1
                begin = position
            elif letter == "}":
                return position + 1
            elif letter == "{":
                position, begin = self.Brace(begin, position, names, owner)
            else:
                position += 1
        return position

    def Statement(self, text, owner):
        if owner is not None:
            owner.members += DataMembers(text)

    def Brace(self, begin, brace, names, owner):
        """What a '{' opens. Returns the position after its end and where the next statement begins."""
        raw = self.text[begin:brace]
        head = WithoutTemplates(re.sub(r"\b(public|protected|private)\s*:(?!:)", " ", raw)).strip()
        first = begin + len(raw) - len(raw.lstrip())
        if re.search(r'(^|\s)namespace\b[\w\s:]*$', head) or re.match(r'extern\s*""$', head):
            inner = [name for name in head.split()[1:] for name in name.split("::")] if "namespace" in head else []
            end = self.Scope(brace + 1, names + inner, None)
            return end, end
        declared = re.match(r"(?:template\s+)?(?:typedef\s+)?(class|struct|union)\s+([\w:]+)\s*(final\s*)?(:.*)?$", head, re.DOTALL)
        if declared:
            size = ClassSize("::".join(names + [declared.group(2)]), self.path)
            if owner is not None:
                self.nested.add(size.name)
            self.classes.append(size)
            end = self.Scope(brace + 1, names + declared.group(2).split("::"), size)
            size.lines = self.Line(end) - self.Line(first) + 1
            return end, end  # What follows up to ';' declares variables, which the next statement counts.
        end = self.Skip(brace + 1)
        if re.search(r"\boperator\b", head) or "(" in head.split("=")[0]:
            if re.search(r"[)\w&*]\s*$", head) and not re.search(r"=\s*$", head) and not self.InList(head, end):
                if owner is None:  # Those within a class are in its lines already.
                    self.Function(head, first, end, names)
                return end, end
            return end, begin  # An initialiser within a function's head: of a member, or a default argument.
        if re.match(r"enum\b", head) or re.match(r"(class|struct|union)$", head) and re.match(r"\s*\w", self.text[end:]):
            return end, end
        if owner is not None:
            # A member with an initialiser: leave out the braces, go on to the ';'.
            self.text = self.text[:brace] + re.sub(r"[^\n]", " ", self.text[brace:end]) + self.text[end:]
            return end, begin
        return end, begin

    def InList(self, head, end):
        """Whether the brace belonged to a list of member initialisers: another member or the body follows."""
        following = re.match(r"\s*([,{])", self.text[end:])
        return bool(re.search(r"\)\s*(noexcept\s*)?:(?!:)", head)) and following is not None

    def Function(self, head, first, end, names):
        name = re.search(r"([\w:~]+|[\w:]*operator[^(]*)\s*\(", head)
        if name is None:
            return
        parts = [part for part in re.sub(r"\s", "", name.group(1)).split("::") if part]
        self.functions.append(
            Function("::".join(names + parts[:-1]), parts[-1], self.path, self.Line(end) - self.Line(first) + 1))


def Measure(files):
    """`files`: text by path. Every class that is defined in them, and every main()."""
    scanned = [Scanner(path, text).Run() for path, text in sorted(files.items())]
    classes = [one for scan in scanned for one in scan.classes]
    by_name = {}
    for one in classes:
        by_name.setdefault(one.name, []).append(one)

    def Find(name, path):
        # Two sources may each have a class of that name for themselves; a header's is everybody's.
        found = by_name.get(name, [])
        own = [one for one in found if one.path == path]
        return (own or [one for one in found if one.path.endswith(".h")] or found)[:1]

    for scan in scanned:
        for one in scan.classes:
            # "struct Outer::Inner {" in a source: a part of Outer. Otherwise it is in the lines of Outer's definition.
            for parent in Find(one.name.rpartition("::")[0], one.path):
                if one.name not in scan.nested:
                    parent.lines += one.lines
    for scan in scanned:
        for function in scan.functions:
            # A member of a nested class is a part of the outer one, too.
            names = function.scope.split("::")
            for count in range(len(names), 0, -1):
                for one in Find("::".join(names[:count]), function.path):
                    one.lines += function.lines
    mains = [one for scan in scanned for one in scan.functions if one.name == "main" and not one.scope]
    return classes, mains
