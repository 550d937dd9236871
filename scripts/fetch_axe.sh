#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Fetches the accessibility checker axe-core into .deps/axe: its script and licence, out of the npm package of
# that name. The tests of the status page run it in a browser. npm gets it from wherever it is configured to; the digest
# below is checked, and no script of the package runs.
# Does nothing if it is there. Exit codes: 69 no npm; 75 the package cannot be fetched, or is another one.
set -eu
version=4.14.1
sha512=FHfa+lmNjQZfJz1q8wKqIDwC6DExcHt/pkjNQb09a3NPjCKg2rhu5qb2S4r76ASyFNNtuFooJpZe37OgudVGtQ==

cd "$(dirname "$0")/.."
target=.deps/axe
if [ "$(cat "$target/version" 2>/dev/null)" = "$version" ]; then exit 0; fi
if ! command -v npm >/dev/null; then
  echo "fetch_axe: npm is needed: scripts/install_dependencies.sh cluster" >&2
  exit 69
fi
mkdir -p .deps
work=$(mktemp -d "$PWD/.deps/fetch.XXXXXX")
trap 'rm -rf "$work"' EXIT
if ! (cd "$work" && timeout 120 npm pack --silent --ignore-scripts "axe-core@$version") >"$work/log" 2>&1; then
  echo "fetch_axe: could not fetch axe-core $version ($(grep -v '^npm warn' "$work/log" | head -n 1))" >&2
  exit 75
fi
found=$(openssl dgst -sha512 -binary "$work/axe-core-$version.tgz" | base64 -w 0)
if [ "$found" != "$sha512" ]; then
  echo "fetch_axe: the package index gave another axe-core $version: sha512 $found instead of $sha512" >&2
  exit 75
fi
mkdir "$work/done"
tar -xzf "$work/axe-core-$version.tgz" -C "$work/done" --strip-components=1 package/axe.min.js package/LICENSE
echo "$version" >"$work/done/version"
rm -rf "$target"
mv -T "$work/done" "$target"
echo "fetched axe-core $version into $target"
