#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Makes .deps/bare-root, the root folder of a Debian 12 with Python's venv and nothing else: no compiler, no library that
# Skein is built with. tests/python/bare_machine_test.py installs the wheel there. Needs root and debootstrap; packages
# come from DEBIAN_MIRROR (http://deb.debian.org/debian). Does nothing if it is there.
# Exit codes: 69 no debootstrap; 75 the packages cannot be fetched; 77 not root.
set -eu
cd "$(dirname "$0")/.."
if command -v flock >/dev/null; then exec 9<scripts/fetch_bare_root.sh && flock 9; fi
target=.deps/bare-root
if [ -f "$target/etc/debian_version" ]; then exit 0; fi
if [ "$(id -u)" -ne 0 ]; then echo "fetch_bare_root: only root can make a root folder" >&2 && exit 77; fi
PATH=$PATH:/usr/sbin:/sbin
if ! command -v debootstrap >/dev/null; then
  echo "fetch_bare_root: no debootstrap; run scripts/install_dependencies.sh cluster" >&2
  exit 69
fi
mkdir -p .deps
made=$(mktemp -d .deps/bare-root.XXXXXX)
trap 'rm -rf "$made"' EXIT
chmod 755 "$made"
if ! debootstrap --variant=minbase --include=ca-certificates,python3-venv bookworm "$made" \
  "${DEBIAN_MIRROR:-http://deb.debian.org/debian}" >"$made.log" 2>&1; then
  echo "fetch_bare_root: debootstrap: $(tail -n 1 "$made.log")" >&2
  rm -f "$made.log"
  exit 75
fi
rm -rf "$target" "$made.log" "$made"/var/cache/apt/archives/*.deb "$made"/var/lib/apt/lists/*
mv "$made" "$target"
echo "made $target"
