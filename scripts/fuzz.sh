#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# fuzz.sh BUILD-FOLDER RUNS [TARGET...]: runs each fuzz target (all of tests/fuzz/corpus unless named) for that many inputs,
# beginning with its corpus, and prints a line for each. What it learns on the way is kept in BUILD-FOLDER/corpus, findings
# in BUILD-FOLDER/findings: as soon as there is one, it ends with its report.
set -eu
cd "$(dirname "$0")/.."
build=$1
runs=$2
shift 2
if [ $# -eq 0 ]; then set -- $(ls tests/fuzz/corpus); fi

# Torch and OpenBLAS would start a thread for each core. Leaks are looked for at the end, not after each input.
export OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1
export UBSAN_OPTIONS=print_stacktrace=1
mkdir -p "$build/findings"
for target in "$@"; do
  mkdir -p "$build/corpus/$target"
  begin=$(date +%s)
  # No input takes over 10 s or makes the process larger than 2 GiB; none asks for 256 MiB at once.
  if ! "$build/fuzz_$target" -runs="$runs" -max_len=8192 -timeout=10 -rss_limit_mb=2048 -malloc_limit_mb=256 \
      -detect_leaks=0 -print_final_stats=1 ${FUZZ_FLAGS:-} -artifact_prefix="$build/findings/$target-" \
      "$build/corpus/$target" "tests/fuzz/corpus/$target" >"$build/$target.log" 2>&1; then
    tail -n 60 "$build/$target.log"
    echo "fuzz: $target has a finding; its input is in $build/findings" >&2
    exit 1
  fi
  inputs=$(sed -n 's/^stat::number_of_executed_units: *//p' "$build/$target.log")
  edges=$(sed -n 's/.* cov: \([0-9]*\) .*/\1/p' "$build/$target.log" | tail -n 1)
  echo "$target: $inputs inputs in $(($(date +%s) - begin)) s, $edges edges"
done
