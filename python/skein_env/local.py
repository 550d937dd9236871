# SPDX-License-Identifier: Apache-2.0
"""Serves a batch to the process that started this one, by shared memory.

Descriptors 3, 4, 5 are what env/external/local_world.h says: a socket, the memory, and a pipe that ends with the parent.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import mmap
import os
import select
import signal
import socket
import threading
import time
from typing import Any, Callable, Dict

from . import columns as layout
from . import wire
from .batch import Batch, close
from .errors import THROWN, EnvError, describe, end_on_interrupt
from .version import about

SPIN_SECONDS = 30e-6
LOOK_AGAIN_SECONDS = 0.02
# The exit code where all went well but closing the environments.
CLOSING_FAILED = 71


def end_with_parent(pipe: int) -> None:
    """Has the kernel kill this process when the last writer of `pipe` is gone, whatever this process is doing then."""
    fcntl.fcntl(pipe, fcntl.F_SETOWN, os.getpid())
    # F_SETSIG has a name from Python 3.11 on; it is 10 on every Linux.
    fcntl.fcntl(pipe, getattr(fcntl, "F_SETSIG", 10), signal.SIGKILL)
    fcntl.fcntl(pipe, fcntl.F_SETFL, fcntl.fcntl(pipe, fcntl.F_GETFL) | os.O_ASYNC)
    if select.select([pipe], [], [], 0)[0]:  # It went before that.
        os._exit(1)


def read_arguments(text: str) -> Dict[str, Any]:
    """The keyword arguments in a JSON object. EnvError: it is none."""
    if not text:
        return {}
    try:
        arguments = json.loads(text)
    except ValueError as error:
        raise EnvError(f"env.external.arguments is no JSON: {error}") from error
    if not isinstance(arguments, dict):
        raise EnvError('env.external.arguments must be a JSON object like {"id": "CartPole-v1"}')
    return arguments


class _Doorbell:
    """The words in the memory's head, and the byte that wakes."""

    def __init__(self, memory: Any, sock: socket.socket) -> None:
        self._words = memoryview(memory).cast("I")
        self._sock = sock
        self._fence = threading.Lock()

    def wait(self, last: int) -> int:
        """Waits until a request with another sequence than `last` is there. EOFError: the client is gone."""
        words = self._words
        end = time.perf_counter() + SPIN_SECONDS
        while True:
            for _ in range(32):
                if words[layout.REQUEST_AT // 4] != last:
                    return words[layout.REQUEST_AT // 4]
            if time.perf_counter() > end:
                break
        while True:
            words[layout.SERVER_SLEEPS_AT // 4] = 1
            with self._fence:  # The flag is seen before the look that follows it.
                pass
            if words[layout.REQUEST_AT // 4] != last:
                words[layout.SERVER_SLEEPS_AT // 4] = 0
                return words[layout.REQUEST_AT // 4]
            if select.select([self._sock], [], [], LOOK_AGAIN_SECONDS)[0] and not self._sock.recv(64):
                raise EOFError

    def kind(self) -> int:
        return self._words[layout.KIND_AT // 4]

    def answer(self, sequence: int) -> None:
        words = self._words
        words[layout.REPLY_AT // 4] = sequence
        with self._fence:
            pass
        if words[layout.CLIENT_SLEEPS_AT // 4]:
            words[layout.CLIENT_SLEEPS_AT // 4] = 0
            with contextlib.suppress(BlockingIOError):  # A full socket wakes as well.
                self._sock.send(b"\1", socket.MSG_DONTWAIT)


def _serve(batch: Batch, sock: socket.socket, memory: Any) -> None:
    columns = layout.columns_in(memory, batch.spec, batch.num_envs)
    doorbell = _Doorbell(memory, sock)
    sequence = 0
    while True:
        sequence = doorbell.wait(sequence)
        kind = doorbell.kind()
        if kind == layout.STEP:
            batch.step(columns)
        elif kind == layout.RESET:
            batch.reset(columns)
        else:
            batch.bare(int(columns.seed[0]), columns)
        for env, why in batch.failures():
            sock.send(wire.failure(env, why))
        doorbell.answer(sequence)


def serve_local(make: Callable[[int, Dict[str, Any]], Batch], fd: int) -> int:
    """Serves until the client is gone. Returns the exit code."""
    end_with_parent(fd + 2)
    end_on_interrupt()
    sock = socket.socket(fileno=fd)
    try:
        hello = wire.read_hello(sock.recv(1 << 18))
    except wire.WireError as error:
        sock.send(wire.failure(0, f"skein-env: {error}", unusable=True))
        return 65
    if hello.version != wire.VERSION:
        why = f"skein-env speaks version {wire.VERSION} of skein.env.v1, skein version {hello.version}"
        sock.send(wire.failure(0, why, unusable=True))
        return 65
    try:
        batch = make(hello.num_envs, read_arguments(hello.arguments))
    except EnvError as error:
        sock.send(wire.failure(0, " ".join(str(error).split()), unusable=True))
        return 65
    except THROWN as error:  # Whatever a user's function throws.
        sock.send(wire.failure(0, "making it: " + describe(error), unusable=True))
        return 65
    code = 70
    try:
        code = _serve_greeted(batch, sock, fd + 1)
    finally:
        if not close(batch):
            code = code or CLOSING_FAILED
    return code


def _serve_greeted(batch: Batch, sock: socket.socket, memory: int) -> int:
    try:
        sock.send(wire.welcome(batch.spec, about()))
        ready = sock.recv(1 << 18)
        if not ready:
            return 0
        size = wire.read_memory(ready)
        want = layout.memory_bytes(batch.spec, batch.num_envs)
        if size != want:
            sock.send(wire.failure(0, f"skein-env: the memory has {size} bytes, want {want}"))
            return 70
        _serve(batch, sock, mmap.mmap(memory, size))
    except (EOFError, ConnectionError):
        pass  # The client is gone.
    except THROWN as error:  # Of a Batch: all its environments fail.
        with contextlib.suppress(OSError):
            sock.send(wire.failure(0, describe(error, batch.users_own())))
        return 70
    return 0


def local_fd() -> int:
    """The descriptor that this process was started with. EnvError: none."""
    text = os.environ.get("SKEIN_ENV_FD", "")
    if not text.isdigit():
        raise EnvError("--local is for skein to use, which gives it SKEIN_ENV_FD")
    return int(text)
