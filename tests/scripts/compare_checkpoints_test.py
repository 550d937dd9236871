#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""scripts/compare_checkpoints.py on checkpoints written here."""

import json
import math
import pathlib
import struct
import subprocess
import tempfile
import unittest

SCRIPT = pathlib.Path(__file__).resolve().parents[2] / "scripts" / "compare_checkpoints.py"
CODES = {"F32": "f", "F64": "d", "I64": "q"}


def write(path, tensors):
    """A safetensors file of {name: (dtype, shape, numbers)}."""
    header, data = {"__metadata__": {"of": "a test"}}, b""
    for name, (dtype, shape, numbers) in tensors.items():
        raw = struct.pack(f"<{len(numbers)}{CODES[dtype]}", *numbers)
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [len(data), len(data) + len(raw)]}
        data += raw
    text = json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + data)


class CompareCheckpoints(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.model = {"policy.0.weight": ("F32", [2, 2], [1, 2, 3, 4]), "policy.0.bias": ("F32", [2], [0, -0.0])}
        self.optimizer = {"adam.step": ("I64", [], [7]), "adam.first": ("F64", [2], [math.nan, 1])}
        for name in ("a", "b"):
            self.write(name)

    def write(self, name, model=None, optimizer=None, state=(1, 2)):
        folder = self.folder / name
        folder.mkdir(exist_ok=True)
        (folder / "manifest.json").write_text("{}")
        write(folder / "model.safetensors", self.model if model is None else model)
        write(folder / "optimizer.safetensors", self.optimizer if optimizer is None else optimizer)
        write(folder / "state.safetensors", {"env_state": ("F64", [1, len(state)], state)})

    def compare(self, *arguments):
        done = subprocess.run([SCRIPT, *arguments], cwd=self.folder, capture_output=True, text=True, check=False)
        return done.returncode, done.stdout.splitlines(), done.stderr

    def test_equal_ones(self):
        code, lines, _ = self.compare("a", "b")
        self.assertEqual((code, lines[-1]), (0, "all 4 tensors are equal to the bit"))
        self.assertEqual(lines[4].split(), ["optimizer", "adam.step", "I64", "1", "equal"])

    def test_a_number_that_differs_is_named_with_its_tensor(self):
        self.write("b", model=dict(self.model, **{"policy.0.weight": ("F32", [2, 2], [1, 2, 3.5, 4.25])}))
        code, lines, _ = self.compare("a", "b")
        self.assertEqual((code, lines[-1]), (1, "1 of 4 tensors differ: model policy.0.weight"))
        self.assertIn("2 of 4 numbers, by 0.5 at most", lines[2])
        self.assertIn("equal", lines[1])

    def test_bits_count_and_not_values(self):
        self.write("b", model=dict(self.model, **{"policy.0.bias": ("F32", [2], [0, 0])}),
                   optimizer=dict(self.optimizer, **{"adam.first": ("F64", [2], [2, 1])}))
        code, lines, _ = self.compare("a", "b")
        self.assertEqual((code, lines[-1]), (1, "2 of 4 tensors differ: model policy.0.bias, optimizer adam.first"))
        self.assertIn("1 of 2 numbers, by 0 at most", lines[1])
        self.assertIn("1 of 2 numbers, by nan at most", lines[3])

    def test_names_types_and_shapes(self):
        self.write("b", model={"policy.0.weight": ("F32", [4], [1, 2, 3, 4]), "policy.1.bias": ("F32", [2], [0, 0])},
                   optimizer=dict(self.optimizer, **{"adam.step": ("F64", [], [7])}))
        code, lines, _ = self.compare("a", "b")
        self.assertEqual(code, 1)
        self.assertIn("only in A", lines[1])
        self.assertIn("shapes [2, 2] and [4]", lines[2])
        self.assertIn("only in B", lines[3])
        self.assertIn("I64 and F64", lines[5])
        self.assertTrue(lines[-1].startswith("4 of 5 tensors differ: "))

    def test_the_state_counts_where_it_is_asked_for(self):
        self.write("b", state=(1, 2, 3))
        self.assertEqual(self.compare("a", "b")[0], 0)
        code, lines, _ = self.compare("a", "b", "--state")
        self.assertEqual((code, lines[-1]), (1, "1 of 5 tensors differ: state env_state"))

    def test_a_runs_folder_stands_for_its_newest_checkpoint(self):
        (self.folder / "run" / "checkpoints").mkdir(parents=True)
        (self.folder / "run" / "checkpoints" / "latest").symlink_to(self.folder / "a")
        self.assertEqual(self.compare("run", "b")[0], 0)

    def test_what_cannot_be_read(self):
        (self.folder / "none").mkdir()
        code, _, error = self.compare("a", "none")
        self.assertEqual(code, 65)
        self.assertIn("'none' is no checkpoint", error)
        whole = (self.folder / "b" / "model.safetensors").read_bytes()
        header = struct.pack("<Q", 2**63)
        for bytes_there in (b"", whole[:5], whole[:-1], header + whole[8:], whole[:8] + b"[]" + whole[10:]):
            (self.folder / "b" / "model.safetensors").write_bytes(bytes_there)
            code, _, error = self.compare("a", "b")
            self.assertEqual(code, 65, bytes_there[:20])
            self.assertIn("b/model.safetensors: ", error)

    def test_wrong_arguments(self):
        self.assertEqual(self.compare("a")[0], 64)
        self.assertEqual(self.compare("a", "b", "--nonsense")[0], 64)


if __name__ == "__main__":
    unittest.main()
