# SPDX-License-Identifier: Apache-2.0
"""Environments in Python for Skein.

    skein train --env python:my_module:make

starts `python -m skein_env` by itself. To serve environments to actors on other hosts:

    python -m skein_env my_module:make --listen 0.0.0.0:7200
    skein train --env grpc://host:7200

docs/environments.md tells the whole story.
"""

from .batch import Batch, Serial, Single
from .columns import Columns
from .errors import EnvError
from .serving import serve
from .version import __version__
from .wire import Spec

__all__ = ["Batch", "Columns", "EnvError", "Serial", "Single", "Spec", "__version__", "serve"]
