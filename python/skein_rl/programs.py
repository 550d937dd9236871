# SPDX-License-Identifier: Apache-2.0
"""Where Skein's programs are, and the commands that stand for them on the PATH."""

from __future__ import annotations

import os
import pathlib
import shutil
import subprocess
import sys
from typing import NoReturn

from skein_rl.errors import SkeinError

# What the wheel brings; in a source tree there is no such folder.
BUNDLED = pathlib.Path(__file__).resolve().parent / "bin"
UNAVAILABLE = 69


def program(name: str = "skein") -> pathlib.Path:
    """The path of a program: in the folder SKEIN_BIN if that is set, else the one of this package, else on the PATH."""
    folder = os.environ.get("SKEIN_BIN")
    if folder:
        path = pathlib.Path(folder) / name
        if not os.access(path, os.X_OK):
            raise SkeinError(f"SKEIN_BIN: there is no program {path}", UNAVAILABLE)
        return path
    if os.access(BUNDLED / name, os.X_OK):
        return BUNDLED / name
    found = shutil.which(name)
    if found is None:
        raise SkeinError(f"there is no program {name}; pip install skein-rl, or let SKEIN_BIN name the folder that has it",
                         UNAVAILABLE)
    return pathlib.Path(found)


def environment() -> dict[str, str]:
    """The variables that programs get: SKEIN_PYTHON names this interpreter, unless it is set. Where Optuna was installed
    beside this package, `skein sweep` finds it."""
    own = {"SKEIN_PYTHON": sys.executable} if sys.executable else {}
    return {**own, **os.environ}


def version() -> str:
    """What `skein --version` prints: version, commit and libraries."""
    return output_of([str(program()), "--version"])


def output_of(command: list[str]) -> str:
    """What a program prints. SkeinError: it failed; the message is its last line."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, stdin=subprocess.DEVNULL, env=environment())
    except OSError as error:
        raise SkeinError(f"cannot start {command[0]}: {error.strerror}", UNAVAILABLE) from None
    if done.returncode != 0:
        raise SkeinError(last_line(done.stderr) or f"{command[0]} failed without a message", code_of(done.returncode))
    return done.stdout


def code_of(returncode: int) -> int:
    """A shell's exit code for that of subprocess, where a signal is negative."""
    return returncode if returncode >= 0 else 128 - returncode


def last_line(text: str) -> str:
    lines = [line for line in text.splitlines() if line.strip()]
    return lines[-1].strip() if lines else ""


def main() -> NoReturn:
    """Becomes the program by whose name this was called: `skein` and its siblings on the PATH."""
    name = pathlib.Path(sys.argv[0]).name
    try:
        path = str(program(name))
        # What is printed for people to type names the command and not this package's folder.
        os.environ.setdefault("SKEIN_COMMAND_FOLDER", str(pathlib.Path(sys.argv[0]).resolve().parent))
        os.execve(path, [path, *sys.argv[1:]], environment())
    except SkeinError as error:
        sys.exit(_said(name, str(error), error.code))
    except OSError as error:
        sys.exit(_said(name, f"cannot start {path}: {error.strerror}", UNAVAILABLE))


def _said(name: str, message: str, code: int) -> int:
    print(f"{name}: {message}", file=sys.stderr)
    return code
