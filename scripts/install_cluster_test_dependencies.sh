#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Installs the Debian packages that `make test-cluster` needs beyond Skein's own: a browser with its driver and a font,
# and Slurm. Asks nothing; does nothing if all are there.
set -eu

packages="chromium chromium-driver fonts-dejavu-core
  slurm-wlm munge"

if ! command -v dpkg-query >/dev/null || ! command -v apt-get >/dev/null; then
  echo "install_cluster_test_dependencies: this is no Debian system; install these packages' equivalents:" $packages >&2
  exit 69
fi

missing=
for package in $packages; do
  status=$(dpkg-query --show --showformat='${db:Status-Abbrev}' "$package" 2>/dev/null || true)
  case "$status" in [ih]i*) ;; *) missing="$missing $package" ;; esac
done
[ -n "$missing" ] || exit 0

if [ "$(id -u)" -eq 0 ]; then
  as_root=
elif command -v sudo >/dev/null && sudo -n true 2>/dev/null; then
  as_root="sudo -n"
else
  echo "install_cluster_test_dependencies: as root, run: apt-get install$missing" >&2
  exit 77
fi

echo "installing:$missing"
$as_root apt-get update -q
$as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends $missing
