#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares the tensors of two checkpoints, of the model and of the optimiser, bit by bit.

    scripts/compare_checkpoints.py runs/before runs/after
    scripts/compare_checkpoints.py runs/a/checkpoints/step_000000100352 runs/b/checkpoints/latest --state

A and B are runs' folders (their newest checkpoint counts) or checkpoints' folders. Prints a line for each tensor, and names
what differs. --state compares the environments' state, too. A digest covers all three files, env steps and iteration, so it
differs where only the environments' state has another form; this tells whether the parameters are the same.
Exit code 0: all are equal. 1: something differs. 64: wrong arguments. 65: one is no checkpoint, or cannot be read.
"""

import argparse
import array
import json
import math
import pathlib
import struct
import sys

CODES = {"F32": "f", "F64": "d", "I32": "i", "I64": "q", "U8": "B"}


class Unreadable(Exception):
    pass


class Parser(argparse.ArgumentParser):
    def error(self, message):
        self.print_usage(sys.stderr)
        self.exit(64, f"compare_checkpoints.py: {message}\n")


def checkpoint_folder(path):
    latest = path / "checkpoints" / "latest"
    folder = latest if latest.is_dir() else path
    if not (folder / "manifest.json").is_file():
        raise Unreadable(f"{str(path)!r} is no checkpoint: no manifest.json there; give a run's folder or a checkpoint's")
    return folder


def read(path):
    """{name: (dtype, shape, bytes)} of a safetensors file, in the order of the names."""
    try:
        raw = path.read_bytes()
        (size,) = struct.unpack("<Q", raw[:8])
        if size > len(raw) - 8:
            raise ValueError(f"the header has {size} bytes, the file {len(raw)}")
        header = json.loads(raw[8 : 8 + size])
        data, tensors = memoryview(raw)[8 + size :], {}
        for name, entry in sorted(header.items()):
            if name == "__metadata__":
                continue
            dtype, shape, (begin, end) = entry["dtype"], entry["shape"], entry["data_offsets"]
            want = math.prod(shape) * array.array(CODES[dtype]).itemsize
            if not 0 <= begin <= end <= len(data) or end - begin != want:
                raise ValueError(f"{name}: bytes {begin} to {end} of {len(data)}, want {want}")
            tensors[name] = (dtype, shape, bytes(data[begin:end]))
        return tensors
    except (OSError, struct.error, ValueError, KeyError, TypeError, AttributeError) as error:
        raise Unreadable(f"{path}: {error}") from error


def difference(one, other):
    """What differs between two tensors, in words; "" if nothing does."""
    if one is None or other is None:
        return f"only in {'A' if other is None else 'B'}"
    if one[0] != other[0]:
        return f"{one[0]} and {other[0]}"
    if one[1] != other[1]:
        return f"shapes {one[1]} and {other[1]}"
    if one[2] == other[2]:
        return ""
    a, b = array.array(CODES[one[0]]), array.array(CODES[one[0]])
    a.frombytes(one[2])
    b.frombytes(other[2])
    width = a.itemsize
    differ = [i for i in range(len(a)) if one[2][i * width : (i + 1) * width] != other[2][i * width : (i + 1) * width]]
    gaps = [abs(a[i] - b[i]) for i in differ]
    # A difference with a NaN is one; zeros of both signs differ by 0.
    largest = math.nan if any(math.isnan(gap) for gap in gaps) else max(gaps)
    return f"{len(differ)} of {len(a)} numbers, by {largest:.3g} at most"


def main():
    parser = Parser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("a", type=pathlib.Path, metavar="A")
    parser.add_argument("b", type=pathlib.Path, metavar="B")
    parser.add_argument("--state", action="store_true", help="compare the environments' state, too")
    options = parser.parse_args()
    try:
        folders = [checkpoint_folder(path) for path in (options.a, options.b)]
        files = ["model", "optimizer"] + (["state"] if options.state else [])
        found = {file: [read(folder / f"{file}.safetensors") for folder in folders] for file in files}
    except Unreadable as error:
        print(f"compare_checkpoints.py: {error}", file=sys.stderr)
        return 65
    differing, rows = [], [("file", "tensor", "type", "shape", "difference")]
    for file, (a, b) in found.items():
        for name in sorted(a.keys() | b.keys()):
            dtype, shape, _ = a.get(name) or b.get(name)
            what = difference(a.get(name), b.get(name))
            rows.append((file, name, dtype, "x".join(map(str, shape)) or "1", what or "equal"))
            if what:
                differing.append(f"{file} {name}")
    widths = [max(len(row[i]) for row in rows) for i in range(5)]
    for row in rows:
        print("  ".join(text.ljust(width) for text, width in zip(row, widths)).rstrip())
    if differing:
        print(f"{len(differing)} of {len(rows) - 1} tensors differ: {', '.join(differing)}")
        return 1
    print(f"all {len(rows) - 1} tensors are equal to the bit")
    return 0


if __name__ == "__main__":
    sys.exit(main())
