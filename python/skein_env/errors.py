# SPDX-License-Identifier: Apache-2.0
"""What goes wrong in a user's code, as one line."""

from __future__ import annotations

import os
import traceback


class EnvError(Exception):
    """An environment that Skein cannot have, whatever is tried: another try would fail the same way."""


def describe(error: BaseException) -> str:
    """One line: the exception, and the places that led to it, innermost first."""
    here = os.path.dirname(os.path.abspath(__file__))
    frames = [f for f in traceback.extract_tb(error.__traceback__) if not f.filename.startswith(here)]
    places = "; ".join(f"{f.filename}:{f.lineno} in {f.name}" for f in reversed(frames[-8:]))
    text = " ".join(str(error).split())
    return f"{type(error).__name__}: {text}" + (f" ({places})" if places else "")
