# SPDX-License-Identifier: Apache-2.0
"""The package's version, and what serves."""

from __future__ import annotations

import platform
import sys

__version__ = "0.1.0"


def about() -> str:
    """E.g. "skein-env 0.1.0, Python 3.11.7, gymnasium 1.2.1"."""
    parts = [f"skein-env {__version__}", f"Python {platform.python_version()}"]
    for name in ("gymnasium", "pettingzoo", "dm_env"):
        module = sys.modules.get(name)
        if module is not None:
            parts.append(f"{name} {getattr(module, '__version__', '')}".strip())
    return ", ".join(parts)
