#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""deploy/Dockerfile: its images, made of programs that are built already, start and train (deploy/check_dockerfile.py).

Exits with 77, skipped, where root, debootstrap or a Debian mirror is missing.
"""
import os
import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
BIN = pathlib.Path(os.environ.get("SKEIN_BIN", ROOT / "build/release"))
STAGE = ROOT / "deploy/docker/stage_runtime.sh"


def expect_code(want, argv, message):
    got = subprocess.run(argv, capture_output=True, text=True)
    if got.returncode != want or message not in got.stderr:
        sys.exit(f"{argv}: code {got.returncode}, want {want} and '{message}', got: {got.stderr}")


with tempfile.TemporaryDirectory() as folder:
    expect_code(64, [STAGE, folder], "stage_runtime.sh TARGET")
    expect_code(69, [STAGE, folder, BIN, "skein-nonsense"], "is missing")
    expect_code(69, [STAGE, folder, ROOT, "README.md"], "no program")
    expect_code(0, [STAGE, folder, BIN, "skein-coordinator"], "")
    staged = pathlib.Path(folder, "lib")
    if not list(staged.glob("libgrpc*.so*")) or list(staged.glob("libc.so*")):
        sys.exit(f"want gRPC's library and not C's, got {sorted(path.name for path in staged.iterdir())}")

sys.exit(subprocess.run([ROOT / "deploy/check_dockerfile.py", "--binaries", BIN]).returncode)
