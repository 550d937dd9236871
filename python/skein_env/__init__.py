# SPDX-License-Identifier: Apache-2.0
"""Environments and callbacks in Python for Skein.

    skein train --env python:my_module:make

starts `python -m skein_env` by itself. To serve environments to actors on other hosts:

    python -m skein_env my_module:make --listen 0.0.0.0:7200
    skein train --env grpc://host:7200

docs/environments.md tells the whole story. docs/callbacks.md has callbacks, which need neither NumPy nor grpcio: what is
about environments is imported when it is asked for.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from .callbacks import Callback, Checkpoint, Run
from .errors import EnvError
from .version import __version__

if TYPE_CHECKING:
    from .batch import Batch, Serial, Single
    from .columns import Columns
    from .serving import serve
    from .wire import Spec

_MODULES = {
    "Batch": ".batch",
    "Columns": ".columns",
    "Serial": ".batch",
    "Single": ".batch",
    "Spec": ".wire",
    "serve": ".serving",
}


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found = getattr(importlib.import_module(_MODULES[name], __name__), name)
    globals()[name] = found
    return found


__all__ = [
    "Batch",
    "Callback",
    "Checkpoint",
    "Columns",
    "EnvError",
    "Run",
    "Serial",
    "Single",
    "Spec",
    "__version__",
    "serve",
]
