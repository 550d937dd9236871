# SPDX-License-Identifier: Apache-2.0
"""A run that is going on somewhere, seen through its coordinator."""

from __future__ import annotations

import json
from typing import Any

from skein_rl.programs import output_of, program


class Head:
    """The coordinator at `address`. Each call asks it anew, through `skein`; a token or certificates are taken from the
    environment variables that the programs read (SKEIN_TOKEN_FILE and others)."""

    def __init__(self, address: str) -> None:
        self.address = address

    def status(self) -> dict[str, Any]:
        """The run's state, progress and members, as `skein status --json` has them. SkeinError 69: nobody answers."""
        answer: dict[str, Any] = json.loads(output_of([str(program()), "status", "--address", self.address, "--json"]))
        return answer

    def drain(self, member: str, wait: bool = False) -> bool:
        """Asks an actor to deliver what it has begun and leave. With `wait`, whether it has left; else False."""
        command = [str(program()), "drain", "--address", self.address, "--json", member]
        return bool(json.loads(output_of(command + ["--wait"] * wait))["has_left"])

    def __repr__(self) -> str:
        return f"skein_rl.connect({self.address!r})"


def connect(address: str) -> Head:
    """The run whose `skein head` or `skein train` listens at HOST:PORT. Nothing is asked yet."""
    return Head(address)
