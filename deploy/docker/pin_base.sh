#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Writes the digest that the registry has now for the base image into deploy/Dockerfile, so that builds from then on use
# the same bytes. Run it again for a newer base. Needs docker with buildx, and the registry.
#
#   deploy/docker/pin_base.sh [DOCKERFILE]
#
# Exit codes: 65 the Dockerfile has no line `ARG DEBIAN=`; 69 no docker; 75 the registry gave no digest.
set -eu
file=${1:-$(dirname "$0")/../Dockerfile}
base=$(sed -n 's/^ARG DEBIAN=\([^@]*\).*/\1/p' "$file")
if [ -z "$base" ]; then
  echo "pin_base: $file: no line 'ARG DEBIAN=IMAGE'" >&2
  exit 65
fi
if ! command -v docker >/dev/null; then
  echo "pin_base: there is no docker here; install it, or build with --build-arg DEBIAN=$base@sha256:..." >&2
  exit 69
fi
digest=$(docker buildx imagetools inspect "$base" --format '{{.Manifest.Digest}}') || digest=
if ! printf '%s\n' "$digest" | grep -Eqx 'sha256:[0-9a-f]{64}'; then
  echo "pin_base: $base: want a digest sha256:..., the registry gave '$digest'; try again" >&2
  exit 75
fi
sed -i "s|^ARG DEBIAN=.*|ARG DEBIAN=$base@$digest|" "$file"
echo "$file: $base@$digest"
