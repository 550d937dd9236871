#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Installs the Debian packages that Skein needs and this machine lacks, and fetches the default build of MuJoCo. Asks
# nothing; does nothing if all are there.
set -eu
cd "$(dirname "$0")/.."

packages="g++ make cmake ninja-build pkg-config ccache
  libgrpc++-dev protobuf-compiler protobuf-compiler-grpc libprotobuf-dev libabsl-dev
  libtorch-dev libgloo-dev libopenblas0-pthread libmujoco-dev
  prometheus-cpp-dev libcpp-httplib-dev libgtest-dev libgmock-dev libcli11-dev
  libyaml-cpp-dev nlohmann-json3-dev libspdlog-dev libssl-dev libxxhash-dev libzstd-dev
  prometheus etcd-server iproute2 curl gnuplot-nox clang-14 clang-format-14 libclang-rt-14-dev ca-certificates"
# Any pip can fetch MuJoCo; Debian's only where there is none.
if [ ! -d .deps/mujoco ] && ! python3 -m pip --version >/dev/null 2>&1; then packages="$packages python3-pip"; fi

if ! command -v dpkg-query >/dev/null || ! command -v apt-get >/dev/null; then
  echo "install_dependencies: this is no Debian system; install these packages' equivalents yourself:" $packages >&2
  exit 69
fi

# Of a package that was never here dpkg-query only complains, so ask for what is installed and subtract.
installed=$(dpkg-query --show --showformat='${db:Status-Abbrev}${Package}\n' $packages 2>/dev/null |
  sed -n 's/^[ih]i *//p' || true)
missing=
for package in $packages; do
  case "
$installed
" in
    *"
$package
"*) ;;
    *) missing="$missing $package" ;;
  esac
done

# Debian's MuJoCo, which is installed above, serves where the official one cannot be had; the script says so.
fetch_mujoco() { scripts/fetch_mujoco.sh || true; }
if [ -z "$missing" ]; then
  fetch_mujoco
  exit 0
fi

if [ "$(id -u)" -eq 0 ]; then
  as_root=
elif command -v sudo >/dev/null && sudo -n true 2>/dev/null; then
  as_root="sudo -n"
else
  echo "install_dependencies: not root and no sudo without a password; as root, run: apt-get install$missing" >&2
  exit 77
fi

echo "installing:$missing"
export DEBIAN_FRONTEND=noninteractive
$as_root apt-get update -q
$as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends $missing
fetch_mujoco
