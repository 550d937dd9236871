# SPDX-License-Identifier: Apache-2.0
"""The one kind of error that this package raises."""

from __future__ import annotations


class SkeinError(Exception):
    """What went wrong, in one line. `code` is the program's exit code, from sysexits: 64 usage, 65 data, 69 unavailable,
    70 internal, 74 input and output, 75 try again; above 128 a signal, less 128."""

    def __init__(self, message: str, code: int) -> None:
        super().__init__(message)
        self.code = code
