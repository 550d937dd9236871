# SPDX-License-Identifier: Apache-2.0
"""Messages of skein.env.v1 as protobuf writes them, without protobuf.

proto/skein/env/v1/environment.proto is the definition; a field's number stands beside its name here and nowhere else.
Reading refuses what is cut off and skips fields that a later version may add.
"""

from __future__ import annotations

import dataclasses
import struct
from typing import Dict, List, Optional, Sequence, Tuple, Union

VERSION = 1

Value = Union[int, bytes]
Fields = Dict[int, List[Tuple[int, Value]]]

_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5
_MOST_VARINT = 2**64 - 1


class WireError(ValueError):
    """Bytes that are no message."""


def _varint(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def _read_varint(data: bytes, at: int) -> Tuple[int, int]:
    value = shift = 0
    while True:
        if at >= len(data) or shift > 63:
            raise WireError("a number is cut off")
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            return value & _MOST_VARINT, at  # As protobuf's own reader drops what is beyond.


def read_fields(data: bytes) -> Fields:
    """All fields of a message by number, each as (wire type, value). A memoryview is not accepted."""
    fields: Fields = {}
    at = 0
    while at < len(data):
        key, at = _read_varint(data, at)
        kind = key & 7
        value: Value
        if kind == _VARINT:
            value, at = _read_varint(data, at)
        else:
            if kind == _BYTES:
                size, at = _read_varint(data, at)
            elif kind in (_FIXED32, _FIXED64):
                size = 4 if kind == _FIXED32 else 8
            else:
                raise WireError(f"no wire type {kind}")
            if size > len(data) - at:
                raise WireError("a field is cut off")
            value = data[at : at + size]
            at += size
        fields.setdefault(key >> 3, []).append((kind, value))
    return fields


def _last(fields: Fields, number: int) -> Optional[Tuple[int, Value]]:
    return fields[number][-1] if number in fields else None


def get_int(fields: Fields, number: int) -> int:
    found = _last(fields, number)
    return found[1] if found and found[0] == _VARINT and isinstance(found[1], int) else 0


def get_bytes(fields: Fields, number: int) -> bytes:
    found = _last(fields, number)
    return found[1] if found and found[0] == _BYTES and isinstance(found[1], bytes) else b""


def get_text(fields: Fields, number: int) -> str:
    return get_bytes(fields, number).decode("utf-8", "replace")


def put_int(number: int, value: int) -> bytes:
    return _varint(number << 3) + _varint(value) if value else b""


def put_bytes(number: int, value: bytes, always: bool = False) -> bytes:
    return _varint(number << 3 | _BYTES) + _varint(len(value)) + value if value or always else b""


def put_text(number: int, value: str) -> bytes:
    return put_bytes(number, value.encode("utf-8", "replace"))


def put_floats(number: int, values: Sequence[float]) -> bytes:
    return put_bytes(number, struct.pack(f"<{len(values)}f", *values))


def put_double(number: int, value: float) -> bytes:
    return _varint(number << 3 | _FIXED64) + struct.pack("<d", value) if value else b""


@dataclasses.dataclass
class Spec:
    """What an environment is: message Spec."""

    num_agents: int
    obs_size: int
    discrete: bool
    action_size: int
    action_low: Sequence[float] = ()
    action_high: Sequence[float] = ()
    global_state_size: int = 0
    max_episode_steps: int = 0
    reward_threshold: float = 0.0
    episode_metrics: Sequence[str] = ()
    name: str = ""
    layout: str = ""

    @property
    def action_width(self) -> int:
        """Numbers that an agent's action has in `action`."""
        return 1 if self.discrete else self.action_size

    def encode(self) -> bytes:
        return b"".join(
            (
                put_text(1, self.name),
                put_int(2, self.num_agents),
                put_int(3, self.obs_size),
                put_int(4, int(self.discrete)),
                put_int(5, self.action_size),
                b"" if self.discrete else put_floats(6, self.action_low),
                b"" if self.discrete else put_floats(7, self.action_high),
                put_int(8, self.global_state_size),
                put_int(9, self.max_episode_steps),
                put_double(10, self.reward_threshold),
                *(put_text(11, name) for name in self.episode_metrics),
                put_text(12, self.layout),
            )
        )


@dataclasses.dataclass
class Hello:
    version: int
    environment: str
    arguments: str
    num_envs: int


def read_hello(message: bytes) -> Hello:
    """The Hello in a ClientMessage. WireError: there is none."""
    fields = read_fields(message)
    if 1 not in fields:
        raise WireError("the first message is no hello")
    hello = read_fields(get_bytes(fields, 1))
    return Hello(get_int(hello, 1), get_text(hello, 2), get_text(hello, 3), get_int(hello, 4))


def read_memory(message: bytes) -> int:
    """Memory.size_bytes of a ClientMessage. WireError: there is none."""
    fields = read_fields(message)
    if 4 not in fields:
        raise WireError("no memory")
    return get_int(read_fields(get_bytes(fields, 4)), 1)


def welcome(spec: Spec, server: str) -> bytes:
    """A ServerMessage."""
    body = put_int(1, VERSION) + put_bytes(2, spec.encode(), always=True) + put_text(3, server)
    return put_bytes(1, body)


def failure_body(env: int, message: str, unusable: bool = False) -> bytes:
    return put_int(1, env) + put_text(2, message[:4000]) + put_int(3, int(unusable))


def failure(env: int, message: str, unusable: bool = False) -> bytes:
    """A ServerMessage."""
    return put_bytes(3, failure_body(env, message, unusable), always=True)
