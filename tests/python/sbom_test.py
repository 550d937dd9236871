#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""scripts/make_sbom.py: the bill of a staged image is valid CycloneDX and lists what is in the image, and nothing else.

Exits with 77, skipped, where CycloneDX's library cannot be had (scripts/fetch_python.sh).
"""
import json
import os
import pathlib
import shutil
import subprocess
import tempfile
import unittest

from fetched_python import ROOT, fetch, python_of

BIN = pathlib.Path(os.environ.get("SKEIN_BIN", ROOT / "build/release"))
MAKE_SBOM = ROOT / "scripts/make_sbom.py"
CHECK = """
import sys
from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator
error = JsonStrictValidator(SchemaVersion.V1_5).validate_str(sys.stdin.read())
sys.exit(str(error) if error else 0)
"""


def make(*arguments):
    return subprocess.run([MAKE_SBOM, *arguments], capture_output=True, text=True)


def validate(text):
    return subprocess.run([python_of("cyclonedx"), "-c", CHECK], input=text, capture_output=True, text=True)


class Bill(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.path = pathlib.Path(cls.folder.name)
        cls.stage = cls.path / "coordinator"
        subprocess.run([ROOT / "deploy/docker/stage_runtime.sh", cls.stage, BIN, "skein-coordinator"], check=True)
        base = cls.path / "base.tsv"
        base.write_text(subprocess.run(["dpkg-query", "-W", "-f", "${Package}\t${Version}\t${Architecture}\n", "bash"],
                                       capture_output=True, text=True, check=True).stdout)
        got = make(cls.stage, "--base-packages", base, "--copyrights", cls.path / "doc")
        assert got.returncode == 0, got.stderr
        cls.text = got.stdout
        cls.again = make(cls.stage, "--base-packages", base).stdout
        cls.components = {part["name"]: part for part in json.loads(cls.text)["components"]}

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def test_is_valid_by_the_projects_own_schema(self):
        got = validate(self.text)
        self.assertEqual(got.returncode, 0, got.stderr)
        broken = json.loads(self.text)
        broken["components"][0]["type"] = "thing"
        self.assertNotEqual(validate(json.dumps(broken)).returncode, 0)

    def test_is_the_same_for_the_same_image(self):
        self.assertEqual(self.text, self.again)

    def test_lists_every_file_of_the_image_once(self):
        files = [entry["value"].split()[0] for part in self.components.values() for entry in part.get("properties", [])
                 if entry["name"] == "skein:file"]
        self.assertEqual(sorted(files), sorted(path.name for path in (self.stage / "lib").iterdir()))
        self.assertIn("skein-coordinator", self.components)

    def test_every_component_has_version_and_licence(self):
        for name, part in self.components.items():
            self.assertTrue(part["version"] and part["licenses"], name)
        grpc = next(name for name in self.components if name.startswith("libgrpc++"))
        for name, licence in ((grpc, "Apache-2.0"), ("uplot", "MIT"), ("skein-coordinator", "Apache-2.0")):
            self.assertEqual(self.components[name]["licenses"], [{"license": {"id": licence}}])

    def test_has_what_is_compiled_in_and_what_the_base_has(self):
        self.assertIn("nlohmann-json3-dev", self.components)
        self.assertEqual(self.components["bash"]["properties"][-1]["value"], "of the base image")

    def test_copyright_files_go_along(self):
        for name, part in self.components.items():
            if part.get("purl", "").startswith("pkg:deb/"):
                self.assertTrue((self.path / "doc" / name / "copyright").exists(), name)

    def test_a_file_of_unknown_origin_is_an_error(self):
        stage = self.path / "other"
        shutil.copytree(self.stage, stage)
        (stage / "lib/libsurprise.so.1").write_text("")
        got = make(stage)
        self.assertEqual(got.returncode, 65)
        self.assertIn("libsurprise.so.1: no program", got.stderr)
        (stage / "lib/libsurprise.so.1").unlink()
        changed = next((stage / "lib").glob("libprotobuf.so*"))
        changed.write_bytes(changed.read_bytes() + b"\0")
        got = make(stage)
        self.assertEqual(got.returncode, 65)
        self.assertIn(f"{changed}: is not /", got.stderr)

    def test_wrong_usage_is_said_so(self):
        got = make(self.path / "nothing")
        self.assertEqual(got.returncode, 64)
        self.assertIn("stage_runtime.sh first", got.stderr)
        self.assertEqual(make().returncode, 64)


if __name__ == "__main__":
    fetch("cyclonedx")
    unittest.main()
