# SPDX-License-Identifier: Apache-2.0
"""What goes wrong in a user's code, as one line."""

from __future__ import annotations

import inspect
import os
import traceback
from typing import Any


class EnvError(Exception):
    """An environment that Skein cannot have, whatever is tried: another try would fail the same way."""


def describe(error: BaseException, called: Any = None) -> str:
    """One line: the exception, and the places that led to it, innermost first. Where none is a user's, as when a function
    takes or returns something else, the place where what was `called` is defined: a function, or an object of a class."""
    here = os.path.dirname(os.path.abspath(__file__))
    frames = [f for f in traceback.extract_tb(error.__traceback__) if not f.filename.startswith(here)]
    places = "; ".join(f"{f.filename}:{f.lineno} in {f.name}" for f in reversed(frames[-8:])) or _definition(called)
    text = " ".join(str(error).split())
    return f"{type(error).__name__}: {text}" + (f" ({places})" if places else "")


def _definition(called: Any) -> str:
    thing: Any = called if inspect.isroutine(called) or inspect.isclass(called) else type(called)
    try:
        return f"{inspect.getsourcefile(thing)}:{inspect.getsourcelines(thing)[1]} defines {thing.__qualname__}"
    except (OSError, TypeError):  # It has no source: it was built in, or is None.
        return ""
