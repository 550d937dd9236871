#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Builds the learner's core on a machine with an NVIDIA GPU and a LibTorch 2.x from a Python wheel, runs its tests, and
# measures within 20 minutes. Needs CMake, Ninja, a C++20 compiler and python3 with torch (docs/cuda.md); neither gRPC nor
# MuJoCo nor root.   scripts/gpu_day.sh --out gpu-day
# Everything else is in scripts/gpu_day.py: --help has the flags.
exec python3 "$(dirname "$0")/gpu_day.py" "$@"
