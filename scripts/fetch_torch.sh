#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Fetches LibTorch, headers and libraries, into .deps/torch: cmake takes that one where the system has none of 1.13 or
# newer (docs/decisions/a-libtorch-from-a-wheel.md). It computes on the CPU; for GPUs see docs/cuda.md.
# Does nothing if it is there. Exit codes: 69 no build for this machine, or no pip; 75 it cannot be fetched.
set -eu
cd "$(dirname "$0")/.."
target=.deps/torch
if [ "$(cat "$target/version" 2>/dev/null)" = 2.11.0 ]; then exit 0; fi
if [ "$(uname -m)" != x86_64 ]; then
  echo "fetch_torch: no digest for $(uname -m) here; install a LibTorch and name it in CMAKE_PREFIX_PATH (docs/cuda.md)" >&2
  exit 69
fi
mkdir -p .deps
work=$(mktemp -d .deps/fetch.XXXXXX)
trap 'rm -rf "$work"' EXIT
fetch() {
  code=0
  scripts/fetch_wheel.sh "$1" "$2" "$3" "$work/$1" 2>"$work/why" || code=$?
  if [ "$code" -ne 0 ]; then
    echo "fetch_torch: could not fetch $1 $2 ($(tail -n 1 "$work/why")); run it again, or name a LibTorch in CMAKE_PREFIX_PATH" >&2
    exit "$code"
  fi
}
echo "fetching LibTorch 2.11.0 (540 MB)"
fetch torch 2.11.0 7aa2f9bbc6d4595ba72138026b2074be1233186150e9292865e04b7a63b8c67a
# The package has one build, which knows GPUs: its part for the CPU is linked to these two.
fetch nvidia-cuda-runtime 13.0.96 7f82250d7782aa23b6cfe765ecc7db554bd3c2870c43f3d1821f1d18aebf0548
fetch nvidia-cuda-cupti 13.0.85 4eb01c08e859bf924d222250d2e8f8b8ff6d3db4721288cf35d14252a4d933c8
mkdir -p "$work/done/lib" "$work/done/licences"
mv "$work/torch/torch/include" "$work/done/include"
for library in libtorch_cpu.so libc10.so libgomp.so.1; do mv "$work/torch/torch/lib/$library" "$work/done/lib/"; done
mv "$work"/nvidia-*/nvidia/cu13/lib/libcudart.so.13 "$work"/nvidia-*/nvidia/cu13/lib/libcupti.so.13 "$work/done/lib/"
for package in torch nvidia-cuda-runtime nvidia-cuda-cupti; do
  mv "$work/$package"/*.dist-info/licenses "$work/done/licences/$package"
done
echo 2.11.0 >"$work/done/version"
rm -rf "$target"
mv -T "$work/done" "$target"
echo "fetched LibTorch 2.11.0 into $target"
