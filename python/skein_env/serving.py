# SPDX-License-Identifier: Apache-2.0
"""Serving environments, in one line of a program of one's own."""

from __future__ import annotations

import os
from typing import Any, Callable, Dict, Optional

from .adapters import make_batch
from .batch import Batch
from .errors import EnvError


def serve(
    make: Callable[..., Any],
    num_envs: Optional[int] = None,
    *,
    listen: str = "127.0.0.1:0",
    token_file: Optional[str] = None,
    tls_cert: Optional[str] = None,
    tls_key: Optional[str] = None,
    tls_ca: Optional[str] = None,
    name: str = "",
    max_streams: int = 256,
) -> int:
    """Serves what `make` makes until the process is ended. Returns the exit code.

    Started by skein (`env.id: exec:./my_server.py`) it serves that process by shared memory. Otherwise it listens for
    `env.id: grpc://host:port/name`, with as many environments for each actor's env group as that asks for, `num_envs`
    at most, for `max_streams` env groups at a time.
    """

    def of(count: int, arguments: Dict[str, Any]) -> Batch:
        if num_envs is not None and count > num_envs:
            raise EnvError(f"{count} environments are wanted (rollout.envs_per_runner), this server has {num_envs}")
        return make_batch(make, count, arguments)

    if os.environ.get("SKEIN_ENV_FD"):
        from .local import local_fd, serve_local

        return serve_local(of, local_fd())
    from .remote import serve_remote

    return serve_remote(
        of,
        listen,
        name=name,
        token_file=token_file,
        tls_cert=tls_cert,
        tls_key=tls_key,
        tls_ca=tls_ca,
        max_streams=max_streams,
    )
