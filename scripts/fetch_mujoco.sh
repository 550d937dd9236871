#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Fetches an official build of MuJoCo, headers and library, into .deps/mujoco-VERSION, and without an argument also lets
# .deps/mujoco point to it: cmake takes that one. They come out of the Python wheel of that version, which pip gets from
# wherever it is configured to and checks against the digest below; no Python of ours ever runs.
#   scripts/fetch_mujoco.sh [2.3.7|3.17.0|4.0.0]
# Does nothing if it is there. Exit codes: 64 no such version; 69 no build for this machine, or no pip; 75 the package
# index cannot be reached or gave something else (asked again after an hour at the earliest; with an argument at once).
set -eu

default=2.3.7
version=${1:-$default}
machine=$(uname -m)
package=mujoco
case $version in 4.*) package=mujoco-core ;; esac # Where the library is since version 4.
case $version-$machine in
  2.3.7-x86_64) sha256=426af8965f8636d94a0f75740c3024a62b3e585020ee817ef5208ec844a1ad94 ;;
  2.3.7-aarch64) sha256=c08660a8d52ef3efde76095f0991e807703a950c1e882d2bcd984b9a846626f7 ;;
  3.17.0-x86_64) sha256=d66928d86a2d1b601bbaa4dc11db50214d17d5301bb8afd84721313b67ff0874 ;;
  3.17.0-aarch64) sha256=91a70ed9979c383ff1f5c03f25cc2e1280a8254c1a8e558d5dd7f4184f01efc9 ;;
  4.0.0-x86_64) sha256=885bd9b9cc0a6b5ba1114923eb954027652a6a0c115fa46b3218b83bae72ac4f ;;
  4.0.0-aarch64) sha256=34de0c1674caa95abd3a0214ded4461e688150fbaa015b2db523d553b7411c3b ;;
  2.3.7-* | 3.17.0-* | 4.0.0-*) echo "fetch_mujoco: no official build for $machine; the system's MuJoCo serves" >&2 && exit 69 ;;
  *) echo "fetch_mujoco: no digest for version '$version' here; there are 2.3.7, 3.17.0 and 4.0.0" >&2 && exit 64 ;;
esac

cd "$(dirname "$0")/.."
mkdir -p .deps
target=.deps/mujoco-$version
failed=.deps/mujoco-$version.failed

if [ ! -d "$target" ]; then
  if [ $# -eq 0 ] && [ -n "$(find "$failed" -mmin -60 2>/dev/null)" ]; then exit 75; fi
  work=$(mktemp -d .deps/fetch.XXXXXX)
  trap 'rm -rf "$work"' EXIT
  # The time limit covers an index that answers slowly for ever.
  code=0
  timeout 120 scripts/fetch_wheel.sh $package "$version" $sha256 "$work/wheel" 2>"$work/why" || code=$?
  if [ "$code" -ne 0 ]; then
    if [ "$code" -ne 69 ]; then touch "$failed" && code=75; fi # A pip may be installed at any time.
    why=$(tail -n 1 "$work/why")
    echo "fetch_mujoco: could not fetch MuJoCo $version (${why:-timed out}); the system's serves meanwhile" >&2
    exit $code
  fi
  mkdir -p "$work/done/lib"
  mv "$work/wheel/mujoco/include" "$work/done/include"
  mv "$work/wheel/mujoco/libmujoco.so.$version" "$work/done/lib/"
  find "$work/wheel" -path '*.dist-info/*' -name 'LICENSE*' -exec mv {} "$work/done/" \;
  mv -T "$work/done" "$target" 2>/dev/null || [ -d "$target" ] # Another one of us was faster.
  rm -f "$failed"
  echo "fetched MuJoCo $version into $target"
fi
if [ "$version" = "$default" ] && [ "$(readlink .deps/mujoco)" != "mujoco-$version" ]; then
  ln -sfn "mujoco-$version" .deps/mujoco
  touch cmake/mujoco.cmake # Build trees look again for what they link.
fi
