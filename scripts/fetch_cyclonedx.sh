#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Makes .deps/cyclonedx, a Python virtual environment with the CycloneDX project's own library, which checks bills of
# materials (scripts/make_sbom.py) by the published schema. Packages come through pip from wherever it is configured to.
# Does nothing if it is there. Exit codes: 69 no Python with venv; 75 the packages cannot be fetched.
set -eu
cd "$(dirname "$0")/.."
target=.deps/cyclonedx
packages="cyclonedx-python-lib[json-validation]==11.12.0"
if [ "$(cat "$target/packages" 2>/dev/null)" = "$packages" ]; then exit 0; fi

rm -rf "$target"
mkdir -p .deps
if ! python3 -m venv "$target" >/dev/null 2>&1; then
  rm -rf "$target"
  echo "fetch_cyclonedx: python3 -m venv fails; install Python 3.9 or newer with venv (Debian: python3-venv)" >&2
  exit 69
fi
if ! "$target/bin/pip" install --quiet --disable-pip-version-check --no-input --timeout 10 --retries 1 "$packages" >"$target/log" 2>&1; then
  echo "fetch_cyclonedx: pip: $(grep -m 1 ERROR "$target/log" || tail -n 1 "$target/log")" >&2
  rm -rf "$target"
  exit 75
fi
echo "$packages" >"$target/packages"
echo "fetched into $target: $packages"
