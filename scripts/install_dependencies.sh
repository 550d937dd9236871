#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Installs the packages of Debian or Ubuntu that this machine lacks. Asks nothing; does nothing if all are there.
#
#   install_dependencies.sh [build|test|dev|cluster]...      without an argument: build
#
# build: what the programs are built from, MuJoCo (scripts/fetch_mujoco.sh), what makes environments of Python
# (scripts/fetch_python.sh) and, where apt has no LibTorch that is new enough, as on Ubuntu, LibTorch
# (scripts/fetch_torch.sh).   test: what `make test` runs beside them.
# dev: Clang, its sanitizers and its formatter, gnuplot, Debian's MuJoCo.   cluster: Slurm, debootstrap, a browser, and
# axe-core, which checks pages for accessibility in it (scripts/fetch_axe.sh).
# A LibTorch under CMAKE_PREFIX_PATH is taken instead of the system's (docs/cuda.md).
# Exit codes: 64 no such purpose; 69 no apt here, or it lacks packages or has them too old; 77 neither root nor sudo without a password.
set -eu
cd "$(dirname "$0")/.."
# One at a time, where make runs several targets side by side.
if command -v flock >/dev/null; then exec 9<scripts/install_dependencies.sh && flock 9; fi

torch="libtorch-dev libgloo-dev libopenblas0-pthread"
if [ -n "${CMAKE_PREFIX_PATH:-}" ] || [ -d .deps/torch ]; then torch=; fi
packages=
for purpose in "${@:-build}"; do
  case $purpose in
    build)
      packages="$packages g++ make cmake ninja-build pkg-config ccache ca-certificates
        libgrpc++-dev protobuf-compiler protobuf-compiler-grpc libprotobuf-dev libabsl-dev
        prometheus-cpp-dev libcpp-httplib-dev libcli11-dev libyaml-cpp-dev nlohmann-json3-dev libspdlog-dev libssl-dev
        libxxhash-dev libzstd-dev zlib1g-dev $torch"
      # Any pip can fetch MuJoCo; the system's only where there is none.
      if [ ! -d .deps/mujoco ] && ! python3 -m pip --version >/dev/null 2>&1; then packages="$packages python3-pip"; fi
      if ! python3 -c "import ensurepip, venv" >/dev/null 2>&1; then packages="$packages python3-venv"; fi
      ;;
    test)
      # ffmpeg and OpenGL without a screen are for the tests that draw.
      packages="$packages libgtest-dev libgmock-dev prometheus etcd-server iproute2 curl python3 python3-markdown-it groff-base
        zsh fish ffmpeg libegl1 libgl1-mesa-dri"
      ;;
    dev) packages="$packages clang-14 clang-format-14 libclang-rt-14-dev gnuplot-nox libmujoco-dev" ;;
    cluster)
      packages="$packages chromium chromium-driver fonts-dejavu-core slurm-wlm munge openssl debootstrap"
      # Where Node.js is not Debian's, its npm comes with it.
      if ! command -v npm >/dev/null; then packages="$packages npm"; fi
      ;;
    *) echo "install_dependencies: no purpose '$purpose'; there are build, test, dev, cluster" >&2 && exit 64 ;;
  esac
done
packages=$(echo $packages)

if ! command -v dpkg-query >/dev/null || ! command -v apt-get >/dev/null; then
  echo "install_dependencies: there is no apt here; install what Debian calls $packages, then add INSTALL=no to make" >&2
  exit 69
fi

# offers PACKAGE [OLDEST]: whether apt has it, in that version or a newer one.
offers() {
  version=$(apt-cache madison "$1" | awk 'NR == 1 { print $3 }')
  [ -n "$version" ] && { [ -z "${2:-}" ] || dpkg --compare-versions "$version" ge "$2"; }
}

# install PACKAGE...: those of them that are not installed.
install() {
  # Of a package that was never here dpkg-query only complains, so ask for what is installed and subtract.
  installed=" $(dpkg-query --show --showformat='${db:Status-Abbrev}${Package}\n' "$@" 2>/dev/null |
    sed -n 's/^[ih]i *//p' | tr '\n' ' ' || true)"
  missing=
  for package; do
    case $installed in *" $package "*) ;; *) missing="$missing $package" ;; esac
  done
  [ -n "$missing" ] || return 0

  if [ "$(id -u)" -eq 0 ]; then
    as_root=
  elif command -v sudo >/dev/null && sudo -n true 2>/dev/null; then
    as_root="sudo -n"
  else
    echo "install_dependencies: not root and no sudo without a password; as root, run: apt-get install$missing" >&2
    exit 77
  fi
  $as_root apt-get update -q
  # What is older lacks interfaces that Skein uses.
  case $missing in
    *" libtorch-dev"*)
      if ! offers libtorch-dev 1.13; then
        missing=" $(printf '%s\n' $missing | grep -vxF "$(printf '%s\n' $torch)" | tr '\n' ' ')"
        fetch=scripts/fetch_torch.sh
      fi
      ;;
  esac
  unknown=
  for package in $missing; do
    case $package in libgrpc++-dev) oldest=1.51 ;; *) oldest= ;; esac
    offers "$package" "$oldest" || unknown="$unknown $package${oldest:+ of $oldest or newer}"
  done
  if [ -n "$unknown" ]; then
    echo "install_dependencies: apt knows no$unknown here; install it otherwise (docs/quickstart.md, Systems)" >&2
    exit 69
  fi
  [ -n "$(echo $missing)" ] || return 0
  echo "installing:$missing"
  $as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends $missing
}

fetch=
install $packages
$fetch
case " ${*:-build} " in
  *" build "*)
    # Debian's MuJoCo serves where the official build cannot be had; the script says so.
    scripts/fetch_mujoco.sh || install libmujoco-dev
    ;;
esac
# What needs it says so; all else can do without.
case " $* " in *" cluster "*) scripts/fetch_axe.sh || true ;; esac
