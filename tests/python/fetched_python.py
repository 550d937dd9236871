# SPDX-License-Identifier: Apache-2.0
"""The packages that tests need besides Python itself: scripts/fetch_python.sh puts them into .deps/NAME.

A test whose packages cannot be had here ends with 77, skipped.
"""

import os
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
CANNOT_BE_HAD = (69, 75, 77)  # Exit codes of the scripts that fetch.


def python_of(name):
    """The Python that has the packages."""
    return ROOT / ".deps" / name / "bin" / "python"


def fetch(name):
    fetch_by("fetch_python.sh", name)


def fetch_by(script, *arguments):
    """Runs a script of scripts/ that fetches something into .deps."""
    fetched = subprocess.run([ROOT / "scripts" / script, *arguments], capture_output=True, text=True)
    if fetched.returncode in CANNOT_BE_HAD:
        print(f"skipped: {fetched.stderr.strip()}")
        sys.exit(77)
    if fetched.returncode != 0:
        sys.exit(f"{script} ended with {fetched.returncode}: {fetched.stderr}")


def run_inside(name):
    """Goes on as the same test in the Python that has the packages."""
    if pathlib.Path(sys.prefix).resolve() == (ROOT / ".deps" / name).resolve():
        return
    fetch(name)
    os.execv(python_of(name), [str(python_of(name)), *sys.argv])
