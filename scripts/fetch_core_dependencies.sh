#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Unpacks the libraries that a core-only build needs, without root, into .deps/core; cmake looks there by itself. They are
# the packages of this machine's own distribution, Debian or Ubuntu, which apt-get fetches and apt-cache's signed lists
# hold a digest of; nothing is installed. .deps/core can be copied to a machine without a network whose C library is no
# older.   scripts/fetch_core_dependencies.sh; cmake -DSKEIN_CORE_ONLY=ON ...
# Does nothing if it is there. Exit codes: 69 no apt-get here; 75 the archive cannot be reached, or its digests differ.
set -eu
cd "$(dirname "$0")/.."
target=.deps/core
if [ -e "$target/usr/include/zlib.h" ]; then exit 0; fi

wanted="libprotobuf-dev protobuf-compiler libabsl-dev libyaml-cpp-dev nlohmann-json3-dev libspdlog-dev libcli11-dev
  libxxhash-dev libzstd-dev zlib1g-dev libgtest-dev libgmock-dev"
if ! command -v apt-get >/dev/null || ! command -v dpkg-deb >/dev/null; then
  echo "fetch_core_dependencies: no apt-get here; install these packages' equivalents yourself:" $wanted >&2
  exit 69
fi

mkdir -p .deps
work=$(mktemp -d .deps/fetch.XXXXXX)
trap 'rm -rf "$work"' EXIT
# And the shared libraries that these stand for; the C and C++ libraries and zlib itself are everywhere.
packages=$(apt-cache depends --recurse --important $wanted |
  grep -E '^(lib(absl|protobuf|protoc|yaml-cpp|spdlog|fmt|xxhash|zstd|cli11|gtest|gmock)|protobuf-compiler|nlohmann-json3|zlib1g-dev)' |
  grep -vE 'lite' | sort -u)
if [ -z "$packages" ] || ! (cd "$work" && apt-get download -q $packages >log 2>&1); then
  echo "fetch_core_dependencies: could not fetch the packages ($(sed -n 's/^E: //p' "$work/log" 2>/dev/null | head -n 1));" \
    "is there a network, and has apt-get update ever run?" >&2
  exit 75
fi
for package in "$work"/*.deb; do dpkg-deb -x "$package" "$work/done"; done
rm -rf "$work/done/usr/share/doc" "$work/done/usr/share/man"

# protoc looks for its libraries in the system only.
mv "$work/done/usr/bin/protoc" "$work/done/usr/bin/protoc.program"
cat >"$work/done/usr/bin/protoc" <<'WRAPPER'
#!/bin/sh
bin=$(dirname "$(readlink -f "$0")")
LD_LIBRARY_PATH=$(echo "$bin"/../lib/*-linux-gnu):${LD_LIBRARY_PATH:-} exec "$bin/protoc.program" "$@"
WRAPPER
chmod 755 "$work/done/usr/bin/protoc" "$work/done"
rm -rf "$target" # Of a version that needed less.
mv -T "$work/done" "$target" 2>/dev/null || [ -d "$target" ] # Another one of us was faster.
echo "fetched into $target:" $packages
