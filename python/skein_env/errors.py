# SPDX-License-Identifier: Apache-2.0
"""What goes wrong in a user's code, as one line."""

from __future__ import annotations

import inspect
import os
import signal
import sysconfig
import threading
import traceback
from typing import Any


class EnvError(Exception):
    """An environment that Skein cannot have, whatever is tried: another try would fail the same way."""


THROWN = BaseException
"""What a user's code may throw and this process survives: sys.exit() in it and KeyboardInterrupt, too. A real Ctrl-C
throws nothing here: see end_on_interrupt."""


def end_on_interrupt() -> None:
    """Has SIGINT end this process at once, as SIGTERM does, in place of KeyboardInterrupt in whatever runs. A handler of the
    user's own stays."""
    if threading.current_thread() is threading.main_thread() and signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)


_LIBRARY = sysconfig.get_paths()["stdlib"] + os.sep
_PACKAGES = tuple(os.path.join(_LIBRARY, folder) for folder in ("site-packages", "dist-packages"))


def _is_users(file: str) -> bool:
    """Whether a file is neither of Python's own library nor of this package."""
    here = os.path.dirname(os.path.abspath(__file__))
    if file.startswith(here) or file.startswith("<frozen "):
        return False
    return not file.startswith(_LIBRARY) or file.startswith(_PACKAGES)


def text_of(error: BaseException) -> str:
    """What the exception says, on one line, as UTF-8 can have it."""
    try:
        return " ".join(str(error).split()).encode(errors="replace").decode()
    except THROWN as failed:
        return f"(its text cannot be had: {type(failed).__name__})"


def describe(error: BaseException, called: Any = None) -> str:
    """One line: the exception, and the places that led to it, innermost first. Where none is a user's, as when a function
    takes or returns something else, the place where what was `called` is defined: a function, or an object of a class."""
    frames = [f for f in traceback.extract_tb(error.__traceback__) if _is_users(f.filename)]
    places = "; ".join(f"{f.filename}:{f.lineno} in {f.name}" for f in reversed(frames[-8:])) or definition(called)
    return f"{type(error).__name__}: {text_of(error)}" + (f" ({places})" if places else "")


def definition(called: Any) -> str:
    """The place where a function, or the class of an object, is defined; empty where it has no source."""
    thing: Any = called if inspect.isroutine(called) or inspect.isclass(called) else type(called)
    try:
        return f"{inspect.getsourcefile(thing)}:{inspect.getsourcelines(thing)[1]} defines {thing.__qualname__}"
    except (OSError, TypeError):
        return ""
