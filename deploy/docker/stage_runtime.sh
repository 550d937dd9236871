#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Puts programs, and every shared library that they load, into TARGET/bin and TARGET/lib, so that they run where there is
# nothing but Debian's C library and TARGET.
#
#   stage_runtime.sh TARGET FOLDER PROGRAM...
#
# Which libraries those are the loader says (ldd). The C library and the loader belong together and are the base's own.
# Exit codes: 64 usage; 69 a program is missing, or a library that it needs.
set -euo pipefail
if (($# < 3)); then
  sed -n 's/^#   //p' "$0" >&2
  exit 64
fi
target=$1 folder=$2
shift 2
mkdir -p "$target/bin" "$target/lib"

declare -A of_base
while read -r path; do of_base[$(readlink -f "$path")]=1; done < <(dpkg -L libc6 | grep -F .so)

for program in "$@"; do
  if ! needed=$(ldd "$folder/$program"); then
    echo "stage_runtime: $folder/$program is missing, or no program" >&2
    exit 69
  fi
  if missing=$(grep 'not found' <<<"$needed"); then
    printf 'stage_runtime: %s needs what is not here:\n%s\n' "$program" "$missing" >&2
    exit 69
  fi
  install -m 755 -s "$folder/$program" "$target/bin/$program"
  # "NAME => PATH (address)"; what has no arrow is the loader, or comes from the kernel.
  while read -r name path; do
    file=$(readlink -f "$path")
    if [[ ! ${of_base[$file]:-} && ! -e $target/lib/$name ]]; then install -m 644 "$file" "$target/lib/$name"; fi
  done < <(sed -n 's/^\s*\(\S*\) => \(\S*\) (0x.*/\1 \2/p' <<<"$needed")
done
