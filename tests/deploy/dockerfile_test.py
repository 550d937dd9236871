#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""deploy/Dockerfile: its images, made of programs that are built already, start and train (deploy/check_dockerfile.py).

Exits with 77, skipped, where root, debootstrap or a Debian mirror is missing.
"""
import os
import pathlib
import re
import shutil
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

# The base image is pinned, in all stages.
dockerfile = (ROOT / "deploy/Dockerfile").read_text()
if not re.search(r"^ARG DEBIAN=debian:bookworm-slim@sha256:[0-9a-f]{64}$", dockerfile, re.MULTILINE):
    sys.exit("deploy/Dockerfile: the base image has no digest")
if bases := set(re.findall(r"^FROM (\S+)", dockerfile, re.MULTILINE)) - {"${DEBIAN}", "runtime"}:
    sys.exit(f"deploy/Dockerfile: bases without a digest: {bases}")

# What pins the base image, with a docker that answers as told.
PIN = ROOT / "deploy/docker/pin_base.sh"
DIGEST = "sha256:" + 32 * "4f"
with tempfile.TemporaryDirectory() as folder:
    dockerfile, docker = pathlib.Path(folder, "Dockerfile"), pathlib.Path(folder, "docker")
    dockerfile.write_text((ROOT / "deploy/Dockerfile").read_text())
    os.environ["PATH"] = f"{folder}:{os.environ['PATH']}"
    if not shutil.which("docker"):
        expect_code(69, [PIN, dockerfile], "no docker")
    docker.write_text('#!/bin/sh\n[ "$4" = debian:bookworm-slim ] && echo "$ANSWER"\n')
    docker.chmod(0o755)
    for wrong in ("", "sha256:12", f"{DIGEST}; rm -rf x"):
        os.environ["ANSWER"] = wrong
        expect_code(75, [PIN, dockerfile], "want a digest")
    if dockerfile.read_text() != (ROOT / "deploy/Dockerfile").read_text():
        sys.exit("a wrong answer changed the Dockerfile")
    os.environ["ANSWER"] = DIGEST
    for _ in range(2):  # A pinned one is pinned anew.
        expect_code(0, [PIN, dockerfile], "")
        if dockerfile.read_text().count(f"\nARG DEBIAN=debian:bookworm-slim@{DIGEST}\n") != 1:
            sys.exit(f"the digest is not in the Dockerfile: {dockerfile.read_text()}")
    dockerfile.write_text("FROM debian\n")
    expect_code(65, [PIN, dockerfile], "no line")

sys.exit(subprocess.run([ROOT / "deploy/check_dockerfile.py", "--binaries", BIN]).returncode)
