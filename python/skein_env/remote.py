# SPDX-License-Identifier: Apache-2.0
"""Serves batches by gRPC: service skein.env.v1.Environment (proto/skein/env/v1/environment.proto).

Each stream has environments of its own and a thread; the threads share Python's lock, so a server for each core steps
more than one for all.
"""

from __future__ import annotations

import hmac
import ipaddress
import os
import signal
import socket
import sys
import threading
from concurrent import futures
from typing import Any, Callable, Dict, Iterator, Optional, Tuple

import numpy as np

from . import wire
from .batch import Batch, close
from .columns import Columns, new_columns, reply_bytes
from .errors import THROWN, EnvError, describe, end_on_interrupt
from .local import read_arguments
from .version import about

MOST_STREAMS = 256
# Threads for streams that are refused while all places are taken.
SPARE_THREADS = 16
MESSAGE_BYTES = 32 << 20
ROOM_FOR_FAILURES = 1 << 20  # In a message, beside the columns.
MOST_ENVS = 65536  # Of rollout.envs_per_runner.
SEED_BOUND = 1 << 31
MIN_TOKEN_BYTES, MAX_TOKEN_BYTES = 16, 4096

Make = Callable[[int, Dict[str, Any]], Batch]


def is_loopback(listen: str) -> bool:
    """Whether only this host reaches HOST:PORT; of names, which anybody may give, `localhost` alone."""
    host = listen.rpartition(":")[0].strip("[]")
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def host_and_port(listen: str) -> Tuple[str, int]:
    """Of HOST:PORT or [HOST]:PORT. ValueError: it is neither, or there is no such port."""
    host, colon, port = listen.rpartition(":")
    if not colon or not (port.isascii() and port.isdigit()) or int(port) > 65535:
        raise ValueError(f"--listen {listen}: want HOST:PORT, with a port from 0 to 65535")
    return host, int(port)


