#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# test_sanitized.sh BUILD-FOLDER [CTEST FLAG...]: runs tests of a build with sanitizers. Whatever a sanitizer says in a
# test, or in a program that a test starts, goes to BUILD-FOLDER/findings. Exit code 1 if anything is there at the end,
# also where no test has noticed.
set -euo pipefail
cd "$(dirname "$0")/.."
build=$1
shift

findings=$PWD/$build/findings
rm -rf "$findings"
mkdir -p "$findings"
# Tests ask for more memory than there is.
export ASAN_OPTIONS=log_path=$findings/asan:allocator_may_return_null=1
export UBSAN_OPTIONS=log_path=$findings/ubsan:print_stacktrace=1
# Tests fork to see programs end.
export TSAN_OPTIONS=log_path=$findings/tsan:suppressions=$PWD/tests/sanitizers/tsan.supp:halt_on_error=1:die_after_fork=0:allocator_may_return_null=1

status=0
ctest --test-dir "$build" --no-tests=error --output-on-failure "$@" || status=1
reports=$(ls "$findings")
for report in $reports; do
  echo "--- $findings/$report"
  head -n 60 "$findings/$report"
done
if [ -n "$reports" ]; then
  echo "test_sanitized: sanitizers found something in $(wc -l <<<"$reports") processes: $findings" >&2
  status=1
fi
exit $status
