# SPDX-License-Identifier: Apache-2.0
"""Functions by their names: "package.module:function?name=value&name=value"."""

from __future__ import annotations

import importlib
import json
import os
import sys
import traceback
from typing import Any, Callable, Dict, Tuple
from urllib.parse import parse_qsl

from .errors import THROWN, EnvError, describe


def _value(text: str) -> Any:
    """JSON, or else the text itself."""
    try:
        return json.loads(text)
    except ValueError:
        return text


def load(name: str) -> Tuple[Callable[..., Any], Dict[str, Any]]:
    """The function, and the arguments in its name. EnvError: there is none, or it cannot be imported."""
    path, _, query = name.partition("?")
    module_name, _, function_name = path.partition(":")
    arguments = {key: _value(value) for key, value in parse_qsl(query, keep_blank_values=True)}
    if os.getcwd() not in sys.path:
        sys.path.insert(0, os.getcwd())
    try:
        found: Any = importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        if error.name is not None and (module_name + ".").startswith(error.name + "."):
            raise EnvError(
                f"no module {module_name!r} for {sys.executable} in {os.getcwd()}, PYTHONPATH or its packages"
            ) from error
        raise EnvError(f"importing {module_name}: {describe(error)}") from error
    except THROWN as error:  # Whatever the user's module throws.
        traceback.print_exc()
        raise EnvError(f"importing {module_name}: {describe(error)}") from error
    for part in function_name.split("."):
        if not hasattr(found, part):
            raise EnvError(f"{module_name} ({getattr(found, '__file__', 'built in')}) has no function {function_name!r}")
        found = getattr(found, part)
    if not callable(found):
        raise EnvError(f"{module_name}:{function_name} is a {type(found).__name__} and cannot be called")
    return found, arguments