def check_can_listen(host: str, port: int) -> None:
    """OSError: a server cannot listen there, at none of the addresses that the host's name has."""
    refused: Optional[OSError] = None
    places = socket.getaddrinfo(host.strip("[]") or None, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    for family, kind, _, _, place in places:
        try:
            with socket.socket(family, kind) as tried:
                tried.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                tried.bind(place)
            return
        except OSError as error:
            refused = error
    if refused:
        raise refused


def _take(column: Any, data: bytes, name: str) -> None:
    if len(data) != column.nbytes:
        raise wire.WireError(f"{name} has {len(data)} bytes, want {column.nbytes}")
    column[...] = np.frombuffer(data, column.dtype).reshape(column.shape)


def _check_actions(spec: wire.Spec, action: Any) -> None:
    """Environments rely on it: an actor clips its actions before it sends them."""
    low: Any = 0.0 if spec.discrete else np.asarray(spec.action_low, np.float32)
    high: Any = spec.action_size - 1.0 if spec.discrete else np.asarray(spec.action_high, np.float32)
    good = (action >= low) & (action <= high)  # NaN is not, and floor would warn of one.
    if spec.discrete and good.all():
        good = action == np.floor(action)
    if good.all():
        return
    i = int(np.argmin(good))
    at = i % spec.action_width
    least, most = (side if spec.discrete else side[at] for side in (low, high))
    whole = "a whole one" if spec.discrete else "one"
    number = action.reshape(-1)[i]
    raise wire.WireError(f"number {i} of action is {number:g}, want {whole} from {least:g} to {most:g}")


def _check_seeds(seeds: Any) -> None:
    if seeds.max() >= SEED_BOUND:
        e = int(np.argmax(seeds >= SEED_BOUND))
        raise wire.WireError(f"seed {e} is {seeds[e]}, want one under {SEED_BOUND}")


def _check_mask(mask: Any) -> None:
    if mask.max() > 1:
        raise wire.WireError("mask has a byte that is neither 0 nor 1")


def _size_problem(spec: wire.Spec, num_envs: int) -> str:
    """Why an answer would be too large for a message, or empty."""
    size, most = reply_bytes(spec, num_envs), MESSAGE_BYTES - ROOM_FOR_FAILURES
    if size <= most:
        return ""
    return f"an answer of {num_envs} environments has {size} bytes, want at most {most}; lower rollout.envs_per_runner"


def _reply(sequence: int, columns: Columns, batch: Batch) -> bytes:
    order: Tuple[Any, ...] = (
        columns.observation,
        columns.reward,
        columns.terminated,
        columns.truncated,
        columns.active,
        columns.final_observation,
        columns.global_state,
        columns.final_global_state,
        columns.episode_metrics,
        columns.failed,
    )
    parts = [wire.put_int(1, sequence)]
    parts += [wire.put_bytes(number, column.tobytes()) for number, column in enumerate(order, 2)]
    parts += [wire.put_bytes(12, wire.failure_body(env, why), always=True) for env, why in batch.failures()]
    return wire.put_bytes(2, b"".join(parts), always=True)


def answer(message: bytes, columns: Columns, batch: Batch) -> bytes:
    """The ServerMessage that answers a Step or Reset. WireError: it is neither, or a part has another size or a number
    that the protocol excludes; nothing has been stepped then."""
    fields = wire.read_fields(message)
    if 2 in fields:
        step = wire.read_fields(wire.get_bytes(fields, 2))
        _take(columns.action, wire.get_bytes(step, 2), "action")
        _take(columns.seed, wire.get_bytes(step, 3), "next_seed")
        _check_actions(batch.spec, columns.action)
        _check_seeds(columns.seed)
        batch.step(columns)
        return _reply(wire.get_int(step, 1), columns, batch)
    if 3 in fields:
        reset = wire.read_fields(wire.get_bytes(fields, 3))
        _take(columns.mask, wire.get_bytes(reset, 2), "mask")
        _take(columns.seed, wire.get_bytes(reset, 3), "seed")
        _check_seeds(columns.seed)
        _check_mask(columns.mask)
        batch.reset(columns)
        return _reply(wire.get_int(reset, 1), columns, batch)
    raise wire.WireError("a message that is neither step nor reset")


class _Service:
    def __init__(self, make: Make, name: str, token: str, most: int) -> None:
        self._make = make
        self._name = name
        self._token = token
        self._most = most
        self._places = threading.Semaphore(most)

    def _authorized(self, context: Any) -> bool:
        if not self._token:
            return True
        sent = [value for key, value in context.invocation_metadata() if key == "authorization"]
        return len(sent) == 1 and hmac.compare_digest(sent[0].encode(), f"Bearer {self._token}".encode())

    def serve(self, requests: Iterator[bytes], context: Any) -> Iterator[bytes]:
        import grpc  # type: ignore[import-untyped, unused-ignore]

        if not self._authorized(context):
            context.abort(grpc.StatusCode.UNAUTHENTICATED, "another token is wanted")
        if not self._places.acquire(blocking=False):
            why = f"it serves {self._most} env groups already (--max-streams); start another server"
            context.abort(grpc.StatusCode.RESOURCE_EXHAUSTED, why)
        try:
            yield from self._serve(requests, context)
        finally:
            self._places.release()

    def _serve(self, requests: Iterator[bytes], context: Any) -> Iterator[bytes]:
        import grpc

        batch: Optional[Batch] = None
        try:
            hello = wire.read_hello(next(requests))
            if hello.version != wire.VERSION:
                yield wire.failure(0, f"it speaks version {wire.VERSION} of skein.env.v1", unusable=True)
                return
            if self._name and hello.environment != self._name:
                problem = f"no environment {hello.environment!r}; there is {self._name!r}"
                yield wire.failure(0, problem, unusable=True)
                return
            if not 1 <= hello.num_envs <= MOST_ENVS:
                problem = f"num_envs is {hello.num_envs}, want 1 to {MOST_ENVS}"
                yield wire.failure(0, problem, unusable=True)
                return
            try:
                batch = self._make(hello.num_envs, read_arguments(hello.arguments))
            except EnvError as error:
                yield wire.failure(0, " ".join(str(error).split()), unusable=True)
                return
            except THROWN as error:  # Whatever a user's function throws.
                yield wire.failure(0, "making it: " + describe(error), unusable=True)
                return
            if _size_problem(batch.spec, batch.num_envs):
                yield wire.failure(0, _size_problem(batch.spec, batch.num_envs), unusable=True)
                return
            yield wire.welcome(batch.spec, about())
            columns = new_columns(batch.spec, batch.num_envs)
            for message in requests:
                yield answer(message, columns, batch)
        except StopIteration:
            return
        except wire.WireError as error:
            context.abort(grpc.StatusCode.INVALID_ARGUMENT, str(error))
        except grpc.RpcError:
            return  # The client is gone.
        except GeneratorExit:
            raise  # Nobody asks for more.
        except THROWN as error:  # Of a Batch: all its environments fail.
            if context.is_active():
                why = describe(error, None if batch is None else batch.users_own())
                print(f"skein-env: {why}", file=sys.stderr)
                context.abort(grpc.StatusCode.UNAVAILABLE, why)
        finally:
            if batch is not None:
                close(batch)


def _read(path: str) -> bytes:
    with open(path, "rb") as file:
        return file.read()


def _read_secret(path: str) -> bytes:
    mode = os.stat(path).st_mode & 0o7777
    if mode & 0o007:
        raise ValueError(f"every user of this machine has access to {path} (mode {mode:04o}): chmod 600 {path}")
    return _read(path)


def read_token(path: str) -> str:
    """The token in a file. ValueError: everybody may read it, or it is no word of 16 to 4096 characters."""
    token = _read_secret(path).strip()
    if any(not 33 <= byte <= 126 for byte in token):
        raise ValueError(f"{path} must have one word of printable ASCII, the token")
    if not MIN_TOKEN_BYTES <= len(token) <= MAX_TOKEN_BYTES:
        raise ValueError(
            f"the token in {path} has {len(token)} characters, want {MIN_TOKEN_BYTES} to {MAX_TOKEN_BYTES}; "
            "`skein certs init DIR` makes one"
        )
    return token.decode("ascii")


def _credentials(tls_cert: Optional[str], tls_key: Optional[str], tls_ca: Optional[str]) -> Any:
    import grpc

    given = [tls_cert, tls_key, tls_ca]
    if not any(given):
        return None
    if tls_cert is None or tls_key is None or tls_ca is None:
        raise ValueError("tls_cert, tls_key and tls_ca must be given together")
    return grpc.ssl_server_credentials([(_read_secret(tls_key), _read(tls_cert))], _read(tls_ca), require_client_auth=True)


def serve_remote(
    make: Make,
    listen: str,
    *,
    name: str = "",
    token_file: Optional[str] = None,
    tls_cert: Optional[str] = None,
    tls_key: Optional[str] = None,
    tls_ca: Optional[str] = None,
    max_streams: int = MOST_STREAMS,
) -> int:
    """Serves until SIGTERM or SIGINT. Returns the exit code. Credentials as Skein's programs have them: flags, or else
    SKEIN_TOKEN_FILE, SKEIN_TLS_CERT, SKEIN_TLS_KEY and SKEIN_TLS_CA. At most `max_streams` env groups at a time."""
    token_file = token_file or os.environ.get("SKEIN_TOKEN_FILE")
    tls_cert = tls_cert or os.environ.get("SKEIN_TLS_CERT")
    tls_key = tls_key or os.environ.get("SKEIN_TLS_KEY")
    tls_ca = tls_ca or os.environ.get("SKEIN_TLS_CA")
    try:
        import grpc
    except ModuleNotFoundError:
        print("skein-env: serving by gRPC needs the package grpcio (pip install grpcio)", file=sys.stderr)
        return 69
    try:
        host, port = host_and_port(listen)
        token = read_token(token_file) if token_file else ""
        credentials = _credentials(tls_cert, tls_key, tls_ca)
    except (OSError, ValueError) as error:
        print(f"skein-env: {error}", file=sys.stderr)
        return 64
    if max_streams < 1:
        print(f"skein-env: --max-streams: got {max_streams}, want at least 1", file=sys.stderr)
        return 64
    if not is_loopback(listen) and not token and credentials is None:
        print(f"skein-env: {listen} can be reached from outside: give --token-file or the TLS files", file=sys.stderr)
        return 64
    end_on_interrupt()
    try:
        close(make(1, {}))
    except EnvError as error:
        print(f"skein-env: {error}", file=sys.stderr)
        return 65
    except THROWN as error:  # Whatever a user's function throws.
        print(f"skein-env: {describe(error)}", file=sys.stderr)
        return 65
    service = _Service(make, name, token, max_streams)
    handler = grpc.stream_stream_rpc_method_handler(service.serve)
    options = [
        ("grpc.max_receive_message_length", MESSAGE_BYTES),
        ("grpc.max_send_message_length", MESSAGE_BYTES),
        ("grpc.so_reuseport", 0),
        # An actor pings every 10 s while it waits for a step. By default that is a flood, which ends the connection.
        ("grpc.keepalive_permit_without_calls", 1),
        ("grpc.http2.min_ping_interval_without_data_ms", 5_000),
        ("grpc.http2.min_recv_ping_interval_without_data_ms", 5_000),
        ("grpc.http2.max_ping_strikes", 0),
        # An actor that is gone without a word frees its place. One that waits for its learner looks every 5 s.
        ("grpc.keepalive_time_ms", 30_000),
        ("grpc.keepalive_timeout_ms", 20_000),
        ("grpc.http2.max_pings_without_data", 0),
    ]
    server = grpc.server(futures.ThreadPoolExecutor(max_streams + SPARE_THREADS), options=options)
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler("skein.env.v1.Environment", {"Serve": handler}),))
    try:
        check_can_listen(host, port)  # gRPC's own reason is a page of its log.
        port = server.add_secure_port(listen, credentials) if credentials else server.add_insecure_port(listen)
    except (OSError, RuntimeError) as error:
        print(f"skein-env: cannot listen on {listen}: {getattr(error, 'strerror', None) or error}", file=sys.stderr)
        return 69
    ended = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: ended.set())
    server.start()
    print(f"serving {about()} at grpc://{host}:{port}{'/' + name if name else ''}", flush=True)
    ended.wait()
    server.stop(1).wait()
    return 0
